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
/// FNV-1a over 64-bit words with a rotation, so that high bits reach low ones; the tail is padded with zeros and the
/// length is part of the digest.
[[nodiscard]] inline std::string digest(const void* data, std::size_t bytes) {
    const auto* at = static_cast<const unsigned char*>(data);
    std::uint64_t hash = 0xcbf29ce484222325u ^ bytes;
    for (std::size_t done = 0; done < bytes; done += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, at + done, bytes - done < 8 ? bytes - done : 8);
        hash = (hash ^ word) * 0x100000001b3u;
        hash = hash << 29 | hash >> 35;
    }
    static constexpr char digits[] = "0123456789abcdef";
    std::string text(16, '0');
    for (std::size_t i = 0; i < 16; ++i) text[i] = digits[hash >> (60 - 4 * i) & 0xf];
    return text;
}

} // namespace workload

PLUMBLINE_NAMESPACE_END

#endif
