// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_RANDOM_HPP
#define PLUMBLINE_LOADER_RANDOM_HPP

// Random numbers that depend on (seed, epoch, position) alone, so that a batch is the same whichever worker builds it
// and however many there are. tools/peers/pytorch_dataloader.py draws the same numbers.

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// A stream of random numbers for one sample in one epoch: SplitMix64 (Steele, Lea, Flood 2014).
class sample_random {
public:
    sample_random() = default;
    sample_random(std::uint64_t seed, std::uint64_t epoch, std::uint64_t position) noexcept
        : state_(mix(mix(mix(seed) ^ epoch) ^ position)) {}

    [[nodiscard]] std::uint64_t next() noexcept {
        state_ += golden;
        return mix(state_);
    }
    /// Uniform in [0, 1), 53 bits.
    [[nodiscard]] double uniform() noexcept { return static_cast<double>(next() >> 11) * 0x1p-53; }
    [[nodiscard]] double uniform(double low, double high) noexcept { return low + (high - low) * uniform(); }
    /// Uniform in 0 .. n - 1; 0 for n = 0. The bias of the product method is below n / 2^53.
    [[nodiscard]] std::size_t below(std::size_t n) noexcept {
        return static_cast<std::size_t>(uniform() * static_cast<double>(n));
    }

private:
    static constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;
    [[nodiscard]] static constexpr std::uint64_t mix(std::uint64_t z) noexcept {
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }

    std::uint64_t state_ = 0;
};

/// The samples of one epoch in the order they are loaded: `length` indices below `samples`, which is one pass when
/// they are equal. A longer epoch is several passes, each shuffled anew.
[[nodiscard]] inline std::vector<std::size_t> epoch_order(std::size_t samples, std::size_t length, bool shuffle,
                                                          std::uint64_t seed, std::uint64_t epoch) {
    std::vector<std::size_t> order;
    order.reserve(length);
    std::vector<std::size_t> pass(samples);
    for (std::uint64_t turn = 0; samples != 0 && order.size() < length; ++turn) {
        std::iota(pass.begin(), pass.end(), std::size_t{0});
        // Fisher-Yates by hand: std::shuffle gives another order with every standard library.
        sample_random random(~seed, epoch, turn);
        for (std::size_t i = samples; shuffle && i > 1; --i) std::swap(pass[i - 1], pass[random.below(i)]);
        const std::size_t wanted = length - order.size() < samples ? length - order.size() : samples;
        order.insert(order.end(), pass.begin(), pass.begin() + static_cast<std::ptrdiff_t>(wanted));
    }
    return order;
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
