// SPDX-License-Identifier: Apache-2.0
#include "plumbline/cuda/kernels/conv_check.cuh"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "emulation.hpp"
#include "plumbline/workload/conv_reference.hpp"

using namespace plumbline;
namespace conv = plumbline::workload::conv;
namespace kernels = plumbline::cuda::kernels;
using kernels::storage;

namespace {

std::vector<float> filled(std::int64_t elements, std::uint64_t seed) {
    std::vector<float> data(static_cast<std::size_t>(elements));
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = workload::random::normal(seed, i);
    return data;
}

} // namespace

TEST_CASE("the channels of a convolution add up to what its inputs say, for every pass, layout and geometry") {
    for (const char* size : {"n2c4h5w6k6r3s3u1p1", "n2c4h7w5k6r3s2u2p2", "n1c6h6w6k9r3s3u1p2g3l2",
                             "n2c6h5w4k6r1s1u2p0g6", "n1c2h4w5d4k3r2s3t3u2p1", "n9c1h20w20k2r1s1u1p0"}) {
        for (const char* pass : {"fprop/fp32/nhwc/", "fprop/fp32/nchw/", "dgrad/fp32/nhwc/", "dgrad/fp32/nchw/",
                                 "wgrad/fp32/nhwc/", "wgrad/fp32/nchw/"}) {
            const std::string id = std::string("conv/") + pass + size;
            CAPTURE(id);
            const conv::params p = conv::parse(id);
            const conv::sums of(p);
            const std::vector<float> x = filled(p.x_elements(), conv::seed_x);
            const std::vector<float> w = filled(p.w_elements(), conv::seed_w);
            const std::vector<float> y = filled(p.y_elements(), conv::seed_y);
            const auto tensor = [&](conv::operand which) {
                return which == conv::operand::x ? x.data() : which == conv::operand::w ? w.data() : y.data();
            };
            const std::vector<double> signs = workload::random_signs(of.channels());
            const auto places = static_cast<std::size_t>(of.places());
            std::vector<double> channel_sums(static_cast<std::size_t>(of.groups() * of.depth()));
            std::vector<double> expected(places);
            kernels::add_conv_channels(nullptr, of, tensor(of.channel_operand()), storage::fp32, signs.data(),
                                       channel_sums.data());
            kernels::multiply_conv_places(nullptr, of, tensor(of.place_operand()), storage::fp32, channel_sums.data(),
                                          expected.data());

            const conv::grid all = conv::check_grid(p);
            const std::vector<double> reference = conv::reference(p, all);
            std::vector<float> output(static_cast<std::size_t>(p.output_elements()));
            std::vector<double> exact(places);
            for (std::size_t i = 0; i < reference.size(); ++i) {
                output[static_cast<std::size_t>(all.index(p, i))] = static_cast<float>(reference[i]);
                exact[i % places] += signs[i / places] * reference[i];
            }
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < places; ++i) wrong += std::abs(expected[i] - exact[i]) > 1e-11 ? 1 : 0;
            CHECK(wrong == 0);

            std::vector<double> found(places);
            kernels::add_conv_outputs(nullptr, of, output.data(), storage::fp32, signs.data(), found.data());
            CHECK_NOTHROW(conv::require_channel_sums(id, p, found, expected));
            output.back() += 3;
            kernels::add_conv_outputs(nullptr, of, output.data(), storage::fp32, signs.data(), found.data());
            CHECK_THROWS_AS(conv::require_channel_sums(id, p, found, expected), verification_error);
        }
    }
}
