// SPDX-License-Identifier: Apache-2.0
// Measures benchmarks through the engine in this one process and prints what the engine made of them. With
// --append=FILE one line for each benchmark is added to FILE; --summary=FILE shows how several such sessions agree.
//
//     for i in 1 2 3 4 5; do measure_cuda --append=sessions.tsv; done; measure_cuda --summary=sessions.tsv
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "plumbline/cuda/catalogue.hpp"
#include "plumbline/measure/ceilings.hpp"
#include "plumbline/measure/engine.hpp"
#include "plumbline/stats/descriptive.hpp"

using namespace plumbline;

namespace {

std::vector<std::string> default_ids() {
    return {"probe/canary_mma",
            "probe/canary_fma",
            "probe/canary_copy",
            "probe/device_copy",
            "probe/device_copy/64MiB",
            "probe/launch",
            "probe/graph_launch",
            "probe/h2d_pinned",
            "probe/d2h_pinned",
            "probe/h2d_pageable",
            "probe/cold_context",
            "probe/cold_first_launch",
            "probe/host_wake",
            "gemm/bf16/tn/m8192n8192k8192",
            "gemm/bf16/tn/m4096n4096k4096",
            "gemm/bf16/tn/m2048n2048k2048",
            "gemm/bf16/tn/m1024n1024k1024",
            "gemm/fp16/tn/m4096n4096k4096",
            "gemm/tf32/tn/m4096n4096k4096",
            "gemm/fp32/tn/m4096n4096k4096",
            "gemm/int8/tn/m4096n4096k4096",
            "gemm/fp8/tn/m8192n8192k8192",
            "gemm/bf16/tn/m6144n8192k4096",
            "gemm/bf16/tn/m14336n16k4096",
            "gemm/bf16/tn/m128256n512k4096",
            "gemm/bf16/tn/m4095n4095k4095"};
}

double number(const scalar_map& from, const char* name) {
    const auto at = from.find(name);
    const auto* value = at == from.end() ? nullptr : std::get_if<double>(&at->second);
    return value == nullptr ? 0 : *value;
}

void show(const result::result& one, std::ofstream& lines) {
    const std::string name = one.what.id + (one.what.metric == "time" ? "" : "#" + one.what.metric);
    if (one.status != result::result_status::ok) {
        std::printf("%-40s %s: %s\n", name.c_str(), one.status == result::result_status::failed ? "FAILED" : "skipped",
                    one.reason.c_str());
        return;
    }
    const result::session_result& session = one.sessions.front();
    const double median = stats::median(session.samples);
    const double spread = 1.4826 * stats::mad(session.samples) / median;
    const auto clean = std::count(session.clean.begin(), session.clean.end(), true);
    double clock = 0;
    if (!session.cycles.empty() && one.what.unit == "ns") clock = stats::median(session.cycles) / median * 1e3;
    std::string rate;
    if (one.what.unit == "ns" && one.what.flop > 0)
        rate = std::to_string(one.what.flop / median * 1e-3) + " TFLOP/s";
    else if (one.what.unit == "ns" && one.what.bytes > 0)
        rate = std::to_string(one.what.bytes / median) + " GB/s";
    std::string flags;
    for (const std::string& flag : session.flags) flags += ' ' + flag;
    std::printf("%-40s %12.2f %s +-%.3f %% n %zu clean %td %.0f MHz enqueue %.0f ns %.2f s %s%s %s %s\n", name.c_str(),
                median, one.what.unit.c_str(), 100 * spread, session.samples.size(), clean, clock,
                number(session.state, "enqueue_ns"), number(session.state, "total_seconds"), rate.c_str(),
                one.verified ? "" : " NOT VERIFIED", session.ran.implementation.c_str(), flags.c_str());
    if (lines) lines << name << '\t' << to_string(scalar(median)) << '\t' << session.ran.implementation << '\n';
}

/// Median, standard deviation and range over the sessions of a file.
int summary(const std::string& path) {
    std::ifstream file(path);
    std::map<std::string, std::vector<double>> medians;
    std::map<std::string, std::map<std::string, int>> plans;
    std::string line;
    while (std::getline(file, line)) {
        std::istringstream fields(line);
        std::string id;
        std::string value;
        std::string plan;
        std::getline(fields, id, '\t');
        std::getline(fields, value, '\t');
        std::getline(fields, plan);
        medians[id].push_back(std::stod(value));
        ++plans[id][plan];
    }
    for (const auto& [id, values] : medians) {
        const auto [low, high] = std::minmax_element(values.begin(), values.end());
        const double middle = stats::median(values);
        const double sd = values.size() < 2 ? 0 : stats::standard_deviation(values) / stats::mean(values);
        std::printf("%-40s %12.2f  sd %.3f %%  range %.3f %%  of %zu, %zu plan(s)\n", id.c_str(), middle, 100 * sd,
                    100 * (*high - *low) / middle, values.size(), plans[id].size());
    }
    return medians.empty() ? 1 : 0;
}

int measure_all(std::vector<std::string> ids, const std::string& append) {
    cuda::backend on;
    std::printf("%s; timer step %.0f ns; stream can be held: %s\n", on.place().c_str(), on.timer_resolution_ns(),
                on.can_hold() ? "yes" : "NO");
    std::shuffle(ids.begin(), ids.end(), std::mt19937(std::random_device{}()));
    measure::engine<cuda::backend> engine(on);
    std::vector<result::result> all;
    for (const std::string& id : ids) {
        for (const auto& family : cuda::catalogue()) {
            if (family.name != workload::family_of(id)) continue;
            for (result::result& one : engine.measure(family.make(id))) all.push_back(std::move(one));
        }
    }
    engine.settle(all);
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.what.id < b.what.id; });
    std::ofstream lines;
    if (!append.empty()) lines.open(append, std::ios::app);
    for (const result::result& one : all) show(one, lines);
    for (const auto& [name, value] : engine.state()) std::printf("%s = %s\n", name.c_str(), to_string(value).c_str());
    for (const auto& [name, value] : measure::ceilings(all)) std::printf("ceiling %s = %.4g\n", name.c_str(), value);
    return std::any_of(all.begin(), all.end(),
                       [](const result::result& one) { return one.status == result::result_status::failed; });
}

} // namespace

int main(int argc, char** argv) {
    if (const auto code = cuda::machine::serve_cold_start(argc, argv)) return *code;
    std::vector<std::string> ids;
    std::string append;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word.rfind("--summary=", 0) == 0) return summary(word.substr(10));
        if (word.rfind("--append=", 0) == 0)
            append = word.substr(9);
        else
            ids.push_back(word);
    }
    try {
        return measure_all(ids.empty() ? default_ids() : ids, append);
    } catch (const error& failure) {
        std::fprintf(stderr, "measure_cuda: %s\n", failure.what());
        return static_cast<int>(failure.code());
    }
}
