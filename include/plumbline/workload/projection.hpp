// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_WORKLOAD_PROJECTION_HPP
#define PLUMBLINE_WORKLOAD_PROJECTION_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plumbline/workload/gemm_reference.hpp"
#include "plumbline/workload/matrix_view.hpp"
#include "plumbline/workload/verify.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// Checking every element of a large product without computing it again: with a vector s of random signs, D s must be
/// A (B s), which takes three passes over the operands. R. Freivalds, Probabilistic machines can use less running time,
/// IFIP 1977. What is wrong in an element stays in its row's sum whatever the signs are; roundings, being independent,
/// grow with the square root of the number of columns.
namespace workload {

/// out = M x for each matrix M of the batch: `element(i)` is element i of memory as float64, `x` has `columns` values
/// for all of the batch or for each of it in turn; so has the outcome, `rows` for each.
template <class Element>
[[nodiscard]] std::vector<double> project(const matrix_view& of, Element element, const std::vector<double>& x) {
    std::vector<double> out(static_cast<std::size_t>(of.batch * of.rows));
    const std::int64_t step = x.size() == static_cast<std::size_t>(of.columns) ? 0 : of.columns;
    const bool along_rows = of.row_stride == 1; // in the order of memory
    for (std::int64_t b = 0; b < of.batch; ++b) {
        for (std::int64_t outer = 0; outer < (along_rows ? of.columns : of.rows); ++outer) {
            for (std::int64_t inner = 0; inner < (along_rows ? of.rows : of.columns); ++inner) {
                const std::int64_t row = along_rows ? inner : outer;
                const std::int64_t column = along_rows ? outer : inner;
                out[static_cast<std::size_t>(b * of.rows + row)] +=
                    element(static_cast<std::size_t>(of.at(b, row, column))) *
                    x[static_cast<std::size_t>(b * step + column)];
            }
        }
    }
    return out;
}

/// `count` random signs, 1 or -1.
[[nodiscard]] inline std::vector<double> random_signs(std::int64_t count) {
    std::vector<double> signs(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < signs.size(); ++i) {
        signs[i] = (random::philox(0x7369, i).word[0] & 1) != 0 ? 1 : -1;
    }
    return signs;
}

/// A row of sums is beyond what roundings can do when it is off by so many standard deviations of what the rows are
/// off by, where that many columns and terms make them normal: one in 10^15.
inline constexpr double projection_deviations = 8;
inline constexpr std::int64_t projection_normal_from = 64;

/// Throws verification_error unless the sums of the rows of an output are those expected: within `tolerance` as
/// require_close has it, and, with 64 rows, columns and terms and more, none of them beyond projection_deviations of
/// the usual (so that one wrong element shows among thousands of columns).
inline void require_projection(const std::string& what, const std::vector<double>& found,
                               const std::vector<double>& expected, double tolerance, std::int64_t columns,
                               std::int64_t terms) {
    const std::string rows = what + ": rows added up with random signs, counted as elements";
    require_close(rows, found, expected, tolerance, [](std::size_t i) { return i; });
    const auto normal_from = static_cast<std::size_t>(projection_normal_from);
    if (found.size() < normal_from || columns < projection_normal_from || terms < projection_normal_from) return;
    std::vector<double> off(found.size());
    double squared = 0;
    for (std::size_t i = 0; i < off.size(); ++i) {
        off[i] = std::abs(found[i] - expected[i]);
        squared += expected[i] * expected[i];
    }
    const auto worst = static_cast<std::size_t>(std::max_element(off.begin(), off.end()) - off.begin());
    const double largest = off[worst];
    const auto middle = off.begin() + static_cast<std::ptrdiff_t>(off.size() / 2);
    std::nth_element(off.begin(), middle, off.end());
    // The median of |x| of a normal x is 0.6745 of its deviation. Where hardly anything is rounded the tolerance
    // decides.
    const double usual = *middle / 0.6745;
    const double typical = std::sqrt(squared / static_cast<double>(off.size()));
    if (largest <= std::max(projection_deviations * usual, tolerance / 8 * typical)) return;
    throw verification_error(what + ": wrong result: row " + std::to_string(worst) +
                                 ", added up with random signs, is " + to_string(scalar(found[worst])) + ", expected " +
                                 to_string(scalar(expected[worst])) + "; that is " +
                                 to_string(scalar(std::round(largest / usual))) +
                                 " times what rows are usually off by; its time means nothing: check the library and "
                                 "the hardware",
                             largest, expected[worst] != 0 ? largest / std::abs(expected[worst]) : 0, worst);
}

namespace gemm {

/// The operands of a product that a projection reads.
enum class operand { a, b, d };

/// Checks every element of D by its rows; see require_projection. `project(operand, view, x)` is the operand, as it
/// lies in memory, times x. Nothing is checked after GELU, which sums do not pass through.
template <class Project>
void verify_rows(const std::string& what, const params& p, Project project) {
    if (p.after == epilogue::gelu) return;
    const std::vector<double> signs = random_signs(p.n);
    std::vector<double> expected = project(operand::a, p.a_view(), project(operand::b, p.b_view(), signs));
    if (p.after == epilogue::bias) {
        double sum = 0;
        for (const double each : signs) sum += each;
        for (std::size_t i = 0; i < expected.size(); ++i) {
            expected[i] += sum * bias_value(p.type, i % static_cast<std::uint64_t>(p.m));
        }
    }
    require_projection(what, project(operand::d, p.d_view(), signs), expected,
                       tolerance(p.type, static_cast<double>(p.k)), p.n, p.k);
}

} // namespace gemm

} // namespace workload

PLUMBLINE_NAMESPACE_END

#endif
