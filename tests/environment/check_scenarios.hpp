// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TESTS_ENVIRONMENT_CHECK_SCENARIOS_HPP
#define PLUMBLINE_TESTS_ENVIRONMENT_CHECK_SCENARIOS_HPP

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "fake_machine.hpp"
#include "plumbline/environment/checks.hpp"

namespace plumbline_tests {

namespace pl = plumbline;
using env::check_status;

/// A machine, what was measured on it, and what the CUDA libraries said: everything a check may look at. It starts
/// as a healthy server with eight GPUs on which the suite "check" went well; a scenario then breaks one thing.
struct world {
    fake_machine machine;
    env::check_context on;
    pl::result::baseline measured;
    std::map<std::string, pl::scalar> said; ///< readings of the CUDA libraries and the Python probe

    world() {
        make_server(machine);
        on.cuda_expected = true;
        on.cuda_error = 0;
        on.cuda_devices = 8;
        on.link_under_load = [] { return env::link_reading{5, 16, 5, 16}; };
        on.nccl_all_reduce = [] { return std::string(); };
        said = {{"cuda.runtime_version", std::int64_t{13000}},
                {"cuda.driver_version", std::int64_t{13000}},
                {"cudnn.sublibraries", std::string("agree")},
                {"cudnn.cudart_version", std::int64_t{13010}},
                {"cuda.device_code", std::string("machine code sm_90")},
                {"gpu.compute_capability", 9.0},
                {"cublas.tf32_effective", true},
                {"python.torch", std::string("2.11.0")},
                {"python.torch_cuda", std::string("13.0")}};
        add("gemm/bf16/tn/m8192n8192k8192", "gemm", 1.37e6, 1.0995e12, 0);
        add("conv/fprop/bf16/nhwc/n256c64h56w56k64r3s3", "conv", 306e3, 59.2e9, 0);
        add("layernorm/fwd/bf16/r16384h4096/native", "layernorm", 70e3, 0, 268e6);
        add("training_step/transformer/bf16/graph", "training_step", 17e6, 9e12, 0);
        add("probe/h2d_pinned", "probe", 5e6, 0, 268435456);
        add("probe/d2h_pinned", "probe", 5e6, 0, 268435456);
        add("probe/h2d_pageable", "probe", 12e6, 0, 268435456);
        add("dataloader/jpeg/wallp2/pinned/train", "dataloader", 12e6, 0, 0);
        wait(0.02);
    }

    /// The training step waits for this share of its time.
    void wait(double share) {
        pl::scalar_map& state = find("dataloader/jpeg/wallp2/pinned/train").sessions[0].state;
        state["waiting_share"] = share;
        state["trains"] = std::string("training_step/bottleneck/bf16/n128c256h56k1000");
    }

    pl::result::result& find(const std::string& id) {
        for (auto& each : measured.results) {
            if (each.what.id == id) return each;
        }
        throw std::runtime_error("no result " + id);
    }
    void set_time(const std::string& id, double ns) {
        for (auto& session : find(id).sessions) session.samples.assign(5, ns);
    }
    void drop(const std::string& id) {
        std::erase_if(measured.results, [&](auto& each) { return each.what.id == id; });
    }

    /// Runs the check of that name on what the world has become.
    env::check_outcome run(const std::string& name) {
        pl::result::fingerprint fingerprint = machine.fingerprint();
        for (const auto& [attribute, value] : said) {
            fingerprint.attributes[attribute] = {pl::result::attribute_class::config, 2, "test",
                                                 pl::result::reading::of(value)};
        }
        on.machine = &machine.host;
        on.fingerprint = &fingerprint;
        on.measured = measured.results.empty() ? nullptr : &measured;
        for (const env::check& one : env::all_checks()) {
            if (one.name == name) return env::run_check(one, on);
        }
        throw std::runtime_error("no check " + name);
    }

private:
    void add(const std::string& id, const std::string& family, double value, double flop, double bytes) {
        pl::result::result result;
        result.what.id = id;
        result.what.family = family;
        result.what.params["dtype"] = std::string("bf16");
        result.what.flop = flop;
        result.what.bytes = bytes;
        result.backend = "cuda";
        result.verified = true;
        pl::result::session_result session;
        session.samples.assign(5, value);
        session.cycles.assign(5, value * 1.98);
        session.ran.implementation = "lt/id66";
        session.ran.parts["tensor_cores"] = true;
        result.sessions.push_back(session);
        measured.results.push_back(result);
    }
};

/// One thing that is done to a healthy world, and how one check must then end. `words` must appear in what was seen
/// or in the remedy.
struct scenario {
    std::string check;
    std::string what;
    check_status expected;
    std::function<void(world&)> change;
    std::string words;
};

/// Runs scenarios, and holds every check of `parts` to having one that passes and one that does not.
inline void run_scenarios(const std::vector<scenario>& scenarios, const std::vector<env::check>& parts) {
    std::map<std::string, int> good, bad;
    for (const scenario& each : scenarios) {
        CAPTURE(each.check);
        CAPTURE(each.what);
        world w;
        each.change(w);
        const env::check_outcome outcome = w.run(each.check);
        CAPTURE(outcome.seen);
        CHECK(std::string(env::to_string(outcome.status)) == env::to_string(each.expected));
        CHECK_MESSAGE((outcome.seen + " " + outcome.remedy).find(each.words) != std::string::npos, outcome.remedy);
        CHECK_FALSE(outcome.seen.empty());
        const bool problem = outcome.status == check_status::warn || outcome.status == check_status::fail;
        CHECK(outcome.remedy.empty() == !problem);
        if (problem) CHECK_FALSE(outcome.expected.empty());
        CHECK(outcome.seen.find('\n') == std::string::npos);
        CHECK(outcome.remedy.find('\n') == std::string::npos);
        if (outcome.status == check_status::ok) ++good[each.check];
        if (problem) ++bad[each.check];
    }
    for (const env::check& part : parts) {
        CAPTURE(part.name);
        CHECK(good[part.name] > 0);
        CHECK(bad[part.name] > 0);
    }
}

} // namespace plumbline_tests

#endif
