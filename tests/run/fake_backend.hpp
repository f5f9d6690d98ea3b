// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TESTS_RUN_FAKE_BACKEND_HPP
#define PLUMBLINE_TESTS_RUN_FAKE_BACKEND_HPP

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <sched.h>
#include <unistd.h>

#include "plumbline/core/error.hpp"
#include "plumbline/measure/engine.hpp"
#include "plumbline/run/driver.hpp"

/// A backend whose launches take the time their parameters say, without working for it: a suite of it takes
/// milliseconds. Benchmarks of the family "fake" can hang, die, fail and be wrong.
namespace fake {

class backend {
public:
    /// FAKE_SLOW_DEVICE is the number of a device that takes a quarter longer for everything.
    explicit backend(int number = 0) {
        const char* slow = std::getenv("FAKE_SLOW_DEVICE");
        if (slow != nullptr && std::atoi(slow) == number) slowness_ = 1.25;
    }
    [[nodiscard]] double slowness() const { return slowness_; }
    struct recording {
        plumbline::measure::launch run;
        std::size_t launches = 1;
    };

    [[nodiscard]] std::string_view name() const { return "cpu"; }
    [[nodiscard]] double timer_resolution_ns() const { return 20; }
    [[nodiscard]] bool has_clock() const { return false; }
    [[nodiscard]] recording record(const plumbline::measure::launch& one,
                                   const plumbline::measure::recording_request& how) {
        return {one, how.launches};
    }
    [[nodiscard]] std::vector<plumbline::measure::sample> play(recording& tape, std::size_t samples) {
        std::vector<plumbline::measure::sample> taken;
        for (std::size_t i = 0; i < samples; ++i) {
            elapsed_ns_ = 0;
            for (std::size_t j = 0; j < tape.launches; ++j) tape.run(0);
            // A millionth of jitter, so that samples are not all equal.
            taken.push_back({elapsed_ns_ * (1 + 1e-6 * static_cast<double>(i % 7)), {}, {}});
        }
        return taken;
    }
    void synchronize() {}
    void idle(std::chrono::nanoseconds) {}
    void spin(std::chrono::nanoseconds time) { elapsed_ns_ += static_cast<double>(time.count()); }
    void work(double ns) { elapsed_ns_ += ns; }

    void pin(std::string id, plumbline::result::evidence plan) { pinned_[std::move(id)] = std::move(plan); }
    [[nodiscard]] const plumbline::result::evidence* pinned(const std::string& id) const {
        const auto at = pinned_.find(id);
        return at == pinned_.end() ? nullptr : &at->second;
    }

private:
    double slowness_ = 1;
    double elapsed_ns_ = 0;
    std::map<std::string, plumbline::result::evidence> pinned_;
};

/// What a benchmark of the family does: fake/WHAT/N.
struct params {
    std::string what; ///< "work", "slow", "hang", "die", "throw", "wrong", "unsupported", "nan"
    int number = 0;
};

inline plumbline::workload::description describe(const params& p) {
    plumbline::workload::description d;
    d.id = "fake/" + p.what + "/" + std::to_string(p.number);
    d.family = "fake";
    d.params = {{"what", p.what}, {"number", std::int64_t{p.number}}};
    return d;
}

class kernel {
public:
    using params = fake::params;

    kernel(backend& b, const params& p, std::size_t) : params_(p) {
        if (p.what == "hang") std::this_thread::sleep_for(std::chrono::hours(1));
        if (p.what == "die") ::raise(SIGSEGV);
        if (p.what == "slow") std::this_thread::sleep_for(std::chrono::milliseconds(p.number));
        if (p.what == "throw") throw plumbline::error("this benchmark throws");
        if (p.what == "unsupported") throw plumbline::unsupported_error("this machine cannot do it");
        const char* factor = std::getenv("FAKE_FACTOR");
        ns_ = (1000.0 + 10 * p.number) * (factor != nullptr ? std::atof(factor) : 1) * b.slowness() * setting_factor();
    }
    void run(backend& b, std::size_t) const { b.work(ns_); }
    void verify(backend&) {
        count_verification();
        if (params_.what == "wrong") throw plumbline::verification_error("the output is wrong", 1, 1, 0);
    }
    std::string output_hash(backend&) const { return "hash-" + std::to_string(params_.number); }
    plumbline::result::evidence evidence(backend&) const { return {"fake/plan1", {}, {}}; }

private:
    /// What settings that a fingerprint records do to the time: a variable makes odd numbers three times as slow, and
    /// "cpus" is shared out over the processors this process may use.
    [[nodiscard]] double setting_factor() const {
        const char* locking = std::getenv("HDF5_USE_FILE_LOCKING");
        if (params_.what == "work" && params_.number % 2 == 1 && locking != nullptr && *locking == 'T') return 3;
        cpu_set_t mine;
        CPU_ZERO(&mine);
        if (params_.what != "cpus" || ::sched_getaffinity(0, sizeof mine, &mine) != 0) return 1;
        return 16.0 / CPU_COUNT(&mine);
    }

