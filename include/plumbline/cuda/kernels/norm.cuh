// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_KERNELS_NORM_CUH
#define PLUMBLINE_CUDA_KERNELS_NORM_CUH

#include <bit>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "plumbline/cuda/kernels.hpp"
#include "plumbline/cuda/launch.cuh"

PLUMBLINE_NAMESPACE_BEGIN

// What the norm kernels share: units of 16 bytes, sums over a group of threads, and rows on their way into shared
// memory. norm_plan.hpp says how the work is divided.
namespace cuda::kernels {

namespace device {

/// The arguments that all norm kernels have.
struct norm_arguments {
    int rows; ///< up to 2^30, so that a row of the future is an int too
    int hidden;
    float epsilon;
    bool rms;
    unsigned stages;
    norm_partial partial; ///< backward
};

/// Elements of type T in a unit.
template <class T>
inline constexpr int per_unit = 16 / static_cast<int>(sizeof(T));

/// The same bits as another type of the same size.
template <class To, class From>
__device__ inline To bits_as(const From& from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(static_cast<void*>(&to), &from, sizeof to);
    return to;
}

/// The same value, of which the compiler forgets what it knows: what follows from it is computed where it is used and
/// not kept in registers round a loop.
__device__ inline int anew(int value) {
    asm volatile("" : "+r"(value));
    return value;
}
__device__ inline uint4 anew(uint4 unit) {
    asm volatile("" : "+r"(unit.x), "+r"(unit.y), "+r"(unit.z), "+r"(unit.w));
    return unit;
}

__device__ inline void widen_word(unsigned word, float& low, float& high, const __nv_bfloat16*) {
    low = __uint_as_float(word << 16);
    high = __uint_as_float(word & 0xffff0000u);
}
__device__ inline void widen_word(unsigned word, float& low, float& high, const __half*) {
    const float2 both = __half22float2(bits_as<__half2>(word));
    low = both.x;
    high = both.y;
}
__device__ inline unsigned narrow_word(float low, float high, const __nv_bfloat16*) {
    return bits_as<unsigned>(__floats2bfloat162_rn(low, high));
}
__device__ inline unsigned narrow_word(float low, float high, const __half*) {
    return bits_as<unsigned>(__floats2half2_rn(low, high));
}

/// The elements of a unit as fp32.
template <class T>
__device__ inline void widen(const uint4& unit, float (&values)[per_unit<T>]) {
    const unsigned words[4] = {unit.x, unit.y, unit.z, unit.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        if constexpr (sizeof(T) == 4)
            values[i] = __uint_as_float(words[i]);
        else
            widen_word(words[i], values[2 * i], values[2 * i + 1], static_cast<const T*>(nullptr));
    }
}

/// And back, rounded to nearest.
template <class T>
__device__ inline uint4 narrow(const float (&values)[per_unit<T>]) {
    unsigned words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        if constexpr (sizeof(T) == 4)
            words[i] = __float_as_uint(values[i]);
        else
            words[i] = narrow_word(values[2 * i], values[2 * i + 1], static_cast<const T*>(nullptr));
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}

template <class T>
__device__ inline T narrow_one(float value) {
    if constexpr (sizeof(T) == 4)
        return value;
    else
        return T(value); // rounds to nearest
}

/// The unit of one thread that covers the columns `first` to `first` + per_unit - 1 of a row of `hidden`.
template <class T>
struct covered {
    int first; ///< above -per_unit
    int hidden;

    [[nodiscard]] __device__ bool any() const { return first < hidden; }
    [[nodiscard]] __device__ bool all() const { return first >= 0 && first + per_unit<T> <= hidden; }
    [[nodiscard]] __device__ bool has(int element) const {
        return static_cast<unsigned>(first + element) < static_cast<unsigned>(hidden);
    }

    /// `unit` with zeros for what is not of this row.
    [[nodiscard]] __device__ uint4 only(const uint4& unit) const {
        unsigned words[4] = {unit.x, unit.y, unit.z, unit.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if constexpr (sizeof(T) == 4)
                words[i] = has(i) ? words[i] : 0u;
            else
                words[i] &= (has(2 * i) ? 0xffffu : 0u) | (has(2 * i + 1) ? 0xffff0000u : 0u);
        }
        return make_uint4(words[0], words[1], words[2], words[3]);
    }

    /// The elements at these columns of a vector such as gamma, zeros elsewhere; of nullptr all zeros.
    [[nodiscard]] __device__ uint4 load(const T* vector) const {
        uint4 unit = make_uint4(0, 0, 0, 0);
        if (vector == nullptr || !any()) return unit;
        const T* const from = vector + first;
        if (all() && reinterpret_cast<std::uintptr_t>(from) % 16 == 0) {
            return __ldg(reinterpret_cast<const uint4*>(from));
        }
        float values[per_unit<T>];
#pragma unroll
        for (int e = 0; e < per_unit<T>; ++e) values[e] = has(e) ? static_cast<float>(from[e]) : 0.0f;
        return narrow<T>(values);
    }

