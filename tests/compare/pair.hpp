// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TESTS_COMPARE_PAIR_HPP
#define PLUMBLINE_TESTS_COMPARE_PAIR_HPP

// Two baselines of one GPU, a day apart, in which a test changes what it needs.

#include <string>
#include <utility>
#include <vector>

#include "build.hpp"
#include "plumbline/compare/compare.hpp"
#include "plumbline/compare/explain.hpp"

namespace build {

using plumbline::result::attribute_class;
using plumbline::result::reading;

/// A short suite of every family, measured twice in five sessions with a spread of 0.1 % and nothing changed between.
class pair {
public:
    explicit pair(const std::string& backend = "cuda") : base(build::baseline(5)), candidate(build::baseline(5)) {
        base.device.backend = candidate.device.backend = backend;
        for (auto* each : {&base, &candidate}) {
            set(*each, "process.variables_captured", reading::of(true), attribute_class::state, 1);
            set(*each, "process.libraries_captured", reading::of(true), attribute_class::state, 1);
        }
    }

    /// The suite of a GPU: canaries, links, launches and one or two of each family.
    pair& gpu_suite() {
        for (const char* id : {"probe/canary_mma", "probe/canary_copy"}) {
            add(id, 220).part(id, "code_hash", std::string("c0de"));
        }
        for (const char* id : {"probe/device_copy", "probe/h2d_pinned", "probe/d2h_pinned", "probe/h2d_pageable",
                               "probe/launch", "probe/graph_launch", "probe/cold_context", "probe/cold_first_launch"}) {
            add(id, 500);
        }
        for (const char* id : {"gemm/bf16/tn/m8192n8192k8192", "gemm/bf16/tn/m1024n1024k1024",
                               "gemm/fp32/tn/m4096n4096k4096", "gemm/tf32/tn/m4096n4096k4096"}) {
            add(id, 400).flops(id).ran(id, "lt/id66/t248/s35");
        }
        for (const char* id : {"conv/fprop/bf16/nhwc/n256c64h56w56k64r3s3", "conv/wgrad/bf16/nhwc/n256c64h56w56k64r3s3",
                               "conv/fprop/tf32/nchw/n256c64h56w56k64r3s3"}) {
            add(id, 300).flops(id).ran(id, "cudnn/A/eng38/k2=1");
        }
        add("layernorm/fwd/bf16/r16384h4096/native", 40);
        add("layernorm/fwd/bf16/r16384h4096/cudnn", 44);
        add("training_step/transformer/bf16/stream", 14000);
        add("dataloader/jpeg/w8p2/pinned", 9000, plumbline::benchmark_class::dataloader);
        add("probe/host_wake", 50, plumbline::benchmark_class::host);
        return *this;
    }

    /// A benchmark on both sides.
    pair& add(const std::string& id, double us, plumbline::benchmark_class kind = plumbline::benchmark_class::kernel) {
        const values around{us, us * 1.001, us * 0.999, us * 1.0005, us * 0.9995};
        build::add(base, id, around, kind);
        build::add(candidate, id, around, kind);
        return *this;
    }

    /// Benchmarks that match take `factor` as long in the candidate. With `clock`, cycles are known on both sides and
    /// that factor of the time is due to a lower clock.
    pair& slow(const std::string& pattern, double factor, double clock = 0) {
        bool any = false;
        for (std::size_t i = 0; i < candidate.results.size(); ++i) {
            if (!compare::glob_matches(pattern, candidate.results[i].what.id)) continue;
            any = true;
            for (auto& s : candidate.results[i].sessions) {
                for (double& v : s.samples) v *= factor;
                if (clock > 0) s.cycles = {s.samples[0] * 1980 / clock};
            }
            if (clock <= 0) continue;
            for (auto& s : base.results[i].sessions) s.cycles = {s.samples[0] * 1980};
        }
        if (!any) throw std::out_of_range("nothing matches " + pattern);
        return *this;
    }

