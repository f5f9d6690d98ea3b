// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RUN_CAMPAIGN_HPP
#define PLUMBLINE_RUN_CAMPAIGN_HPP

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "plumbline/json/file.hpp"
#include "plumbline/json/store.hpp"
#include "plumbline/run/child.hpp"
#include "plumbline/run/forecast.hpp"
#include "plumbline/run/merge.hpp"
#include "plumbline/run/progress.hpp"
#include "plumbline/run/schedule.hpp"
#include "plumbline/run/session.hpp"
#include "plumbline/workload/id.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace run {

/// One stack on one device in a run.
struct side {
    launcher how;
    std::filesystem::path target; ///< the file it will be; FILE.partial and FILE.tmp.* lie beside it
    std::vector<std::string> ids; ///< what to measure, in the suite's order
    result::baseline made;        ///< what has been measured: selection and labels at first, or a resumed run
    schedule todo;
    std::vector<result::result> earlier; ///< of the baseline this run is compared with: samples are made alike
    bool reference_known = false;        ///< `made` holds an environment that new sessions must agree with
};

/// How all sessions of a run are made.
struct campaign_settings {
    std::uint64_t seed = 0;
    std::optional<double> time_budget_s; ///< of the whole campaign
    bool paired = false;                 ///< sessions are marked with their round (interleaved analysis)
};

/// Runs the sessions of one or more sides. With several sides each round has one session of each, forwards and
/// backwards in turn (for two sides: A B B A), so that slow drifts and the order cancel.
class campaign {
public:
    campaign(std::vector<side>& sides, campaign_settings how, forecast& times, progress& out, interrupt_watch& signals)
        : sides_(sides), how_(how), times_(times), out_(out), signals_(signals), guessed_(!times.learnt()) {
        for (const side& each : sides_) {
            all_ += each.todo.runs_left();
            planned_ = std::max(planned_, each.todo.sessions_left());
            first_round_ = std::max(first_round_, each.made.sessions.size());
        }
    }

    /// Runs until every benchmark has its sessions. Returns the signal that ended it early, if one did; then
    /// FILE.partial holds what was measured. Throws plumbline::error with exit code 6 (or what the session said)
    /// when no session can be started at all.
    [[nodiscard]] std::optional<int> run() {
        for (std::size_t round = 0;; ++round) {
            bool any = false;
            for (std::size_t i = 0; i < sides_.size(); ++i) {
                side& each = sides_[round % 2 == 0 ? i : sides_.size() - 1 - i];
                if (each.todo.next().empty()) continue;
                any = true;
                if (out_of_time()) return give_up("the time budget was spent", result::result_status::skipped);
                const std::optional<int> signal = run_one(each, round);
                if (signal) return signal;
                if (stuck_ >= 2) return give_up(result::no_session, result::result_status::failed);
            }
            if (!any) break;
        }
        for (side& each : sides_) {
            order_results(each.made, each.ids);
            each.made.checks.erase(result::sessions_check); // of a run that is now complete
        }
        return std::nullopt;
    }

private:
    [[nodiscard]] double elapsed_s() const { return detail::seconds_since(begin_); }

    /// At least one benchmark is always run, whatever the budget: an empty result helps nobody.
    [[nodiscard]] bool out_of_time() const {
        return how_.time_budget_s && done_ > 0 && elapsed_s() + times_.start_s() >= *how_.time_budget_s;
    }

    /// Seconds until all is done; `running`: sessions that have started already.
    [[nodiscard]] double left_s(std::size_t running) const {
        double left = 0;
        for (const side& each : sides_) {
            for (const auto& [id, sessions] : each.todo.owed()) {
                left += static_cast<double>(sessions) * times_.seconds_of(id);
            }
            left += static_cast<double>(each.todo.sessions_left()) * times_.start_s();
        }
        return std::max(0.0, left - static_cast<double>(running) * times_.start_s());
    }

