// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENTRY_CUDA_HPP
#define PLUMBLINE_ENTRY_CUDA_HPP

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <unistd.h>

#include "plumbline/core/error.hpp"
#include "plumbline/cuda/backend.hpp"
#include "plumbline/cuda/catalogue.hpp"
#include "plumbline/cuda/cudnn/predict.hpp"
#include "plumbline/cuda/datasheet.hpp"
#include "plumbline/cuda/device.hpp"
#include "plumbline/cuda/kernels.hpp"
#include "plumbline/cuda/machine/cold_start.hpp"
#include "plumbline/cuda/probe/collect.hpp"
#include "plumbline/cuda/probe/cudnn.hpp"
#include "plumbline/cuda/probe/link.hpp"
#include "plumbline/cuda/probe/nccl.hpp"
#include "plumbline/cuda/probe/runtime.hpp"
#include "plumbline/environment/collect.hpp"
#include "plumbline/environment/epoch.hpp"
#include "plumbline/environment/nvidia/activity.hpp"
#include "plumbline/environment/nvidia/device.hpp"
#include "plumbline/environment/nvidia/ordinal.hpp"
#include "plumbline/loader/inputs.hpp"
#include "plumbline/run/driver.hpp"
#include "plumbline/workload/conv.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace entry {

namespace detail {

namespace nvidia = environment::nvidia;

/// Model and hashed UUID through NVML, so that no context is needed.
[[nodiscard]] inline result::device identify_gpu(const environment::host& machine) {
    result::device found;
    found.backend = "cuda";
    found.uuid = environment::board_id(machine);
    const nvidia::found_device gpu = nvidia::find_device(machine);
    if (!gpu.gpu) return found;
    const result::reading name = nvidia::read_text(machine.nvml->name, gpu.gpu->handle, "nvmlDeviceGetName");
    if (name.known()) found.model = to_string(name.value);
    return found;
}

/// Properties and datasheet of the opened device. CUDA and NVML number devices differently; that both mean the same
/// board is made sure of here, before anything is measured.
inline void describe_gpu(plumbline::cuda::backend& on, result::device& into) {
    result::device opened = plumbline::cuda::describe(on.device());
    plumbline::cuda::add_datasheet(opened);
    const bool mig = on.device().uuid.rfind("MIG-", 0) == 0; // its UUID is not that of the board
    if (!mig && !into.uuid.empty() && !opened.uuid.empty() && into.uuid != opened.uuid) {
        throw environment_error("device", "device " + std::to_string(on.device().ordinal) +
                                              " is another board for CUDA than for NVML; set "
                                              "CUDA_DEVICE_ORDER=PCI_BUS_ID");
    }
    if (into.uuid.empty()) into.uuid = opened.uuid;
    if (into.model.empty()) into.model = opened.model;
    into.properties = opened.properties;
    // With it the choices of another cuDNN for this device can be foretold on any machine.
    const result::reading described = plumbline::cuda::probe::device_json(on.device().ordinal);
    if (described.known()) into.properties["cudnn.device"] = described.value;
}

/// Power, temperature and SM clock of this moment, as far as they can be read.
[[nodiscard]] inline scalar_map read_telemetry(const nvidia::nvml_api& api, nvidia::device_handle gpu) {
    constexpr unsigned sm = 1, core_sensor = 0;
    scalar_map read;
    const auto add = [&read](const char* name, const result::reading& value) {
        if (value.known()) read[name] = value.value;
    };
    add("power_w", nvidia::as_watts(nvidia::read_number(api.power_usage, "nvmlDeviceGetPowerUsage", gpu)));
    add("temperature_c", nvidia::read_number(api.temperature, "nvmlDeviceGetTemperature", gpu, core_sensor));
    add("nvml_sm_clock_mhz", nvidia::read_number(api.clock, "nvmlDeviceGetClockInfo", gpu, sm));
    return read;
}

/// Looks at the GPU before and after each benchmark: who else worked on it, and power and temperature in long runs.
[[nodiscard]] inline measure::hooks watch_gpu(const environment::host& machine) {
    const nvidia::found_device found = nvidia::find_device(machine);
    measure::hooks made;
    if (!found.gpu) return made;
    const auto nvml = machine.nvml;
    const nvidia::device_handle gpu = found.gpu->handle;
    auto before = std::make_shared<nvidia::activity>();
    made.before = [nvml, gpu, before](const workload::description&) {
        *before = nvidia::look(*nvml, gpu, before->newest_sample_us != 0 ? before.get() : nullptr);
    };
    made.after = [nvml, gpu, before](const workload::description&, result::session_result& session) {
        const nvidia::activity now = nvidia::look(*nvml, gpu, before.get());
        const nvidia::own_share own{{static_cast<unsigned>(::getpid())}, std::nullopt};
        const nvidia::load_finding load = nvidia::foreign_load_between(*before, now, own);
        if (load.found == nvidia::foreign_load::yes) session.flags.emplace_back(result::flag::foreign_load);
        if (load.found != nvidia::foreign_load::no) session.state["foreign_load"] = load.why;
        before->newest_sample_us = now.newest_sample_us;
    };
    made.read = [nvml, gpu] { return read_telemetry(*nvml, gpu); };
    return made;
}

/// What the cuDNN of this process would run for a convolution on the device of a baseline.
[[nodiscard]] inline result::evidence predict_convolution(const result::device& described, const std::string& id) {
    const auto at = described.properties.find("cudnn.device");
    const auto* json = at == described.properties.end() ? nullptr : std::get_if<std::string>(&at->second);
    if (json == nullptr) {
        throw environment_error("device", "the baseline does not hold cuDNN's description of its device (property "
                                          "\"cudnn.device\"); measure it anew where cuDNN is 9.8 or newer");
    }
    return plumbline::cuda::cudnn::predict(*json, workload::conv::parse(id));
}

/// Convolutions whose plan is the library's own choice: what a search or a replay took says nothing about it.
[[nodiscard]] inline bool is_predictable(const workload::description& what) {
    return what.family == "conv" && workload::conv::parse(what.id).mode.plan == workload::plan_choice::heuristic;
}

/// Readings for checks that put work on the device.
[[nodiscard]] inline scalar_map inspect_gpu(plumbline::cuda::backend& on, const environment::host& machine, bool full) {
    scalar_map read;
    if (const auto link = plumbline::cuda::probe::link_under_load(machine, on.device().ordinal)) {
        read[run::inspection::link_generation] = std::int64_t{link->generation};
        read[run::inspection::link_width] = std::int64_t{link->width};
        read[run::inspection::link_max_generation] = std::int64_t{link->max_generation};
        read[run::inspection::link_max_width] = std::int64_t{link->max_width};
    }
    const int devices = plumbline::cuda::probe::try_start().devices;
    if (full && devices > 1 && plumbline::cuda::probe::has_nccl()) {
        read[run::inspection::all_reduce] = plumbline::cuda::probe::nccl_all_reduce(devices);
    }
    return read;
}

} // namespace detail

