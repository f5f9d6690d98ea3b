// SPDX-License-Identifier: Apache-2.0
#include "plumbline/workload/training_step.hpp"

#include <set>
#include <string>

#include <doctest/doctest.h>

using namespace plumbline;
using namespace plumbline::workload;
using training_step::describe;
using training_step::flop;
using training_step::parse;

TEST_CASE("ids of training steps come back as they are written") {
    std::set<std::string> hashes;
    for (std::string id :
         {"training_step/transformer/bf16", "training_step/transformer/fp16", "training_step/transformer/tf32",
          "training_step/transformer/fp32/stream", "training_step/transformer/bf16/accumulate4",
          "training_step/transformer/bf16/accumulate4/sustained/stream", "training_step/bottleneck/bf16",
          "training_step/transformer/fp32/l2d64h4f256v512b4t32", "training_step/bottleneck/fp32/n4c32h14k16",
          "training_step/bottleneck/fp32/n4c32h14k16/accumulate2"}) {
        CAPTURE(id);
        const auto p = parse(id);
        CHECK(training_step::id(p) == id);
        CHECK(describe(p).id == id);
        CHECK(describe(p).kind == benchmark_class::training_step);
        CHECK(hashes.insert(describe(p).hash()).second);
    }
    CHECK(parse("training_step/transformer/bf16").transformer.tokens == 1024);
    CHECK(parse("training_step/transformer/bf16/accumulate4").items() == 4 * 8192);
    CHECK(parse("training_step/bottleneck/bf16").items() == 64);
}

TEST_CASE("what no training step is gets refused") {
    for (std::string id : {"training_step",
                           "training_step/mlp/bf16",
                           "training_step/transformer/fp8",
                           "training_step/transformer/int8",
                           "training_step/transformer/bf16/hot",
                           "training_step/transformer/bf16/best",
                           "training_step/transformer/bf16/accumulate",
                           "training_step/transformer/bf16/accumulate0",
                           "training_step/transformer/bf16/accumulate1",
                           "training_step/transformer/bf16/accumulate04",
                           "training_step/transformer/bf16/accumulate65",
                           "training_step/transformer/bf16/accumulate1x",
                           "training_step/transformer/bf16/l6d1024h16f4096v32000b8t1024", // the default is not written
                           "training_step/transformer/bf16/l1d10h3f8v8b1t1",
                           "training_step/transformer/bf16/l0d8h2f8v8b1t1",
                           "training_step/transformer/bf16/l1d8h2f8v1b1t1",
                           "training_step/bottleneck/bf16/n1c6h8k4",
                           "training_step/bottleneck/bf16/n1c8h1k4",
                           "training_step/bottleneck/bf16/n1c8h8k1",
                           "training_step/bottleneck/bf16/l1d8h2f8v8b1t1",
                           "training_step/transformer/bf16/stream/accumulate4"}) {
        CAPTURE(id);
        CHECK_THROWS_AS(static_cast<void>(parse(id)), usage_error);
    }
}

TEST_CASE("parameters and FLOP by formula") {
    const auto large = parse("training_step/transformer/bf16");
    CHECK(training_step::parameters(large) == 141'060'096);
    // 6 tokens-times-parameters of the products, and the causal half of attention.
    const double products = 6.0 * 8192 * (6.0 * 12 * 1024 * 1024 + 1024 * 32000.0);
    const double attention = 3 * 4.0 * 6 * 1024 * 8 * (1024.0 * 1025 / 2);
    CHECK(flop(large) == doctest::Approx(products + attention).epsilon(1e-12));
    CHECK(flop(parse("training_step/transformer/bf16/accumulate4")) == doctest::Approx(4 * flop(large)));

    const auto stack = parse("training_step/bottleneck/bf16");
    // 256-64-64-256: 70,400 with its norms; 256-128-128-512 with projection: 379,392; 512-128-128-512: 280,064; head.
    CHECK(training_step::parameters(stack) == 70'400 + 379'392 + 280'064 + 512'000);
    const double block0 = 3136.0 * (256 * 64 + 9 * 64 * 64 + 64 * 256);
    const double block1 = 3136.0 * 256 * 128 + 784.0 * (9 * 128 * 128 + 128 * 512 + 256 * 512);
    const double block2 = 784.0 * (512 * 128 + 9 * 128 * 128 + 128 * 512);
    const double forward = 64 * 2 * (block0 + block1 + block2 + 512.0 * 1000);
    CHECK(flop(stack) == doctest::Approx(3 * forward - 64 * 2 * 3136.0 * 256 * 64).epsilon(1e-12));
}
