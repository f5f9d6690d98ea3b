// SPDX-License-Identifier: Apache-2.0
#include "check_scenarios.hpp"
#include "plumbline/core/error.hpp"

using namespace plumbline_tests;

namespace {

void nothing(world&) {}

void into_container(world& w) {
    w.machine.file("/.dockerenv", "");
}

} // namespace

TEST_CASE("checks of the driver and its libraries pass on a healthy server and fail for one reason each") {
    const std::vector<scenario> scenarios{
        {"cuda.starts", "healthy", check_status::ok, nothing, "started"},
        {"cuda.starts", "driver too old", check_status::fail,
         [](world& w) {
             w.on.cuda_error = 35;
             w.on.cuda_error_name = "cudaErrorInsufficientDriver";
         },
         "older than the CUDA runtime"},
        {"cuda.starts", "hardware, but the CPU was chosen", check_status::skipped,
         [](world& w) {
             w.on.cuda_expected = false;
             w.on.cuda_error.reset();
         },
         "not used"},
        {"cuda.starts", "hidden", check_status::fail,
         [](world& w) {
             w.on.cuda_error = 100;
             w.machine.set("CUDA_VISIBLE_DEVICES", "");
         },
         "unset CUDA_VISIBLE_DEVICES"},
        {"container.gpu_mapped", "bare metal", check_status::skipped, nothing, "not in a container"},
        {"container.gpu_mapped", "GPUs mapped", check_status::ok, into_container, "/dev/nvidia0"},
        {"container.gpu_mapped", "nodes missing", check_status::fail,
         [](world& w) {
             into_container(w);
             for (int i = 0; i < 8; ++i) w.machine.without("/dev/nvidia" + std::to_string(i));
         },
         "no /dev/nvidia0"},
        {"container.gpu_mapped", "library missing", check_status::fail,
         [](world& w) {
             into_container(w);
             w.machine.without("/usr/lib/x86_64-linux-gnu/libcuda.so.1");
         },
         "no libcuda.so.1"},
        {"cuda.device_lists_agree", "same", check_status::ok, nothing, "NVML 8, CUDA 8"},
        {"cuda.device_lists_agree", "one lost", check_status::fail, [](world& w) { w.on.cuda_devices = 7; }, "CUDA 7"},
        {"cuda.device_lists_agree", "two asked for", check_status::ok,
         [](world& w) {
             w.on.cuda_devices = 2;
             w.machine.set("CUDA_VISIBLE_DEVICES", "0,3");
         },
         "CUDA_VISIBLE_DEVICES=0,3"},
        {"cuda.device_lists_agree", "a list that names too many", check_status::fail,
         [](world& w) {
             w.on.cuda_devices = 1;
             w.machine.set("CUDA_VISIBLE_DEVICES", "0,9");
         },
         "correct or unset"},
        {"cuda.device_lists_agree", "not asked", check_status::skipped, [](world& w) { w.on.cuda_devices.reset(); },
         "not asked"},
        {"driver.versions_agree", "same", check_status::ok, nothing, "580.65.06"},
        {"driver.versions_agree", "library newer", check_status::fail,
         [](world& w) {
             w.machine.file("/proc/self/maps", "7f00-7f10 r-xp 0 08:02 2 /usr/lib/libcuda.so.590.10.01\n");
         },
         "reboot"},
        {"driver.versions_agree", "NVML refuses", check_status::fail,
         [](world& w) {
             w.machine.nvml->init_answer = nvidia::code::version_mismatch;
             w.machine.restart_nvml();
         },
         "NVML says"},
        {"driver.supports_runtime", "same", check_status::ok, nothing, "13.0"},
        {"driver.supports_runtime", "older major", check_status::fail,
         [](world& w) { w.said["cuda.driver_version"] = std::int64_t{12080}; }, "update the driver"},
        {"driver.supports_runtime", "older minor", check_status::warn,
         [](world& w) { w.said["cuda.runtime_version"] = std::int64_t{13020}; }, "PTX"},
        {"driver.supports_runtime", "none", check_status::fail,
         [](world& w) { w.said["cuda.driver_version"] = std::int64_t{0}; }, "no driver"},
        {"driver.supports_runtime", "compatibility package", check_status::warn,
         [](world& w) {
             w.machine.file("/proc/self/maps",
                            "7f00-7f10 r-xp 0 08:02 2 /usr/local/cuda/compat/libcuda.so.590.10.01\n");
         },
         "cuda-compat"},
        {"cudnn.consistent", "agree", check_status::ok, nothing, "agree"},
        {"cudnn.consistent", "mixed parts", check_status::fail,
         [](world& w) { w.said["cudnn.sublibraries"] = std::string("ops: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH"); },
         "LD_LIBRARY_PATH"},
        {"cudnn.consistent", "made for another CUDA", check_status::fail,
         [](world& w) { w.said["cudnn.cudart_version"] = std::int64_t{12090}; }, "for CUDA 13"},
        {"libraries.single", "one of each", check_status::ok, nothing, "no conflict"},
        {"libraries.single", "two cuDNNs", check_status::fail,
         [](world& w) {
             w.machine.file("/proc/self/maps", "7f00-7f10 r-xp 0 08:02 2 /opt/cudnn/libcudnn.so.9.19.0\n"
                                               "7f00-7f10 r-xp 0 08:02 3 /venv/cudnn/libcudnn_ops.so.9.10.2\n");
         },
         "cuDNN from different folders"},
        {"libraries.single", "two cuBLASes", check_status::warn,
         [](world& w) {
             w.machine.file("/proc/self/maps", "7f00-7f10 r-xp 0 08:02 2 /opt/cuda/libcublas.so.13\n"
                                               "7f00-7f10 r-xp 0 08:02 3 /venv/libcublas.so.12\n");
         },
         "two copies of libcublas"},
        {"cuda.device_code", "machine code", check_status::ok, nothing, "sm_90"},
        {"cuda.device_code", "compiled now", check_status::warn,
         [](world& w) { w.said["cuda.device_code"] = std::string("compiled from PTX compute_80 by the driver"); },
         "CMAKE_CUDA_ARCHITECTURES"},
        {"cuda.device_code", "no code", check_status::fail,
         [](world& w) { w.on.cuda_error_name = "cudaErrorNoKernelImageForDevice"; }, "no code for this GPU"},
        {"cuda.jit_cache", "writable", check_status::ok, nothing, "writable"},
        {"cuda.jit_cache", "switched off", check_status::warn,
         [](world& w) { w.machine.set("CUDA_CACHE_DISABLE", "1"); }, "CUDA_CACHE_PATH"},
    };
    run_scenarios(scenarios, env::checks::of_driver());
}

