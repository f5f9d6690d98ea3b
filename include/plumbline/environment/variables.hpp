// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_VARIABLES_HPP
#define PLUMBLINE_ENVIRONMENT_VARIABLES_HPP

#include <cctype>
#include <map>
#include <string>
#include <string_view>

#include "plumbline/environment/reader.hpp"
#include "plumbline/environment/variable_names.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

/// The environment block of this process as it was when it started, from /proc/self/environ: a variable that is set
/// later inside the process is not seen by libraries that were already initialised (tensorflow/tensorflow#53742).
[[nodiscard]] inline std::map<std::string, std::string> read_environment_block(const host& machine) {
    std::map<std::string, std::string> found;
    const std::string block = read_file(machine, "/proc/self/environ").text;
    for (std::size_t at = 0; at < block.size();) {
        const auto end = std::min(block.find('\0', at), block.size());
        const std::string entry = block.substr(at, end - at);
        const auto equal = entry.find('=');
        if (equal != std::string::npos && equal > 0) found.emplace(entry.substr(0, equal), entry.substr(equal + 1));
        at = end + 1;
    }
    return found;
}

namespace detail {

[[nodiscard]] inline bool names_a_secret(std::string_view name) {
    for (const char* word : {"TOKEN", "SECRET", "PASSW", "CREDENTIAL", "APIKEY", "API_KEY", "ACCESS_KEY", "PRIVATE",
                             "AUTH", "COOKIE", "SESSION", "SIGNATURE"}) {
        if (name.find(word) != std::string_view::npos) return true;
    }
    // "_KEY" at the end of a word, but not the KEY of a longer one such as KEYWORD.
    const auto key = name.find("KEY");
    return key != std::string_view::npos && (key + 3 == name.size() || name[key + 3] == '_' || name[key + 3] == 'S');
}

/// Whether one word is what a token looks like: a known prefix, or 20 and more letters and digits that mix cases or
/// have many digits between letters. Paths, lists, versions, UUIDs and file names do not look so.
[[nodiscard]] inline bool token_like_word(std::string_view word) {
    for (const char* prefix : {"ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "hf_", "sk-", "xoxb-", "xoxp-", "AKIA",
                               "ASIA", "eyJ", "nvapi-", "ya29.", "AIza", "wandb_v"}) {
        const std::string_view p(prefix);
        if (word.size() >= p.size() + 8 && word.substr(0, p.size()) == p) return true;
    }
    if (word.size() < 20) return false;
    std::size_t digits = 0, upper = 0, lower = 0, switches = 0;
    bool was_digit = false;
    for (std::size_t i = 0; i < word.size(); ++i) {
        const auto c = static_cast<unsigned char>(word[i]);
        const bool digit = std::isdigit(c) != 0;
        digits += digit ? 1 : 0;
        upper += std::isupper(c) ? 1 : 0;
        lower += std::islower(c) ? 1 : 0;
        if (!digit && !std::isalpha(c) && c != '_' && c != '-' && c != '+' && c != '=') return false;
        switches += i > 0 && digit != was_digit ? 1 : 0;
        was_digit = digit;
    }
    return switches >= 4 && digits >= 3 && (upper + lower) >= 4;
}

/// Whether a value may be a secret. Errs towards dropping: a lost value costs an explanation, a stored one a password.
[[nodiscard]] inline bool holds_a_secret(std::string_view value) {
    // user:password@host in a URL
    const auto scheme = value.find("://");
    if (scheme != std::string_view::npos) {
        const auto rest = value.substr(scheme + 3);
        const auto at = rest.find('@');
        if (at != std::string_view::npos && at < rest.find('/')) return true;
    }
    if (value.find("-----BEGIN") != std::string_view::npos) return true;
    std::string_view rest = value;
    while (!rest.empty()) {
        const auto end = std::min(rest.find_first_of(" ,;:/=\t\n\"'?&@"), rest.size());
        if (token_like_word(rest.substr(0, end))) return true;
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return false;
}

/// Replaces UUIDs of devices ("GPU-8-4-4-4-12", "MIG-...") by "GPU-#" and their hash.
[[nodiscard]] inline std::string without_uuids(std::string_view value) {
    std::string text;
    while (!value.empty()) {
        const auto end = std::min(value.find(','), value.size());
        const std::string_view piece = value.substr(0, end);
        const bool uuid = piece.size() > 12 && (piece.substr(0, 4) == "GPU-" || piece.substr(0, 4) == "MIG-");
        text += uuid ? std::string(piece.substr(0, 4)) + "#" + hashed_id(piece) : std::string(piece);
        if (end < value.size()) text += ',';
        value.remove_prefix(std::min(end + 1, value.size()));
    }
    return text;
}

} // namespace detail

/// The reading that is stored for one variable, or nothing when its name is not on the allow-list.
[[nodiscard]] inline std::optional<result::attribute> recorded_variable(const std::string& name,
                                                                        const std::string& value) {
    const int listed = detail::listed_variable_link(name);
    const int link = listed != 0 ? listed : detail::prefixed_variable_link(name);
    if (link == 0) return std::nullopt;
    result::attribute entry{result::attribute_class::config, link, "env", {}};
    // A prefix says nothing about the value, so its hash is all that is kept; an empty value is one anybody may see.
    const std::string plain = detail::without_uuids(value);
    if ((listed == 0 && detail::names_a_secret(name)) || detail::holds_a_secret(plain)) {
        entry.read = result::reading::denied("may be a secret: not recorded");
    } else if (listed != 0 || value.empty()) {
        entry.read = result::reading::of(plain);
    } else {
        entry.read = result::reading::of("hash " + hashed_id(value));
    }
    return entry;
}

/// The allow-listed variables as "env.NAME", and PATH only as its hash and the nvcc it leads to. A name that is not
/// there was not set (diff.hpp).
inline void read_variables(result::fingerprint& into, const host& machine) {
    recorder out(into, "env");
    out.state("process.variables_captured", 1, result::reading::of(true));
    for (const auto& [name, value] : machine.variables) {
        if (auto entry = recorded_variable(name, value)) out.put("env." + name, *std::move(entry));
    }
    const auto path = machine.variables.find("PATH");
    if (path == machine.variables.end()) return;
    out.config("env.PATH", 1, result::reading::of("hash " + hashed_id(path->second)));
    result::reading nvcc = result::reading::absent("no nvcc on PATH");
    for (const std::string& folder : detail::split(path->second, ':')) {
        if (folder.front() != '/' || !exists(machine, folder + "/nvcc")) continue;
        std::error_code failure;
        const auto real = std::filesystem::canonical(detail::below(machine, folder + "/nvcc"), failure);
        nvcc = result::reading::of(failure ? folder + "/nvcc" : real.lexically_relative(machine.root).string());
        if (!failure) nvcc.value = "/" + std::get<std::string>(nvcc.value);
        break;
    }
    out.config("process.nvcc", 2, nvcc);
}

} // namespace environment

PLUMBLINE_NAMESPACE_END

#endif
