// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_WORKLOAD_GEMM_REFERENCE_HPP
#define PLUMBLINE_WORKLOAD_GEMM_REFERENCE_HPP

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plumbline/workload/gemm.hpp"
#include "plumbline/workload/inputs.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace workload::gemm {

/// Seeds of the inputs. Element i of a stored operand is element i of the stream of its seed.
inline constexpr std::uint64_t seed_a = 0x6131;
inline constexpr std::uint64_t seed_b = 0x6232;
inline constexpr std::uint64_t seed_bias = 0x6333;

using workload::input_value;

/// Element `index` of the bias, which has the type of the output.
[[nodiscard]] constexpr double bias_value(dtype type, std::uint64_t index) noexcept {
    return input_value(type == dtype::fp8 ? dtype::bf16 : type, seed_bias, index);
}

/// The elements of D that are compared with the reference: all combinations of these.
struct grid {
    std::vector<std::int64_t> batches;
    std::vector<std::int64_t> rows;
    std::vector<std::int64_t> columns;

    [[nodiscard]] std::size_t size() const noexcept { return batches.size() * rows.size() * columns.size(); }

    /// The `at`-th combination as an index into D: batches outermost, then columns, then rows.
    [[nodiscard]] std::int64_t index(const params& p, std::size_t at) const noexcept {
        const std::size_t row = at % rows.size();
        const std::size_t column = at / rows.size() % columns.size();
        return p.d_view().at(batches[at / rows.size() / columns.size()], rows[row], columns[column]);
    }
};

namespace detail {

[[nodiscard]] inline double gelu(double x) noexcept {
    // sqrt(2 / pi), the tanh form of Hendrycks and Gimpel that libraries fuse.
    return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

} // namespace detail

/// The elements to compare: all of them up to 65,536 outputs and 2^28 products; else the rows and columns 0 and last
/// and up to 62 random ones of each (so all four corners and thousands of elements), in up to 4 of the batch. `salt`
/// chooses other random ones.
[[nodiscard]] inline grid check_grid(const params& p, std::uint64_t salt = 0) {
    const bool all = p.d_elements() <= 65536 && p.d_elements() <= (std::int64_t{1} << 28) / p.k;
    grid chosen;
    chosen.batches = pick(p.batch, all ? p.batch : 4, 3 * salt);
    chosen.rows = pick(p.m, all ? p.m : 64, 3 * salt + 1);
    chosen.columns = pick(p.n, all ? p.n : 64, 3 * salt + 2);
    return chosen;
}

/// D at the elements of `where`, in float64 from the quantised inputs, in the order of grid::index. The inputs are made
/// here, element by element, so no copy of the device's is needed. Time: one random number for each element of the
/// rows and columns involved, one multiply-add for each product.
[[nodiscard]] inline std::vector<double> reference(const params& p, const grid& where) {
    const auto depth = static_cast<std::size_t>(p.k);
    const matrix_view a = p.a_view();
    const matrix_view stored_b = p.b_view();
    std::vector<double> result;
    result.reserve(where.size());
    std::vector<double> rows(where.rows.size() * depth);
    std::vector<double> column(depth);
    for (std::int64_t b : where.batches) {
        for (std::size_t r = 0; r < where.rows.size(); ++r) {
            for (std::size_t q = 0; q < depth; ++q) {
                const std::int64_t at = a.at(b, where.rows[r], static_cast<std::int64_t>(q));
                rows[r * depth + q] = input_value(p.type, seed_a, static_cast<std::uint64_t>(at));
            }
        }
        for (std::int64_t j : where.columns) {
            for (std::size_t q = 0; q < depth; ++q) {
                const std::int64_t at = stored_b.at(b, static_cast<std::int64_t>(q), j);
                column[q] = input_value(p.type, seed_b, static_cast<std::uint64_t>(at));
            }
            for (std::size_t r = 0; r < where.rows.size(); ++r) {
                double sum = 0;
                for (std::size_t q = 0; q < depth; ++q) sum += rows[r * depth + q] * column[q];
                if (p.after != epilogue::none) sum += bias_value(p.type, static_cast<std::uint64_t>(where.rows[r]));
                result.push_back(p.after == epilogue::gelu ? detail::gelu(sum) : sum);
            }
        }
    }
    return result;
}

} // namespace workload::gemm

PLUMBLINE_NAMESPACE_END

#endif
