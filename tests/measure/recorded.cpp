// SPDX-License-Identifier: Apache-2.0
// What real devices did, played back: the engine's rules must call normal work clean and capped work throttled.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "plumbline/json/store.hpp"
#include "plumbline/measure/engine.hpp"
#include "plumbline/measure/predict.hpp"

using namespace plumbline;
using namespace plumbline::measure;

namespace {

/// What was recorded of one benchmark on one board.
struct trace {
    std::vector<double> launch_ns; ///< of each sample, per launch; played round and round
    std::vector<double> clock_mhz; ///< inside each sample
    double before_mhz = 0;         ///< the device's own clock, before a burst
    double after_mhz = 0;          ///< and right after one
};

/// A device that does again what was recorded, in virtual time.
class replay {
public:
    struct recording {
        std::size_t launches;
    };
    [[nodiscard]] std::string_view name() const { return "replay"; }
    [[nodiscard]] double timer_resolution_ns() const { return 500; }
    [[nodiscard]] bool has_clock() const { return true; }
    [[nodiscard]] recording record(const launch&, const recording_request& how) { return {how.launches}; }
    [[nodiscard]] std::vector<sample> play(recording& tape, std::size_t samples) {
        std::vector<sample> taken;
        for (std::size_t i = 0; i < samples; ++i, ++at_) {
            const double ns = of_.launch_ns[at_ % of_.launch_ns.size()] * static_cast<double>(tape.launches);
            taken.push_back({ns, of_.clock_mhz[at_ % of_.clock_mhz.size()], {}});
            now_ += nanoseconds(static_cast<std::int64_t>(ns));
        }
        played_.push_back(samples);
        just_worked_ = true;
        return taken;
    }
    void synchronize() {}
    void idle(nanoseconds pause) {
        now_ += pause;
        just_worked_ = false;
    }
    [[nodiscard]] double read_clock_mhz() {
        now_ += std::chrono::microseconds(25);
        return std::exchange(just_worked_, false) ? of_.after_mhz : of_.before_mhz;
    }

    void become(trace of) {
        of_ = std::move(of);
        at_ = 0;
        played_.clear();
        just_worked_ = false;
    }
    [[nodiscard]] host_clock clock() {
        return [this] { return now_; };
    }
    [[nodiscard]] std::size_t longest_burst() const { return *std::max_element(played_.begin(), played_.end()); }
    [[nodiscard]] std::size_t last_burst() const { return played_.back(); }

private:
    trace of_;
    std::size_t at_ = 0;
    std::vector<std::size_t> played_;
    bool just_worked_ = false;
    nanoseconds now_{std::chrono::seconds(1000)};
};

benchmark<replay> benchmark_of(const std::string& id) {
    benchmark<replay> made;
    made.what.id = id;
    made.what.family = "recorded";
    made.prepare = [](replay&) {
        prepared_kernel ready;
        ready.slots = 1;
        ready.run = [](std::size_t) {};
        return ready;
    };
    return made;
}

bool throttled(const result::result& of) {
    const auto& flags = of.sessions.at(0).flags;
    return std::find(flags.begin(), flags.end(), result::flag::throttled) != flags.end();
}

std::size_t clean_samples(const result::result& of) {
    const auto& clean = of.sessions.at(0).clean;
    return static_cast<std::size_t>(std::count(clean.begin(), clean.end(), true));
}

nlohmann::json rows_of(const std::string& file) {
    return nlohmann::json::parse(std::ifstream(PLUMBLINE_TEST_DATA "/measured/" + file)).at("rows");
}

result::baseline reference_baseline() {
    return json::load(PLUMBLINE_TEST_DATA "/../../baselines/reference/nvidia-h200-017764c2.json");
}

/// The clocks inside the samples of a session, as its cycles say.
trace trace_of(const result::session_result& s) {
    trace made;
    made.launch_ns = s.samples;
    for (std::size_t i = 0; i < s.samples.size(); ++i) made.clock_mhz.push_back(s.cycles[i] / s.samples[i] * 1e3);
    made.before_mhz = std::get<double>(s.state.at("reference_clock_mhz"));
    made.after_mhz = std::get<double>(s.state.at("marker_clock_mhz"));
    return made;
}

} // namespace

