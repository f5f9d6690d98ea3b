// SPDX-License-Identifier: Apache-2.0
// CUDA's numbers of GPUs, found without asking CUDA.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plumbline/environment/nvidia/ordinal.hpp"

namespace environment = plumbline::environment;
namespace nvidia = plumbline::environment::nvidia;

namespace {

/// A machine whose NVML knows three GPUs.
environment::host machine(const std::optional<std::string>& visible) {
    static const std::vector<std::string> uuids{"GPU-aaaa-1", "GPU-bbbb-2", "GPU-bbcc-3"};
    auto api = std::make_shared<nvidia::nvml_api>();
    api->device_count = [](unsigned* count) {
        *count = 3;
        return nvidia::code::success;
    };
    // Handles are never null: number + 1.
    api->handle_by_index = [](unsigned index, nvidia::device_handle* gpu) {
        *gpu = reinterpret_cast<nvidia::device_handle>(std::uintptr_t{index} + 1);
        return nvidia::code::success;
    };
    api->uuid = [](nvidia::device_handle gpu, char* text, unsigned size) {
        std::strncpy(text, uuids[reinterpret_cast<std::uintptr_t>(gpu) - 1].c_str(), size);
        return nvidia::code::success;
    };
    environment::host made;
    made.nvml = api;
    if (visible) made.variables["CUDA_VISIBLE_DEVICES"] = *visible;
    return made;
}

using list = std::vector<std::string>;

} // namespace

TEST_CASE("without CUDA_VISIBLE_DEVICES all GPUs in the order of the bus") {
    CHECK(nvidia::visible_gpus(machine(std::nullopt)) == list{"GPU-aaaa-1", "GPU-bbbb-2", "GPU-bbcc-3"});
    CHECK(nvidia::gpu_of_ordinal(machine(std::nullopt), 2) == "GPU-bbcc-3");
    CHECK_THROWS_AS((void)nvidia::gpu_of_ordinal(machine(std::nullopt), 3), plumbline::usage_error);
}

TEST_CASE("CUDA_VISIBLE_DEVICES chooses and orders; its first wrong entry ends the list") {
    CHECK(nvidia::visible_gpus(machine("2,0")) == list{"GPU-bbcc-3", "GPU-aaaa-1"});
    CHECK(nvidia::visible_gpus(machine(" 1 , 2 ")) == list{"GPU-bbbb-2", "GPU-bbcc-3"});
    CHECK(nvidia::visible_gpus(machine("GPU-bbc,0")) == list{"GPU-bbcc-3", "GPU-aaaa-1"});
    CHECK(nvidia::visible_gpus(machine("0,7,1")) == list{"GPU-aaaa-1"});
    CHECK(nvidia::visible_gpus(machine("-1")).empty());
    CHECK(nvidia::visible_gpus(machine("")).empty());
    CHECK(nvidia::visible_gpus(machine("MIG-12")) == list{"MIG-12"});
    CHECK(nvidia::gpu_of_ordinal(machine("2,0"), 0) == "GPU-bbcc-3");
    CHECK_THROWS_AS((void)nvidia::gpu_of_ordinal(machine("1"), 1), plumbline::usage_error);
}

TEST_CASE("without NVML nothing is known, and nothing is invented") {
    environment::host none;
    CHECK(nvidia::visible_gpus(none).empty());
    CHECK(nvidia::gpu_of_ordinal(none, 0).empty());
}
