// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_READER_HPP
#define PLUMBLINE_ENVIRONMENT_READER_HPP

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "plumbline/core/utf8.hpp"
#include "plumbline/environment/host.hpp"
#include "plumbline/result/fingerprint.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

/// The content of a small file, or the reason why there is none.
struct text_file {
    std::string text;
    result::reading why; ///< status value when the file was read; its value is not used

    [[nodiscard]] bool known() const noexcept { return why.known(); }
};

namespace detail {

/// Where a path of the machine ("/proc/version") really lies.
[[nodiscard]] inline std::filesystem::path below(const host& machine, const std::filesystem::path& path) {
    return machine.root / path.relative_path();
}

/// The reading that an errno stands for. Names instead of strerror, which follows the locale.
[[nodiscard]] inline result::reading unreadable(const std::string& path, int code) {
    switch (code) {
    case ENOENT:
        return result::reading::absent(path + ": ENOENT");
    case ENOTDIR:
        return result::reading::absent(path + ": ENOTDIR");
    case EACCES:
        return result::reading::denied(path + ": EACCES");
    case EPERM:
        return result::reading::denied(path + ": EPERM");
    default:
        return result::reading::unsupported(path + ": errno " + std::to_string(code));
    }
}

[[nodiscard]] inline std::string_view trimmed(std::string_view text) {
    constexpr std::string_view blank = " \t\n\r\v\f";
    const auto first = text.find_first_not_of(blank);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

/// The pieces of a text between separators, trimmed; empty pieces are left out.
[[nodiscard]] inline std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> pieces;
    while (!text.empty()) {
        const auto end = std::min(text.find(separator), text.size());
        if (const auto piece = trimmed(text.substr(0, end)); !piece.empty()) pieces.emplace_back(piece);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return pieces;
}

[[nodiscard]] inline std::string join(const std::vector<std::string>& pieces, std::string_view separator) {
    std::string text;
    for (const std::string& piece : pieces) {
        if (!text.empty()) text += separator;
        text += piece;
    }
    return text;
}

/// A decimal integer that fills the whole text; independent of the locale.
[[nodiscard]] inline std::optional<std::int64_t> integer(std::string_view text) {
    text = trimmed(text);
    std::int64_t value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
    return value;
}

/// A decimal number that fills the whole text; independent of the locale.
[[nodiscard]] inline std::optional<double> number(std::string_view text) {
    text = trimmed(text);
    double value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
    return value;
}

/// A number with its unit, for people: 3 digits at most behind the point, no trailing zeros.
[[nodiscard]] inline std::string shown(double value) {
    char text[64];
    const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, 3).ptr;
    std::string out(text, end);
    while (out.back() == '0') out.pop_back();
    if (out.back() == '.') out.pop_back();
    return out;
}

[[nodiscard]] inline std::string shown_bytes(double bytes) {
    const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    std::size_t unit = 0;
    while (bytes >= 1024 && unit + 1 < std::size(units)) bytes /= 1024, ++unit;
    return shown(static_cast<double>(static_cast<std::int64_t>(bytes * 10 + 0.5)) / 10) + ' ' + units[unit];
}

} // namespace detail

/// Reads a file of the machine, at most `limit` bytes of it. Never throws and never blocks on a pipe.
[[nodiscard]] inline text_file read_file(const host& machine, const std::string& path, std::size_t limit = 4u << 20) {
    // C calls because errno is the finding: a stream would only say that it failed.
    const int file =
        ::open(detail::below(machine, path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); // NOLINT
    if (file < 0) return {{}, detail::unreadable(path, errno)};
    text_file found{{}, result::reading::of(true)};
    char buffer[16384];
    while (found.text.size() < limit) {
        const ssize_t got = ::read(file, buffer, std::min(sizeof buffer, limit - found.text.size()));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) found = {{}, detail::unreadable(path, errno)};
        if (got <= 0) break;
        found.text.append(buffer, static_cast<std::size_t>(got));
    }
    ::close(file);
    return found;
}

/// The trimmed text of a one-value file as a reading; an empty file is unsupported.
[[nodiscard]] inline result::reading read_text(const host& machine, const std::string& path) {
    const text_file file = read_file(machine, path, 1u << 16);
    if (!file.known()) return file.why;
    const auto text = detail::trimmed(file.text);
    if (text.empty()) return result::reading::unsupported(path + ": empty");
    return result::reading::of(std::string(text));
}

