// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_EXPLAIN_HPP
#define PLUMBLINE_COMPARE_EXPLAIN_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "plumbline/compare/comparison.hpp"
#include "plumbline/compare/conclusion.hpp"
#include "plumbline/compare/knowledge.hpp"
#include "plumbline/compare/policy.hpp"
#include "plumbline/compare/suspect.hpp"
#include "plumbline/compare/symptom.hpp"
#include "plumbline/result/baseline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare {

namespace detail {

/// How much a mechanism says about which cause it was. 0: it only says that the change took effect, and proves
/// nothing; 1: other causes leave the same trace.
[[nodiscard]] constexpr int telling(mechanism what) noexcept {
    switch (what) {
    case mechanism::library_replaced:
    case mechanism::processors_fewer:
    case mechanism::code_compiled_anew:
        return 0;
    case mechanism::canary_slower:
    case mechanism::memory_slower:
    case mechanism::cpu_contention:
    case mechanism::memory_pressure:
    case mechanism::memory_held:
    case mechanism::host_slower:
        return 1;
    case mechanism::implementation_changed:
    case mechanism::cannot_run:
    case mechanism::out_of_memory:
    case mechanism::precision_changed:
    case mechanism::quota_hit:
    case mechanism::memory_faults:
    case mechanism::pages_remote:
    case mechanism::link_lower:
        return 2;
    case mechanism::workspace_smaller:
    case mechanism::fallback_chosen:
    case mechanism::threads_changed:
    case mechanism::clock_lower:
    case mechanism::decode_slower:
    case mechanism::read_slower:
        return 3;
    case mechanism::instruction_set_lower:
    case mechanism::tensor_cores_lost:
    case mechanism::launch_synchronous:
    case mechanism::foreign_work:
        return 4;
    }
    return 0;
}

/// What a suspect can account for in one symptom.
struct account {
    const symptom* of = nullptr;
    double share = 0; ///< of the slowdown, ln units
    int telling = 0;  ///< of the best mechanism that was seen there; 0 for none
};

/// A suspect weighed against the symptoms.
struct weighed {
    suspect who;
    std::vector<account> accounts;
    std::set<mechanism> seen; ///< on the machine and in the symptoms it accounts for
    std::string refuted;      ///< why it is out of the question
    double explained = 0;     ///< sum of the shares, a failure counting as a factor of two
    double precision = 1;     ///< share of what it touches that really became slower
    strength how_sure = strength::associated;

