// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_NORM_PLAN_HPP
#define PLUMBLINE_CUDA_NORM_PLAN_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// How the norm kernels (kernels/norm_forward.cuh, kernels/norm_backward.cuh) divide their work: plain arithmetic, so
/// that it is tested without a GPU.
///
/// A row is covered by units of 16 bytes at 16-byte boundaries; where rows do not begin at one, the first and the last
/// unit belong to two rows each. A group of `threads` threads works on one row at a time, each thread on `units` units
/// of it. A block is one group, or four groups of one warp. Groups step through the rows by a stride that keeps the
/// offset of their rows within a unit the same, so that a thread owns the same columns in every row.
namespace cuda::kernels {

/// Most rows that are on their way into shared memory at a time.
inline constexpr unsigned most_norm_stages = 4;

struct norm_plan {
    unsigned threads = 0; ///< of a group; 0: rows too long for registers, the kernel that reads a row several times
    unsigned units = 0;   ///< of 16 bytes, for each thread
    unsigned stages = 0;  ///< rows that are on their way into shared memory at a time, up to most_norm_stages; 0: each
                          ///< group has one row at most, which goes straight into registers (forward only)
    unsigned blocks = 0;

    bool operator==(const norm_plan&) const = default;

    [[nodiscard]] constexpr unsigned groups() const noexcept { return threads == 32 ? 4 : 1; }
    [[nodiscard]] constexpr unsigned block_threads() const noexcept { return threads == 0 ? 1024 : threads * groups(); }
};

/// A kernel that exists: threads and units as in norm_plan, the blocks of it that its registers let run on one
/// multiprocessor, and the stages that do well with it; with 0 stages another kernel than with some.
struct norm_shape {
    unsigned threads;
    unsigned units;
    unsigned blocks_per_sm;
    unsigned stages;

