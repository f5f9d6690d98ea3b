// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TESTS_JSON_SAMPLE_HPP
#define PLUMBLINE_TESTS_JSON_SAMPLE_HPP

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <unistd.h>

#include "plumbline/result/baseline.hpp"

namespace plumbline::tests {

/// A GEMM result of `values.size()` sessions with three samples each round its value, in ns.
inline result::result gemm_result(const std::string& id, const std::vector<double>& values) {
    result::result one;
    one.what.id = id;
    one.what.family = "gemm";
    one.what.params = {{"dtype", std::string("bf16")}, {"m", std::int64_t{4096}}, {"id", id}};
    one.what.flop = 2.0 * 4096 * 4096 * 4096;
    one.what.bytes = 3.0 * 4096 * 4096 * 2;
    one.backend = "cuda";
    one.verified = true;
    for (std::size_t session = 0; session < values.size(); ++session) {
        result::session_result entry;
        entry.session = session;
        entry.samples = {values[session] * 0.999, values[session], values[session] * 1.001};
        entry.cycles = {values[session] * 1.979, values[session] * 1.98, values[session] * 1.981};
        entry.clean = {true, false, true};
        entry.flags = {result::flag::throttled};
        entry.ran.implementation = "lt/id66/t19/s13";
        entry.ran.parts = {{"algo.id", std::int64_t{66}}, {"waves", 1.5}, {"tensor_cores", true}};
        entry.ran.kernels = {"nvjet_tst_128x256"};
        entry.state = {{"sm_clock_mhz", 1980.0}};
        one.sessions.push_back(entry);
    }
    return one;
}

/// A baseline with something in every member.
inline result::baseline sample_baseline() {
    result::baseline all;
    all.created = "2026-11-30T20:15:00Z";
    all.tool = {{"name", std::string("bench")}, {"version", std::string("0.1.0")}};
    all.labels = {{"ticket", std::string("OPS-7 \"quoted\" \u00e9")}};
    all.selected = {"standard", "gemm.*", {"conv/fprop/bf16"}};
    using result::attribute_class;
    using result::reading;
    auto& fields = all.environment.attributes;
    fields["gpu.sm_count"] = {attribute_class::identity, 1, "cudart", reading::of(std::int64_t{132})};
    fields["gpu.mig"] = {attribute_class::identity, 1, "nvml", reading::unsupported("NVML_ERROR_NOT_SUPPORTED")};
    fields["cudnn.version"] = {attribute_class::config, 2, "cudnn", reading::of(std::string("9.19.0"))};
    fields["env.NVIDIA_TF32_OVERRIDE"] = {attribute_class::config, 2, "env", reading::absent("not set")};
    fields["cpu.boost"] = {attribute_class::config, 1, "sys", reading::denied("EACCES")};
    fields["gpu.ecc"] = {attribute_class::config, 1, "nvml", reading::of(true)};
    fields["gpu.temperature_c"] = {attribute_class::state, 1, "nvml", reading::of(41.5)};
    all.device = {"cuda", "NVIDIA H200", "0123abcd", {{"sm_count", std::int64_t{132}}}, {{"copy_bytes_per_s", 4.2e12}}};
    all.noise["gemm/bf16/tn/m4096n4096k4096"] = {0.0007, 0.002, 12, 10, 3};
    all.noise["kernel"] = {0.0015, {}, 4, 10, 1};
    for (int i = 0; i < 2; ++i) {
        result::session one;
        one.started = "2026-11-30T20:1" + std::to_string(i) + ":00.25Z";
        one.seconds = 12.75;
        one.seed = 18446744073709551615ULL;
        one.order = {"gemm/bf16/tn/m4096n4096k4096"};
        one.when = {"b00t", "2026-11-30", "0123abcd"};
        one.state = {{"temperature_c", std::int64_t{41}}};
        all.sessions.push_back(one);
    }
    all.sessions[1].failed = true;
    all.sessions[1].reason = "killed by signal 9";
    all.sessions[1].control = "round-0";
    // Doubles whose shortest decimal forms are long, tiny and huge.
    all.results.push_back(gemm_result("gemm/bf16/tn/m4096n4096k4096", {172714.15926535898, 172700.1}));
    all.results[0].sessions[0].samples = {0.1 + 0.2, 5e-324, 1.7976931348623157e308};
    result::result skipped = gemm_result("gemm/fp8_e4m3/tn/m8192n8192k8192", {});
    skipped.status = result::result_status::skipped;
    skipped.reason = "needs compute capability 8.9";
    skipped.verified = false;
    skipped.what.metric = "throughput";
    skipped.what.unit = "items/s";
    skipped.what.better = direction::higher;
    skipped.what.kind = benchmark_class::dataloader;
    all.results.push_back(skipped);
    all.history = {{"2026-11-30T20:15:00Z", "created", "ops", "new server", {}},
                   {"2026-12-01T08:00:00Z", "accepted", "ops", "driver 580", {"gemm/bf16/tn/m4096n4096k4096"}}};
    all.checks = {{"driver", std::string("ok")}, {"pcie", std::string("warn: x8")}};
    return all;
}

/// A folder of its own for a test, removed with everything in it at the end.
class scratch_folder {
public:
    scratch_folder() {
        std::string name = (std::filesystem::temp_directory_path() / "plumbline-test-XXXXXX").string();
        path_ = ::mkdtemp(name.data());
    }
    scratch_folder(const scratch_folder&) = delete;
    scratch_folder& operator=(const scratch_folder&) = delete;
    ~scratch_folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

} // namespace plumbline::tests

#endif
