// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TRAINING_BATCH_HPP
#define PLUMBLINE_TRAINING_BATCH_HPP

#include <cstdint>
#include <vector>

#include "plumbline/workload/random.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace training {

inline constexpr std::uint64_t seed_tokens = 0x746f6b65;
inline constexpr std::uint64_t seed_images = 0x696d6167;
inline constexpr std::uint64_t seed_labels = 0x6c61626c;

/// Token `index` of the stream: the number of its bits is drawn first, then the bits, so that token t comes up about in
/// proportion to 1 / t, as words do (Zipf's law). Integers alone, so that it is the same everywhere.
[[nodiscard]] constexpr std::int32_t token(std::uint64_t index, std::int64_t vocabulary) noexcept {
    std::uint64_t widths = 1;
    while ((std::uint64_t{1} << widths) < static_cast<std::uint64_t>(vocabulary)) ++widths;
    const workload::random::block bits = workload::random::philox(seed_tokens, index);
    const std::uint64_t width = std::uint64_t{bits.word[0]} * widths >> 32;
    const std::uint64_t low = std::uint64_t{1} << width;
    const std::uint64_t drawn = low - 1 + (std::uint64_t{bits.word[1]} * low >> 32);
    return static_cast<std::int32_t>(drawn % static_cast<std::uint64_t>(vocabulary));
}

/// Inputs and targets of micro-batch `micro`: in each of `batch` sequences, target i is input i + 1.
struct token_batch {
    std::vector<std::int32_t> inputs;
    std::vector<std::int32_t> targets;
};

[[nodiscard]] inline token_batch tokens(std::int64_t micro, std::int64_t batch, std::int64_t length,
                                        std::int64_t vocabulary) {
    token_batch made;
    for (std::int64_t b = 0; b < batch; ++b) {
        const auto first = static_cast<std::uint64_t>((micro * batch + b) * (length + 1));
        for (std::uint64_t t = 0; t < static_cast<std::uint64_t>(length); ++t) {
            made.inputs.push_back(token(first + t, vocabulary));
            made.targets.push_back(token(first + t + 1, vocabulary));
        }
    }
    return made;
}

/// Classes of micro-batch `micro` of images.
[[nodiscard]] inline std::vector<std::int32_t> labels(std::int64_t micro, std::int64_t batch, std::int64_t classes) {
    std::vector<std::int32_t> made;
    for (std::int64_t i = 0; i < batch; ++i) {
        made.push_back(static_cast<std::int32_t>(workload::random::below(
            seed_labels, static_cast<std::uint64_t>(micro * batch + i), static_cast<std::uint64_t>(classes))));
    }
    return made;
}

} // namespace training

PLUMBLINE_NAMESPACE_END

#endif
