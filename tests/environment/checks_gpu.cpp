// SPDX-License-Identifier: Apache-2.0
#include "check_scenarios.hpp"

using namespace plumbline_tests;

namespace {

void nothing(world&) {}

fake_gpu& gpu(world& w) {
    return w.machine.nvml->gpus[0];
}

} // namespace

TEST_CASE("checks of the GPU pass on a healthy server and fail for one reason each") {
    const std::vector<scenario> scenarios{
        {"gpu.free", "idle", check_status::ok, nothing, "processes 0"},
        {"gpu.free", "another process holds 100 GiB", check_status::fail,
         [](world& w) {
             gpu(w).memory_used = 100ull << 30;
             gpu(w).processes = {{4711, 100ull << 30, 0, 0}};
         },
         "nvidia-smi"},
        {"gpu.free", "a small process sits there", check_status::warn,
         [](world& w) {
             gpu(w).processes = {{4711, 300ull << 20, 0, 0}};
         },
         "processes 1"},
        {"gpu.free", "busy, and who it is cannot be seen", check_status::fail,
         [](world& w) {
             gpu(w).busy = 97;
             gpu(w).processes.reset();
         },
         "processes unknown"},
        {"gpu.persistence", "on", check_status::ok, nothing, "on"},
        {"gpu.persistence", "off", check_status::warn, [](world& w) { gpu(w).persistence = false; },
         "nvidia-smi -pm 1"},
        {"gpu.memory_health", "ECC on", check_status::ok, nothing, "ECC on"},
        {"gpu.memory_health", "ECC off", check_status::warn, [](world& w) { gpu(w).ecc = gpu(w).ecc_pending = false; },
         "nvidia-smi -e 1"},
        {"gpu.memory_health", "ECC about to change", check_status::warn, [](world& w) { gpu(w).ecc_pending = false; },
         "next boot"},
        {"gpu.memory_health", "remapping failed", check_status::fail, [](world& w) { gpu(w).row_remap_failed = true; },
         "replace"},
        {"gpu.memory_health", "remapping pending", check_status::warn,
         [](world& w) { gpu(w).row_remap_pending = true; }, "reset"},
        {"gpu.memory_health", "uncorrected errors", check_status::fail, [](world& w) { gpu(w).uncorrected = 3; },
         "3 uncorrected"},
        {"gpu.mig", "off", check_status::ok, nothing, "off"},
        {"gpu.mig", "no instance", check_status::fail, [](world& w) { gpu(w).mig = gpu(w).mig_pending = true; },
         "no instance"},
        {"gpu.mig", "about to change", check_status::warn, [](world& w) { gpu(w).mig_pending = true; }, "next reset"},
        {"gpu.mig", "instance", check_status::ok,
         [](world& w) {
             gpu(w).mig = gpu(w).mig_pending = true;
             fake_gpu slice = gpu(w);
             slice.slice = nvidia::mig_attributes{60, 3, 2, 0, 2, 1, 3, 3, 71680};
             slice.parent = 0;
             w.machine.nvml->gpus.push_back(slice);
             w.machine.nvml->gpus[0].instances = {8};
         },
         "3g.70gb"},
        {"gpu.compute_mode", "default", check_status::ok, nothing, "default"},
        {"gpu.compute_mode", "prohibited", check_status::fail, [](world& w) { gpu(w).compute_mode = 2; }, "-c DEFAULT"},
        {"gpu.compute_mode", "exclusive thread", check_status::warn, [](world& w) { gpu(w).compute_mode = 1; },
         "-c DEFAULT"},
        {"gpu.compute_mode", "exclusive process", check_status::ok, [](world& w) { gpu(w).compute_mode = 3; },
         "exclusive process"},
        {"gpu.power_limit", "default", check_status::ok, nothing, "700 W"},
        {"gpu.power_limit", "capped", check_status::warn, [](world& w) { gpu(w).limit_mw = 400000; },
         "nvidia-smi -pl 700"},
        {"gpu.throttling_at_idle", "idle", check_status::ok, nothing, "idle"},
        {"gpu.throttling_at_idle", "power brake", check_status::fail,
         [](world& w) {
             gpu(w).clock_reasons = nvidia::clock_reason::hw_power_brake | nvidia::clock_reason::hw_slowdown;
         },
         "power supplies"},
        {"gpu.throttling_at_idle", "warm", check_status::warn,
         [](world& w) { gpu(w).clock_reasons = nvidia::clock_reason::sw_thermal; }, "cool down"},
        {"gpu.clocks", "default", check_status::ok, nothing, "1980"},
        {"gpu.clocks", "lowered", check_status::warn, [](world& w) { gpu(w).application_clock = 1200; },
         "nvidia-smi -rac"},
        {"gpu.vgpu_license", "no vGPU", check_status::skipped, nothing, "no virtual GPU"},
        {"gpu.vgpu_license", "licensed", check_status::ok,
         [](world& w) {
             gpu(w).virtualization = 2;
             gpu(w).licensed = true;
         },
         "licensed"},
        {"gpu.vgpu_license", "unlicensed", check_status::fail,
         [](world& w) {
             gpu(w).virtualization = 2;
             gpu(w).licensed = false;
         },
         "unlicensed"},
        {"gpu.nvlink", "complete", check_status::ok, nothing, "18 of 18"},
        {"gpu.nvlink", "two links down", check_status::warn, [](world& w) { gpu(w).nvlinks_active = 16; }, "16 of 18"},
        {"gpu.nvlink", "fabric waits", check_status::warn, [](world& w) { gpu(w).fabric_state = 2; }, "fabricmanager"},
        {"gpu.nvlink", "fabric failed", check_status::warn, [](world& w) { gpu(w).fabric_status = 999; }, "code 999"},
        {"gpu.nvlink", "no NVLink", check_status::skipped, [](world& w) { gpu(w).nvlinks = 0; }, "not supported"},
        {"pcie.link_under_load", "full", check_status::ok, nothing, "generation 5 x16"},
        {"pcie.link_under_load", "one generation down: half the rate", check_status::fail,
         [](world& w) { w.on.link_under_load = [] {
                            return env::link_reading{4, 16, 5, 16};
                        }; }, "generation 4 x16"},
        {"pcie.link_under_load", "x12 of x16", check_status::warn,
         [](world& w) { w.on.link_under_load = [] {
                            return env::link_reading{5, 12, 5, 16};
                        }; }, "x12"},
        {"pcie.link_under_load", "x4", check_status::fail,
         [](world& w) { w.on.link_under_load = [] {
                            return env::link_reading{5, 4, 5, 16};
                        }; }, "seat the board"},
        {"pcie.link_under_load", "not readable", check_status::skipped,
         [](world& w) { w.on.link_under_load = [] { return std::optional<env::link_reading>(); }; },
         "could not be read"},
    };
    run_scenarios(scenarios, env::checks::of_gpu());
}

TEST_CASE("a GPU nobody can ask leads to skipped checks with the reason, not to passed ones") {
    world w;
    w.machine.host.nvml = nullptr;
    w.machine.host.nvml_problem = "libnvidia-ml.so.1: cannot open shared object file";
    for (const env::check& part : env::checks::of_gpu()) {
        if (part.name == "pcie.link_under_load") continue;
        const env::check_outcome outcome = w.run(part.name);
        CAPTURE(part.name);
        CHECK(outcome.status == check_status::skipped);
        CHECK_FALSE(outcome.seen.empty());
    }
}
