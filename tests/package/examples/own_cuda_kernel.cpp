// SPDX-License-Identifier: Apache-2.0
// A CUDA kernel of one's own under Google Benchmark: buffers rotate, so that a cold kernel finds nothing of its own in
// the cache; the output is checked before anything is timed; the baseline carries the GPU and its environment.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <plumbline/entry/cuda.hpp>
#include <plumbline/gbench/device.hpp>
#include <plumbline/gbench/main.hpp>

cudaError_t saxpy(cudaStream_t stream, float a, const float* x, float* y, long long elements); // saxpy.cu

namespace {

using plumbline::cuda::backend;
using plumbline::cuda::check;

struct saxpy_fixture {
    struct params {
        std::int64_t elements;
    };
    /// Buffer sets: three times the L2 cache at least.
    static std::size_t slots(backend& on, const params& p) {
        const std::size_t bytes = 8 * static_cast<std::size_t>(p.elements);
        return std::clamp<std::size_t>(3 * static_cast<std::size_t>(on.device().l2_bytes) / bytes + 1, 1, 64);
    }
    saxpy_fixture(backend& on, const params& p, std::size_t sets) : elements(p.elements) {
        const std::vector<float> ones(static_cast<std::size_t>(elements), 1.0f);
        for (std::size_t i = 0; i < 2 * sets; ++i) { // x and y of each set
            buffers.emplace_back(ones.size() * sizeof(float));
            check(cudaMemcpy(buffers.back().data(), ones.data(), buffers.back().size(), cudaMemcpyHostToDevice),
                  "cudaMemcpy");
        }
        on.synchronize();
    }
    void run(backend& on, std::size_t slot) {
        check(saxpy(on.stream(), 0.5f, buffers[2 * slot].as<float>(), buffers[2 * slot + 1].as<float>(), elements),
              "saxpy");
    }
    void verify(backend& on) {
        run(on, 0);
        on.synchronize();
        float last = 0;
        check(cudaMemcpy(&last, buffers[1].as<float>() + elements - 1, sizeof last, cudaMemcpyDeviceToHost),
              "cudaMemcpy");
        if (last != 1.5f)
            throw plumbline::verification_error("saxpy gave another value than 1.5", std::abs(last - 1.5), 0, 0);
    }
    std::int64_t elements;
    std::vector<plumbline::cuda::device_memory> buffers;
};
plumbline::workload::description describe(const saxpy_fixture::params& p) {
    plumbline::workload::description made{
        "user/saxpy/n" + std::to_string(p.elements), "user", {{"elements", p.elements}}};
    made.flop = 2.0 * static_cast<double>(p.elements);
    made.bytes = 12.0 * static_cast<double>(p.elements);
    return made;
}

} // namespace

int main(int argc, char** argv) {
    try {
        backend gpu;
        plumbline::gbench::session session(gpu, plumbline::gbench::about_device(plumbline::entry::cuda(), gpu));
        for (const std::int64_t elements : {1 << 20, 1 << 26}) session.add<saxpy_fixture>({elements});
        return plumbline::gbench::main(argc, argv, session);
    } catch (const plumbline::error& e) { // no GPU: exit code 6 and the reason
        std::cerr << "own_cuda_kernel: " << e.what() << '\n';
        return static_cast<int>(e.code());
    }
}