/// A one-integer file as a reading; text that is no integer is unsupported.
[[nodiscard]] inline result::reading read_integer(const host& machine, const std::string& path) {
    const result::reading text = read_text(machine, path);
    if (!text.known()) return text;
    if (const auto value = detail::integer(std::get<std::string>(text.value))) return result::reading::of(*value);
    return result::reading::unsupported(path + ": no integer");
}

/// The choice in brackets of a file like "always [madvise] never"; a file without brackets gives its whole text.
[[nodiscard]] inline result::reading read_choice(const host& machine, const std::string& path) {
    const result::reading all = read_text(machine, path);
    if (!all.known()) return all;
    const auto& text = std::get<std::string>(all.value);
    const auto open = text.find('['), close = text.find(']');
    if (open == std::string::npos || close == std::string::npos || close < open) return all;
    return result::reading::of(text.substr(open + 1, close - open - 1));
}

/// Whether a path exists on the machine. What may not be looked at counts as missing.
[[nodiscard]] inline bool exists(const host& machine, const std::string& path) {
    std::error_code ignored;
    return std::filesystem::exists(detail::below(machine, path), ignored);
}

/// Names of the entries of a folder, sorted; empty where it cannot be listed.
[[nodiscard]] inline std::vector<std::string> list_folder(const host& machine, const std::string& path) {
    std::vector<std::string> names;
    std::error_code failure;
    std::filesystem::directory_iterator entry(detail::below(machine, path), failure);
    for (const std::filesystem::directory_iterator end; !failure && entry != end; entry.increment(failure)) {
        names.push_back(entry->path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
}

/// The value of "Name: value" or "name\t: value" in a file of such lines; the first one wins.
[[nodiscard]] inline std::optional<std::string> field_of(std::string_view text, std::string_view name) {
    while (!text.empty()) {
        const auto end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        const auto colon = line.find(':');
        if (colon != std::string_view::npos && detail::trimmed(line.substr(0, colon)) == name) {
            return std::string(detail::trimmed(line.substr(colon + 1)));
        }
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return std::nullopt;
}

/// The CPUs or nodes of a list like "0-3,8,10-11"; empty where the text is no such list.
[[nodiscard]] inline std::vector<int> parse_id_list(std::string_view text) {
    std::vector<int> ids;
    for (const std::string& piece : detail::split(text, ',')) {
        const auto dash = piece.find('-');
        const auto first = detail::integer(std::string_view(piece).substr(0, dash));
        const auto last = dash == std::string::npos ? first : detail::integer(std::string_view(piece).substr(dash + 1));
        // A limit far above any machine keeps a damaged file from filling the memory.
        constexpr std::int64_t most = 1 << 20;
        if (!first || !last || *first < 0 || *last < *first || *last > most) return {};
        if (static_cast<std::int64_t>(ids.size()) + *last - *first > most) return {};
        for (std::int64_t id = *first; id <= *last; ++id) ids.push_back(static_cast<int>(id));
    }
    return ids;
}

/// Puts attributes of one source into a fingerprint.
class recorder {
public:
    recorder(result::fingerprint& into, std::string source) : into_(&into), source_(std::move(source)) {}

    void add(const std::string& name, result::attribute_class kind, int link, result::reading read) {
        put(name, {kind, link, source_, std::move(read)});
    }
    /// One whose source is known already. A file can hold UTF-8 only; what is read from a machine can be any bytes.
    void put(const std::string& name, result::attribute entry) {
        if (auto* text = std::get_if<std::string>(&entry.read.value)) *text = valid_utf8(*text);
        entry.read.reason = valid_utf8(entry.read.reason);
        into_->attributes[valid_utf8(name)] = std::move(entry);
    }
    void identity(const std::string& name, int link, result::reading read) {
        add(name, result::attribute_class::identity, link, std::move(read));
    }
    void config(const std::string& name, int link, result::reading read) {
        add(name, result::attribute_class::config, link, std::move(read));
    }
    void state(const std::string& name, int link, result::reading read) {
        add(name, result::attribute_class::state, link, std::move(read));
    }
    [[nodiscard]] result::fingerprint& fingerprint() noexcept { return *into_; }

private:
    result::fingerprint* into_;
    std::string source_;
};

/// The hash under which a UUID, serial number or host name is stored: tells two apart, gives neither away.
[[nodiscard]] inline std::string hashed_id(std::string_view text) {
    return short_hash(text);
}

/// A text reading with its value hashed; reasons stay as they are.
[[nodiscard]] inline result::reading hashed(result::reading read) {
    if (read.known()) read.value = hashed_id(to_string(read.value));
    return read;
}

} // namespace environment

PLUMBLINE_NAMESPACE_END

#endif
