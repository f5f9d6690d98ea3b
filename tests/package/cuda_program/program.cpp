// SPDX-License-Identifier: Apache-2.0
// The CUDA backend from outside: the catalogue with its device code is linked, and asking for a device works or says why
// it does not.
#include <cstdio>

#include <plumbline/core/error.hpp>
#include <plumbline/cuda/backend.hpp>
#include <plumbline/cuda/catalogue.hpp>

int main() {
    const auto families = plumbline::cuda::catalogue();
    std::printf("%zu families\n", families.size());
    if (families.empty()) return 1;
    try {
        plumbline::cuda::backend device;
        std::puts("ok: device opened");
    } catch (const plumbline::environment_error& e) {
        std::printf("ok: %s\n", e.what());
    }
}
