// SPDX-License-Identifier: Apache-2.0
// False alarms and detection at the noise that real H200s showed: suites are drawn from recorded sessions
// (tests/data/measured), a side of the comparison being five sessions drawn with replacement. Draws are seeded, so the
// figures repeat. What the recordings do not hold (several boots and days of one board) is added as a normal epoch
// effect of the size the policy assumes, and said so.
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "build.hpp"
#include "plumbline/compare/compare.hpp"

namespace {

namespace compare = plumbline::compare;
namespace stats = plumbline::stats;
namespace result = plumbline::result;
using build::values;
using nlohmann::json;
using plumbline::benchmark_class;

constexpr const char* canary = "probe/canary_mma";

struct workload_data {
    std::string name;
    double flop = 0;
    double bytes = 0;
    std::map<int, values> boards; // session medians in us
};

const workload_data& named(const std::vector<workload_data>& all, const std::string& name) {
    for (const auto& w : all) {
        if (w.name == name) return w;
    }
    throw std::out_of_range(name);
}

// One regime of h200_burst.json: three boards, sessions in shuffled order.
std::vector<workload_data> load_burst(const std::string& regime) {
    const json file = json::parse(std::ifstream(PLUMBLINE_TEST_DATA "/measured/h200_burst.json"));
    std::map<std::string, workload_data> found;
    for (const auto& row : file["rows"]) {
        if (row["regime"] != regime) continue;
        auto& w = found[row["workload"]];
        w.name = row["workload"];
        w.boards[row["board"]].push_back(row["median_us"]);
        if (w.name.rfind("gemm", 0) == 0) {
            const double n = std::atof(w.name.c_str() + 4);
            w.flop = 2 * n * n * n;
            w.bytes = 3 * n * n * 2;
        } else {
            w.bytes = 134e6;
        }
    }
    std::vector<workload_data> all;
    for (auto& [name, w] : found) all.push_back(std::move(w));
    return all;
}

// h200_noise.json, state hot: a session is a process, its value the median over its allocations.
std::vector<workload_data> load_hot() {
    const json file = json::parse(std::ifstream(PLUMBLINE_TEST_DATA "/measured/h200_noise.json"));
    std::map<std::string, std::map<int, values>> processes;
    for (const auto& row : file["rows"]) {
        if (row["state"] == "hot") processes[row["workload"]][row["process"]].push_back(row["median_us"]);
    }
    std::vector<workload_data> all = load_burst("hot");
    for (const auto& [name, of] : processes) {
        workload_data w;
        w.name = "noise/" + name;
        for (const auto& [process, medians] : of) w.boards[1].push_back(stats::median(medians));
        all.push_back(w);
    }
    return all;
}

class experiment {
public:
    experiment(std::vector<workload_data> data, benchmark_class kind, unsigned seed)
        : data_(std::move(data)), kind_(kind), random_(seed) {}

    std::size_t sessions = 5; ///< a side
    compare::policy rules;
    int base_board = 1;
    int candidate_board = 1;
    double epoch_sd = 0;       ///< of the effect of an epoch on each benchmark, each side
    std::size_t base_days = 1; ///< epochs of the base, each with its own sessions; its noise is then estimated
    bool interleaved = false;  ///< five rounds of one session a side
    std::size_t size = 100;
    double slowdown = 0; ///< of the benchmark `slow`, as a fraction
    std::size_t slow = 0;
    std::string slow_workload; ///< what the slow one is; any when empty

    compare::comparison run() {
        auto base = build::baseline(sessions * base_days, "board" + std::to_string(base_board));
        for (std::size_t i = 0; i < base.sessions.size(); ++i) base.sessions[i].when.day = std::to_string(i / sessions);
        auto candidate = build::baseline(sessions, "board" + std::to_string(candidate_board));
        if (!interleaved && epoch_sd > 0) {
            for (auto& s : candidate.sessions) s.when.day = "another";
        }
        for (std::size_t i = 0; interleaved && i < sessions; ++i) {
            base.sessions[i].control = candidate.sessions[i].control = "round" + std::to_string(i);
        }
        if (base_board != candidate_board) {
            add(base, canary, named(data_, "gemm8192"), base_board, 1, base_days);
            add(candidate, canary, named(data_, "gemm8192"), candidate_board, 1, 1);
            for (auto* file : {&base, &candidate}) {
                for (auto& s : file->results.back().sessions) s.ran.parts["code_hash"] = std::string("frozen");
            }
        }
        for (std::size_t i = 0; i < size; ++i) {
            const bool is_slow = slowdown > 0 && i == slow;
            const auto& w = is_slow && !slow_workload.empty()
                                ? named(data_, slow_workload)
                                : data_[std::uniform_int_distribution<std::size_t>(0, data_.size() - 1)(random_)];
            const std::string id = "b" + std::to_string(i);
            add(base, id, w, base_board, 1, base_days);
            add(candidate, id, w, candidate_board, is_slow ? 1 + slowdown : 1, 1);
        }
        if (base_days > 1) base.noise = compare::estimate_noise(base);
        return compare::compare(base, candidate, rules);
    }

private:
    void add(result::baseline& to, const std::string& id, const workload_data& w, int board, double factor,
             std::size_t days) {
        const values& seen = w.boards.at(board);
        values drawn;
        std::uniform_int_distribution<std::size_t> which(0, seen.size() - 1);
        for (std::size_t day = 0; day < days; ++day) {
            const double epoch = epoch_sd > 0 ? std::normal_distribution<double>(0, epoch_sd)(random_) : 0;
            for (std::size_t i = 0; i < sessions; ++i) drawn.push_back(seen[which(random_)] * factor * std::exp(epoch));
        }
        auto& r = build::add(to, id, drawn, kind_);
        r.what.flop = w.flop;
        r.what.bytes = w.bytes;
    }