    /// Tests ask how often outputs were verified against the reference.
    static void count_verification() {
        if (const char* file = std::getenv("FAKE_VERIFICATIONS")) std::ofstream(file, std::ios::app) << "x";
    }

    params params_;
    double ns_ = 0;
};

inline plumbline::measure::benchmark<backend> make(const std::string& id) {
    const std::size_t second = id.find('/', 5);
    const std::string what = second == std::string::npos ? "" : id.substr(5, second - 5);
    for (const char* known : {"work", "slow", "hang", "die", "throw", "wrong", "unsupported", "cpus"}) {
        if (what != known) continue;
        const params p{what, std::atoi(id.c_str() + second + 1)};
        if (describe(p).id == id) return plumbline::measure::make_benchmark<kernel, backend>(p);
    }
    throw plumbline::usage_error("benchmark id '" + id + "' is not fake/WHAT/NUMBER");
}

/// A benchmark whose library has plans: planned/N[/best|/pinned], N being 1 to 9. Its plans are numbers, and a launch
/// of plan P takes P us. The library chooses plan N, or the plan in FAKE_CHOICE; the best is plan 1; FAKE_FACTOR makes
/// all of them slower, FAKE_NO_REPLAY makes recorded ones useless.
class planned {
public:
    struct params {
        int number = 1;
        plumbline::workload::modes mode;
    };
    static constexpr bool has_plans = true;

    planned(backend& on, const params& p, std::size_t) : plan_(choose(on, p)) {
        const char* factor = std::getenv("FAKE_FACTOR");
        ns_ = 1000.0 * static_cast<double>(plan_) * (factor != nullptr ? std::atof(factor) : 1);
    }
    void run(backend& b, std::size_t) const { b.work(ns_); }
    plumbline::result::evidence evidence(backend&) const {
        return {"fake/plan" + std::to_string(plan_), {{"plan", plan_}}, {}};
    }

private:
    static std::int64_t choose(backend& on, const params& p) {
        using plumbline::workload::plan_choice;
        if (p.mode.plan == plan_choice::best) return 1;
        if (p.mode.plan == plan_choice::heuristic) {
            const char* choice = std::getenv("FAKE_CHOICE");
            return choice != nullptr ? std::atoi(choice) : p.number;
        }
        const auto* recorded = on.pinned("planned/" + std::to_string(p.number));
        if (recorded == nullptr) throw plumbline::unsupported_error("no plan to replay was given");
        if (std::getenv("FAKE_NO_REPLAY") != nullptr)
            throw plumbline::unsupported_error("its numbers mean nothing here");
        return std::get<std::int64_t>(recorded->parts.at("plan"));
    }

    std::int64_t plan_;
    double ns_ = 0;
};

inline plumbline::workload::description describe(const planned::params& p) {
    plumbline::workload::description d;
    d.id = "planned/" + std::to_string(p.number) + suffix(p.mode);
    d.family = "planned";
    d.params = {{"number", std::int64_t{p.number}}};
    add_modes(d.params, p.mode);
    return d;
}

inline plumbline::measure::benchmark<backend> make_planned(const std::string& id) {
    const plumbline::workload::split_id parts = plumbline::workload::split_modes(id);
    const planned::params p{std::atoi(parts.work.substr(8).c_str()), parts.mode};
    if (describe(p).id != id) throw plumbline::usage_error("benchmark id '" + id + "' is not planned/NUMBER");
    return plumbline::measure::make_benchmark<planned, backend>(p);
}

/// The entry of this backend under the name "cpu" or "cuda". FAKE_START=fail makes opening it fail.
inline plumbline::run::backend_entry<backend> entry(const std::string& name) {
    plumbline::run::backend_entry<backend> made;
    made.name = name;
    made.families = [](const std::filesystem::path&) {
        return std::vector<plumbline::measure::family<backend>>{{"fake", make}, {"planned", make_planned}};
    };
    made.serve = [](int argc, char** argv) -> std::optional<int> {
        if (argc == 2 && std::string_view(argv[1]) == "--fake-step") return 42;
        return std::nullopt;
    };
    made.open = [](int device) {
        if (std::getenv("FAKE_START") != nullptr) {
            throw plumbline::environment_error("fake",
                                               "device " + std::to_string(device) + " does not start; plug it in");
        }
        return std::make_unique<backend>(device);
    };
    made.identify = [name](const plumbline::environment::host&, int device) {
        plumbline::result::device d;
        d.backend = name;
        d.model = "Fake Device";
        d.uuid = std::to_string(device) + "123456789abcdef";
        return d;
    };
    made.devices = [](const plumbline::environment::host&) {
        const char* count = std::getenv("FAKE_DEVICES"); // default 2
        std::vector<int> numbers;
        for (int i = 0; i < (count != nullptr ? std::atoi(count) : 2); ++i) numbers.push_back(i);
        return numbers;
    };
    return made;
}

} // namespace fake

#endif