    [[nodiscard]] result::baseline plan_for(const side& of, std::size_t round) const {
        result::baseline plan;
        plan.created = utc_text(std::time(nullptr));
        plan.tool = tool_identity();
        plan.device.backend = of.how.backend;
        result::session session;
        session.started = utc_now();
        // The same order for all sides of a round: what order does to a benchmark it then does to each.
        session.seed = how_.seed + round;
        session.order = shuffled(of.todo.next(), session.seed);
        if (how_.paired) session.control = "round " + std::to_string(first_round_ + round + 1);
        plan.sessions.push_back(std::move(session));
        std::set<std::pair<std::string, std::string>> taken;
        const auto take = [&](const std::vector<result::result>& from, bool ours) {
            for (const result::result& each : from) {
                if (each.sessions.empty() || each.status != result::result_status::ok) continue;
                if (!taken.emplace(each.what.id, each.what.metric).second) continue;
                result::result known = each;
                known.verified = ours && each.verified; // every run verifies for itself once
                known.sessions.resize(1);
                known.sessions[0].session = 0;
                plan.results.push_back(std::move(known));
            }
        };
        take(of.made.results, true);
        for (const side& other : sides_) take(other.made.results, false);
        take(of.earlier, false);
        return plan;
    }

    [[nodiscard]] std::optional<int> run_one(side& on, std::size_t round) {
        const result::baseline plan = plan_for(on, round);
        launcher how = on.how;
        if (how_.time_budget_s) {
            const double all_left = *how_.time_budget_s - elapsed_s();
            how.finish_s = std::max(0.1, all_left - how.budget_s);
        }
        const auto began = std::chrono::steady_clock::now();
        auto saved = began;
        double beside_start = 0;
        const std::size_t done_before = done_;
        const session_end end = run_session(how, plan, on.target, signals_, [&](const session_event& event) {
            if (!event.note.empty()) return out_.note(event.note);
            if (event.begins) {
                out_.begin(event.id, round + 1, planned_, done_, all_, left_s(1));
                return;
            }
            ++done_;
            beside_start += event.seconds;
            times_.saw(event.id, event.seconds);
            on.todo.answered(event.id, event.skipped);
            // Each finished benchmark is on disk in the child's file; FILE.partial follows about once a second.
            if (std::chrono::steady_clock::now() - saved < std::chrono::seconds(1)) return;
            result::baseline so_far = on.made;
            merge(so_far, peek_session(on.target));
            json::save(json::partial_path(on.target), so_far);
            saved = std::chrono::steady_clock::now();
        });
        out_.clear();
        const double whole = detail::seconds_since(began);
        take(on, plan.sessions.front(), end, done_ > done_before);
        if (!end.failed && !end.interrupted) times_.started_in(whole - beside_start);
        say_what_is_left(end);
        json::save(json::partial_path(on.target), on.made);
        return end.interrupted;
    }

    /// The first session of a run of which nothing was known says how long the others will take.
    void say_what_is_left(const session_end& end) {
        if (end.interrupted || end.failed || !std::exchange(guessed_, false)) return;
        const double left = left_s(0);
        if (left > 0) out_.note("after the first session: about " + duration_text(left) + " left");
    }

    /// Adds what a session left to its side, and draws the consequences of a session that failed.
    void take(side& on, const result::session& planned, const session_end& end, bool progressed) {
        if (end.code && end.measured.results.empty() && on.made.results.empty()) throw error(end.reason, *end.code);
        if (!end.measured.sessions.empty()) {
            times_.learn(end.measured);
            check_same_environment(on, end.measured.environment);
            merge(on.made, end.measured);
        } else if (end.failed) {
            result::session lost = planned;
            lost.order.clear();
            lost.failed = true;
            lost.reason = end.reason;
            on.made.sessions.push_back(std::move(lost));
        }
        if (end.interrupted) return;
        if (end.failed) out_.warn("session " + std::to_string(on.made.sessions.size()) + " failed: " + end.reason);
        const bool given_up = !end.died_in.empty() && on.todo.died(end.died_in);
        if (given_up)
            mark(on, end.died_in, result::result_status::failed, "it ended its session process twice: " + end.reason);
        stuck_ = progressed || !end.died_in.empty() ? 0 : stuck_ + 1;
        if (stuck_ >= 2 && on.made.results.empty()) throw error(end.reason, exit_code::precondition);
    }

