// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_WORKLOAD_DIGEST_HPP
#define PLUMBLINE_WORKLOAD_DIGEST_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace workload {

/// A fast 64-bit digest of an output buffer as 16 hexadecimal digits, to see that two outputs are the same bits. It is
/// not cryptographic: outputs are compared with outputs of the same run, nobody forges them.
///
/// A chain over 64-bit words with the mixing function of splitmix64 (G. Steele et al., Fast splittable pseudorandom
/// number generators, OOPSLA 2014); the tail is padded with zeros and the length is the last word. A plain multiply and
/// rotate would let the top bits of one word cancel bits of the next.
[[nodiscard]] inline std::string digest(const void* data, std::size_t bytes) {
    const auto* at = static_cast<const unsigned char*>(data);
    std::uint64_t hash = 0xcbf29ce484222325u;
    const auto mix = [&hash](std::uint64_t word) {
        hash ^= word;
        hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9u;
        hash = (hash ^ hash >> 27) * 0x94d049bb133111ebu;
        hash ^= hash >> 31;
    };
    for (std::size_t done = 0; done < bytes; done += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, at + done, bytes - done < 8 ? bytes - done : 8);
        mix(word);
    }
    mix(bytes);
    static constexpr char digits[] = "0123456789abcdef";
    std::string text(16, '0');
    for (std::size_t i = 0; i < 16; ++i) text[i] = digits[hash >> (60 - 4 * i) & 0xf];
    return text;
}

} // namespace workload

PLUMBLINE_NAMESPACE_END

#endif
