// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TESTS_REPORT_SAMPLE_COMPARISON_HPP
#define PLUMBLINE_TESTS_REPORT_SAMPLE_COMPARISON_HPP

#include <cmath>
#include <string>

#include "plumbline/compare/comparison.hpp"
#include "plumbline/report/options.hpp"

namespace plumbline::tests {

/// A finding with numbers: `base` and `candidate` in ns, the effect their ratio, an interval of +-0.6 %.
inline compare::finding finding_of(compare::verdict outcome, const std::string& id, double base, double candidate) {
    compare::finding one;
    one.id = id;
    one.metric = "time";
    one.unit = "ns";
    one.outcome = outcome;
    one.base.value = base;
    one.base.sessions = 5;
    one.base.epochs = 1;
    one.candidate = one.base;
    one.candidate.value = candidate;
    one.ratio = candidate / base;
    compare::estimate effect;
    effect.hl = effect.delta = std::log(candidate / base);
    effect.low95 = effect.hl - 0.006;
    effect.high95 = effect.hl + 0.006;
    effect.low90 = effect.hl - 0.005;
    effect.high90 = effect.hl + 0.005;
    effect.smallest_detectable = 0.009;
    one.effect = effect;
    one.used.class_name = "kernel";
    one.used.margin = 0.015;
    return one;
}

/// What explains the sample: one cause that was proven, one that fits, one that is not blamed.
inline compare::explanation sample_explanation(const std::vector<environment::difference>& changes) {
    compare::explanation why;
    compare::cause cudnn;
    cudnn.name = "cuDNN";
    cudnn.link = 2;
    cudnn.changes = {changes[0], changes[0]};
    cudnn.changes[1].name = "lib.libcudnn.path";
    cudnn.through = environment::difference{"env.LD_LIBRARY_PATH",
                                            1,
                                            result::attribute_class::config,
                                            "env",
                                            environment::difference_kind::changed,
                                            result::reading::absent("not set"),
                                            result::reading::of(std::string("/opt/cudnn"))};
    cudnn.covers = {{"conv/fprop/bf16/nhwc/n256c64h56w56k64r3s3", "time", std::log(331.0 / 306)}};
    cudnn.signs = {{compare::mechanism::implementation_changed, "eng38 -> eng0", 1}};
    cudnn.how_sure = compare::strength::confirmed;
    cudnn.effect = "another cuDNN has other heuristics and engines";
    cudnn.remedy = "pin the old cuDNN";
    cudnn.sources = {"pytorch/pytorch#146096"};
    cudnn.tried =
        compare::trial{compare::trial::outcome::proven,
                       "set back and forth: 1 of 1 recovered and was lost again, 2 others did not move", 1, 1};
    compare::cause quota;
    quota.name = "CPU quota";
    quota.link = 4;
    quota.changes = {changes[0]};
    quota.changes[0].name = "cgroup.cpu_quota";
    quota.covers = {{"dataloader/jpeg/w8p2/pinned", "throughput", std::log(8600.0 / 6000)}};
    quota.remedy = "raise the limit";
    quota.experiment = "run without the quota";
    compare::cause tf32;
    tf32.name = "TF32 policy";
    tf32.changes = {changes[1]};
    tf32.set_aside = "it fits, but what it could explain is explained by cuDNN";
    why.causes = {cudnn, quota};
    why.set_aside = {tf32};
    why.unexplained = {{"gemm/int8/tn/m4096n4096k4096", "time"}};
    why.canary = compare::canary_state::unchanged;
    why.canary_text = "the library-free canary, the same machine code, runs as before";
    why.conclusion = "nothing that changed explains it for 1 of them: suspect the node";
    return why;
}

/// One finding of every kind, and everything else a comparison can have.
inline compare::comparison sample_comparison() {
    using compare::marker;
    using compare::reason_code;
    using compare::verdict;
    compare::comparison all;
    const auto add = [&all](compare::finding one) {
        ++all.counts[one.outcome];
        all.findings.push_back(std::move(one));
    };
    const auto without_numbers = [](verdict outcome, const std::string& id, reason_code code, const std::string& why) {
        compare::finding one;
        one.id = id;
        one.metric = "time";
        one.unit = "ns";
        one.outcome = outcome;
        one.reasons = {{code, why}};
        return one;
    };
    compare::finding conv =
        finding_of(verdict::regressed, "conv/fprop/bf16/nhwc/n256c64h56w56k64r3s3", 306'000, 331'000);
    conv.markers = {marker::implementation_changed};
    conv.base.implementations = {{"cudnn/A/eng38/k2=1", 5, 306'000}};
    conv.candidate.implementations = {{"cudnn/A/eng0/k2=1", 5, 331'000}};
    conv.parts = compare::split{0.006, 0.0725};
    add(conv);
    compare::finding loader = finding_of(verdict::regressed, "dataloader/jpeg/w8p2/pinned", 8600, 6000);
    loader.metric = "throughput";
    loader.unit = "items/s";
    loader.better = direction::higher;
    loader.effect->hl = -loader.effect->hl;
    std::swap(loader.effect->low95, loader.effect->high95);
    loader.effect->low95 = loader.effect->hl - 0.1;
    loader.effect->high95 = loader.effect->hl + 0.1;
    loader.markers = {marker::advisory};
    add(loader);
    add(without_numbers(verdict::invalid, "gemm/int8/tn/m4096n4096k4096", reason_code::failed,
                        "the new one failed: wrong result at element 17: 3 instead of 4"));
    add(without_numbers(verdict::incomparable, "gemm/fp16/tn/m4096n4096k4096", reason_code::workload_differs,
                        "another workload of the same id: params differ"));
    compare::finding missing = finding_of(verdict::missing, "layernorm/fwd/bf16/r16384h4096/native", 40'100, 1);
    missing.candidate.value.reset();
    missing.effect.reset();
    missing.ratio.reset();
    add(missing);
    compare::finding noisy = finding_of(verdict::inconclusive, "gemm/bf16/tn/m8192n8192k8192", 1'373'000, 1'380'000);
    noisy.reasons = {{reason_code::too_noisy, "the change is neither proven nor excluded"}};
    noisy.effect->sessions_needed = 12;
    add(noisy);
    compare::finding modes =
        finding_of(verdict::inconclusive, "conv/wgrad/bf16/nhwc/n256c64h56w56k64r3s3", 305'500, 312'000);
    modes.reasons = {{reason_code::bimodal, "sessions of the new one fall into two groups"}};
    modes.candidate.modes = {{305'400, 4, 1980.0, {"cudnn/A/eng38"}}, {331'000, 1, {}, {}}};
    modes.effect->smallest_detectable = HUGE_VAL;
    add(modes);
    compare::finding suspicious = finding_of(verdict::improved, "probe/launch", 9000, 2000);
    suspicious.markers = {marker::suspicious};
    add(suspicious);
    add(finding_of(verdict::improved, "gemm/bf16/tn/m2048n2048k2048", 24'100, 23'300));
    add(finding_of(verdict::equivalent, "gemm/bf16/tn/m4096n4096k4096", 172'700, 172'780));
    compare::finding small = finding_of(verdict::equivalent, "gemm/bf16/tn/m1024n1024k1024", 5830, 5875);
    small.markers = {marker::small_but_real, marker::throttled};
    add(small);
    add(without_numbers(verdict::new_benchmark, "probe/idle_gap", reason_code::no_samples, "not in the base"));
    add(without_numbers(verdict::skipped, "gemm/fp8_e4m3/tn/m8192n8192k8192", reason_code::no_samples,
                        "needs compute capability 8.9"));

    using result::attribute_class;
    using result::reading;
    const auto differ = [&all](const std::string& name, int link, attribute_class kind, const reading& from,
                               const reading& to, environment::difference_kind how) {
        all.environment.push_back({name, link, kind, "test", how, from, to});
    };
    differ("cudnn.version", 2, attribute_class::config, reading::of(std::string("9.19.0")),
           reading::of(std::string("9.20.0")), environment::difference_kind::changed);
    differ("env.NVIDIA_TF32_OVERRIDE", 2, attribute_class::config, reading::absent("not set"),
           reading::of(std::string("0")), environment::difference_kind::changed);
    differ("gpu.firmware", 1, attribute_class::config, reading::denied("EACCES"), reading::of(std::string("1.2")),
           environment::difference_kind::became_known);
    differ("gpu.temperature_c", 1, attribute_class::state, reading::of(std::int64_t{41}), reading::of(std::int64_t{77}),
           environment::difference_kind::changed);
    all.why = sample_explanation(all.environment);
    all.notes = {"base: 1 of 5 sessions failed: killed by signal 9"};
    all.tests = 8;
    all.overall = {1.021, 8};
    all.exit = exit_code::regressed;
    return all;
}

/// The same with a machine-wide shift and another board.
inline compare::comparison shifted_comparison() {
    compare::comparison all;
    all.findings = {finding_of(compare::verdict::regressed, "gemm/bf16/tn/m4096n4096k4096", 172'700, 181'000)};
    all.counts[compare::verdict::regressed] = 1;
    all.machine_wide = compare::common_mode{0.0469, 0.95, 60, compare::split{0.046, 0.001}};
    all.board = compare::board_factor{"0a1b2c3d", "4e5f6071", "probe/canary_mma", 0.041, 0.004, true, ""};
    all.exit = exit_code::regressed;
    return all;
}

/// A comparison of `count` findings of every verdict in turn, with names as long as they come.
inline compare::comparison large_comparison(std::size_t count) {
    const compare::comparison sample = sample_comparison();
    compare::comparison all;
    for (std::size_t i = 0; i < count; ++i) {
        compare::finding one = sample.findings[i * sample.findings.size() / count];
        one.id += "/" + std::to_string(i) + std::string(40, 'x');
        ++all.counts[one.outcome];
        all.findings.push_back(std::move(one));
    }
    for (int i = 0; i < 500; ++i) {
        all.environment.push_back(sample.environment[0]);
        all.environment.back().name += std::to_string(i);
        all.notes.push_back("note " + std::to_string(i) + std::string(1000, '|'));
    }
    all.exit = exit_code::regressed;
    return all;
}

inline report::options sample_options() {
    report::options how;
    how.base = "h200.json: NVIDIA H200, cuda, 2026-11-30, 5 sessions in 1 epoch";
    how.candidate = "tonight.json: NVIDIA H200, cuda, 2026-12-01, 5 sessions in 1 epoch";
    return how;
}

} // namespace plumbline::tests

#endif
