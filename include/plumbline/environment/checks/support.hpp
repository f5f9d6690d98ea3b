// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_CHECKS_SUPPORT_HPP
#define PLUMBLINE_ENVIRONMENT_CHECKS_SUPPORT_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "plumbline/environment/check.hpp"
#include "plumbline/environment/diff.hpp"
#include "plumbline/environment/reader.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment::checks {

[[nodiscard]] inline check_outcome passed(std::string seen, std::string expected = {}) {
    check_outcome outcome;
    outcome.seen = std::move(seen);
    outcome.expected = std::move(expected);
    return outcome;
}

[[nodiscard]] inline check_outcome problem(check_status status, std::string seen, std::string expected,
                                           std::string remedy) {
    check_outcome outcome;
    outcome.status = status;
    outcome.seen = std::move(seen);
    outcome.expected = std::move(expected);
    outcome.remedy = std::move(remedy);
    return outcome;
}
[[nodiscard]] inline check_outcome warned(std::string seen, std::string expected, std::string remedy) {
    return problem(check_status::warn, std::move(seen), std::move(expected), std::move(remedy));
}
[[nodiscard]] inline check_outcome failed(std::string seen, std::string expected, std::string remedy) {
    return problem(check_status::fail, std::move(seen), std::move(expected), std::move(remedy));
}
[[nodiscard]] inline check_outcome skipped(std::string why) {
    return problem(check_status::skipped, std::move(why), {}, {});
}

/// A known value of a fingerprint as one type; empty when unknown or of another type.
template <class T>
[[nodiscard]] std::optional<T> known(const check_context& on, const std::string& name) {
    const result::attribute* entry = on.fingerprint->find(name);
    if (entry == nullptr || !entry->read.known()) return std::nullopt;
    const T* value = std::get_if<T>(&entry->read.value);
    return value == nullptr ? std::nullopt : std::optional<T>(*value);
}
[[nodiscard]] inline std::optional<std::int64_t> known_int(const check_context& on, const std::string& name) {
    return known<std::int64_t>(on, name);
}
[[nodiscard]] inline std::optional<double> known_number(const check_context& on, const std::string& name) {
    if (const auto whole = known<std::int64_t>(on, name)) return static_cast<double>(*whole);
    return known<double>(on, name);
}
[[nodiscard]] inline std::optional<std::string> known_text(const check_context& on, const std::string& name) {
    return known<std::string>(on, name);
}
[[nodiscard]] inline std::optional<bool> known_flag(const check_context& on, const std::string& name) {
    return known<bool>(on, name);
}

/// Why an attribute is not known, for the line of a skipped check.
[[nodiscard]] inline std::string why_unknown(const check_context& on, const std::string& name) {
    const result::attribute* entry = on.fingerprint->find(name);
    if (entry != nullptr) return name + ": " + describe(entry->read);
    if (!on.cuda_expected) {
        for (const char* prefix : {"gpu.", "driver.", "cuda.", "cudnn.", "nvlink.", "pcie."}) {
            if (name.rfind(prefix, 0) == 0) return "no GPU is measured on this backend";
        }
    }
    return name + " was not read";
}

/// "13.0" of 13000, the way CUDA's libraries number themselves since CUDA 2.
[[nodiscard]] inline std::string cuda_version_text(std::int64_t version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// A variable of the process's environment; empty when not set.
[[nodiscard]] inline std::optional<std::string> variable(const check_context& on, const std::string& name) {
    const auto at = on.machine->variables.find(name);
    if (at == on.machine->variables.end()) return std::nullopt;
    return at->second;
}

} // namespace environment::checks

PLUMBLINE_NAMESPACE_END

#endif