    std::vector<workload_data> data_;
    benchmark_class kind_;
    std::mt19937 random_;
};

struct tally {
    std::size_t suites = 0, with_regression = 0, with_improvement = 0;
    std::size_t regressed = 0, improved = 0, equivalent = 0, pairs = 0;
    double detectable = 0;
};

// Runs unchanged suites, prints the figures and holds them against the requirement: at most 1 % of the suites show a
// regression (upper 95 % bound), and regressions and improvements are alike.
tally unchanged(const char* title, experiment& of, std::size_t suites, const std::vector<std::pair<int, int>>& boards) {
    tally t;
    for (std::size_t i = 0; i < suites; ++i) {
        std::tie(of.base_board, of.candidate_board) = boards[i % boards.size()];
        const auto got = of.run();
        ++t.suites;
        t.with_regression += got.count(compare::verdict::regressed) > 0;
        t.with_improvement += got.count(compare::verdict::improved) > 0;
        t.regressed += got.count(compare::verdict::regressed);
        t.improved += got.count(compare::verdict::improved);
        t.equivalent += got.count(compare::verdict::equivalent);
        t.pairs += got.tests;
    }
    const double bound = stats::binomial_upper_bound(t.with_regression, t.suites);
    std::printf("%-46s %5zu suites: any regressed %zu (<= %.2f %%), any improved %zu, results -%zu +%zu, equivalent "
                "%.1f %%\n",
                title, t.suites, t.with_regression, 100 * bound, t.with_improvement, t.regressed, t.improved,
                100.0 * static_cast<double>(t.equivalent) / static_cast<double>(t.pairs));
    CHECK(bound <= 0.01);
    CHECK(stats::sign_test(t.with_regression, t.with_improvement) > 0.01);
    return t;
}

double detection(experiment& of, std::size_t suites, const std::vector<std::pair<int, int>>& boards) {
    std::size_t found = 0;
    for (std::size_t i = 0; i < suites; ++i) {
        std::tie(of.base_board, of.candidate_board) = boards[i % boards.size()];
        of.slow = i % of.size;
        found += build::at(of.run(), "b" + std::to_string(of.slow)).outcome == compare::verdict::regressed;
    }
    return static_cast<double>(found) / static_cast<double>(suites);
}

const std::vector<std::pair<int, int>> same_board{{1, 1}, {2, 2}, {3, 3}};
const std::vector<std::pair<int, int>> other_board{{1, 2}, {1, 3}, {2, 1}, {2, 3}, {3, 1}, {3, 2}};

} // namespace

TEST_CASE("resampling: an unchanged suite of 100 stays quiet") {
    experiment recorded(load_burst("burst"), benchmark_class::kernel, 1);
    const auto t = unchanged("burst, same board, as recorded", recorded, 450, same_board);
    CHECK(static_cast<double>(t.equivalent) >= 0.95 * static_cast<double>(t.pairs));

    experiment epochs(load_burst("burst"), benchmark_class::kernel, 2);
    epochs.epoch_sd = 0.002;
    unchanged("burst, same board, + 0.2 % between days", epochs, 450, same_board);

    experiment single(load_burst("burst"), benchmark_class::kernel, 7);
    single.sessions = 1;
    single.epoch_sd = 0.002;
    unchanged("burst, same board, one session a side", single, 450, same_board);

    experiment boards(load_burst("burst"), benchmark_class::kernel, 3);
    unchanged("burst, another board", boards, 450, other_board);

    experiment hot(load_hot(), benchmark_class::sustained, 4);
    unchanged("sustained at the power cap", hot, 450, {{1, 1}});

    // Machines three times as restless between days as the policy assumes: the baseline of three days must find out.
    experiment restless(load_burst("burst"), benchmark_class::kernel, 6);
    restless.epoch_sd = 0.006;
    restless.base_days = 3;
    unchanged("burst, 0.6 % between days, base of three days", restless, 450, same_board);

    experiment pairs(load_burst("burst"), benchmark_class::kernel, 5);
    pairs.interleaved = true;
    unchanged("burst, interleaved, margin 0.3 %", pairs, 450, same_board);
}

