// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_FAILURE_HPP
#define PLUMBLINE_LOADER_FAILURE_HPP

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/core/error.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// Why a sample could not be loaded.
enum class failure_kind {
    missing,     ///< the file is gone
    unreadable,  ///< no permission, input/output error, not a regular file
    empty,       ///< zero bytes
    unknown,     ///< not of the expected format
    truncated,   ///< ends too early
    corrupt,     ///< damaged inside
    unsupported, ///< a valid file of a kind the decoder does not read, such as 12 bits a sample
    too_large,   ///< more pixels than allowed
    other,       ///< anything else a stage threw
};
inline constexpr std::size_t failure_kinds = 9;

[[nodiscard]] inline const char* name(failure_kind kind) noexcept {
    constexpr std::array<const char*, failure_kinds> names{
        "missing", "unreadable", "empty", "unknown", "truncated", "corrupt", "unsupported", "too_large", "other"};
    return names[static_cast<std::size_t>(kind)];
}

/// A stage throws this for a sample it cannot load: the sample is named and counted, and the run goes on.
class sample_error : public error {
public:
    sample_error(failure_kind kind, const std::string& message, where at = where::here())
        : error(message, exit_code::incomplete, at), kind_(kind) {}

    [[nodiscard]] failure_kind kind() const noexcept { return kind_; }

private:
    failure_kind kind_;
};

/// One sample that could not be loaded.
struct failure {
    std::size_t sample = 0; ///< index in the data set
    std::string name;       ///< file name, or whatever the source calls it
    failure_kind kind = failure_kind::other;
    std::string message;
};

/// Every failure counted, the first ones named.
struct failure_log {
    static constexpr std::size_t most_named = 100;

    std::array<std::size_t, failure_kinds> counts{};
    std::vector<failure> named; ///< the first `most_named`, each sample once

    [[nodiscard]] std::size_t total() const noexcept {
        std::size_t sum = 0;
        for (const std::size_t count : counts) sum += count;
        return sum;
    }
    [[nodiscard]] std::size_t count(failure_kind kind) const noexcept { return counts[static_cast<std::size_t>(kind)]; }

    void add(const failure& one) {
        ++counts[static_cast<std::size_t>(one.kind)];
        if (named.size() >= most_named) return;
        for (const failure& known : named) {
            if (known.sample == one.sample) return;
        }
        named.push_back(one);
    }

    void add(const failure_log& other) {
        std::array<std::size_t, failure_kinds> sum = counts;
        for (std::size_t i = 0; i < failure_kinds; ++i) sum[i] += other.counts[i];
        for (const failure& one : other.named) add(one);
        counts = sum; // the line before counted the named ones again
    }

    /// "3 failed: 2 truncated, 1 empty; first a/b.jpg: ..."; empty when nothing failed.
    [[nodiscard]] std::string text() const {
        if (total() == 0) return {};
        std::string out = std::to_string(total()) + " failed:";
        const char* separator = " ";
        for (std::size_t i = 0; i < failure_kinds; ++i) {
            if (counts[i] == 0) continue;
            out += separator + std::to_string(counts[i]) + ' ' + name(static_cast<failure_kind>(i));
            separator = ", ";
        }
        if (!named.empty()) out += "; first " + named.front().name + ": " + named.front().message;
        return out;
    }
};

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
