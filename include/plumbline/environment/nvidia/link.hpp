// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_NVIDIA_LINK_HPP
#define PLUMBLINE_ENVIRONMENT_NVIDIA_LINK_HPP

#include <optional>
#include <string>
#include <string_view>

#include "plumbline/environment/check.hpp"
#include "plumbline/environment/nvidia/gpu.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment::nvidia {

namespace detail {

/// PCIe generation of the kernel's way of writing a speed ("32.0 GT/s PCIe"); 0 for any other text.
[[nodiscard]] inline int generation_of(std::string_view speed) {
    const auto rate = environment::detail::number(speed.substr(0, speed.find(' ')));
    if (!rate) return 0;
    int generation = 0;
    for (const double known : {2.5, 5.0, 8.0, 16.0, 32.0, 64.0}) {
        ++generation;
        if (*rate == known) return generation;
    }
    return 0;
}

} // namespace detail

/// The PCIe link of host.gpu at this moment, from NVML, else from /sys; empty where neither tells.
[[nodiscard]] inline std::optional<link_reading> read_link(const host& machine) {
    const found_device found = find_device(machine);
    link_reading link;
    if (found.gpu) {
        const nvml_api& api = *machine.nvml;
        const auto ask = [&](const nvml_api::unsigned_query& call) {
            unsigned value = 0;
            return call && call(found.gpu->handle, &value) == code::success ? static_cast<int>(value) : 0;
        };
        link = {ask(api.link_generation), ask(api.link_width), ask(api.link_max_generation), ask(api.link_max_width)};
        if (link.generation > 0 && link.width > 0 && link.max_generation > 0 && link.max_width > 0) return link;
    }
    const std::string folder = "/sys/bus/pci/devices/" + bus_id_of(machine, found);
    const auto speed = [&](const char* file) {
        const auto text = environment::read_text(machine, folder + "/" + file);
        return text.known() ? detail::generation_of(to_string(text.value)) : 0;
    };
    const auto width = [&](const char* file) {
        const auto text = environment::read_integer(machine, folder + "/" + file);
        return text.known() ? static_cast<int>(std::get<std::int64_t>(text.value)) : 0;
    };
    link = {speed("current_link_speed"), width("current_link_width"), speed("max_link_speed"), width("max_link_width")};
    if (link.generation == 0 || link.width == 0 || link.max_generation == 0 || link.max_width == 0) return std::nullopt;
    return link;
}

} // namespace environment::nvidia

PLUMBLINE_NAMESPACE_END

#endif
