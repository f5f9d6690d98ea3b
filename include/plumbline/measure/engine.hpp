// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_MEASURE_ENGINE_HPP
#define PLUMBLINE_MEASURE_ENGINE_HPP

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/measure/burst.hpp"
#include "plumbline/measure/plan.hpp"
#include "plumbline/measure/settings.hpp"
#include "plumbline/measure/stop_rule.hpp"
#include "plumbline/measure/tally.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace measure {

/// Measures benchmarks one after the other on one backend in one process. Keeps what one benchmark leaves for the
/// next: the reference clock, and how long the device must rest, so that preparing the next one counts as resting.
/// Not thread-safe; the backend must outlive it.
template <backend B>
class engine {
public:
    explicit engine(B& on, host_clock now = steady_now) : on_(&on), now_(std::move(now)), started_(now_()) {}

    /// One result per metric, each with exactly one session_result. Never throws for a failing benchmark: its result
    /// says failed, or skipped for unsupported_error, and why; samples taken before it failed are kept.
    [[nodiscard]] std::vector<result::result> measure(const benchmark<B>& what, const options& how = {}) {
        const host_span whole(now_);
        result::result outcome = blank(what, how);
        std::vector<result::result> outcomes;
        try {
            if (how.call.before) how.call.before(outcome.what);
            if (what.prepare) {
                run_kernel(what, how, outcome);
                outcomes.push_back(outcome);
            } else if (what.measure) {
                outcomes = run_procedure(what, how, outcome);
            } else {
                throw error("the benchmark has neither prepare nor measure: give it one of them");
            }
            for (result::result& each : outcomes) {
                each.sessions.front().state["total_seconds"] = whole.seconds();
                if (how.call.after) how.call.after(each.what, each.sessions.front());
            }
            return outcomes;
        } catch (const unsupported_error& e) {
            give_up(outcome, result::result_status::skipped, e.what());
        } catch (const std::exception& e) {
            give_up(outcome, result::result_status::failed, e.what());
        } catch (...) {
            give_up(outcome, result::result_status::failed, "it threw something that is not a std::exception");
        }
        // What a failed benchmark has done to the device is not known, so the next one waits for the longest rest.
        rest_.worked(now_(), how.rules.recovery);
        outcome.sessions.front().state["total_seconds"] = whole.seconds();
        return {outcome};
    }

    /// Judges results again by the reference clock known by now: call it with all results of the session at its end,
    /// because the reference may have risen after a benchmark was measured. Then all samples of that benchmark are
    /// marked. Only results that carry marks (burst regime on a device with a clock) are touched.
    void settle(std::vector<result::result>& results, const settings& rules = {}) const {
        for (result::result& each : results) {
            for (result::session_result& s : each.sessions) {
                const auto marker = s.state.find("marker_clock_mhz");
                if (s.clean.empty() || marker == s.state.end()) continue;
                if (reference_.reached(std::get<double>(marker->second), rules.uncapped_clock)) continue;
                s.clean.assign(s.samples.size(), false);
                count_clean(s, rules);
            }
        }
    }

    /// Session readings for result::session::state.
    [[nodiscard]] scalar_map state() const {
        scalar_map readings{{"timed_seconds", timed_ns_ * 1e-9},
                            {"idle_seconds", static_cast<double>(idle_.count()) * 1e-9},
                            {"engine_seconds", static_cast<double>((now_() - started_).count()) * 1e-9}};
        if (reference_.mhz() > 0) readings["reference_clock_mhz"] = reference_.mhz();
        return readings;
    }

private:
    [[nodiscard]] result::result blank(const benchmark<B>& what, const options& how) const {
        result::result outcome;
        outcome.what = what.what;
        outcome.backend = std::string(std::string_view(on_->name()));
        const bool host_bound =
            what.what.kind == benchmark_class::host || what.what.kind == benchmark_class::dataloader;
        if (host_bound && !how.host_model.empty()) outcome.what.params["host_model"] = how.host_model;
        outcome.sessions.resize(1);
        outcome.sessions.front().session = how.session;
        return outcome;
    }

