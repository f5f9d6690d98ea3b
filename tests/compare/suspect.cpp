// SPDX-License-Identifier: Apache-2.0
// The small rules that explanations are made of: what a change is worth, which readings are signs, where limits lie.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "pair.hpp"

using namespace plumbline;
using namespace std::string_literals;
using compare::knowledge;
using compare::mechanism;
using compare::turn;
using environment::difference;
using result::attribute_class;
using result::reading;

namespace {

difference changed(const std::string& name, const scalar& from, const scalar& to,
                   attribute_class kind = attribute_class::config) {
    return {name, 1, kind, "test", environment::difference_kind::changed, reading::of(from), reading::of(to)};
}

/// Whether a change of state is a sign of a mechanism.
bool shows(mechanism what, const std::string& name, const scalar& from, const scalar& to) {
    const auto seen = compare::detail::read_machine({changed(name, from, to, attribute_class::state)}, {});
    return seen.count(what) != 0;
}

} // namespace

TEST_CASE("readings are signs from their thresholds on, and not below") {
    using m = mechanism;
    CHECK(shows(m::quota_hit, "cgroup.throttled_periods", 1, 6));
    CHECK_FALSE(shows(m::quota_hit, "cgroup.throttled_periods", 2, 6));
    CHECK(shows(m::foreign_work, "gpu.utilization_percent", 5, 15));
    CHECK_FALSE(shows(m::foreign_work, "gpu.utilization_percent", 6, 15));
    CHECK_FALSE(shows(m::foreign_work, "gpu.processes", 0, 3));
    CHECK(shows(m::memory_held, "gpu.memory_used_bytes", 1e9, 5e9));
    CHECK_FALSE(shows(m::memory_held, "gpu.memory_used_bytes", 2e9, 5e9));
    CHECK(shows(m::cpu_contention, "load.pressure_cpu", 1.0, 21.0));
    CHECK_FALSE(shows(m::cpu_contention, "load.pressure_cpu", 2.0, 21.0));
    CHECK(shows(m::memory_pressure, "load.pressure_memory", 0.0, 5.0));
    CHECK_FALSE(shows(m::memory_pressure, "load.pressure_memory", 0.0, 4.9));
    CHECK(shows(m::memory_pressure, "memory.swap_used_bytes", 0.0, 1e9));
    CHECK_FALSE(shows(m::memory_pressure, "memory.swap_used_bytes", 1.0, 1e9));
    CHECK(shows(m::processors_fewer, "cpu.usable", 16, 8));
    CHECK_FALSE(shows(m::processors_fewer, "cpu.usable", 8, 16));
    CHECK(shows(m::link_lower, "pcie.width", 16, 8));
    CHECK_FALSE(shows(m::link_lower, "pcie.width", 8, 16));
    CHECK_FALSE(shows(m::link_lower, "pcie.replays", 9, 1));
    CHECK(shows(m::memory_faults, "gpu.ecc_uncorrected", 0, 1));
    CHECK(shows(m::memory_faults, "gpu.row_remap_pending", false, true));
    CHECK_FALSE(shows(m::memory_faults, "gpu.ecc_corrected", 0, 9));
    CHECK_FALSE(shows(m::memory_faults, "gpu.ecc_uncorrected", 1, 0));
    CHECK(shows(m::code_compiled_anew, "cuda.device_code", "machine code sm_90"s, "PTX sm_80"s));
    CHECK_FALSE(shows(m::code_compiled_anew, "cuda.device_code", "PTX sm_80"s, "machine code sm_90"s));
    CHECK(shows(m::precision_changed, "cublas.tf32_effective", true, false));
    CHECK(shows(m::pages_remote, "numa.pages", "N0=900 N1=100"s, "N0=100 N1=900"s));
    CHECK(shows(m::pages_remote, "numa.pages", "N0=900 N1=100"s, "N0=740 N1=260"s));
    CHECK_FALSE(shows(m::pages_remote, "numa.pages", "N0=900 N1=100"s, "N0=760 N1=240"s));
    difference unknown = changed("cpu.usable", 16, 8);
    unknown.how = environment::difference_kind::became_unknown;
    CHECK(compare::detail::read_machine({unknown}, {}).empty());
}

