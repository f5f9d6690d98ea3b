// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TESTS_MEASURE_FAKE_BACKEND_HPP
#define PLUMBLINE_TESTS_MEASURE_FAKE_BACKEND_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/measure/engine.hpp"
#include "plumbline/workload/random.hpp"

/// A device in virtual time whose clock, noise and failures are scripted.
namespace fake {

using plumbline::measure::nanoseconds;
using std::chrono::milliseconds;

/// What the device does.
struct script {
    double resolution_ns = 500;
    bool clock = true;         ///< whether it has a clock to read
    double full_mhz = 1980;    ///< clock while it is cool
    double capped_mhz = 1500;  ///< clock at the power cap
    double cap_after_ms = 1e9; ///< device work without a rest until the cap is reached
    double cool_after_ms = 30; ///< rest after which the work so far is forgotten, as long as the cap was not reached
    double recover_after_ms = 300; ///< rest after which it leaves the cap
    bool starts_capped = false;
    double noise = 0;                          ///< relative standard deviation of a sample
    std::optional<double> enqueue_ns{};        ///< host time per launch
    std::size_t fail_at_play = 0;              ///< 1-based; 0 never
    std::string failure = "the device failed"; ///< with which message
    milliseconds failure_takes{0};             ///< for a hang: how long until the deadline ends it
    std::vector<double> wrong_clocks{};        ///< first readings of the device's clock, whatever it is
    double work_clock = 1;                     ///< clock inside a sample over that of the idle device
    std::size_t samples_lost = 0;              ///< returned too few by every play
};

class backend {
public:
    struct recording {
        plumbline::measure::launch run;
        plumbline::measure::recording_request how;
        std::vector<double> graph_ns; ///< captured samples, one for each place the rotation can start at
        std::size_t at = 0;           ///< launches since it was recorded
    };

    explicit backend(script what = {}) : plays_(std::move(what)), capped_(plays_.starts_capped) {}

    std::string name() const { return "fake"; }
    double timer_resolution_ns() const { return plays_.resolution_ns; }
    bool has_clock() const { return plays_.clock; }

    recording record(const plumbline::measure::launch& run, const plumbline::measure::recording_request& how) {
        note("record " + std::to_string(how.launches));
        recording tape{run, how, {}, 0};
        if (!how.graph) return tape;
        // One graph for each sample until the rotation is where it started.
        std::size_t at = 0;
        do {
            tape.graph_ns.push_back(launch_all(tape, at));
            at = (at + how.launches) % how.slots;
        } while (at != 0);
        return tape;
    }

    std::vector<plumbline::measure::sample> play(recording& tape, std::size_t samples) {
        note("play");
        ++played_;
        if (played_ == plays_.fail_at_play) {
            advance(plays_.failure_takes);
            throw plumbline::error(plays_.failure);
        }
        played_samples.push_back(samples);
        std::vector<plumbline::measure::sample> taken;
        for (std::size_t i = 0; i < samples; ++i) {
            const std::size_t at = tape.at % tape.how.slots;
            double work = 0;
            if (tape.how.graph)
                work = tape.graph_ns[tape.at / tape.how.launches % tape.graph_ns.size()];
            else
                work = launch_all(tape, at);
            tape.at += tape.how.launches;
            taken.push_back(time(work, tape.how.launches));
        }
        for (std::size_t i = 0; i < plays_.samples_lost && !taken.empty(); ++i) taken.pop_back();
        note("played");
        return taken;
    }

    void synchronize() {
        note("synchronize");
        advance(nanoseconds(static_cast<std::int64_t>(pending_ns_)));
        pending_ns_ = 0;
    }

    void idle(nanoseconds pause) {
        note("idle");
        idles.push_back(pause);
        advance(pause);
    }

    double read_clock_mhz() {
        advance(std::chrono::microseconds(25));
        const double mhz = current_mhz();
        return markers_ < plays_.wrong_clocks.size() ? plays_.wrong_clocks[markers_++] : mhz;
    }

    void spin(nanoseconds time) { enqueue(static_cast<double>(time.count())); }

