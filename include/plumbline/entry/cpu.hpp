// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENTRY_CPU_HPP
#define PLUMBLINE_ENTRY_CPU_HPP

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "plumbline/core/error.hpp"
#include "plumbline/cpu/backend.hpp"
#include "plumbline/cpu/catalogue.hpp"
#include "plumbline/environment/cpu.hpp"
#include "plumbline/environment/epoch.hpp"
#include "plumbline/loader/inputs.hpp"
#include "plumbline/run/driver.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace entry {

/// The CPU as run/ sees it: one device, named by its model and the hashed machine. `inputs` gives what the DataLoader
/// reads; a program with libjpeg-turbo hands in loader::jpeg_inputs of loader/jpeg/data.hpp.
[[nodiscard]] inline run::backend_entry<plumbline::cpu::backend> cpu(loader::input_choice inputs = loader::inputs_for) {
    run::backend_entry<plumbline::cpu::backend> made;
    made.name = "cpu";
    made.families = [inputs = std::move(inputs)](const std::filesystem::path& data) {
        return plumbline::cpu::catalogue(inputs(data));
    };
    made.open = [](int device) {
        if (device != 0) {
            throw usage_error("--device=" + std::to_string(device) +
                              ": the CPU backend has one device, 0; all processors this process may use");
        }
        return std::make_unique<plumbline::cpu::backend>();
    };
    made.identify = [](const environment::host& machine, int) {
        result::fingerprint read;
        environment::read_cpu(read, machine);
        result::device found;
        found.backend = "cpu";
        const auto* model = read.find("cpu.model");
        found.model = model != nullptr && model->read.known() ? to_string(model->read.value) : "CPU";
        found.uuid = environment::board_id(machine);
        return found;
    };
    return made;
}

} // namespace entry

PLUMBLINE_NAMESPACE_END

#endif