TEST_CASE("what the canaries say is a sign of the machine") {
    compare::detail::canaries canary;
    CHECK(compare::detail::read_machine({}, canary).empty());
    canary.state = compare::canary_state::slower;
    canary.memory = 0.1;
    CHECK(compare::detail::read_machine({}, canary).count(mechanism::memory_slower) == 0); // nobody asked the other one
    canary.compute = 0;
    const auto seen = compare::detail::read_machine({}, canary);
    CHECK(seen.count(mechanism::canary_slower) == 1);
    CHECK(seen.at(mechanism::memory_slower) == "memory-bound canary +10.5 %, compute as before");
    canary.compute = 0.1;
    CHECK(compare::detail::read_machine({}, canary).count(mechanism::memory_slower) == 0);
}

TEST_CASE("a change counts the right way, from its least size on, to its value") {
    using compare::detail::counts;
    knowledge known;
    CHECK(counts(changed("x", 1, 2), known));
    known.way = turn::up;
    CHECK(counts(changed("x", 1, 2), known));
    CHECK_FALSE(counts(changed("x", 2, 1), known));
    CHECK_FALSE(counts(changed("x", 2, 2.0), known));
    known.way = turn::down;
    CHECK(counts(changed("x", true, false), known));
    CHECK_FALSE(counts(changed("x", false, true), known));
    // No numbers: a setting may matter all the same, a reading whose way is asked for does not.
    CHECK(counts(changed("x", "a"s, "b"s), known));
    CHECK_FALSE(counts(changed("x", "a"s, "b"s, attribute_class::state), known));
    known = {};
    CHECK(counts(changed("x", "a"s, "b"s, attribute_class::state), known));
    known.at_least = 10;
    CHECK(counts(changed("x", 60, 70), known));
    CHECK_FALSE(counts(changed("x", 61, 70), known));
    known.reaches = 75;
    CHECK_FALSE(counts(changed("x", 60, 74), known));
    CHECK(counts(changed("x", 60, 75), known));
    known = {};
    known.at_least_share = 0.5;
    CHECK(counts(changed("x", 4, 2), known));
    CHECK(counts(changed("x", 2, 4), known));
    CHECK_FALSE(counts(changed("x", 4, 3), known));
    known = {};
    known.to = {"*thermal*"};
    CHECK(counts(changed("x", "idle"s, "HW Thermal slowdown"s), known));
    CHECK_FALSE(counts(changed("x", "HW Thermal slowdown"s, "idle"s), known));
}

TEST_CASE("numbers in readings, and how large their changes are") {
    using compare::detail::number_of;
    using compare::detail::size_of;
    CHECK(number_of(reading::of("32.0 GT/s PCIe"s)) == 32.0);
    CHECK(number_of(reading::of(true)) == 1.0);
    CHECK(number_of(reading::of(false)) == 0.0);
    CHECK_FALSE(number_of(reading::of("none"s)));
    CHECK_FALSE(number_of(reading::of("inf"s)));
    CHECK_FALSE(number_of(reading::absent("not set")));
    CHECK_FALSE(size_of({}));
    CHECK(*size_of({changed("gpu.power_limit_w", 700.0, 350.0)}) == doctest::Approx(std::log(2.0)));
    CHECK(*size_of({changed("pcie.width", 4, 16), changed("pcie.slot_width", 8, 16)}) ==
          doctest::Approx(std::log(4.0)));
    CHECK(*size_of({changed("pcie.generation", 5, 3)}) == doctest::Approx(std::log(4.0)));
    CHECK(*size_of({changed("pcie.max_generation", 3, 4)}) == doctest::Approx(std::log(2.0)));
    CHECK_FALSE(size_of({changed("a", 2, 1), changed("gpu.sm_clock_offset_mhz", 0, 1)}));
    CHECK_FALSE(size_of({changed("a", 1, 0)}));
    CHECK_FALSE(size_of({changed("a", "x"s, 1)}));
}

TEST_CASE("the node that holds most of a process") {
    using compare::detail::main_node;
    CHECK(main_node("N0=300 N1=100") == std::pair("N0"s, 0.75));
    CHECK(main_node("N0=100 N1=300 N1=100").first == "N1");
    CHECK(main_node("N7=5") == std::pair("N7"s, 1.0));
    CHECK(main_node("").first.empty());
    CHECK(main_node("N0=0").first.empty());
    CHECK(main_node("nonsense").first.empty());
}

