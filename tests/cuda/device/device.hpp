// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TESTS_CUDA_DEVICE_DEVICE_HPP
#define PLUMBLINE_TESTS_CUDA_DEVICE_DEVICE_HPP

#include <algorithm>

#include <doctest/doctest.h>

#include "plumbline/cuda/backend.hpp"

/// The device all tests of this program share; opened by main, closed before it returns.
plumbline::cuda::backend& device();

/// Small sizes and no expectation on times: PLUMBLINE_TEST_SMALL=1, for compute-sanitizer.
bool small_tests();

/// The shortest of several turns of `body`, each of several launches; microseconds a launch.
template <class Body>
double shortest_us(Body body) {
    constexpr int turns = 7, launches = 10;
    const auto on = device().stream();
    cudaEvent_t begin = nullptr, end = nullptr;
    REQUIRE(cudaEventCreate(&begin) == cudaSuccess);
    REQUIRE(cudaEventCreate(&end) == cudaSuccess);
    double best = 1e9;
    for (int turn = 0; turn < turns; ++turn) {
        REQUIRE(cudaEventRecord(begin, on) == cudaSuccess);
        for (int i = 0; i < launches; ++i) body();
        REQUIRE(cudaEventRecord(end, on) == cudaSuccess);
        REQUIRE(cudaEventSynchronize(end) == cudaSuccess);
        float elapsed_ms = 0;
        REQUIRE(cudaEventElapsedTime(&elapsed_ms, begin, end) == cudaSuccess);
        best = std::min(best, static_cast<double>(elapsed_ms) * 1000 / launches);
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return best;
}

#endif