/// The GPUs of this machine as run/ sees them; `inputs` as for cpu().
[[nodiscard]] inline run::backend_entry<plumbline::cuda::backend>
cuda(loader::input_choice inputs = loader::inputs_for) {
    namespace nvidia = environment::nvidia;
    run::backend_entry<plumbline::cuda::backend> made;
    made.name = "cuda";
    made.serve = plumbline::cuda::machine::serve_cold_start; // a cold start is measured in a process of its own
    made.families = [inputs = std::move(inputs)](const std::filesystem::path& data) {
        return plumbline::cuda::catalogue(inputs(data));
    };
    made.open = [](int device) { return std::make_unique<plumbline::cuda::backend>(device); };
    made.start = [](int) {
        const plumbline::cuda::probe::start answer = plumbline::cuda::probe::try_start();
        return run::start_report{answer.code, answer.name, answer.devices};
    };
    made.machine = [](int device) {
        environment::host machine = environment::this_machine("cuda");
        machine.gpu = nvidia::gpu_of_ordinal(machine, device);
        return machine;
    };
    made.identify = [](const environment::host& machine, int) { return detail::identify_gpu(machine); };
    made.devices = [](const environment::host& machine) {
        std::vector<int> numbers;
        for (std::size_t i = 0; i < nvidia::visible_gpus(machine).size(); ++i) numbers.push_back(static_cast<int>(i));
        return numbers;
    };
    made.describe = detail::describe_gpu;
    made.read = [](plumbline::cuda::backend& on, const environment::host& machine, result::fingerprint& into) {
        plumbline::cuda::probe::collect(into, machine, on.device().ordinal, plumbline::cuda::kernels::some_kernel());
    };
    made.hooks = [](plumbline::cuda::backend&, const environment::host& machine) { return detail::watch_gpu(machine); };
    made.inspect = detail::inspect_gpu;
    made.predicts = detail::is_predictable;
    made.predict = detail::predict_convolution;
    return made;
}

} // namespace entry

PLUMBLINE_NAMESPACE_END

#endif
