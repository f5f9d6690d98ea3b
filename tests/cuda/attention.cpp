// SPDX-License-Identifier: Apache-2.0
// cuDNN's engines for fused attention on a described H200. They are compiled when they are asked for, so cuDNN wants to
// see a driver; the toolkit's stub of one is enough for the lists. A program of its own: other lists change with it.
#include <cstdio>
#include <dlfcn.h>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/cuda/cudnn/attention.hpp"

using namespace plumbline;
using namespace plumbline::cuda::cudnn;
using shape = workload::training_step::transformer_shape;

namespace {

/// Whether there is a driver or a stub of one; stays loaded.
bool driver() {
    static const bool loaded = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) != nullptr ||
                               dlopen(DRIVER_STUB, RTLD_NOW | RTLD_GLOBAL) != nullptr;
    return loaded;
}

std::vector<candidate> engines(const descriptor& graph) {
    std::ifstream file(CUDNN_DATA "/h200.json");
    std::ostringstream text;
    text << file.rdbuf();
    return candidates(graph, heuristic::a, device_properties(text.str()));
}

} // namespace

#if CUDNN_VERSION >= 91100

TEST_CASE("causal attention and its gradients have engines on tensor cores") {
    if (!driver()) {
        std::printf("SKIPPED: neither libcuda.so.1 nor the toolkit's stub of it was found\n");
        return;
    }
    for (workload::dtype type : {workload::dtype::bf16, workload::dtype::fp16}) {
        // As it is timed, as it is verified, and off whole tiles.
        for (const shape& s : {shape{}, shape{1, 64, 2, 128, 128, 2, 32}, shape{1, 128, 2, 128, 128, 2, 100}}) {
            CAPTURE(s.tokens);
            for (const descriptor& graph : {attention_graph(type, s), attention_backward_graph(type, s)}) {
                CAPTURE(graph.what());
                const std::vector<candidate> found = engines(graph);
                REQUIRE(!found.empty());
                CHECK(found.front().facts.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
                CHECK(refusal(found.front().facts, {type, false, std::int64_t{1} << 30}).empty());
            }
        }
    }
}

TEST_CASE("what cuDNN's attention cannot do has no engine, and no error") {
    if (!driver()) return;
    const shape narrow{1, 12, 2, 64, 40, 1, 6}; // heads of 6
    CHECK(engines(attention_graph(workload::dtype::bf16, narrow)).empty());
    CHECK(engines(attention_backward_graph(workload::dtype::bf16, narrow)).empty());
}

#endif
