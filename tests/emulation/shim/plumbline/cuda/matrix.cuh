// SPDX-License-Identifier: Apache-2.0
// Stands in for the header of the same name where kernels are compiled by a host compiler: each lane shows the others
// what it has, and takes what the PTX ISA says is its own.
#ifndef PLUMBLINE_CUDA_MATRIX_CUH
#define PLUMBLINE_CUDA_MATRIX_CUH

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "emulation.hpp"
#include "plumbline/training/value.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

namespace detail {

/// What the lanes of a warp show each other, of each warp of a block.
struct shown {
    const unsigned char* row;
    unsigned a[4], b[2];
};
inline shown (&lanes_of_warp())[32] {
    static shown all[32][32]; // one block runs at a time, in one thread
    return all[threadIdx.x / 32];
}

/// The 16-bit value `place` of a register.
inline std::uint16_t half_of(unsigned bits, unsigned place) {
    return static_cast<std::uint16_t>(bits >> 16 * place);
}

inline void show_row(const void* row) {
    static_cast<void>(
        *static_cast<const volatile unsigned*>(static_cast<const void*>(&static_cast<const uint4*>(row)->w)));
    lanes_of_warp()[threadIdx.x % 32].row = static_cast<const unsigned char*>(row);
}
inline unsigned value_at(const unsigned char* row, unsigned column) {
    std::uint16_t bits;
    std::memcpy(&bits, row + 2 * column, 2);
    return bits;
}

} // namespace detail

inline void load_matrices(unsigned (&to)[4], const void* row) {
    const unsigned group = threadIdx.x % 32 / 4, place = threadIdx.x % 4;
    detail::show_row(row);
    __syncwarp();
    for (unsigned i = 0; i < 4; ++i) {
        const unsigned char* from = detail::lanes_of_warp()[8 * i + group].row;
        to[i] = detail::value_at(from, 2 * place) | detail::value_at(from, 2 * place + 1) << 16;
    }
    __syncwarp();
}

inline void load_turned_matrices(unsigned (&to)[4], const void* row) {
    const unsigned group = threadIdx.x % 32 / 4, place = threadIdx.x % 4;
    detail::show_row(row);
    __syncwarp();
    for (unsigned i = 0; i < 4; ++i) {
        const detail::shown* lanes = detail::lanes_of_warp() + 8 * i;
        to[i] = detail::value_at(lanes[2 * place].row, group) | detail::value_at(lanes[2 * place + 1].row, group) << 16;
    }
    __syncwarp();
}

template <class Value>
inline void multiply_add(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    const unsigned lane = threadIdx.x % 32, group = lane / 4, place = lane % 4;
    detail::shown(&lanes)[32] = detail::lanes_of_warp();
    std::memcpy(lanes[lane].a, a, sizeof a);
    lanes[lane].b[0] = b0;
    lanes[lane].b[1] = b1;
    __syncwarp();
    const auto value = [](std::uint16_t bits) {
        Value made;
        made.bits = bits;
        return static_cast<float>(made);
    };
    for (unsigned e = 0; e < 4; ++e) {
        const unsigned row = group, lower = e / 2, column = 2 * place + e % 2;
        float added = 0;
        for (unsigned k = 0; k < 16; ++k) {
            // Column k of a: register by row and half of the columns; row k of b likewise.
            const unsigned owner = k % 8 / 2, half = k / 8;
            added += value(detail::half_of(lanes[row * 4 + owner].a[half * 2 + lower], k % 2)) *
                     value(detail::half_of(lanes[column * 4 + owner].b[half], k % 2));
        }
        sum[e] += added;
    }
    __syncwarp();
}

inline float fast_exp2(float x) {
    return std::exp2(x);
}

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
