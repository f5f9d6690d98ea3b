// SPDX-License-Identifier: Apache-2.0
// The source of the frozen canaries. Its matrix canary needs a tensor core: the macros below leave that statement out.
#include "plumbline/cuda/launch.cuh"

#include <vector>

#include <doctest/doctest.h>

#include "plumbline/cuda/canary/canary.hpp"

#define asm
#define volatile(...)
#pragma GCC diagnostic ignored "-Wconversion" // the file counts with int where a host compiler warns
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#include "plumbline/cuda/canary/canary.cu"
#undef asm
#undef volatile

using namespace plumbline;

TEST_CASE("the FMA canary's source gives the checksum that its frozen code is held to") {
    std::vector<unsigned> out(3 * 256);
    cuda::launch("fma", plumbline_canary_fma, {3, 256}, nullptr, out.data(), cuda::canary::fma_rounds);
    for (std::size_t warp = 0; warp < out.size() / 32; ++warp) {
        unsigned sum = 0;
        for (std::size_t lane = 0; lane < 32; ++lane) sum += out[warp * 32 + lane];
        CHECK(sum == cuda::canary::fma_warp_sum);
    }
}

TEST_CASE("the copy canary copies every group of 16 bytes and no more") {
    for (unsigned long long count : {1ull, 511ull, 2047ull, 2048ull, 2049ull, 5000ull}) {
        std::vector<uint4> from(count), to(count);
        for (std::size_t i = 0; i < count; ++i) from[i] = make_uint4(static_cast<unsigned>(i), 1, 2, 3);
        cuda::launch("copy", plumbline_canary_copy, {static_cast<unsigned>((count + 2047) / 2048), 512}, nullptr,
                     to.data(), from.data(), count);
        bool same = true;
        for (std::size_t i = 0; i < count; ++i) same = same && to[i].x == from[i].x && to[i].w == 3;
        CHECK(same);
    }
}