    /// What kernels of tests do: device work at the full clock.
    void enqueue(double ns) { pending_ns_ += ns; }

    /// Host time that passes without device work.
    void advance(nanoseconds time) { now_ += time; }

    /// The device gets another character.
    void become(script what) { plays_ = std::move(what); }

    nanoseconds now() const { return now_; }
    plumbline::measure::host_clock clock() {
        return [this] { return now_; };
    }

    void note(const std::string& event) { log.push_back(event); }

    std::vector<std::string> log;            ///< everything that happened, in order
    std::vector<nanoseconds> idles;          ///< all pauses
    std::vector<std::size_t> played_samples; ///< of all plays

private:
    double launch_all(recording& tape, std::size_t first_slot) {
        const double before = std::exchange(pending_ns_, 0);
        for (std::size_t i = 0; i < tape.how.launches; ++i) tape.run((first_slot + i) % tape.how.slots);
        return std::exchange(pending_ns_, before);
    }

    plumbline::measure::sample time(double work_ns, std::size_t launches) {
        const double mhz = current_mhz();
        const double noise = plays_.noise * static_cast<double>(plumbline::workload::random::normal(11, ++noise_at_));
        const double elapsed = work_ns * plays_.full_mhz / mhz * (1 + noise);
        advance(nanoseconds(static_cast<std::int64_t>(elapsed)));
        last_work_ = now_;
        heat_ms_ += elapsed * 1e-6;
        if (heat_ms_ > plays_.cap_after_ms) capped_ = true;
        plumbline::measure::sample taken;
        taken.elapsed_ns = elapsed;
        if (plays_.clock) taken.clock_mhz = mhz * plays_.work_clock;
        if (plays_.enqueue_ns) taken.enqueue_ns = *plays_.enqueue_ns * static_cast<double>(launches);
        return taken;
    }

    /// Rest first, then what the clock is.
    double current_mhz() {
        const double rested_ms = static_cast<double>((now_ - last_work_).count()) * 1e-6;
        if (rested_ms >= plays_.recover_after_ms) capped_ = false;
        if (rested_ms >= plays_.cool_after_ms && !capped_) heat_ms_ = 0;
        return capped_ ? plays_.capped_mhz : plays_.full_mhz;
    }

    script plays_;
    nanoseconds now_{std::chrono::seconds(1000)};
    nanoseconds last_work_{std::chrono::seconds(1000)};
    double pending_ns_ = 0;
    double heat_ms_ = 0;
    bool capped_;
    std::uint64_t noise_at_ = 0;
    std::size_t played_ = 0;
    std::size_t markers_ = 0;
};

static_assert(plumbline::measure::backend<backend>);

/// What a benchmark of a test is made of.
struct character {
    std::string id = "test/kernel";
    double launch_ns = 50'000;
    std::size_t slots = 1;
    milliseconds preparation{0};
    std::function<void()> verify{};
    std::string implementation = "impl1";
    std::string hash{};
    std::vector<std::size_t>* slots_run = nullptr; ///< gets the slot of every launch
};

inline plumbline::measure::benchmark<backend> make(const character& who) {
    plumbline::measure::benchmark<backend> made;
    made.what.id = who.id;
    made.what.family = "test";
    made.prepare = [who](backend& on) {
        on.note("prepare");
        on.advance(who.preparation);
        plumbline::measure::prepared_kernel ready;
        ready.slots = who.slots;
        ready.run = [who, b = &on](std::size_t slot) {
            if (who.slots_run != nullptr) who.slots_run->push_back(slot);
            b->enqueue(who.launch_ns);
        };
        if (who.verify) {
            ready.verify = [who, b = &on] {
                b->note("verify");
                who.verify();
            };
        }
        if (!who.hash.empty()) ready.output_hash = [who] { return who.hash; };
        ready.evidence = [who, b = &on] {
            b->note("evidence");
            return plumbline::result::evidence{who.implementation, {}, {}};
        };
        return ready;
    };
    return made;
}

} // namespace fake

#endif
