// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_MATRIX_CUH
#define PLUMBLINE_CUDA_MATRIX_CUH

#include <type_traits>

#include "plumbline/training/value.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// What warps do with small matrices of 16-bit values: all lanes call each of these together. Needs compute capability
/// 8.0; a kernel that calls one must not be launched before. tests/emulation has its own version of this header. How
/// elements lie in registers: PTX ISA, "Matrix multiply-accumulate operation using mma instruction", m16n8k16. A lane's
/// group is lane / 4, its place lane % 4.
namespace cuda {

/// Four matrices of 8 x 8 from shared memory: lane l passes where row l % 8 of matrix l / 8 is, 16 bytes at a 16-byte
/// boundary, and gets of each matrix the elements 2 x place and 2 x place + 1 of row `group`.
__device__ inline void load_matrices(unsigned (&to)[4], const void* row) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    const auto from = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
#else
    __trap();
#endif
}

/// The same of the transposed matrices: a lane gets of each one the rows 2 x place and 2 x place + 1 in column `group`.
__device__ inline void load_turned_matrices(unsigned (&to)[4], const void* row) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    const auto from = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
#else
    __trap();
#endif
}

/// sum += a b with a of 16 x 16, b of 16 x 8 and sum of 16 x 8 in fp32. A lane has of a: row `group`, row `group` + 8,
/// each in columns 2 x place and one more, then the same 8 columns further; of b: rows 2 x place and one more, then 8
/// rows further, in column `group`; of sum: rows `group` (0 and 1) and `group` + 8 (2 and 3), columns 2 x place and one
/// more.
template <class Value>
__device__ inline void multiply_add(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    if constexpr (std::is_same_v<Value, training::bfloat16>) {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, "
            "%1, %2, %3};"
            : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    } else {
        static_assert(std::is_same_v<Value, training::float16>);
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
            "%2, %3};"
            : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
#else
    __trap();
#endif
}

/// 2^x, two units in the last place off at most; 0 where that is subnormal.
__device__ inline float fast_exp2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