TEST_CASE("a check that throws ends as failed, names the problem and does not end the others") {
    world w;
    w.on.machine = &w.machine.host;
    const env::check broken{"broken", 3, env::consequence::fault, env::extent::quick,
                            [](const env::check_context&) -> env::check_outcome { throw pl::error("boom"); }};
    const env::check_outcome outcome = env::run_check(broken, w.on);
    CHECK(outcome.status == check_status::fail);
    CHECK(outcome.seen == "boom");
    CHECK(outcome.name == "broken");
    CHECK(outcome.link == 3);
    CHECK(env::code_of({outcome}) == pl::exit_code::incomplete);
}

TEST_CASE("a failed precondition outranks a fault, and warnings are no failure") {
    env::check_outcome precondition, fault, warning;
    precondition.status = fault.status = check_status::fail;
    fault.if_failed = env::consequence::fault;
    warning.status = check_status::warn;
    CHECK(env::code_of({}) == pl::exit_code::ok);
    CHECK(env::code_of({warning}) == pl::exit_code::ok);
    CHECK(env::code_of({warning, fault}) == pl::exit_code::incomplete);
    CHECK(env::code_of({fault, precondition}) == pl::exit_code::precondition);
}

TEST_CASE("the quick set is a part of the full one, in the same order, and every name is unique") {
    world w;
    const pl::result::fingerprint fingerprint = w.machine.fingerprint();
    w.on.machine = &w.machine.host;
    w.on.fingerprint = &fingerprint;
    const auto quick = env::run_checks(w.on, env::extent::quick), full = env::run_checks(w.on, env::extent::full);
    CHECK(quick.size() < full.size());
    CHECK(full.size() == env::all_checks().size());
    auto at = full.begin();
    for (const auto& outcome : quick) {
        at = std::find_if(at, full.end(), [&](auto& other) { return other.name == outcome.name; });
        REQUIRE(at != full.end());
    }
    std::map<std::string, int> names;
    for (const auto& outcome : full) CHECK(++names[outcome.name] == 1);
}