    /// Writes what belongs to this row; `row` is the row's first element.
    __device__ void store(T* row, const float (&values)[per_unit<T>]) const {
        if (all()) {
            // Full units begin at a 16-byte boundary of the matrix.
            store_vector(row + first, narrow<T>(values));
            return;
        }
#pragma unroll
        for (int e = 0; e < per_unit<T>; ++e) {
            if (has(e)) row[first + e] = narrow_one<T>(values[e]);
        }
    }
};

/// Where a thread of a norm kernel works: `Threads` threads share a row.
template <class T, int Threads>
struct norm_place {
    static constexpr int groups = Threads == 32 ? 4 : 1; ///< of a block
    static constexpr int block_threads = Threads * groups;

    int first_row;
    int row_step;
    int offset; ///< of the group's rows within their first unit, elements
    int hidden;

    __device__ explicit norm_place(int row_elements) : hidden(row_elements) {
        first_row = static_cast<int>(blockIdx.x) * groups + group();
        row_step = static_cast<int>(gridDim.x) * groups;
        offset = first_row % per_unit<T> * (row_elements % per_unit<T>) % per_unit<T>;
    }

    [[nodiscard]] __device__ static int group() { return groups == 1 ? 0 : static_cast<int>(threadIdx.x) / Threads; }
    [[nodiscard]] __device__ static int member() {
        return groups == 1 ? static_cast<int>(threadIdx.x) : static_cast<int>(threadIdx.x) % Threads;
    }

    [[nodiscard]] __device__ covered<T> unit(int k) const {
        return {member() * per_unit<T> - offset + k * Threads * per_unit<T>, hidden};
    }

    /// Starts copying this thread's units of a row to `slot`, `slot` + Stride and so on. Reads the neighbours' elements
    /// of a unit too, but nothing behind the matrix. Does nothing for a row behind it.
    template <int Units, int Stride>
    __device__ void fetch(uint4* slot, const T* matrix, int row, int rows) const {
        const T* const from = matrix + std::int64_t{row} * hidden + unit(0).first;
        constexpr int apart = Threads * per_unit<T>;
        // A unit reaches into the 14 rows that follow at most, if they are of one element.
        if (rows - row > 16) {
#pragma unroll
            for (int k = 0; k < Units; ++k) {
                if (unit(k).any()) copy_async(slot + k * Stride, from + k * apart, 16);
            }
        } else if (row < rows) {
            const int left = (rows - row) * hidden;
#pragma unroll
            for (int k = 0; k < Units; ++k) {
                const covered<T> own = unit(k);
                if (!own.any()) continue;
                const int elements = left - own.first;
                if (elements >= per_unit<T>) {
                    copy_async(slot + k * Stride, from + k * apart, 16);
                    continue;
                }
                // The end of the matrix: an asynchronous copy of part of a unit would still read all of it. Only this
                // thread looks at the slot, so it may be written at once.
                float values[per_unit<T>];
#pragma unroll
                for (int e = 0; e < per_unit<T>; ++e) {
                    values[e] = e < elements ? static_cast<float>(from[k * apart + e]) : 0.0f;
                }
                slot[k * Stride] = narrow<T>(values);
            }
        }
    }
};

/// wait_for_copies(stages - 1), without the jump table of a switch.
__device__ inline void wait_for_row(unsigned stages) {
    static_assert(most_norm_stages == 4);
    if (stages > 2) {
        if (stages > 3)
            wait_for_copies(3);
        else
            wait_for_copies(2);
    } else {
        if (stages > 1)
            wait_for_copies(1);
        else
            wait_for_copies(0);
    }
}

/// Sum of `values` in pairs: shorter chains of dependent additions, and smaller errors, than one after the other.
template <int Count>
__device__ inline float sum_of(const float (&values)[Count]) {
    float sums[Count];
#pragma unroll
    for (int i = 0; i < Count; ++i) sums[i] = values[i];
#pragma unroll
    for (int half = Count / 2; half > 0; half /= 2) {
#pragma unroll
        for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
    }
    return sums[0];
}

/// `value` summed over `Width` lanes that are neighbours, the same bits in each of them.
template <int Width>
__device__ inline float lane_sum(float value) {
#pragma unroll
    for (int bit = Width / 2; bit > 0; bit /= 2) value += __shfl_xor_sync(0xffffffffu, value, bit);
    return value;
}

/// Sum over the `Threads` threads of a group, the same bits in every thread. `turn` is 0 at the kernel's start and the
/// same in all threads.
template <int Threads>
__device__ inline float group_sum(float value, unsigned& turn) {
    value = lane_sum<32>(value);
    if constexpr (Threads > 32) {
        constexpr int warps = Threads / 32;
        constexpr int width = static_cast<int>(std::bit_ceil(static_cast<unsigned>(warps)));
        // Two sets in turn: one barrier for each sum, since who writes a set has passed the barrier of the other one,
        // and with it everybody has read this one.
        __shared__ float partial[2][width];
        const int warp = static_cast<int>(threadIdx.x) / 32;
        const int lane = static_cast<int>(threadIdx.x) % 32;
        if (lane == 0) partial[turn][warp] = value;
        __syncthreads();
        const int own = lane % width;
        value = lane_sum<width>(own < warps ? partial[turn][own] : 0.0f);
        turn ^= 1u;
    }
    return value;
}

/// The same of two values, with little more work than one: the lower half of a warp sums x and the upper one y.
template <int Threads>
__device__ inline float2 group_sum(float2 values, unsigned& turn) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const bool upper = lane >= 16;
    const float given = __shfl_xor_sync(0xffffffffu, upper ? values.x : values.y, 16);
    float value = lane_sum<16>((upper ? values.y : values.x) + given);
    if constexpr (Threads > 32) {
        constexpr int warps = Threads / 32;
        constexpr int width = static_cast<int>(std::bit_ceil(static_cast<unsigned>(warps < 16 ? warps : 16)));
        __shared__ float partial[2][2][warps];
        const float* const half = partial[turn][upper];
        if (lane % 16 == 0) partial[turn][upper][threadIdx.x / 32] = value;
        __syncthreads();
        const int own = lane % width;
        value = own < warps ? half[own] : 0.0f;
        if constexpr (warps > 16) value += own + 16 < warps ? half[own + 16] : 0.0f;
        value = lane_sum<width>(value);
        turn ^= 1u;
    }
    return make_float2(__shfl_sync(0xffffffffu, value, 0), __shfl_sync(0xffffffffu, value, 16));
}

/// sum / count, rounded as a division is but for the last bit; `inverse` is 1 / count.
__device__ inline float quotient(float sum, float count, float inverse) {
    const float about = sum * inverse;
    return fmaf(fmaf(-about, count, sum), inverse, about);
}

} // namespace device

