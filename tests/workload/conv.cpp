// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/workload/conv_reference.hpp"

using namespace plumbline;
using namespace plumbline::workload;

namespace {

/// All outputs of a pass as stored, by scattering every product of the forward definition to the output it belongs to:
/// the other way round than conv::reference, which gathers.
std::vector<double> by_definition(const conv::params& p) {
    const auto value = [&](std::uint64_t seed, std::int64_t index) {
        return input_value(p.type, seed, static_cast<std::uint64_t>(index));
    };
    std::vector<double> out(static_cast<std::size_t>(p.output_elements()));
    const auto window = [&](std::int64_t y_index, std::int64_t n, std::int64_t k, std::int64_t o, std::int64_t i,
                            std::int64_t j) {
        for (std::int64_t c = 0; c < p.group_c(); ++c) {
            for (std::int64_t t = 0; t < p.filter_depth(); ++t) {
                for (std::int64_t rs = 0; rs < p.r * p.s; ++rs) {
                    const std::int64_t z = p.three_d() ? o * p.stride - p.padding + t * p.dilation : 0;
                    const std::int64_t y = i * p.stride - p.padding + rs / p.s * p.dilation;
                    const std::int64_t x = j * p.stride - p.padding + rs % p.s * p.dilation;
                    if (std::min({z, y, x}) < 0 || z >= p.depth() || y >= p.h || x >= p.w) continue;
                    const std::int64_t x_at = p.x_index(n, k / p.group_k() * p.group_c() + c, z, y, x);
                    const std::int64_t w_at = p.w_index(k, c, t, rs / p.s, rs % p.s);
                    if (p.variant == conv::pass::fprop)
                        out[static_cast<std::size_t>(y_index)] += value(conv::seed_x, x_at) * value(conv::seed_w, w_at);
                    else if (p.variant == conv::pass::dgrad)
                        out[static_cast<std::size_t>(x_at)] += value(conv::seed_y, y_index) * value(conv::seed_w, w_at);
                    else
                        out[static_cast<std::size_t>(w_at)] += value(conv::seed_y, y_index) * value(conv::seed_x, x_at);
                }
            }
        }
    };
    for (std::int64_t n = 0; n < p.n; ++n) {
        for (std::int64_t k = 0; k < p.k; ++k) {
            for (std::int64_t o = 0; o < p.o(); ++o) {
                for (std::int64_t ij = 0; ij < p.p() * p.q(); ++ij) {
                    window(p.y_index(n, k, o, ij / p.q(), ij % p.q()), n, k, o, ij / p.q(), ij % p.q());
                }
            }
        }
    }
    return out;
}

} // namespace

TEST_CASE("ids of convolutions are read and written alike, and only canonical ones are taken") {
    for (const char* id :
         {"conv/fprop/bf16/nhwc/n256c64h56w56k64r3s3u1p1", "conv/wgrad/bf16/nhwc/n256c3h224w224k64r7s7u2p3",
          "conv/dgrad/fp16/nchw/n2c8h5w7k4r3s1u2p1g4l2/hot", "conv/fprop/tf32/nhwc/n1c8h8w8d4k8r3s3t3u1p1/best",
          "conv/fprop/fp32/nchw/n1c1h1w1k1r1s1u1p0/fallback/deterministic/ws0/pinned/stream",
          "conv/fprop/bf16/nhwc/n1c8h8w8k8r3s3u1p1/mode_b", "conv/fprop/bf16/nhwc/n1c8h8w8k8r3s3u1p1/ws32/sustained"}) {
        CAPTURE(id);
        CHECK(conv::id(conv::parse(id)) == id);
        CHECK(conv::describe(conv::parse(id)).id == id);
    }
    for (const char* id :
         {"conv/fprop/bf16/nhwc/n256c64h56k64r3u1p1", "conv/fprop/bf16/nhwc/n256c64h56w56k64r3s3",
          "conv/fprop/int8/nhwc/n1c8h8w8k8r3s3u1p1", "conv/fwd/bf16/nhwc/n1c8h8w8k8r3s3u1p1",
          "conv/fprop/bf16/nhcw/n1c8h8w8k8r3s3u1p1", "conv/fprop/bf16/nhwc/n0c8h8w8k8r3s3u1p1",
          "conv/fprop/bf16/nhwc/n1c8h8w8k8r3s3u0p1", "conv/fprop/bf16/nhwc/n1c8h2w8k8r5s3u1p1",
          "conv/fprop/bf16/nhwc/n1c8h8w8k8r3s3u1p1g3", "conv/fprop/bf16/nhwc/n1c8h8w8d2k8r3s3u1p1",
          "conv/fprop/bf16/nhwc/n1c8h8w8k8r3s3u1p1g1", "conv/fprop/bf16/nhwc/n1c8h8w8k8r3s3u1p1/ws1024",
          "conv/fprop/bf16/nhwc/n1c8h8w8k8r3s3u1p1/ws", "conv/fprop/bf16/nhwc/n1c8h8w8k8r3s3u1p1/deterministic/mode_b",
          "conv/fprop/bf16/nhwc/n1048576c1048576h8w8k8r3s3u1p1", "conv/fprop/bf16/nhwc/c8n1h8w8k8r3s3u1p1"}) {
        CAPTURE(id);
        CHECK_THROWS_AS(static_cast<void>(conv::parse(id)), usage_error);
    }
    CHECK_THROWS_WITH_AS(static_cast<void>(conv::parse("conv/fprop/bf16/nhwc/n1c8h8w8k8r3s3u1p1l1")),
                         doctest::Contains("it is written conv/fprop/bf16/nhwc/n1c8h8w8k8r3s3u1p1;"), usage_error);
}