TEST_CASE("resampling: the experiment sees a bad rule, and regressions and improvements are alike") {
    experiment careless(load_burst("burst"), benchmark_class::kernel, 8);
    careless.epoch_sd = 0.002;
    auto& kernel = careless.rules.classes["kernel"];
    kernel.s_e = 0; // believes that days do not differ
    kernel.margin = 0.0001;
    std::size_t alarmed = 0;
    std::size_t regressed = 0;
    std::size_t improved = 0;
    for (std::size_t i = 0; i < 60; ++i) {
        const auto got = careless.run();
        alarmed += got.count(compare::verdict::regressed) > 0;
        regressed += got.count(compare::verdict::regressed);
        improved += got.count(compare::verdict::improved);
    }
    std::printf("%-46s %5d suites: any regressed %zu, results -%zu +%zu\n", "the same without an epoch term or margin",
                60, alarmed, regressed, improved);
    CHECK(alarmed > 50);
    CHECK(stats::sign_test(regressed, improved) > 0.01);
}

TEST_CASE("resampling: detection of planted slowdowns") {
    constexpr std::array sizes{0.01, 0.02, 0.05, 0.10};
    std::printf("\nshare of suites of 60 in which one slower benchmark is found, 5 sessions a side\n%-46s",
                "slower by");
    for (double s : sizes) std::printf("%8.0f %%", 100 * s);
    std::printf("\n");
    const auto row = [&](const char* title, experiment of, const std::vector<std::pair<int, int>>& boards) {
        std::printf("%-46s", title);
        std::vector<double> found;
        of.size = 60;
        for (double s : sizes) {
            of.slowdown = s;
            found.push_back(detection(of, 60, boards));
            std::printf("%8.2f  ", found.back());
        }
        std::printf("\n");
        return found;
    };
    experiment stored(load_burst("burst"), benchmark_class::kernel, 11);
    const auto as_recorded = row("burst, same board, as recorded", stored, same_board);
    CHECK(as_recorded[0] < 0.05); // below the margin: not a regression by policy
    CHECK(as_recorded[2] == 1);
    stored.epoch_sd = 0.002;
    CHECK(row("burst, same board, + 0.2 % between days", stored, same_board)[2] == 1);
    experiment boards(load_burst("burst"), benchmark_class::kernel, 12);
    CHECK(row("burst, another board", boards, other_board)[3] == 1);
    experiment pairs(load_burst("burst"), benchmark_class::kernel, 13);
    pairs.interleaved = true;
    CHECK(row("burst, interleaved, margin 0.3 %", pairs, same_board)[1] == 1);
    row("sustained at the power cap, margin 7 %", experiment(load_hot(), benchmark_class::sustained, 14), {{1, 1}});
}

TEST_CASE("resampling: the targets for one H200") {
    std::printf("\ntarget: found in at least 9 of 10 suites of 60\n");
    const auto target = [](const char* title, bool interleaved, double slowdown,
                           const std::vector<std::pair<int, int>>& boards) {
        std::size_t kernels = 0;
        double sum = 0;
        std::printf("%-46s", title);
        for (const auto& w : load_burst("burst")) {
            experiment of(load_burst("burst"), benchmark_class::kernel, 21);
            of.size = 60;
            of.interleaved = interleaved;
            of.slowdown = slowdown;
            of.slow_workload = w.name;
            const double found = detection(of, 24, boards);
            std::printf(" %s %.2f", w.name.c_str(), found);
            if (w.boards.at(1)[0] < 20) continue; // shorter kernels have their own, wider noise
            ++kernels;
            sum += found;
        }
        std::printf("\n%-46s %.3f over the %zu kernels of 20 us and more\n", "", sum / static_cast<double>(kernels),
                    kernels);
        CHECK(sum / static_cast<double>(kernels) >= 0.9);
    };
    target("interleaved, 0.7 % slower, margin 0.3 %", true, 0.007, same_board);
    target("stored, same board, 2 % slower, margin 1.5 %", false, 0.02, same_board);
    target("stored, another board, 4 % slower", false, 0.04, other_board);
}
