// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_WORKLOAD_MATRIX_VIEW_HPP
#define PLUMBLINE_WORKLOAD_MATRIX_VIEW_HPP

#include <cstdint>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace workload {

/// A batch of matrices in memory: sizes, and strides in elements. Device code reads it too.
struct matrix_view {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t row_stride = 1;
    std::int64_t column_stride = 0;
    std::int64_t batch = 1;
    std::int64_t batch_stride = 0;

    /// Where element (row, column) of matrix `of` of the batch lies.
    [[nodiscard]] constexpr std::int64_t at(std::int64_t of, std::int64_t row, std::int64_t column) const noexcept {
        return of * batch_stride + row * row_stride + column * column_stride;
    }

    /// Elements that the batch takes in memory, gaps counted.
    [[nodiscard]] constexpr std::int64_t stored() const noexcept { return batch * batch_stride; }
};

} // namespace workload

PLUMBLINE_NAMESPACE_END

#endif