TEST_CASE("everything that changes what is computed changes the hash of the workload") {
    std::set<std::string> hashes;
    std::size_t count = 0;
    for (const char* id :
         {"fprop/bf16/nhwc/n4c8h8w8k8r3s3u1p1", "dgrad/bf16/nhwc/n4c8h8w8k8r3s3u1p1",
          "fprop/fp16/nhwc/n4c8h8w8k8r3s3u1p1", "fprop/bf16/nchw/n4c8h8w8k8r3s3u1p1",
          "fprop/bf16/nhwc/n5c8h8w8k8r3s3u1p1", "fprop/bf16/nhwc/n4c8h8w8k8r3s3u2p1",
          "fprop/bf16/nhwc/n4c8h8w8k8r3s3u1p2", "fprop/bf16/nhwc/n4c8h8w8k8r3s3u1p1g2",
          "fprop/bf16/nhwc/n4c8h8w8k8r3s3u1p1l2", "fprop/bf16/nhwc/n4c8h8w8d4k8r3s3t1u1p1",
          "fprop/bf16/nhwc/n4c8h8w8d4k8r3s3t3u1p1", "fprop/bf16/nhwc/n4c8h8w8k8r3s3u1p1/mode_b",
          "fprop/bf16/nhwc/n4c8h8w8k8r3s3u1p1/deterministic", "fprop/bf16/nhwc/n4c8h8w8k8r3s3u1p1/ws32"}) {
        hashes.insert(conv::describe(conv::parse(std::string("conv/") + id)).hash());
        ++count;
    }
    CHECK(hashes.size() == count);
}

TEST_CASE("FLOP, bytes and output sizes of a convolution follow the formulas") {
    const auto p = conv::parse("conv/fprop/bf16/nhwc/n256c64h56w56k64r3s3u1p1");
    CHECK(p.p() == 56);
    CHECK(conv::flop(p) == 2.0 * 256 * 64 * 56 * 56 * 64 * 9);
    CHECK(conv::bytes(p) == 2.0 * (2.0 * 256 * 64 * 56 * 56 + 64 * 64 * 9));
    CHECK(conv::terms(p) == 576);
    const auto stem = conv::parse("conv/wgrad/fp32/nhwc/n256c3h224w224k64r7s7u2p3");
    CHECK(stem.p() == 112);
    CHECK(conv::flop(stem) == 256 * 236027904.0);
    CHECK(conv::terms(stem) == 256 * 112 * 112);
    CHECK(conv::terms(conv::parse("conv/dgrad/bf16/nhwc/n256c64h56w56k128r1s1u1p0")) == 128);
    const auto grouped = conv::parse("conv/fprop/fp16/nhwc/n2c8h9w7k12r3s2u2p1g4l2");
    CHECK(grouped.p() == 4);
    CHECK(grouped.q() == 4);
    CHECK(conv::flop(grouped) == 2.0 * 2 * 12 * 4 * 4 * 2 * 6);
    const auto deep = conv::parse("conv/fprop/fp16/nhwc/n2c8h9w7d6k12r3s2t3u1p0");
    CHECK(deep.o() == 4);
    CHECK(conv::bytes(deep) == 2.0 * (2 * 8 * 6 * 9 * 7 + 12 * 8 * 3 * 3 * 2 + 2 * 12 * 4 * 7 * 6));
}