namespace detail {

/// Throws unless `how` is one that the kernels can do, the plan is for it, and the matrices begin where they must.
inline void require_norm(const norm& how, const norm_plan& plan, std::initializer_list<const void*> matrices) {
    if (how.type != storage::fp32 && how.type != storage::fp16 && how.type != storage::bf16) {
        throw error("norm: elements are fp32, fp16 or bf16");
    }
    if (how.rows < 1 || how.rows > 1 << 30 || how.hidden < 1 || how.hidden > 65536) {
        throw error("norm: " + std::to_string(how.rows) + " rows of " + std::to_string(how.hidden) +
                    " elements; there must be 1 to 2^30 rows, and 1 to 65536 elements");
    }
    if (!suits(plan, how.rows, how.hidden, how.type == storage::fp32 ? 4 : 2)) {
        throw error("norm: a plan of " + std::to_string(plan.blocks) + " blocks, " + std::to_string(plan.threads) +
                    " threads a row, " + std::to_string(plan.units) + " units each and " + std::to_string(plan.stages) +
                    " stages is not for rows of " + std::to_string(how.hidden));
    }
    for (const void* matrix : matrices) {
        if (reinterpret_cast<std::uintptr_t>(matrix) % 16 != 0) {
            throw error("norm: a matrix does not begin at a 16-byte boundary");
        }
    }
}

[[nodiscard]] inline device::norm_arguments arguments_of(const norm& how, const norm_plan& plan) {
    return {static_cast<int>(how.rows),
            static_cast<int>(how.hidden),
            how.epsilon,
            how.rms,
            plan.stages,
            partial_of(plan, how.hidden, how.type == storage::fp32 ? 4 : 2)};
}

/// Calls `body` with a null pointer of the type that elements of `type` have on the device.
template <class Body>
void with_type(storage type, Body body) {
    if (type == storage::fp32)
        body(static_cast<float*>(nullptr));
    else if (type == storage::fp16)
        body(static_cast<__half*>(nullptr));
    else
        body(static_cast<__nv_bfloat16*>(nullptr));
}

/// Calls `body` with the place in `Shapes` of the shape that `plan` names, as a constant; throws if there is none.
template <const auto& Shapes, class Body>
void with_shape(const norm_plan& plan, Body body) {
    bool found = false;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
        ((Shapes[I].threads == plan.threads && Shapes[I].units == plan.units &&
                  (Shapes[I].stages == 0) == (plan.stages == 0)
              ? (body(std::integral_constant<std::size_t, I>{}), found = true)
              : false),
         ...);
    }
    (std::make_index_sequence<Shapes.size()>{});
    if (!found) {
        throw error("norm: no kernel has " + std::to_string(plan.threads) + " threads a row and " +
                    std::to_string(plan.units) + " units each" + (plan.stages == 0 ? " and no stages" : ""));
    }
}

} // namespace detail

} // namespace cuda::kernels

PLUMBLINE_NAMESPACE_END

#endif
