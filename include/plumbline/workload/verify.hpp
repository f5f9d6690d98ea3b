// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_WORKLOAD_VERIFY_HPP
#define PLUMBLINE_WORKLOAD_VERIFY_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/core/scalar.hpp"
#include "plumbline/workload/dtype.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace workload {

/// The byte an output buffer is filled with before it is verified. For floating-point outputs every element then is
/// a NaN, which never passes; for int32 it is -2139062144, which no sum of less than 132,000 products of int8 is.
[[nodiscard]] constexpr unsigned char poison_byte(dtype type) noexcept {
    return type == dtype::int8 ? 0x80 : 0xff;
}

/// The int32 that poison_byte(dtype::int8) makes.
inline constexpr int poisoned_int32 = static_cast<int>(0x80808080u);

/// How far an output is from its float64 reference.
struct difference {
    double relative_norm = 0; ///< norm(output - reference) / norm(reference); NaN if any output is not finite
    double max_abs = 0;       ///< largest absolute difference; infinity if an output is not finite
    double max_rel = 0;       ///< largest difference relative to its reference element, where that is not 0
    std::size_t worst = 0;    ///< index of the first non-finite output, else of the largest absolute difference

    /// Largest difference relative to max(|its reference element|, root mean square of all of them), and its index.
    double element = 0;
    std::size_t worst_element = 0;
};

/// How much further than the tolerance of the whole a single element may be off, relative to the larger of itself and
/// the root mean square of the reference. Independent roundings are nearly normal: the largest of 10^6 of them is
/// 4.9 standard deviations, and one standard deviation is what the norm measures.
inline constexpr double element_factor = 8;

/// Compares element by element; both have the same size. A reference of norm 0 gives relative_norm 0 for an equal
/// output and infinity for any other.
[[nodiscard]] inline difference compare_outputs(const std::vector<double>& output,
                                                const std::vector<double>& reference) {
    if (output.size() != reference.size()) {
        throw error("cannot verify: " + std::to_string(output.size()) + " outputs, " +
                    std::to_string(reference.size()) + " reference values");
    }
    difference found;
    double squared_error = 0;
    double squared_norm = 0;
    for (const double each : reference) squared_norm += each * each;
    const double typical = reference.empty() ? 0 : std::sqrt(squared_norm / static_cast<double>(reference.size()));
    for (std::size_t i = 0; i < output.size(); ++i) {
        if (!std::isfinite(output[i])) {
            constexpr double inf = std::numeric_limits<double>::infinity();
            return {std::numeric_limits<double>::quiet_NaN(), inf, inf, i, inf, i};
        }
        const double off = std::abs(output[i] - reference[i]);
        if (off > found.max_abs) {
            found.max_abs = off;
            found.worst = i;
        }
        if (reference[i] != 0) found.max_rel = std::max(found.max_rel, off / std::abs(reference[i]));
        const double scaled = off > 0 ? off / std::max(std::abs(reference[i]), typical) : 0;
        if (scaled > found.element) {
            found.element = scaled;
            found.worst_element = i;
        }
        squared_error += off * off;
    }
    if (squared_error > 0) found.relative_norm = std::sqrt(squared_error / squared_norm);
    return found;
}

/// Throws verification_error unless the relative norm of the difference is at most `tolerance` and no single element
/// is off by more than element_factor times that: the norm alone would let a few wrong elements pass among many.
/// `what` names the benchmark and `index_of` turns an index into these vectors into the element's index in the output.
template <class IndexOf>
void require_close(std::string_view what, const std::vector<double>& output, const std::vector<double>& reference,
                   double tolerance, IndexOf index_of) {
    const difference found = compare_outputs(output, reference);
    // Written so that a NaN fails.
    const bool close = found.relative_norm <= tolerance;
    if (close && found.element <= element_factor * tolerance) return;
    const std::size_t worst = close ? found.worst_element : found.worst;
    const std::size_t at = output.empty() ? 0 : index_of(worst);
    std::string message = std::string(what) + ": wrong result: element " + std::to_string(at);
    if (!output.empty()) {
        message += " is " + to_string(scalar(output[worst])) + ", expected " + to_string(scalar(reference[worst]));
    }
    message += close ? "; that element alone is off by " + to_string(scalar(found.element)) + ", allowed " +
                           to_string(scalar(element_factor * tolerance))
                     : "; relative error " + to_string(scalar(found.relative_norm)) + ", allowed " +
                           to_string(scalar(tolerance));
    throw verification_error(message + "; its time means nothing: check the library and the hardware", found.max_abs,
                             found.max_rel, at);
}

} // namespace workload

PLUMBLINE_NAMESPACE_END

#endif
