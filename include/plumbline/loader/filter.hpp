// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_FILTER_HPP
#define PLUMBLINE_LOADER_FILTER_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// Weights of one axis of an antialiased bilinear resize, as Pillow computes them (Resample.c, triangle filter whose
/// support grows with the reduction), in fixed point with `weight_bits` fractional bits. The weights of an output
/// sum to exactly one, so that a constant image stays constant.
class axis_filter {
public:
    static constexpr int weight_bits = 14;

    /// Output i = sum over t < taps() of weights(i)[t] * input[first(i) + t]. The source interval [start, start +
    /// extent) is spread over `outputs`; only inputs in [low, high) are used. `mirrored` reverses the outputs.
    void set(double start, double extent, std::size_t outputs, std::size_t low, std::size_t high, bool mirrored) {
        const double scale = extent / static_cast<double>(outputs);
        const double support = std::max(scale, 1.0);
        // At most this many inputs lie within the support; even, because the kernels take two at a time.
        const std::size_t room = (static_cast<std::size_t>(std::ceil(2 * support)) + 2) / 2 * 2;
        first_.resize(outputs);
        real_.assign(room, 0.0);
        wide_.assign(outputs * room, 0);
        std::size_t widest = 0;
        for (std::size_t i = 0; i < outputs; ++i) {
            const double centre = start + (static_cast<double>(i) + 0.5) * scale;
            const std::size_t to = mirrored ? outputs - 1 - i : i;
            widest = std::max(widest, set_one(to, centre, support, low, high, room));
        }
        pack(outputs, room, (widest + 1) / 2 * 2, low, high);
    }

    [[nodiscard]] std::size_t outputs() const noexcept { return first_.size(); }
    [[nodiscard]] std::size_t taps() const noexcept { return taps_; } ///< even, 2 at least
    [[nodiscard]] std::size_t first(std::size_t output) const noexcept { return first_[output]; }
    [[nodiscard]] const std::int16_t* weights(std::size_t output) const noexcept {
        return weights_.data() + output * taps_;
    }

private:
    std::size_t set_one(std::size_t to, double centre, double support, std::size_t low, std::size_t high,
                        std::size_t room) {
        const auto clamped = [low, high](double edge) {
            return static_cast<std::size_t>(
                std::clamp(std::floor(edge + 0.5), static_cast<double>(low), static_cast<double>(high)));
        };
        std::size_t from = clamped(centre - support);
        std::size_t count = std::min(clamped(centre + support) - from, room);
        double sum = 0;
        for (std::size_t t = 0; t < count; ++t) {
            const double distance = std::fabs((static_cast<double>(from + t) - centre + 0.5) / support);
            real_[t] = std::max(0.0, 1.0 - distance);
            sum += real_[t];
        }
        if (!(sum > 0)) { // rounding put every input outside: take the nearest
            from = std::min(static_cast<std::size_t>(std::max(centre, 0.0)), high - 1);
            from = std::max(from, low);
            count = 1;
            real_[0] = sum = 1;
        }
        std::int16_t* const out = wide_.data() + to * room;
        int left = 1 << weight_bits;
        std::size_t largest = 0;
        for (std::size_t t = 0; t < count; ++t) {
            out[t] = static_cast<std::int16_t>(std::lround(real_[t] / sum * (1 << weight_bits)));
            left -= out[t];
            if (out[t] > out[largest]) largest = t;
        }
        out[largest] = static_cast<std::int16_t>(out[largest] + left);
        first_[to] = from;
        return count;
    }

    /// Gives every output the same number of taps. Near the upper end the window moves down, so that no more than
    /// one input behind `high` is touched, and that with weight zero.
    void pack(std::size_t outputs, std::size_t room, std::size_t taps, std::size_t low, std::size_t high) {
        taps_ = std::max<std::size_t>(taps, 2);
        weights_.assign(outputs * taps_, 0);
        for (std::size_t i = 0; i < outputs; ++i) {
            const std::size_t end = first_[i] + taps_;
            const std::size_t shift = end > high ? std::min(end - high, first_[i] - low) : 0;
            std::copy_n(wide_.data() + i * room, taps_ - shift, weights_.data() + i * taps_ + shift);
            first_[i] -= shift;
        }
    }

    std::size_t taps_ = 2;
    std::vector<std::size_t> first_;
    std::vector<std::int16_t> weights_;
    std::vector<std::int16_t> wide_; // outputs x room, before the true number of taps is known
    std::vector<double> real_;
};

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
