// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_BENCH_CPU_ENTRY_HPP
#define PLUMBLINE_BENCH_CPU_ENTRY_HPP

#include <memory>
#include <string>

#include "plumbline/core/error.hpp"
#include "plumbline/cpu/backend.hpp"
#include "plumbline/cpu/catalogue.hpp"
#include "plumbline/environment/cpu.hpp"
#include "plumbline/environment/epoch.hpp"
#include "plumbline/run/driver.hpp"

namespace bench {

/// The CPU as run/ sees it: one device, named by its model and the hashed machine.
inline plumbline::run::backend_entry<plumbline::cpu::backend> cpu_entry() {
    namespace environment = plumbline::environment;
    plumbline::run::backend_entry<plumbline::cpu::backend> made;
    made.name = "cpu";
    made.families = plumbline::cpu::catalogue;
    made.open = [](int device) {
        if (device != 0) {
            throw plumbline::usage_error("--device=" + std::to_string(device) +
                                         ": the CPU backend has one device, 0; all processors this process may use");
        }
        return std::make_unique<plumbline::cpu::backend>();
    };
    made.identify = [](const environment::host& machine, int) {
        plumbline::result::fingerprint read;
        environment::read_cpu(read, machine);
        plumbline::result::device found;
        found.backend = "cpu";
        const auto* model = read.find("cpu.model");
        found.model = model != nullptr && model->read.known() ? plumbline::to_string(model->read.value) : "CPU";
        found.uuid = environment::board_id(machine);
        return found;
    };
    return made;
}

} // namespace bench

#endif