    [[nodiscard]] double score() const { return explained * precision * who.known->weight; }
};

[[nodiscard]] inline bool can_show(const knowledge& known, mechanism what) {
    return std::find(known.shows.begin(), known.shows.end(), what) != known.shows.end();
}

/// The part of a symptom's slowdown that a suspect may claim: the clock's part for what acts through the clock, the
/// canary's part for what slows canaries, what is left of both for what does not.
[[nodiscard]] inline double claimable(const symptom& s, const knowledge& known) {
    if (known.clock && s.clock) return *s.clock;
    const double of_clock = can_show(known, mechanism::clock_lower) ? 0 : s.clock.value_or(0);
    switch (known.canary) {
    case canary_view::slowed:
        return s.canary_speaks ? std::max(0.0, s.machine - of_clock) : s.total - of_clock;
    case canary_view::either:
        return s.total - of_clock;
    case canary_view::spared:
        return s.own();
    }
    return s.total;
}

[[nodiscard]] inline bool touches(const knowledge& known, const std::string& id, bool on_cpu) {
    const bool named = matches_any(known.touches, id) || (on_cpu && matches_any(known.touches_on_cpu, id));
    return named && !matches_any(known.spares, id);
}

/// Whether a suspect accounts for a result that failed or was disturbed: by the trace it left, or, where a wrong result
/// or a crash left none, because it can keep benchmarks from running.
[[nodiscard]] inline bool explains_failure(const symptom& s, const knowledge& known) {
    if (!s.failed) return false;
    for (const mechanism m : {mechanism::cannot_run, mechanism::out_of_memory, mechanism::foreign_work}) {
        if (s.seen.count(m) != 0) return can_show(known, m);
    }
    return can_show(known, mechanism::cannot_run);
}

/// Whether a suspect slows what runs and has no say in what is chosen to run.
[[nodiscard]] inline bool slows_any_choice(const knowledge& known) {
    using m = mechanism;
    const auto any = [&](std::initializer_list<mechanism> of) {
        return std::any_of(of.begin(), of.end(), [&](mechanism each) { return can_show(known, each); });
    };
    return any({m::clock_lower, m::canary_slower, m::memory_slower, m::host_slower, m::foreign_work}) &&
           !any({m::implementation_changed, m::workspace_smaller, m::fallback_chosen, m::tensor_cores_lost,
                 m::instruction_set_lower});
}

/// How telling the mechanisms are that a suspect leaves and that were seen in a symptom or on the machine.
[[nodiscard]] inline int best_sign(const symptom& s, const knowledge& known, const signs_seen& machine,
                                   std::set<mechanism>& seen) {
    int best = 0;
    for (const mechanism m : known.shows) {
        const bool here = s.seen.count(m) != 0;
        if (!here && machine.count(m) == 0) continue;
        seen.insert(m);
        // A slower canary speaks of device work only, and only for what cannot happen without it.
        const bool about_device = m == mechanism::canary_slower || m == mechanism::memory_slower;
        if (about_device && (!s.canary_speaks || known.canary != canary_view::slowed)) continue;
        // A reading of the machine says less than a trace in the result itself.
        best = std::max(best, here ? telling(m) : std::min(telling(m), 2));
    }
    return best;
}

/// Weighs one suspect: what it accounts for, what was seen of it, and what speaks against it.
[[nodiscard]] inline weighed weigh(suspect who, const std::vector<symptom>& symptoms, const comparison& from,
                                   const signs_seen& machine) {
    weighed made;
    const knowledge& known = *who.known;
    const bool on_cpu = symptoms.front().base->backend == "cpu";
    const std::optional<double> size = known.in_proportion ? size_of(who.changes) : std::nullopt;
    const double most = std::min(known.most > 0 ? std::log(known.most) : HUGE_VAL, size.value_or(HUGE_VAL));
    bool plausible = false;
    for (const symptom& s : symptoms) {
        if (!touches(known, s.of->id, on_cpu) || (s.choice_alone && slows_any_choice(known))) continue;
        account claim{&s, claimable(s, known)};
        const double worth = std::max(0.15 * s.total, std::log1p(s.of->used.margin) / 2);
        const bool failure = explains_failure(s, known);
        if (!failure && (s.failed || claim.share < worth)) continue;
        const bool fits = claim.share <= most * 1.5;
        const int best = best_sign(s, known, machine, made.seen);
        if (fits) claim.telling = best;
        plausible = plausible || fits;
        made.explained += failure ? std::log(2.0) : fits ? claim.share : claim.share / 4;
        made.accounts.push_back(claim);
    }
    if (!plausible) made.refuted = "the slowdown is larger than such a change makes";
    std::size_t touched = 0, moved = 0;
    for (const finding& f : from.findings) {
        if (!f.effect || !touches(known, f.id, on_cpu)) continue;
        ++touched;
        moved += slowed(f);
        if (!matches_any(known.always, f.id)) continue;
        if (f.outcome == verdict::equivalent)
            made.refuted = f.id + ", which it would have slowed down, runs as before";
        else if (size && f.effect->high95 < *size / 4)
            made.refuted = f.id + " is " + percent_text(f.effect->hl) + ", and such a change would do far more";
    }
    if (touched > 0) made.precision = std::max(0.02, static_cast<double>(moved) / static_cast<double>(touched));
    made.who = std::move(who);
    return made;
}

/// Whether another suspect is as good an explanation of one symptom: it claims the same part of the slowdown and shows
/// a mechanism that is as telling. A state that has a cause itself is no rival of a setting that leaves its trace.
[[nodiscard]] inline bool rivals(const weighed& other, const account& mine, const weighed& one) {
    if (other.who.known->symptom && !one.who.known->symptom) {
        const auto& shows = other.who.known->shows;
        if (std::any_of(shows.begin(), shows.end(), [&](mechanism m) { return one.seen.count(m) != 0; })) return false;
    }
    return std::any_of(other.accounts.begin(), other.accounts.end(), [&](const account& theirs) {
        if (theirs.of != mine.of || theirs.telling < mine.telling) return false;
        return mine.of->failed || theirs.share + mine.share > 1.1 * mine.of->total;
    });
}

/// Decides how sure each suspect is: it needs a mechanism that no other suspect explains as well, in a symptom that
/// both could account for.
inline void settle_strengths(std::vector<weighed>& all) {
    for (weighed& one : all) {
        const bool any = std::any_of(one.accounts.begin(), one.accounts.end(), [&](const account& mine) {
            return mine.telling > 0 && std::none_of(all.begin(), all.end(), [&](const weighed& other) {
                       return &other != &one && rivals(other, mine, one);
                   });
        });
        one.how_sure = any ? strength::consistent : strength::associated;
    }
}

/// A suspect that nothing recorded stands for: a lower clock or a slower machine. `known` must outlive it.
[[nodiscard]] inline suspect unrecorded(const knowledge& known) {
    return {known.component, &known, {}, {}};
}

/// What the clock and the canary say when no recorded change explains them.
[[nodiscard]] inline const std::vector<knowledge>& unrecorded_knowledge() {
    static const std::vector<knowledge> both{
        {.component = "lower SM clock",
         .touches = {"gemm/*", "conv/*", "layernorm/*", "training_step/*", "probe/canary_*", "probe/device_copy*"},
         .shows = {mechanism::clock_lower},
         .clock = true,
         .canary = canary_view::either,
         .weight = 0.5,
         .symptom = true,
         .effect = "fewer cycles a second, and nothing recorded says why",
         .remedy = "nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE,CLOCK while it works; compare with a sibling",
         .experiment = "run the suite on a sibling, and here again after some minutes of idling"},
        {.component = "this machine",
         .touches = {"gemm/*", "conv/*", "layernorm/*", "training_step/*", "probe/canary_*", "probe/device_copy*"},
         .shows = {mechanism::canary_slower},
         .canary = canary_view::slowed,
         .weight = 0.5,
         .symptom = true,
         .effect = "code without any library is slower too, and no recorded change explains it",
         .remedy = "suspect the node: run the suite on a sibling, then bench-compare --siblings DIR NEW",
         .experiment = "run the suite on a sibling",
         .sources = {"NVIDIA/TensorRT-LLM#16623"}}};
    return both;
}

/// Whether a state needs no mention because something that brings it about is a suspect too: a recorded setting with
/// the same mechanism; for what nothing recorded stands for, a recorded state too.
[[nodiscard]] inline bool is_explained_state(const weighed& state, const std::vector<weighed>& all) {
    if (!state.who.known->symptom) return false;
    const bool recorded = !state.who.changes.empty();
    return std::any_of(all.begin(), all.end(), [&](const weighed& other) {
        if (&other == &state || !other.refuted.empty() || other.explained < 0.5 * state.explained) return false;
        if (other.who.known->symptom && (recorded || other.who.changes.empty())) return false;
        return std::any_of(state.seen.begin(), state.seen.end(), [&](mechanism m) { return other.seen.count(m) != 0; });
    });
}

/// Removes suspects that account for nothing, and states that another suspect explains.
[[nodiscard]] inline std::vector<weighed> without_idle(const std::vector<weighed>& all) {
    std::vector<weighed> active, left;
    std::copy_if(all.begin(), all.end(), std::back_inserter(active), [](const auto& w) { return !w.accounts.empty(); });
    std::copy_if(active.begin(), active.end(), std::back_inserter(left),
                 [&](const auto& w) { return !is_explained_state(w, active); });
    return left;
}

/// A weighed suspect as the cause that reports show.
[[nodiscard]] inline cause to_cause(const weighed& from, const signs_seen& machine) {
    cause made;
    const knowledge& known = *from.who.known;
    made.name = from.who.name;
    made.changes = from.who.changes;
    made.through = from.who.through;
    made.link = made.changes.empty() ? 1 : made.changes.front().link;
    made.how_sure = from.how_sure;
    made.effect = known.effect;
    made.remedy = known.remedy;
    made.experiment = known.experiment;
    made.sources = known.sources;
    made.set_aside = from.refuted;
    for (const account& each : from.accounts) made.covers.push_back({each.of->of->id, each.of->of->metric, each.share});
    for (const mechanism m : from.seen) {
        sign one{m, {}, 0};
        for (const account& each : from.accounts) {
            const auto at = each.of->seen.find(m);
            if (at == each.of->seen.end()) continue;
            ++one.results;
            if (one.text.empty()) one.text = at->second;
        }
        if (one.results == 0) one.text = machine.at(m);
        made.signs.push_back(std::move(one));
    }
    std::stable_sort(made.signs.begin(), made.signs.end(),
                     [](const sign& a, const sign& b) { return telling(a.what) > telling(b.what); });
    return made;
}

/// A board that computes slower than boards of its model do: its factor is taken out of the effects, so no verdict
/// shows it.
[[nodiscard]] inline cause red_board(const comparison& from) {
    cause made;
    made.name = "slower board";
    made.how_sure = strength::consistent;
    for (const environment::difference& each : from.environment) {
        if (each.changed() && each.name == "gpu.board") made.changes.push_back(each);
    }
    made.signs = {{mechanism::canary_slower, from.board->canary + " " + percent_text(from.board->shift), 0}};
    made.effect = "it computes slower than boards of one model differ";
    made.remedy = "run the suite on at least two siblings: bench-compare --siblings DIR NEW";
    made.experiment = "run the suite here again after a reset of the GPU, and on a sibling";
    made.sources = {"NVIDIA/TensorRT-LLM#16623"};
    return made;
}

/// The better-founded suspect that accounts for all that `one` could; null when there is none.
[[nodiscard]] inline const weighed* overshadowed_by(const weighed& one, const std::vector<weighed>& all) {
    if (one.how_sure != strength::associated) return nullptr;
    for (const weighed& other : all) {
        if (&other == &one || other.how_sure == strength::associated || !other.refuted.empty()) continue;
        const bool covers = std::all_of(one.accounts.begin(), one.accounts.end(), [&](const account& mine) {
            return std::any_of(other.accounts.begin(), other.accounts.end(), [&](const account& theirs) {
                if (theirs.of != mine.of) return false;
                // Together more than there is: they claim the same part of it, not one the clock's and one the rest.
                const bool same_part = theirs.share + mine.share > 1.1 * mine.of->total;
                return mine.of->failed || (same_part && theirs.share >= 0.7 * mine.share);
            });
        });
        if (covers) return &other;
    }
    return nullptr;
}

} // namespace detail

