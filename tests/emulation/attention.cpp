// SPDX-License-Identifier: Apache-2.0
// Fused attention by warps of matrices, on the host: against float64, whole tiles or not, under every schedule.
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "../cuda/attention_harness.hpp"
#include "emulation.hpp"
#include "plumbline/cuda/training_kernels.hpp"

using namespace plumbline;
using attention_test::sized;
using attention_test::trial;
using training::bfloat16;
using training::float16;
namespace kernels = plumbline::cuda::kernels;

namespace {

template <class Value>
trial<Value> computed(const attention_test::shape& s, float spread) {
    trial<Value> of(s, spread);
    of.y.assign(of.d_y.size(), Value(NAN));
    of.d_projected.assign(of.projected.size(), Value(NAN));
    of.log_sums.assign(static_cast<std::size_t>(s.rows() * s.heads), NAN);
    std::vector<float> products(of.log_sums.size(), NAN);
    kernels::flash_attention(nullptr, of.projected.data(), of.y.data(), of.log_sums.data(), s.batch, s.tokens, s.heads);
    kernels::flash_attention_backward(nullptr, of.d_y.data(), of.projected.data(), of.y.data(), of.log_sums.data(),
                                      of.d_projected.data(), products.data(), s.batch, s.tokens, s.heads);
    return of;
}

template <class Value>
void check(const attention_test::shape& s, const std::vector<std::pair<std::int64_t, std::int64_t>>& heads,
           float spread) {
    CAPTURE(s.tokens);
    const auto found = attention_test::off(computed<Value>(s, spread), heads);
    const double allowed = std::is_same_v<Value, bfloat16> ? 6e-3 : 8e-4;
    CHECK(found.y < allowed);
    CHECK(found.log_sums < 1e-5 * static_cast<double>(spread * spread));
    CHECK(found.d_query < allowed);
    CHECK(found.d_key < allowed);
    CHECK(found.d_value < allowed);
}

} // namespace

TEST_CASE("fused attention and its gradients hold to float64 under every schedule") {
    for (const emulation::schedule& how : emulation::schedules()) {
        CAPTURE(how.name);
        emulation::use(how);
        check<bfloat16>(sized(1, 1, 64, 150), {{0, 0}}, 1);
    }
}

TEST_CASE("fused attention when warps are far apart: no stage is filled while another warp reads it") {
    emulation::use(emulation::far_warps());
    check<bfloat16>(sized(1, 1, 64, 320), {{0, 0}}, 1);
}

TEST_CASE("fused attention of several heads and sequences, of whole tiles, and of less than one") {
    emulation::use(emulation::schedules().back());
    check<float16>(sized(2, 2, 64, 64), {{0, 0}, {0, 1}, {1, 0}, {1, 1}}, 1);
    check<bfloat16>(sized(1, 1, 64, 192), {{0, 0}}, 3);
    check<float16>(sized(1, 2, 64, 33), {{0, 1}}, 3);
    check<float16>(sized(2, 1, 64, 9), {{1, 0}}, 1);
}
