// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TRAINING_CONVOLUTION_HPP
#define PLUMBLINE_TRAINING_CONVOLUTION_HPP

#include <compare>
#include <cstdint>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace training {

/// A square convolution of square images, padded so that stride 1 keeps the side: batch x side x side x in_channels to
/// batch x out_side x out_side x out_channels, weights out_channels x kernel x kernel x in_channels.
struct convolution_shape {
    std::int64_t batch = 1, side = 1, in_channels = 1, out_channels = 1, kernel = 1, stride = 1;

    auto operator<=>(const convolution_shape&) const = default;
    [[nodiscard]] std::int64_t padding() const noexcept { return kernel / 2; }
    [[nodiscard]] std::int64_t out_side() const noexcept { return (side - 1) / stride + 1; }
    [[nodiscard]] std::int64_t out_pixels() const noexcept { return batch * out_side() * out_side(); }
    [[nodiscard]] std::int64_t inputs() const noexcept { return batch * side * side * in_channels; }
    [[nodiscard]] std::int64_t outputs() const noexcept { return out_pixels() * out_channels; }
    [[nodiscard]] std::int64_t patch() const noexcept { return kernel * kernel * in_channels; }
    [[nodiscard]] std::int64_t weights() const noexcept { return out_channels * patch(); }
};

} // namespace training

PLUMBLINE_NAMESPACE_END

#endif