    [[nodiscard]] constexpr std::uint64_t capacity() const noexcept { return std::uint64_t{threads} * units; }
};

/// In each table the first shape that holds a row is used; others of the same size are there to be tried out.
template <std::size_t ElementBytes>
inline constexpr std::array<norm_shape, 13> forward_shapes{{{32, 1, 8, 4},
                                                            {32, 2, 8, 3},
                                                            {32, 3, 8, 0},
                                                            {32, 4, 5, 2},
                                                            {128, 2, 8, 2},
                                                            {128, 4, 5, 1},
                                                            {256, 2, 5, 0},
                                                            {128, 5, 5, 1},
                                                            {256, 4, 2, 1},
                                                            {512, 3, 2, 0},
                                                            {512, 4, 1, 2},
                                                            {1024, 4, 1, 1},
                                                            {1024, 8, 1, 1}}};
template <>
inline constexpr std::array<norm_shape, 11> forward_shapes<4>{{{32, 1, 8, 4},
                                                               {32, 2, 8, 3},
                                                               {32, 4, 5, 2},
                                                               {128, 2, 8, 2},
                                                               {128, 4, 5, 1},
                                                               {256, 4, 2, 1},
                                                               {256, 5, 2, 1},
                                                               {512, 2, 3, 0},
                                                               {512, 4, 1, 2},
                                                               {1024, 4, 1, 1},
                                                               {1024, 8, 1, 1}}};

/// A backward thread keeps two fp32 sums for each of its columns in registers, so that it has half as many units of
/// 16-bit elements as of fp32.
template <std::size_t ElementBytes>
inline constexpr std::array<norm_shape, 12> backward_shapes{{{32, 1, 8, 3},
                                                             {32, 2, 5, 3},
                                                             {32, 3, 4, 2},
                                                             {32, 4, 4, 2},
                                                             {128, 2, 5, 2},
                                                             {256, 2, 3, 2},
                                                             {512, 1, 2, 2},
                                                             {192, 3, 3, 2},
                                                             {512, 2, 2, 2},
                                                             {768, 2, 1, 2},
                                                             {1024, 2, 1, 2},
                                                             {512, 4, 1, 2}}};
template <>
inline constexpr std::array<norm_shape, 8> backward_shapes<4>{{{32, 2, 6, 3},
                                                               {32, 4, 5, 2},
                                                               {32, 8, 3, 2},
                                                               {128, 4, 5, 2},
                                                               {512, 2, 1, 2},
                                                               {384, 3, 2, 2},
                                                               {512, 4, 1, 3},
                                                               {512, 8, 1, 1}}};

/// Elements of `element_bytes` in a unit.
[[nodiscard]] constexpr std::int64_t elements_per_unit(std::size_t element_bytes) noexcept {
    return 16 / static_cast<std::int64_t>(element_bytes);
}

/// The number of rows after which rows begin at the same offset within a unit again.
[[nodiscard]] constexpr std::int64_t offset_period(std::int64_t hidden, std::size_t element_bytes) noexcept {
    const std::int64_t elements = elements_per_unit(element_bytes);
    return elements / std::gcd(elements, hidden);
}

/// Most units that a row touches, over all offsets that occur.
[[nodiscard]] constexpr std::uint64_t units_of_row(std::int64_t hidden, std::size_t element_bytes) noexcept {
    const std::int64_t elements = elements_per_unit(element_bytes);
    // Offsets are the multiples of gcd(elements, hidden) below elements.
    const std::int64_t largest = elements - std::gcd(elements, hidden);
    return static_cast<std::uint64_t>((largest + hidden + elements - 1) / elements);
}

/// Shared memory of the rows on their way: each thread has its own slots, `tensors` of them for each unit and stage.
[[nodiscard]] constexpr std::size_t stage_bytes(const norm_plan& plan, unsigned tensors) noexcept {
    return std::size_t{plan.block_threads()} * plan.units * plan.stages * tensors * 16;
}

/// Blocks for `shape`: enough to fill the device, no more than there are rows, and a number of groups that is a
/// multiple of offset_period; a group for each row where there are no stages.
[[nodiscard]] constexpr norm_plan norm_plan_of(const norm_shape& shape, std::int64_t rows, std::int64_t hidden,
                                               std::size_t element_bytes, int sm_count) noexcept {
    norm_plan plan{shape.threads, shape.units, shape.stages, 0};
    const std::int64_t groups = plan.groups();
    if (shape.stages == 0) {
        plan.blocks = static_cast<unsigned>((rows + groups - 1) / groups);
        return plan;
    }
    const std::int64_t period = offset_period(hidden, element_bytes);
    const std::int64_t step = period / std::gcd(period, groups); // blocks
    const std::int64_t wanted =
        std::min<std::int64_t>((rows + groups - 1) / groups, std::int64_t{shape.blocks_per_sm} * std::max(sm_count, 1));
    // Down where that costs little, up where there are few.
    const std::int64_t whole = wanted >= 4 * step ? wanted / step : (wanted + step - 1) / step;
    plan.blocks = static_cast<unsigned>(whole * step);
    return plan;
}

/// The plan for rows that no shape holds.
[[nodiscard]] constexpr norm_plan long_rows_plan(std::int64_t rows, int sm_count) noexcept {
    return {0, 0, 1, static_cast<unsigned>(std::min<std::int64_t>(rows, 2 * std::int64_t{std::max(sm_count, 1)}))};
}

/// `plan` with no more shared memory than a block can have on this device, `shared_bytes`: with fewer stages, and if
/// one is too much, the plan for long rows.
[[nodiscard]] constexpr norm_plan fitted(norm_plan plan, unsigned tensors, std::size_t shared_bytes, std::int64_t rows,
                                         int sm_count) noexcept {
    constexpr std::size_t own = 2048; // static memory of the kernels, and what the driver keeps
    while (plan.stages > 1 && stage_bytes(plan, tensors) + own > shared_bytes) --plan.stages;
    return stage_bytes(plan, tensors) + own > shared_bytes ? long_rows_plan(rows, sm_count) : plan;
}

/// Whether the plan's kernel holds rows of this width, and keeps their offset (see above).
[[nodiscard]] constexpr bool suits(const norm_plan& plan, std::int64_t rows, std::int64_t hidden,
                                   std::size_t element_bytes) noexcept {
    if (plan.blocks == 0 || plan.stages > most_norm_stages) return false;
    if (plan.threads == 0) return true;
    const std::int64_t step = std::int64_t{plan.blocks} * plan.groups();
    return units_of_row(hidden, element_bytes) <= std::uint64_t{plan.threads} * plan.units &&
           (step >= rows || (plan.stages > 0 && step % offset_period(hidden, element_bytes) == 0));
}

namespace detail {

/// The smallest shape that holds the row.
template <std::size_t N>
[[nodiscard]] constexpr norm_plan choose(const std::array<norm_shape, N>& shapes, std::int64_t rows,
                                         std::int64_t hidden, std::size_t element_bytes, int sm_count) noexcept {
    for (const norm_shape& shape : shapes) {
        if (units_of_row(hidden, element_bytes) <= shape.capacity()) {
            return norm_plan_of(shape, rows, hidden, element_bytes, sm_count);
        }
    }
    return long_rows_plan(rows, sm_count);
}

} // namespace detail

/// The plan of a forward pass over rows x hidden elements on a device with `sm_count` multiprocessors.
[[nodiscard]] constexpr norm_plan plan_forward(std::int64_t rows, std::int64_t hidden, std::size_t element_bytes,
                                               int sm_count) noexcept {
    return element_bytes == 4 ? detail::choose(forward_shapes<4>, rows, hidden, element_bytes, sm_count)
                              : detail::choose(forward_shapes<2>, rows, hidden, element_bytes, sm_count);
}

[[nodiscard]] constexpr norm_plan plan_backward(std::int64_t rows, std::int64_t hidden, std::size_t element_bytes,
                                                int sm_count) noexcept {
    return element_bytes == 4 ? detail::choose(backward_shapes<4>, rows, hidden, element_bytes, sm_count)
                              : detail::choose(backward_shapes<2>, rows, hidden, element_bytes, sm_count);
}

/// Where a block of a backward pass leaves its sums over rows: for dgamma and then for dbeta, `planes` times `units`
/// times four fp32 elements. A thread with the 8 sums of a unit of 16-bit elements writes the first four to one plane
/// and the others to the next, so that the threads of a warp write next to each other. The element of column c of block
/// b is at place p = c + b shift % (4 planes): plane p / 4 % planes, unit p / (4 planes), element p % 4.
struct norm_partial {
    int units = 0;
    int planes = 1;
    int shift = 0; ///< of a block's rows within their first unit, from one block to the next

    /// fp32 elements of a block's sums for one of dgamma and dbeta.
    [[nodiscard]] constexpr std::int64_t elements() const noexcept { return std::int64_t{units} * planes * 4; }
};

[[nodiscard]] constexpr norm_partial partial_of(const norm_plan& plan, std::int64_t hidden,
                                                std::size_t element_bytes) noexcept {
    // Where a block's sums do not come from registers of one group, columns are in their order.
    if (plan.threads == 0 || plan.groups() > 1) return {static_cast<int>((hidden + 3) / 4), 1, 0};
    const std::int64_t elements = elements_per_unit(element_bytes);
    return {static_cast<int>(units_of_row(hidden, element_bytes)), static_cast<int>(elements / 4),
            static_cast<int>(hidden % elements)};
}

/// fp32 elements of the workspace of a backward pass.
[[nodiscard]] constexpr std::size_t partial_elements(const norm_plan& plan, std::int64_t hidden,
                                                     std::size_t element_bytes) noexcept {
    return std::size_t{plan.blocks} * 2 * static_cast<std::size_t>(partial_of(plan, hidden, element_bytes).elements());
}

} // namespace cuda::kernels

PLUMBLINE_NAMESPACE_END

#endif
