// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_BUFFERS_HPP
#define PLUMBLINE_CUDA_BUFFERS_HPP

#include <cstddef>
#include <cstdint>

#include "plumbline/cuda/handle.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// The alignment of an address `offset` bytes after a 256-byte boundary, bytes: what the heuristic is told.
[[nodiscard]] constexpr std::uint32_t alignment_of(std::size_t offset) noexcept {
    std::size_t power = 256;
    while (offset % power != 0) power /= 2;
    return static_cast<std::uint32_t>(power);
}

/// One operand of a kernel for each buffer set, each `offset` elements after a boundary: of 256 bytes, and of 2 MiB for
/// operands that are as large, as allocations of their own would begin. The same product took 1010 us with its
/// operands at such boundaries and 1055 us without (H200, bf16, 4095^3).
class buffers {
public:
    [[nodiscard]] static constexpr std::size_t boundary(std::size_t bytes) noexcept {
        constexpr std::size_t page = std::size_t{2} << 20;
        return bytes >= page ? page : 256;
    }

    buffers(std::int64_t elements, std::int64_t offset, std::size_t element_bytes, std::size_t slots)
        : bytes_(static_cast<std::size_t>(elements) * element_bytes),
          offset_(static_cast<std::size_t>(offset) * element_bytes),
          stride_((offset_ + bytes_ + boundary(bytes_) - 1) / boundary(bytes_) * boundary(bytes_)),
          memory_(stride_ * slots) {}

    [[nodiscard]] void* at(std::size_t slot) const noexcept { return memory_.as<char>() + slot * stride_ + offset_; }

    /// Of one set.
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] std::uint32_t alignment() const noexcept { return alignment_of(offset_); }

private:
    std::size_t bytes_;
    std::size_t offset_;
    std::size_t stride_;
    device_memory memory_;
};

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
