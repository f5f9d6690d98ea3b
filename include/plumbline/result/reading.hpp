// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RESULT_READING_HPP
#define PLUMBLINE_RESULT_READING_HPP

#include <string>
#include <utility>

#include "plumbline/core/scalar.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace result {

/// Whether an attribute could be read. Unknown is a value with a reason, never 0 or "".
enum class reading_status {
    value,       ///< read
    absent,      ///< does not exist on this machine (no such file, library or device)
    denied,      ///< exists, but this process may not read it
    unsupported, ///< exists, but this hardware or driver does not answer
};

/// One attempt to read an attribute: its value, or the reason why there is none.
struct reading {
    reading_status status = reading_status::absent;
    scalar value;       ///< meaningful only with status value
    std::string reason; ///< the error code or path that said so; empty with status value

    [[nodiscard]] bool known() const noexcept { return status == reading_status::value; }
    bool operator==(const reading&) const = default;

    [[nodiscard]] static reading of(scalar v) { return {reading_status::value, std::move(v), {}}; }
    [[nodiscard]] static reading absent(std::string why) { return {reading_status::absent, {}, std::move(why)}; }
    [[nodiscard]] static reading denied(std::string why) { return {reading_status::denied, {}, std::move(why)}; }
    [[nodiscard]] static reading unsupported(std::string why) {
        return {reading_status::unsupported, {}, std::move(why)};
    }
};

} // namespace result

PLUMBLINE_NAMESPACE_END

#endif