/// Explains a comparison: which changes between the environments account for its regressions and failures, ranked,
/// each with what was seen of it and how well it is founded. First the machine: the part of a slowdown that the
/// library-free canaries show, or that a lower clock accounts for, is never blamed on a library. `rules` are those of
/// the comparison, `table` what is known about changes, most particular first.
[[nodiscard]] inline explanation explain(const comparison& from, const result::baseline& base,
                                         const result::baseline& candidate, const policy& rules = {},
                                         const std::vector<knowledge>& table = built_in_knowledge()) {
    explanation made;
    const detail::canaries canary = detail::read_canaries(from, base, candidate);
    const auto symptoms = detail::find_symptoms(from, base, candidate, canary, rules);
    made.canary = canary.state;
    if (from.board && from.board->red) made.causes.push_back(detail::red_board(from));
    if (symptoms.empty()) return made;
    made.canary_text = canary.text;
    const detail::signs_seen machine = detail::read_machine(from.environment, canary);
    std::vector<detail::weighed> all;
    for (auto& who : detail::find_suspects(from.environment, table, base.device.backend, machine, base.environment,
                                           candidate.environment)) {
        all.push_back(detail::weigh(std::move(who), symptoms, from, machine));
    }
    for (const knowledge& known : detail::unrecorded_knowledge()) {
        const bool canary_only = known.shows.front() == mechanism::canary_slower;
        if (canary_only && machine.count(mechanism::canary_slower) == 0) continue;
        auto one = detail::weigh(detail::unrecorded(known), symptoms, from, machine);
        if (!one.seen.empty()) all.push_back(std::move(one));
    }
    all = detail::without_idle(all);
    std::vector<detail::weighed> standing, refuted;
    for (auto& each : all) (each.refuted.empty() ? standing : refuted).push_back(std::move(each));
    detail::settle_strengths(standing);
    std::stable_sort(standing.begin(), standing.end(), [](const auto& a, const auto& b) {
        return std::tuple(a.how_sure, a.score()) > std::tuple(b.how_sure, b.score());
    });
    for (const auto& each : standing) {
        cause one = detail::to_cause(each, machine);
        if (const auto* other = detail::overshadowed_by(each, standing)) {
            one.set_aside = "it fits, but what it could explain is explained by " + other->who.name;
        }
        (one.set_aside.empty() ? made.causes : made.set_aside).push_back(std::move(one));
    }
    for (const auto& each : refuted) made.set_aside.push_back(detail::to_cause(each, machine));
    for (const auto& s : symptoms) made.unexplained.emplace_back(s.of->id, s.of->metric);
    detail::settle_unexplained(made, from);
    return made;
}

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