    static void give_up(result::result& outcome, result::result_status status, const std::string& reason) {
        outcome.status = status;
        outcome.reason = reason.empty() ? "it threw an error without a message" : reason;
        outcome.verified = false;
    }

    void idle(nanoseconds pause) {
        if (pause.count() <= 0) return;
        on_->idle(pause);
        idle_ += pause;
    }

    /// One play, checked: as many samples as asked for, each with a usable time.
    [[nodiscard]] std::vector<sample> play(typename B::recording& tape, std::size_t count) {
        std::vector<sample> taken = on_->play(tape, count);
        if (taken.size() != count) {
            throw error("the backend returned " + std::to_string(taken.size()) + " samples, " + std::to_string(count) +
                        " were asked for");
        }
        for (const sample& each : taken) {
            if (!(each.elapsed_ns > 0) || !std::isfinite(each.elapsed_ns)) {
                throw error("a sample took " + to_string(scalar(each.elapsed_ns)) +
                            " ns: the launch does no work that the timer can see, or the timer is broken");
            }
            timed_ns_ += each.elapsed_ns;
        }
        return taken;
    }

    /// The device's clock with nothing but a short kernel running, where the backend can tell: it distinguishes a
    /// device at its power cap from work that runs at a lower clock by its nature.
    [[nodiscard]] std::optional<double> read_marker() {
        if constexpr (requires(B & b) {
                          { b.read_clock_mhz() } -> std::convertible_to<double>;
                      }) {
            if (!on_->has_clock()) return std::nullopt;
            const double mhz = on_->read_clock_mhz();
            reference_.add(mhz);
            return mhz;
        }
        return std::nullopt;
    }

    /// Reads the device's clock until there is a reference. A clock that never shows one is broken, and without it
    /// nothing would tell throttled samples from good ones.
    void find_reference() {
        for (std::size_t readings = 0; reference_.mhz() <= 0 && read_marker();) {
            if (++readings < most_first_readings) continue;
            throw error("the device's clock was read " + std::to_string(readings) +
                        " times and showed no speed above 0 MHz three times: nothing can be said about its samples; "
                        "look for a driver or a virtual device that hides the clock");
        }
    }

    [[nodiscard]] bool uncapped(const std::optional<double>& marker, const settings& rules) const {
        return !marker || reference_.reached(*marker, rules.uncapped_clock);
    }

    void run_kernel(const benchmark<B>& what, const options& how, result::result& outcome) {
        result::session_result& session = outcome.sessions.front();
        const host_span preparing(now_);
        prepared_kernel ready = what.prepare(*on_);
        if (ready.slots == 0) throw error("the kernel says it has 0 buffer sets: at least 1 is needed");
        touch(ready, how.rules, session);
        outcome.verified = verify(ready, how, session);
        const bool sustained = what.how == regime::sustained;
        planned_tape plan = record(ready, what, how, sustained);
        rest_.worked(now_(), how.rules.settle);
        session.state["prepare_seconds"] = preparing.seconds();

        tally taken(plan.launches, on_->timer_resolution_ns());
        const host_span waiting(now_);
        if (!sustained && on_->has_clock()) idle(rest_.left(now_()));
        session.state["rest_seconds"] = waiting.seconds();
        const host_span measuring(now_);
        try {
            if (sustained)
                sample_sustained(plan, how, taken, session);
            else
                sample_bursts(plan, how, taken);
        } catch (...) {
            taken.write(session, reference_, how.rules);
            throw;
        }
        session.state["measure_seconds"] = measuring.seconds();
        taken.write(session, reference_, how.rules);
    }

    /// Runs every buffer set once, so that nothing is loaded, compiled or paged in inside a held stream, and asks
    /// what really ran. Where launches are long and sets are many (the CPU) the last sets stay untouched: their
    /// memory was written when they were filled.
    void touch(const prepared_kernel& ready, const settings& rules, result::session_result& session) {
        ready.run(0);
        on_->synchronize();
        if (ready.evidence) session.ran = ready.evidence();
        const nanoseconds begin = now_();
        for (std::size_t slot = 1; slot < ready.slots && now_() - begin < rules.touch; ++slot) ready.run(slot);
        on_->synchronize();
    }

