// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "device.hpp"
#include "plumbline/cuda/conv.hpp"
#include "plumbline/cuda/cudnn/predict.hpp"
#include "plumbline/result/alarm.hpp"

using namespace plumbline;

namespace {

/// Made, verified and described; at most three buffer sets.
result::evidence verified(const std::string& id) {
    cuda::backend& on = device();
    const auto p = workload::conv::parse(id);
    cuda::conv made(on, p, std::min<std::size_t>(cuda::conv::slots(on, p), 3));
    made.verify(on);
    const result::evidence ran = made.evidence(on);
    std::printf("  %-58s %s, %s, %s\n", id.c_str(), ran.implementation.c_str(),
                to_string(ran.parts.at("numerical_notes")).c_str(), ran.kernels.empty() ? "?" : ran.kernels[0].c_str());
    return ran;
}

std::vector<std::string> alarms_of(const std::string& id, const result::evidence& ran) {
    std::vector<std::string> codes;
    for (const auto& each : result::alarms(workload::conv::describe(workload::conv::parse(id)), ran)) {
        codes.push_back(each.code);
    }
    return codes;
}

/// Changes device memory behind the backend's back, and waits: its stream does not wait for the default one.
template <class Change>
void change(Change call) {
    REQUIRE(call() == cudaSuccess);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
}

bool tf32_is_off() {
    const char* forced = std::getenv("NVIDIA_TF32_OVERRIDE");
    return forced != nullptr && std::string(forced) == "0";
}

} // namespace

TEST_CASE("every pass, dtype and layout of a convolution gives the float64 result") {
    for (const char* pass : {"fprop", "dgrad", "wgrad"}) {
        for (const char* type : {"fp32", "tf32", "fp16", "bf16"}) {
            for (const char* layout : {"nhwc", "nchw"}) {
                const std::string id =
                    std::string("conv/") + pass + '/' + type + '/' + layout + "/n3c24h13w11k40r3s3u1p1";
                CAPTURE(std::string(id));
                const result::evidence ran = verified(id);
                if (std::string(type) == "fp32") CHECK(alarms_of(id, ran).empty());
            }
        }
    }
}

TEST_CASE("strides, odd channels, single pixels, groups, dilation and three dimensions are right") {
    for (const char* size : {"n2c16h15w9k32r3s5u2p2", "n5c3h20w20k8r7s7u2p3", "n3c33h8w8k65r1s1u1p0",
                             "n2c32h9w9k32r1s1u2p0", "n2c32h10w10k64r3s3u1p1g4", "n2c32h10w10k32r3s3u1p1g32",
                             "n2c16h16w16k16r3s3u1p2l2", "n2c16h10w10d6k16r3s3t3u1p1"}) {
        for (const char* pass : {"fprop", "dgrad", "wgrad"}) {
            const std::string id = std::string("conv/") + pass + "/bf16/nhwc/" + size;
            CAPTURE(std::string(id));
            try {
                static_cast<void>(verified(id));
            } catch (const unsupported_error& refused) {
                std::printf("  %-58s not offered: %s\n", id.c_str(), refused.what());
                // cuDNN has engines for all of these but, on some devices, gradients with groups or in depth.
                const std::string sizes = size; // "wgrad" has a g too
                CHECK((sizes.find('g') != std::string::npos || sizes.find('t') != std::string::npos));
            }
        }
    }
}

TEST_CASE("convolutions of the standard suite, with a smaller batch, are right and on tensor cores") {
    if (small_tests()) return;
    for (const char* pass : {"fprop", "dgrad", "wgrad"}) {
        for (const char* size : {"n32c64h56w56k64r3s3u1p1", "n32c128h56w56k128r3s3u2p1", "n32c256h14w14k1024r1s1u1p0",
                                 "n32c512h7w7k512r3s3u1p1"}) {
            const std::string id = std::string("conv/") + pass + "/bf16/nhwc/" + size;
            CAPTURE(std::string(id));
            CHECK(alarms_of(id, verified(id)).empty());
        }
    }
    for (const char* id :
         {"conv/fprop/bf16/nhwc/n32c3h224w224k64r7s7u2p3", "conv/fprop/fp16/nhwc/n64c256h56w56k256r3s3u1p1"}) {
        CAPTURE(std::string(id));
        CHECK(alarms_of(id, verified(id)).empty());
    }
    const std::string tf32 = "conv/fprop/tf32/nchw/n32c64h56w56k64r3s3u1p1";
    CHECK(alarms_of(tf32, verified(tf32)).empty() == !tf32_is_off());
}