TEST_CASE("the reference is the definition, for every pass, layout and geometry") {
    for (const char* size :
         {"n2c3h5w6k4r3s3u1p1", "n2c4h7w5k6r3s2u2p1", "n1c4h6w6k6r3s3u1p2g2l2", "n2c6h5w4k6r1s1u2p0g6",
          "n1c2h4w5d4k3r2s3t3u2p1", "n3c1h1w1k2r1s1u1p0", "n1c4h9w8d3k4r3s3t1u1p1g2"}) {
        for (const char* pass : {"fprop/bf16/nhwc/", "fprop/fp32/nchw/", "dgrad/tf32/nhwc/", "dgrad/fp16/nchw/",
                                 "wgrad/bf16/nhwc/", "wgrad/fp32/nchw/"}) {
            const std::string id = std::string("conv/") + pass + size;
            CAPTURE(id);
            const conv::params p = conv::parse(id);
            const conv::grid all = conv::check_grid(p);
            REQUIRE(all.size() == static_cast<std::size_t>(p.output_elements()));
            const std::vector<double> expected = by_definition(p);
            const std::vector<double> got = conv::reference(p, all);
            std::set<std::int64_t> seen;
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < got.size(); ++i) {
                const std::int64_t at = all.index(p, i);
                seen.insert(at);
                const double off = got[i] - expected[static_cast<std::size_t>(at)];
                wrong += off > 1e-12 || off < -1e-12 ? 1 : 0;
            }
            CHECK(wrong == 0);
            CHECK(seen.size() == got.size()); // each element once
        }
    }
}

TEST_CASE("of a large convolution corners and random elements are compared, of long sums fewer") {
    const auto p = conv::parse("conv/fprop/bf16/nhwc/n256c64h56w56k64r3s3u1p1");
    const conv::grid chosen = conv::check_grid(p);
    CHECK(chosen.size() > 4000);
    CHECK(chosen.index(p, 0) == 0);
    CHECK(chosen.index(p, chosen.size() - 1) == p.output_elements() - 1);
    CHECK(conv::check_grid(p, 1).places != chosen.places);
    const auto weights = conv::parse("conv/wgrad/bf16/nhwc/n256c64h56w56k64r3s3u1p1");
    const conv::grid few = conv::check_grid(weights);
    CHECK(few.size() >= 100);
    CHECK(few.size() <= 400);
    CHECK(few.index(weights, 0) == 0);
    CHECK(few.index(weights, few.size() - 1) == weights.output_elements() - 1);
    // In several blocks of places the elements are those of one.
    const auto small = conv::parse("conv/fprop/fp32/nhwc/n2c4h9w9k6r3s3u1p1g2");
    CHECK(conv::reference(small, conv::check_grid(small), 100) == conv::reference(small, conv::check_grid(small)));
    CHECK(conv::reference(small, conv::check_grid(small), 1) == conv::reference(small, conv::check_grid(small)));
}

TEST_CASE("sums of channels let roundings pass and no wrong element, also where a stride leaves gaps") {
    for (const char* id : {"conv/fprop/bf16/nhwc/n1c16h14w14k80r3s3u1p1", "conv/dgrad/bf16/nchw/n1c80h14w14k16r3s3u1p1",
                           "conv/wgrad/fp16/nhwc/n2c16h9w9k96r3s3u1p1", "conv/dgrad/bf16/nhwc/n1c80h14w14k16r3s3u2p1",
                           "conv/dgrad/fp16/nhwc/n1c80h14w14k16r1s1u2p0", "conv/fprop/fp32/nhwc/n1c16h9w9k8r3s3u1p1"}) {
        CAPTURE(id);
        const conv::params p = conv::parse(id);
        const conv::sums of(p);
        const conv::grid all = conv::check_grid(p);
        REQUIRE(all.size() == static_cast<std::size_t>(p.output_elements()));
        const std::vector<double> exact = conv::reference(p, all);
        const std::vector<double> signs = random_signs(of.channels());
        const auto places = static_cast<std::size_t>(of.places());
        const auto rounded = [&](double value) -> double {
            const auto single = static_cast<float>(value);
            if (p.type == dtype::fp16) return from_fp16(to_fp16(single));
            return p.type == dtype::bf16 ? from_bf16(to_bf16(single)) : single;
        };
        std::vector<double> expected(places), found(places);
        for (std::size_t i = 0; i < exact.size(); ++i) {
            expected[i % places] += signs[i / places] * exact[i];
            found[i % places] += signs[i / places] * rounded(exact[i]);
        }
        CHECK_NOTHROW(conv::require_channel_sums(id, p, found, expected));
        // One element of all is off by as much as a typical one.
        const double typical = std::sqrt(static_cast<double>(of.depth()));
        for (const std::size_t at : {std::size_t{0}, places - 1}) {
            std::vector<double> wrong = found;
            wrong[at] += 2 * typical;
            CHECK_THROWS_AS(conv::require_channel_sums(id, p, wrong, expected), verification_error);
        }
        if (p.r != 1) continue;
        const auto gap = static_cast<std::size_t>(std::find(expected.begin(), expected.end(), 0.0) - expected.begin());
        REQUIRE(gap < places);
        found[gap] = typical;
        CHECK_THROWS_AS(conv::require_channel_sums(id, p, found, expected), verification_error);
    }
}
