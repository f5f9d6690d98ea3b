// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_NVIDIA_LOAD_HPP
#define PLUMBLINE_ENVIRONMENT_NVIDIA_LOAD_HPP

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <dlfcn.h>

#include "plumbline/environment/nvidia/nvml.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment::nvidia {

/// What loading NVML gave: the functions, or why there are none.
struct loaded_nvml {
    std::shared_ptr<const nvml_api> api; ///< null where it cannot be used; shuts NVML down with the last copy
    std::string problem;
    std::optional<int> code; ///< what nvmlInit_v2 answered, where the library could be opened
};

namespace detail {

template <class Return, class... Arguments>
void bind(void* library, const char* symbol, std::function<Return(Arguments...)>& into) {
    if (void* address = ::dlsym(library, symbol)) into = reinterpret_cast<Return (*)(Arguments...)>(address);
}

} // namespace detail

/// Initialises a filled function table; a test passes a fake one.
[[nodiscard]] inline loaded_nvml start_nvml(nvml_api functions) {
    if (!functions.init || !functions.device_count) {
        return {nullptr, "libnvidia-ml.so.1 has no nvmlInit_v2: the driver is older than 340", std::nullopt};
    }
    const int answer = functions.init();
    if (answer != code::success) {
        return {nullptr, "nvmlInit_v2: nvml " + std::to_string(answer) + " (" + code_name(answer) + ")", answer};
    }
    // Errors of shutdown are of no use to anyone: the readings are in hand.
    auto stop = [](const nvml_api* api) {
        if (api->shutdown) (void)api->shutdown();
        delete api;
    };
    return {std::shared_ptr<const nvml_api>(new nvml_api(std::move(functions)), stop), {}, answer};
}

/// Opens libnvidia-ml.so.1 and initialises NVML. Never throws. The library stays mapped until the process ends:
/// the driver's libraries share state with libcuda and are not made to be unloaded.
[[nodiscard]] inline loaded_nvml load_nvml() {
    void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* why = ::dlerror();
        return {nullptr, why != nullptr ? why : "libnvidia-ml.so.1 cannot be opened", std::nullopt};
    }
    nvml_api functions;
    functions.each([&](const char* symbol, auto& into) { detail::bind(library, symbol, into); });
    return start_nvml(std::move(functions));
}

} // namespace environment::nvidia

PLUMBLINE_NAMESPACE_END

#endif