TEST_CASE("what the device's own description predicts is what the device runs") {
    const std::string described = cuda::cudnn::device_json(device().device().ordinal);
    CHECK(described.find("deviceName") != std::string::npos);
    std::printf("  %s\n", described.c_str());
    for (const char* id :
         {"conv/fprop/bf16/nhwc/n32c64h56w56k64r3s3u1p1", "conv/dgrad/bf16/nhwc/n32c64h56w56k64r3s3u1p1",
          "conv/wgrad/bf16/nhwc/n32c64h56w56k64r3s3u1p1", "conv/fprop/fp32/nchw/n8c64h28w28k64r3s3u1p1",
          "conv/fprop/fp16/nchw/n32c64h56w56k64r3s3u1p1", "conv/fprop/bf16/nhwc/n32c64h56w56k64r3s3u1p1/fallback"}) {
        CAPTURE(std::string(id));
        cuda::backend& on = device();
        const auto p = workload::conv::parse(id);
        const result::evidence predicted = cuda::cudnn::predict(described, p);
        const result::evidence ran = cuda::conv(on, p, 1).evidence(on);
        CHECK(predicted.implementation == ran.implementation);
        for (const auto& [name, value] : predicted.parts) {
            CAPTURE(name);
            // How much memory a plan asks for cuDNN says more exactly where there is a device.
            if (name == "workspace_bytes" || name == "offered_engines") continue;
            CHECK(to_string(ran.parts.at(name)) == to_string(value));
        }
    }
}

TEST_CASE("variants do what they say: other lists, less workspace, the same bits every time") {
    const std::string size = small_tests() ? "n4c64h28w28k64r3s3u1p1" : "n64c64h56w56k64r3s3u1p1";
    const std::string fallback = "conv/fprop/fp16/nhwc/" + size + "/fallback";
    const result::evidence last_resort = verified(fallback);
    CHECK(last_resort.implementation.rfind("cudnn/FALLBACK/", 0) == 0);
    CHECK(alarms_of(fallback, last_resort).front() == result::alarm_code::fallback);
    CHECK(verified("conv/fprop/fp16/nhwc/" + size + "/mode_b").implementation.rfind("cudnn/B/", 0) == 0);
    const result::evidence tight = verified("conv/fprop/fp16/nchw/" + size + "/ws1");
    CHECK(std::get<std::int64_t>(tight.parts.at("workspace_bytes")) <= 1 << 20);
    cuda::backend& on = device();
    for (const char* type : {"bf16", "fp32"}) {
        const std::string id = std::string("conv/wgrad/") + type + "/nchw/" + size + "/deterministic";
        CAPTURE(std::string(id));
        cuda::conv fixed(on, workload::conv::parse(id), 1);
        const std::string first = fixed.output_hash(on);
        for (int i = 0; i < 5; ++i) CHECK(fixed.output_hash(on) == first);
    }
}

TEST_CASE("a wrong convolution is caught, in the first and in the last buffer set") {
    cuda::backend& on = device();
    const auto p = workload::conv::parse("conv/fprop/bf16/nhwc/n2c64h12w12k32r3s3u1p1");
    for (std::size_t slot : {0u, 2u}) {
        cuda::conv made(on, p, 3);
        CHECK_NOTHROW(made.verify(on));
        // One of the 64 channels of one image is gone.
        change([&] { return cudaMemset2D(made.x(slot), 64 * 2, 0, 2, 12 * 12); });
        CHECK_THROWS_WITH_AS(made.verify(on), doctest::Contains("wrong result"), verification_error);
    }
    cuda::conv made(on, p, 2);
    const std::uint16_t nan = 0x7fc0;
    change([&] { return cudaMemcpy(made.w(0), &nan, sizeof nan, cudaMemcpyHostToDevice); });
    CHECK_THROWS_WITH_AS(made.verify(on), doctest::Contains("were not written or are not finite"), verification_error);
    const auto gradient = workload::conv::parse("conv/wgrad/fp16/nhwc/n2c64h12w12k32r3s3u1p1");
    cuda::conv weights(on, gradient, 1);
    CHECK_NOTHROW(weights.verify(on));
    change([&] { return cudaMemset(weights.y(0), 0, 32 * 2 * 12); }); // one row of one image
    CHECK_THROWS_WITH_AS(weights.verify(on), doctest::Contains("wrong result"), verification_error);
}

TEST_CASE("a search finds an engine at least as fast as the first, and a recorded plan of a convolution is replayed") {
    cuda::backend& on = device();
    const std::string work =
        std::string("conv/wgrad/bf16/nhwc/") + (small_tests() ? "n4c32h14w14k32r3s3u1p1" : "n64c64h56w56k64r3s3u1p1");
    const auto p = workload::conv::parse(work + "/best");
    result::evidence found;
    {
        cuda::conv best(on, p, cuda::conv::slots(on, p));
        best.verify(on);
        found = best.evidence(on);
    }
    std::printf("  the best is number %s of %s, the first takes %.4f times as long; %s\n",
                to_string(found.parts.at("position")).c_str(), to_string(found.parts.at("candidates")).c_str(),
                std::get<double>(found.parts.at("heuristic_regret")), found.implementation.c_str());
    CHECK(std::get<double>(found.parts.at("heuristic_regret")) >= 1.0);

    const auto pinned = workload::conv::parse(work + "/pinned");
    CHECK_THROWS_WITH_AS(cuda::conv(on, pinned, 1), doctest::Contains("no plan to replay"), unsupported_error);
    on.pin(work, found);
    cuda::conv replayed(on, pinned, 1);
    CHECK(replayed.evidence(on).implementation == found.implementation);
    CHECK(replayed.evidence(on).kernels == found.kernels);
    CHECK_NOTHROW(replayed.verify(on));
    result::evidence broken = found;
    broken.parts["engine"] = std::int64_t{9999};
    on.pin(work, broken);
    CHECK_THROWS_AS(cuda::conv(on, pinned, 1), unsupported_error);
}