    /// An attribute of both environments: `from` and `to`, "" for a variable that is not set.
    pair& change(const std::string& name, const plumbline::scalar& from, const plumbline::scalar& to, int link = 1,
                 attribute_class kind = attribute_class::config) {
        const auto absent = [](const plumbline::scalar& v) { return v == plumbline::scalar(std::string()); };
        if (!absent(from)) set(base, name, reading::of(from), kind, link);
        if (!absent(to)) set(candidate, name, reading::of(to), kind, link);
        return *this;
    }
    pair& state(const std::string& name, const plumbline::scalar& from, const plumbline::scalar& to) {
        return change(name, from, to, 1, attribute_class::state);
    }
    pair& variable(const std::string& name, const std::string& from, const std::string& to, int link = 1) {
        return change("env." + name, from, to, link);
    }

    /// What ran: in both, or another one in the candidate.
    pair& ran(const std::string& pattern, const std::string& before, const std::string& after = {}) {
        for_each(base, pattern, [&](auto& s) { s.ran.implementation = before; });
        for_each(candidate, pattern, [&](auto& s) { s.ran.implementation = after.empty() ? before : after; });
        return *this;
    }
    pair& part(const std::string& pattern, const std::string& name, const plumbline::scalar& before,
               const plumbline::scalar& after) {
        for_each(base, pattern, [&](auto& s) { s.ran.parts[name] = before; });
        for_each(candidate, pattern, [&](auto& s) { s.ran.parts[name] = after; });
        return *this;
    }
    pair& part(const std::string& pattern, const std::string& name, const plumbline::scalar& both) {
        return part(pattern, name, both, both);
    }
    pair& measured(const std::string& pattern, const std::string& name, double before, double after) {
        for_each(base, pattern, [&](auto& s) { s.state[name] = before; });
        for_each(candidate, pattern, [&](auto& s) { s.state[name] = after; });
        return *this;
    }
    pair& fails(const std::string& pattern, const std::string& why,
                result::result_status how = result::result_status::failed) {
        for (auto& r : candidate.results) {
            if (!compare::glob_matches(pattern, r.what.id)) continue;
            r.status = how;
            r.reason = why;
            r.sessions.clear();
        }
        return *this;
    }

    /// Changes that do no work: what differs between two days of any machine.
    pair& innocent() {
        variable("PATH", "hash 1", "hash 2");
        change("build.git", std::string("aa"), std::string("bb"), 2);
        change("python.numpy", std::string("2.5.1"), std::string("2.5.2"), 3);
        state("load.one_minute", 0.74, 1.2);
        state("gpu.temperature_c", std::int64_t{31}, std::int64_t{38});
        state("memory.available_bytes", std::int64_t{134329188352}, std::int64_t{133329188352});
        state("kernel.boot", std::string("b1"), std::string("b2"));
        return *this;
    }

    [[nodiscard]] compare::comparison compared() const { return compare::compare(base, candidate, {}); }
    [[nodiscard]] compare::explanation explained() const { return compare::explain(compared(), base, candidate); }

    result::baseline base;
    result::baseline candidate;

private:
    static void set(result::baseline& in, const std::string& name, const reading& read, attribute_class kind,
                    int link) {
        in.environment.attributes[name] = {kind, link, "test", read};
    }
    template <class Change>
    static void for_each(result::baseline& in, const std::string& pattern, Change&& change_one) {
        for (auto& r : in.results) {
            if (!compare::glob_matches(pattern, r.what.id)) continue;
            for (auto& s : r.sessions) change_one(s);
        }
    }
    pair& flops(const std::string& pattern) {
        for (auto* each : {&base, &candidate}) {
            for (auto& r : each->results) {
                if (!compare::glob_matches(pattern, r.what.id)) continue;
                r.what.flop = 1e12;
                r.what.bytes = 1e9;
            }
        }
        return *this;
    }
};

/// The causes by name, most credible first: "cuDNN consistent, NVIDIA driver associated".
inline std::string names(const compare::explanation& of) {
    std::string text;
    for (const auto& each : of.causes) {
        text += (text.empty() ? "" : ", ") + each.name + " " + compare::to_string(each.how_sure);
    }
    return text;
}

} // namespace build

#endif