TEST_CASE("recorded: samples of an H200 in bursts, clock by clock, are clean again and give the same value") {
    replay device;
    std::size_t sessions = 0;
    for (const result::result& r : reference_baseline().results) {
        for (const result::session_result& s : r.sessions) {
            if (s.clean.empty() || r.what.unit != "ns") continue;
            CAPTURE(r.what.id);
            device.become(trace_of(s));
            engine<replay> fresh(device, device.clock()); // a session is a process
            const result::result again = fresh.measure(benchmark_of(r.what.id))[0];
            REQUIRE(again.status == result::result_status::ok);
            CHECK_FALSE(throttled(again));
            CHECK(clean_samples(again) == again.sessions[0].samples.size());
            const auto launches = std::get<std::int64_t>(again.sessions[0].state.at("launches_per_sample"));
            const double sample_ns = stats::median(again.sessions[0].samples) * static_cast<double>(launches);
            CHECK(clean_samples(again) >= needed_clean(sample_ns, {}));
            // Fewer samples than were recorded, of copies that wander.
            const double near = r.what.id == "probe/h2d_pinned" ? 0.01 : 0.003;
            CHECK(stats::median(again.sessions[0].samples) == doctest::Approx(stats::median(s.samples)).epsilon(near));
            ++sessions;
        }
    }
    CHECK(sessions >= 85);
}

TEST_CASE("recorded: a burst that ends below the reference clock is shortened and stays clean") {
    replay device;
    std::size_t fell = 0;
    for (const auto& row : rows_of("h200_burst.json")) {
        if (row["regime"] != "burst") continue;
        const double reference = row["reference_clock_mhz"], lowest = row["lowest_marker_clock_mhz"];
        const double sample_ns = row["median_us"].get<double>() * row["launches_per_sample"].get<double>() * 1e3;
        CAPTURE(row["workload"].get<std::string>());
        // The medians held; the clock was only read before and after.
        device.become({{row["median_us"].get<double>() * 1e3}, {reference}, reference, lowest});
        engine<replay> fresh(device, device.clock());
        const result::result found = fresh.measure(benchmark_of("recorded"))[0];
        CHECK_FALSE(throttled(found));
        CHECK(clean_samples(found) >= 30);
        const bool at_the_cap = lowest < 0.99 * reference; // GEMM 4096^3 on all three boards, and nothing else
        CHECK(at_the_cap == (row["workload"] == "gemm4096"));
        CHECK((device.last_burst() < device.longest_burst()) == at_the_cap);
        if (!at_the_cap) CHECK(static_cast<double>(device.last_burst()) * sample_ns <= 4.5 * 8e6);
        fell += at_the_cap ? 1 : 0;
    }
    CHECK(fell == 18);
}

TEST_CASE("recorded: work that follows work at the power cap is marked, whatever its own time is") {
    replay device;
    std::size_t hot = 0;
    for (const auto& row : rows_of("h200_noise.json")) {
        if (row["state"] != "hot") continue;
        CAPTURE(row["workload"].get<std::string>());
        const double mhz = row["sm_clock_mhz"];
        engine<replay> session(device, device.clock());
        device.become({{50e3}, {1980}, 1980, 1980}); // something light came first and showed the clock of a cool device
        CHECK_FALSE(throttled(session.measure(benchmark_of("cool"))[0]));
        device.become({{row["median_us"].get<double>() * 1e3}, {mhz}, mhz, mhz});
        options how;
        how.time.total = std::chrono::seconds(5);
        const result::result found = session.measure(benchmark_of("hot"), how)[0];
        CHECK(found.status == result::result_status::ok);
        CHECK(throttled(found));
        CHECK(clean_samples(found) == 0);
        CHECK_FALSE(found.sessions[0].samples.empty());
        ++hot;
    }
    CHECK(hot == 100);
}

TEST_CASE("recorded: what the standard suite took on an H200 is predicted within 10 % by the model alone") {
    const result::baseline measured = reference_baseline();
    const predictor fresh;
    double took = 0, predicted = 0;
    std::set<std::string> seen;
    for (const result::result& r : measured.results) {
        if (!seen.insert(r.what.id).second) continue;
        std::vector<double> seconds;
        for (const auto& s : r.sessions) seconds.push_back(std::get<double>(s.state.at("total_seconds")));
        took += stats::median(std::move(seconds));
        predicted += fresh.seconds(r.what, budget{std::chrono::seconds(1)});
    }
    CAPTURE(took);
    CHECK(predicted == doctest::Approx(took).epsilon(0.10));
}