    /// Whether the output was shown to be right: by the hash of an output of the same implementation that was
    /// verified before, else by the kernel's own comparison with a float64 reference, which throws if it is wrong.
    [[nodiscard]] static bool verify(const prepared_kernel& ready, const options& how,
                                     result::session_result& session) {
        std::string hash = ready.output_hash ? ready.output_hash() : std::string{};
        const bool known = how.known && !hash.empty() && hash == how.known->hash &&
                           session.ran.implementation == how.known->implementation;
        if (known)
            session.state["verified_by"] = std::string("hash");
        else if (ready.verify) {
            ready.verify();
            if (ready.verification_facts) session.ran.parts.merge(ready.verification_facts());
            session.state["verified_by"] = std::string("reference");
        }
        if (!hash.empty()) session.state["output_hash"] = std::move(hash);
        return known || static_cast<bool>(ready.verify);
    }

    struct planned_tape {
        typename B::recording tape;
        std::size_t launches;
        double sample_ns;
        std::size_t most; ///< samples that one play may queue
    };

    /// Finds the launches of a sample by trying, starting from one or from what an earlier session used.
    [[nodiscard]] planned_tape record(const prepared_kernel& ready, const benchmark<B>& what, const options& how,
                                      bool sustained) {
        const settings& rules = how.rules;
        const double resolution = on_->timer_resolution_ns();
        // About 200 samples over a sustained run are plenty and keep the file small.
        const double shortest = sustained ? static_cast<double>(rules.sustained.count()) / 200 : 0;
        const double target = std::max(shortest_sample_ns(resolution, rules), shortest);
        const std::size_t limit = std::max<std::size_t>(1, what.graph ? rules.max_launches : rules.max_queued / 2);
        recording_request request{1, what.cold ? ready.slots : 1, what.graph};
        if (how.launches) request.launches = std::clamp<std::size_t>(*how.launches, 1, limit);
        double launch_ns = 0;
        const auto record_one = [&](double sample_ns) {
            if (ready.planned) ready.planned(request.launches, sample_ns);
            return on_->record(ready.run, request);
        };
        typename B::recording tape = record_one(0);
        for (int round = 0; round < 8; ++round) {
            // The faster of two: the first may still be cold, and too few launches are found out in the next round.
            const std::vector<sample> tried = play(tape, 2);
            const double fastest = std::min(tried[0].elapsed_ns, tried[1].elapsed_ns);
            launch_ns = fastest / static_cast<double>(request.launches);
            if (how.launches && round == 0 && fastest >= 0.5 * target && fastest <= 8 * target) break;
            const std::size_t wanted = launches_for(launch_ns, target, request.slots, limit);
            if (wanted <= request.launches && request.launches <= wanted * 2) break;
            request.launches = wanted;
            tape = record_one(0);
        }
        double sample_ns = launch_ns * static_cast<double>(request.launches);
        if (ready.planned) {
            // Whoever adds work to the sample wants to know its length well.
            std::vector<double> times;
            for (const sample& each : play(tape, 7)) times.push_back(each.elapsed_ns);
            sample_ns = stats::median(times);
            tape = record_one(sample_ns);
        }
        const std::size_t most = what.graph ? 1024 : std::max<std::size_t>(1, rules.max_queued / request.launches);
        return {std::move(tape), request.launches, sample_ns, most};
    }

    /// Bursts with rests between them until the stop rule is met or the budget is spent; at least one burst.
    void sample_bursts(planned_tape& plan, const options& how, tally& taken) {
        const settings& rules = how.rules;
        const std::size_t lead_in = on_->has_clock() ? std::min(rules.lead_in, plan.most - 1) : 0;
        burst_control control(rules, plan.sample_ns, on_->has_clock(), plan.most - lead_in);
        find_reference();
        const std::size_t least_bursts = on_->has_clock() ? rules.min_bursts : 1;
        const nanoseconds start = now_();
        for (std::size_t bursts = 1;; ++bursts) {
            const std::size_t room = rules.max_samples - std::min(rules.max_samples, taken.size());
            const std::size_t count = std::clamp<std::size_t>(room, 1, control.samples());
            const bool capped = play_burst(plan, lead_in, count, rules, control, taken);
            rest_.worked(now_(), capped ? rules.recovery : rules.pause);
            if (bursts >= least_bursts && precise_enough(taken.clean_times(rules), rules, plan.sample_ns)) return;
            const bool out_of_time = now_() - start + control.pause() >= how.time.total;
            if (out_of_time || taken.size() >= rules.max_samples) {
                taken.flag(result::flag::budget_exhausted);
                return;
            }
            idle(control.pause());
        }
    }

