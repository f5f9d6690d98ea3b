// SPDX-License-Identifier: Apache-2.0
// The canaries, revision 1. FROZEN: programs do not compile this file; freeze.sh turned it into frozen.hpp once. Any
// change is a new revision (workload::probe::params::revision) with new checksums, and old baselines no longer compare.

// A hash of small integers (lowbias32 of C. Wellons), so that every thread makes its own inputs.
__device__ __forceinline__ unsigned mix(unsigned x) {
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

// Inputs of the matrix canary: multiples of 1/8 in [-2, 2). All products and sums are then exact in fp32, so that the
// result does not depend on the order in which a tensor core adds.
__device__ __forceinline__ unsigned bf16_of(unsigned key) {
    const float value = (float)((int)(mix(key) & 31u) - 16) * 0.125f;
    return __float_as_uint(value) >> 16;
}

__device__ __forceinline__ unsigned pair_of(unsigned key) { return bf16_of(key) | bf16_of(key + 1) << 16; }

// Bound by the tensor cores: each warp adds one 16x16 by 16x8 product to each of 8 accumulators, `rounds` times.
// A(r, k) = bf16(16 r + k), B_j(k, c) = bf16(1000 + 1000 j + 16 c + k). out[thread] is the sum of 64 times its
// accumulators, as integers.
extern "C" __global__ void __launch_bounds__(256) plumbline_canary_mma(unsigned* out, int rounds) {
    const unsigned lane = threadIdx.x & 31u;
    const unsigned group = lane >> 2;
    const unsigned pair = (lane & 3u) * 2u;
    const unsigned a0 = pair_of(16u * group + pair);
    const unsigned a1 = pair_of(16u * (group + 8u) + pair);
    const unsigned a2 = pair_of(16u * group + pair + 8u);
    const unsigned a3 = pair_of(16u * (group + 8u) + pair + 8u);
    unsigned b[8][2];
    float c[8][4];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        b[j][0] = pair_of(1000u + 1000u * j + 16u * group + pair);
        b[j][1] = pair_of(1000u + 1000u * j + 16u * group + pair + 8u);
#pragma unroll
        for (int i = 0; i < 4; ++i) c[j][i] = 0.0f;
    }
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},"
                         "{%0,%1,%2,%3};"
                         : "+f"(c[j][0]), "+f"(c[j][1]), "+f"(c[j][2]), "+f"(c[j][3])
                         : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b[j][0]), "r"(b[j][1]));
        }
    }
    unsigned sum = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sum += (unsigned)(int)(c[j][i] * 64.0f);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Bound by fp32 fused multiply-add: each thread turns 4 points by small angles, `rounds` times, with
// x' = x + s y, y' = y - s x', which neither grows nor settles. Angles and points depend on the lane. out[thread] is
// the sum of the bits of all coordinates.
extern "C" __global__ void __launch_bounds__(256) plumbline_canary_fma(unsigned* out, int rounds) {
    const unsigned lane = threadIdx.x & 31u;
    float x[4], y[4], s[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        x[j] = (float)(mix(10u * lane + j) & 0xffffu) * (1.0f / 65536.0f) + 0.5f;
        y[j] = (float)(mix(2000u + 10u * lane + j) & 0xffffu) * (1.0f / 65536.0f) - 0.5f;
        s[j] = (float)(mix(4000u + 10u * lane + j) & 0xffffu) * (1.0f / 131072.0f) + 0.25f;
    }
#pragma unroll 4
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int j = 0; j < 4; ++j) x[j] = __fmaf_rn(s[j], y[j], x[j]);
#pragma unroll
        for (int j = 0; j < 4; ++j) y[j] = __fmaf_rn(-s[j], x[j], y[j]);
    }
    unsigned sum = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) sum += __float_as_uint(x[j]) + __float_as_uint(y[j]);
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Bound by memory: copies `count` groups of 16 bytes, four in flight for each thread.
extern "C" __global__ void __launch_bounds__(512) plumbline_canary_copy(uint4* to, const uint4* from,
                                                                         unsigned long long count) {
    const unsigned long long first = (unsigned long long)blockIdx.x * 2048u + threadIdx.x;
    if (first + 3u * 512u < count) {
        const uint4 v0 = from[first];
        const uint4 v1 = from[first + 512u];
        const uint4 v2 = from[first + 1024u];
        const uint4 v3 = from[first + 1536u];
        to[first] = v0;
        to[first + 512u] = v1;
        to[first + 1024u] = v2;
        to[first + 1536u] = v3;
    } else {
        for (unsigned long long i = first; i < count && i < first + 2048u; i += 512u) to[i] = from[i];
    }
}