    /// Sessions of one file share one environment. Hardware that changes under a run ends it; anything else is a
    /// warning kept in the file, except that a resumed run must find what it left.
    void check_same_environment(side& on, const result::fingerprint& now) {
        const result::fingerprint& before = on.made.environment;
        if (before.attributes.empty() || now.attributes.empty()) return;
        const std::string identity = first_difference(before, now, result::attribute_class::identity);
        const std::string config = first_difference(before, now, result::attribute_class::config);
        const std::string what = identity.empty() ? config : identity;
        if (what.empty()) return;
        if (std::exchange(on.reference_known, false)) {
            throw error("the environment is not that of the sessions there are already (" + what +
                            "); measure into a file of its own, then compare",
                        identity.empty() ? exit_code::precondition : exit_code::incomparable);
        }
        if (!identity.empty())
            throw error("the hardware changed during the run: " + what + "; measure again on hardware that stays");
        on.made.checks["environment.stable"] = "warn: changed during the run: " + what;
        out_.warn("the environment changed during the run: " + what);
    }

    /// Gives a benchmark's results this status; where it has none, one that says what would have been measured.
    void mark(side& on, const std::string& id, result::result_status status, const std::string& why) const {
        bool found = false;
        for (result::result& each : on.made.results) {
            if (each.what.id != id) continue;
            each.status = status;
            each.reason = why;
            found = true;
        }
        if (found) return;
        result::result made;
        made.what = times_.describe(id);
        made.status = status;
        made.reason = why;
        made.backend = on.how.backend;
        on.made.results.push_back(std::move(made));
    }

    /// Ends early: benchmarks without any answer become results with the reason, the others keep what they have.
    [[nodiscard]] std::optional<int> give_up(const std::string& why, result::result_status status) {
        out_.warn("ended early: " + why);
        for (side& each : sides_) {
            const auto measured = sessions_by_id(each.made);
            const bool no_time = status == result::result_status::skipped;
            for (const std::string& id : each.ids) {
                if (measured.find(id) == measured.end()) mark(each, id, status, no_time ? result::not_measured : why);
            }
            order_results(each.made, each.ids);
            each.made.checks[result::sessions_check] = "warn: " + why + ": " + what_is_owed(each);
        }
        return std::nullopt;
    }

    /// "3 of 12 benchmarks have fewer sessions than the 5 asked for".
    [[nodiscard]] std::string what_is_owed(const side& of) const {
        std::size_t owed = 0;
        for (const auto& entry : of.todo.owed()) owed += entry.second > 0 ? 1 : 0;
        return std::to_string(owed) + " of " + std::to_string(of.ids.size()) + " benchmarks have fewer than the " +
               std::to_string(planned_) + (planned_ == 1 ? " session" : " sessions") + " asked for";
    }

    std::vector<side>& sides_;
    campaign_settings how_;
    forecast& times_;
    progress& out_;
    interrupt_watch& signals_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    std::size_t all_ = 0;
    std::size_t done_ = 0;
    std::size_t planned_ = 0;
    std::size_t first_round_ = 0; ///< rounds there are already in a run that is resumed
    std::size_t stuck_ = 0;
    bool guessed_; ///< nothing measured stands behind the prediction yet
};

/// Removes what a run leaves beside `target` while it goes on, or has left there when it was killed; with
/// `keep_partial` not FILE.partial itself.
inline void remove_leftovers(const std::filesystem::path& target, bool keep_partial = false) noexcept {
    const std::string name = target.filename().string();
    const std::filesystem::path folder = target.has_parent_path() ? target.parent_path() : ".";
    std::error_code ignored;
    std::vector<std::filesystem::path> found;
    for (std::filesystem::directory_iterator at(folder, ignored), end; !ignored && at != end; at.increment(ignored)) {
        const std::string each = at->path().filename().string();
        for (const char* ending : {".partial", ".tmp.plan", ".tmp.session"}) {
            const bool half_written = json::detail::is_temporary_name(each, name + ending);
            const bool whole = each == name + ending && !(keep_partial && each == name + ".partial");
            if (whole || half_written) found.push_back(at->path());
        }
        // The copy that --replace keeps, half written.
        const bool kept = each.rfind(target.stem().string() + ".replaced-", 0) == 0;
        if (kept && each.find(".json.tmp.") != std::string::npos) found.push_back(at->path());
    }
    for (const std::filesystem::path& each : found) std::filesystem::remove(each, ignored);
}

} // namespace run

PLUMBLINE_NAMESPACE_END

#endif