TEST_CASE("the path of a library is told from other attributes") {
    using compare::detail::library_of_path;
    CHECK(library_of_path("lib.libcudnn.path") == "lib.libcudnn");
    CHECK(library_of_path("lib.libcudnn.build_id").empty());
    CHECK(library_of_path("env.MY.path").empty());
    CHECK(library_of_path(".path").empty());
    CHECK(library_of_path("lib").empty());
}

TEST_CASE("what has slowed down, and by how much, in words") {
    using compare::detail::percent_text;
    CHECK(percent_text(std::log(1.082)) == "+8.2 %");
    CHECK(percent_text(std::log(0.95)) == "-5.0 %");
    compare::finding f;
    f.used.margin = 0.02;
    CHECK_FALSE(compare::detail::slowed(f));
    f.effect.emplace();
    f.effect->hl = 0.012;
    f.effect->low95 = 0.001;
    CHECK(compare::detail::slowed(f)); // proven, and more than half of the margin
    f.effect->hl = 0.009;
    CHECK_FALSE(compare::detail::slowed(f));
    f.outcome = compare::verdict::regressed;
    CHECK(compare::detail::slowed(f));
    f.effect->hl = -0.1;
    CHECK_FALSE(compare::detail::slowed(f));
    f.outcome = compare::verdict::inconclusive;
    f.effect->hl = 0.05;
    f.effect->low95 = -0.001;
    CHECK_FALSE(compare::detail::slowed(f));
}

TEST_CASE("a part of a slowdown that is too small is nobody's") {
    build::pair p;
    p.gpu_suite().change("cublaslt.version", 130100, 130200, 2).change("gpu.power_limit_w", 700.0, 500.0);
    // Cycles that are 2 of 22 percent: below 15 percent of it, so cuBLAS covers only what it may have done.
    p.slow("gemm/bf16/*", 1.20 * 1.02, 1.20).slow("probe/canary_mma", 1.20, 1.20);
    for (const auto& each : p.explained().causes) CHECK(each.name != "cuBLAS");
    p.slow("gemm/tf32/*", 1.20 * 1.06, 1.20);
    const auto why = p.explained();
    REQUIRE(build::names(why) == "GPU power limit consistent, cuBLAS associated");
    CHECK(why.causes[1].covers.size() == 1);
}

TEST_CASE("a smaller workspace and a slower stage are seen from their thresholds on") {
    build::pair p;
    p.gpu_suite().slow("gemm/bf16/*", 1.2);
    const auto seen = [&](mechanism what, const std::string& id) {
        const auto found = p.compared();
        for (const auto& s : compare::detail::find_symptoms(found, p.base, p.candidate, {}, {})) {
            if (compare::glob_matches(id, s.of->id)) return s.seen.count(what) != 0;
        }
        throw std::out_of_range("no symptom " + id);
    };
    p.part("gemm/bf16/*", "workspace_bytes", std::int64_t{1000}, std::int64_t{899});
    CHECK(seen(mechanism::workspace_smaller, "gemm/*"));
    p.part("gemm/bf16/*", "workspace_bytes", std::int64_t{1000}, std::int64_t{901});
    CHECK_FALSE(seen(mechanism::workspace_smaller, "gemm/*"));
    p.measured("gemm/bf16/*", "enqueue_ns", 1000, 1310);
    CHECK(seen(mechanism::host_slower, "gemm/*"));
    p.measured("gemm/bf16/*", "enqueue_ns", 1000, 1290);
    CHECK_FALSE(seen(mechanism::host_slower, "gemm/*"));
    p.slow("dataloader/*", 2);
    // A stage must take half of the slowdown: the square root of two.
    p.measured("dataloader/*", "decode_us_per_image", 1000, 1430)
        .measured("dataloader/*", "read_us_per_image", 100, 140);
    CHECK(seen(mechanism::decode_slower, "dataloader/*"));
    CHECK_FALSE(seen(mechanism::read_slower, "dataloader/*"));
}
