// SPDX-License-Identifier: Apache-2.0
// Tests that need a GPU. Without one the program says so and ends with 77, which CTest counts as skipped.
#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "device.hpp"
#include "plumbline/cuda/machine/cold_start.hpp"

namespace {

std::unique_ptr<plumbline::cuda::backend> opened; // filled by main, so that nothing of CUDA runs before it

bool is_on(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && std::string(value) != "0";
}

} // namespace

plumbline::cuda::backend& device() {
    return *opened;
}

bool small_tests() {
    return is_on("PLUMBLINE_TEST_SMALL");
}

int main(int argc, char** argv) {
    if (const auto code = plumbline::cuda::machine::serve_cold_start(argc, argv)) return *code;
    try {
        opened = std::make_unique<plumbline::cuda::backend>();
    } catch (const plumbline::environment_error& failure) {
        std::printf("SKIPPED: no test of the CUDA backend ran: %s\n", failure.what());
        return 77;
    }
    std::printf("%s, sm_%d, %d SMs, L2 %zu MiB; timer step %.0f ns; stream can be held: %s\n", device().place().c_str(),
                device().device().capability(), device().device().sm_count, device().device().l2_bytes >> 20,
                device().timer_resolution_ns(), device().can_hold() ? "yes" : "NO");
    doctest::Context context(argc, argv);
    const int code = context.run();
    opened.reset();
    return code;
}
