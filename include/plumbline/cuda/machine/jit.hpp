// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_MACHINE_JIT_HPP
#define PLUMBLINE_CUDA_MACHINE_JIT_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

#include "plumbline/cuda/backend.hpp"
#include "plumbline/cuda/driver.hpp"
#include "plumbline/cuda/machine/repeat.hpp"
#include "plumbline/workload/random.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda::machine {

namespace detail {

/// PTX of a kernel of 400 dependent instructions on random constants: about what an element-wise kernel that a
/// framework generates is. Texts of different seeds are different programs, so a new seed is never in the driver's
/// compilation cache.
[[nodiscard]] inline std::string jit_program(std::uint64_t seed) {
    std::string text = ".version 7.0\n.target sm_75\n.address_size 64\n"
                       ".visible .entry plumbline_jit(.param .u64 out)\n{\n"
                       ".reg .u32 %v;\n.reg .u64 %to;\n"
                       "ld.param.u64 %to, [out];\ncvta.to.global.u64 %to, %to;\nmov.u32 %v, %tid.x;\n";
    for (std::uint64_t i = 0; i < 200; ++i) {
        const workload::random::block bits = workload::random::philox(seed, i);
        text += "mad.lo.u32 %v, %v, " + std::to_string(bits.word[0] | 1u) + ", " + std::to_string(bits.word[1]) + ";\n";
        text += "xor.b32 %v, %v, " + std::to_string(bits.word[2]) + ";\n";
    }
    return text + "st.global.u32 [%to], %v;\nret;\n}\n";
}

/// What that program writes.
[[nodiscard]] inline std::uint32_t jit_answer(std::uint64_t seed) {
    std::uint32_t value = 0;
    for (std::uint64_t i = 0; i < 200; ++i) {
        const workload::random::block bits = workload::random::philox(seed, i);
        value = (value * (bits.word[0] | 1u) + bits.word[1]) ^ bits.word[2];
    }
    return value;
}

/// Host time from the PTX text to the end of the first launch, ns. Throws verification_error when the program's
/// answer is wrong.
[[nodiscard]] inline double time_jit(backend& on, const std::string& text, std::uint64_t seed) {
    const driver& calls = on.shared<driver>();
    const device_memory out(sizeof(std::uint32_t));
    check(cudaMemsetAsync(out.data(), 0, out.size(), on.stream()), "cudaMemsetAsync");
    on.synchronize();
    const auto begin = std::chrono::steady_clock::now();
    const code_module loaded(calls, text.c_str(), "PTX");
    void* to = out.data();
    void* arguments[] = {&to};
    calls.launch(loaded.function("plumbline_jit"), 1, 1, on.stream(), arguments);
    on.synchronize();
    const auto end = std::chrono::steady_clock::now();
    std::uint32_t answer = 0;
    check(cudaMemcpy(&answer, out.data(), sizeof answer, cudaMemcpyDeviceToHost), "cudaMemcpy", "answer");
    if (answer != jit_answer(seed)) {
        throw verification_error("probe/cold_jit: the code that the driver compiled computes a wrong result", 1, 1, 0);
    }
    return std::chrono::duration<double, std::nano>(end - begin).count();
}

} // namespace detail

/// cold_jit and cold_jit_cached: from PTX to the end of the first launch, of a program that the driver has never
/// compiled before, or of one that it compiled a moment ago. Where the cache is off (CUDA_CACHE_DISABLE) both are
/// equal, as they should be. Each run leaves a few small entries in the driver's cache, which bounds its own size.
[[nodiscard]] inline measure::procedure_result jit(backend& on, bool cached, const measure::budget& time) {
    std::random_device fresh;
    std::uint64_t seed = std::uint64_t{fresh()} << 32 | fresh();
    static_cast<void>(detail::time_jit(on, detail::jit_program(seed), seed)); // loads the compiler itself
    std::string text = detail::jit_program(seed);
    const auto once = [&] {
        if (!cached) text = detail::jit_program(++seed);
        return detail::time_jit(on, text, seed);
    };
    measure::procedure_result found;
    found.metrics.push_back(time_metric("time", repeat(time, 5, once, 30)));
    found.ran.implementation = "driver";
    int version = 0;
    check(cudaDriverGetVersion(&version), "cudaDriverGetVersion");
    found.ran.parts["driver_version"] = std::int64_t{version};
    found.verified = true;
    return found;
}

} // namespace cuda::machine

PLUMBLINE_NAMESPACE_END

#endif