    /// One burst between two readings of the device's clock. Returns whether the device was at its cap.
    bool play_burst(planned_tape& plan, std::size_t lead_in, std::size_t count, const settings& rules,
                    burst_control& control, tally& taken) {
        burst_clocks seen;
        std::optional<double> before = read_marker();
        if (!uncapped(before, rules)) {
            idle(rules.recovery); // once: a device that stays at its cap is measured there, and marked
            before = read_marker();
        }
        seen.uncapped_before = uncapped(before, rules);
        std::vector<sample> burst = play(plan.tape, lead_in + count);
        seen.uncapped_after = uncapped(read_marker(), rules);
        burst.erase(burst.begin(), burst.begin() + static_cast<std::ptrdiff_t>(lead_in));
        taken.add(burst, seen.uncapped_before);
        if (before && seen.uncapped_before) taken.marker(*before);
        const std::vector<bool> all = taken.clean(rules);
        seen.clean.assign(all.end() - static_cast<std::ptrdiff_t>(count), all.end());
        return control.observe(seen);
    }

    /// Back to back for `ramp` (not sampled: the clock is still falling to what the cap leaves) and `sustained`.
    /// Telemetry is read between two plays, four times a second.
    void sample_sustained(planned_tape& plan, const options& how, tally& taken, result::session_result& session) {
        const settings& rules = how.rules;
        const double tenth_of_second = 1e8;
        const auto count =
            static_cast<std::size_t>(std::clamp(tenth_of_second / plan.sample_ns, 1.0, static_cast<double>(plan.most)));
        series telemetry;
        std::size_t ramp_samples = 0;
        const nanoseconds start = now_();
        nanoseconds last_read = start;
        bool sampled = false;
        while (!sampled || now_() - start < rules.ramp + rules.sustained) {
            const bool ramping = now_() - start < rules.ramp;
            const std::vector<sample> part = play(plan.tape, count);
            if (ramping)
                ramp_samples += part.size();
            else {
                taken.add(part);
                sampled = true;
            }
            if (how.call.read && !ramping && now_() - last_read >= std::chrono::milliseconds(250)) {
                telemetry.add(how.call.read());
                last_read = now_();
            }
        }
        rest_.worked(now_(), rules.recovery);
        taken.at_the_cap();
        session.state["ramp_samples"] = static_cast<std::int64_t>(ramp_samples);
        telemetry.write(session.state);
    }

    [[nodiscard]] std::vector<result::result> run_procedure(const benchmark<B>& what, const options& how,
                                                            const result::result& prototype) {
        const benchmark_class kind = what.what.kind;
        const bool heavy = kind == benchmark_class::sustained || kind == benchmark_class::training_step;
        const bool on_host = kind == benchmark_class::host || kind == benchmark_class::dataloader;
        if (on_->has_clock() && !heavy && !on_host) idle(rest_.left(now_()));
        const procedure_result found = what.measure(*on_, how.time);
        rest_.worked(now_(), heavy || found.hot ? how.rules.recovery : how.rules.pause);
        if (found.metrics.empty()) throw error("the procedure returned no metric");
        std::vector<result::result> outcomes;
        for (const metric& each : found.metrics) {
            for (const sample& s : each.raw) timed_ns_ += s.elapsed_ns;
            outcomes.push_back(metric_result(each, found, prototype, on_->timer_resolution_ns(), how.rules));
        }
        return outcomes;
    }

    static constexpr std::size_t most_first_readings = 64; ///< three good ones make a reference

    B* on_;
    host_clock now_;
    nanoseconds started_;
    reference_clock reference_;
    resting rest_;
    double timed_ns_ = 0;
    nanoseconds idle_{0};
};

} // namespace measure

PLUMBLINE_NAMESPACE_END

#endif
