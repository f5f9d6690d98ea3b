// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_PREDICTION_HPP
#define PLUMBLINE_COMPARE_PREDICTION_HPP

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "plumbline/compare/implementation.hpp"
#include "plumbline/core/error.hpp"
#include "plumbline/core/exit_code.hpp"
#include "plumbline/core/scalar.hpp"
#include "plumbline/result/alarm.hpp"
#include "plumbline/result/baseline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare {

/// What another library would do with a benchmark of a baseline.
enum class foretold {
    worse,   ///< it would lose tensor cores, fall to the engine of last resort, or not run at all
    changed, ///< another implementation: faster or slower, nobody knows before it was measured
    unknown, ///< what was measured is not offered on this machine, so what would be chosen there cannot be told here
    same,    ///< the very implementation that was measured
};

/// One benchmark of a prediction.
struct predicted_result {
    std::string id;
    foretold what = foretold::same;
    std::string before;           ///< implementation in the baseline
    std::string after;            ///< implementation that would run; empty when none would
    std::vector<std::string> why; ///< what is worse, one sentence an element
};

/// What another version of a library would choose for a baseline's device.
struct prediction {
    std::vector<predicted_result> results; ///< worst first, then by id
    std::string version_before;            ///< of the library, as the evidence says; empty when it does not
    std::string version_after;
    exit_code exit = exit_code::ok;

    [[nodiscard]] std::size_t count(foretold what) const {
        const auto same = [what](const predicted_result& each) { return each.what == what; };
        return static_cast<std::size_t>(std::count_if(results.begin(), results.end(), same));
    }
};

/// The prediction's name in files and reports.
[[nodiscard]] inline const char* to_string(foretold what) noexcept {
    switch (what) {
    case foretold::worse:
        return "worse";
    case foretold::changed:
        return "changed";
    case foretold::unknown:
        return "unknown";
    case foretold::same:
        return "same";
    }
    return "";
}

namespace detail {

[[nodiscard]] inline std::string version_of(const result::evidence& ran) {
    const auto at = ran.parts.find("cudnn_version");
    return at == ran.parts.end() ? std::string() : plumbline::to_string(at->second);
}

/// The text without the values of knobs: "eng62_k2=4_k13=0" becomes "eng62_k2_k13".
[[nodiscard]] inline std::string without_values(const std::string& engines) {
    std::string text;
    bool value = false;
    for (const char c : engines) {
        value = c == '=' || (value && c != '_' && c != ' ');
        if (!value) text += c;
    }
    return text;
}

/// Whether the engine that ran is missing from those that were offered here, whatever their knobs are set to.
[[nodiscard]] inline bool not_offered(const result::evidence& ran, const result::evidence& here) {
    const auto at = here.parts.find("offered_engines");
    if (at == here.parts.end()) return false;
    const std::string engine = ran.implementation.substr(ran.implementation.rfind('/') + 1);
    return without_values(plumbline::to_string(at->second)).find(' ' + without_values(engine) + ' ') ==
           std::string::npos;
}

/// Alarms of the new evidence that the old one does not raise.
[[nodiscard]] inline std::vector<std::string>
new_alarms(const workload::description& what, const result::evidence& before, const result::evidence& after) {
    const auto old = result::alarms(what, before);
    std::vector<std::string> found;
    for (const result::alarm& each : result::alarms(what, after)) {
        if (std::none_of(old.begin(), old.end(), [&](const auto& a) { return a.code == each.code; })) {
            found.push_back(each.text);
        }
    }
    return found;
}

} // namespace detail

/// Foretells what a library would do with the benchmarks of a baseline that `chosen` accepts: `ask` gives the evidence
/// of an id, or throws unsupported_error when it would not run. Exit code 1 if anything gets worse by the rules of
/// result::alarms, else 0; throws environment_error when nothing accepted has evidence.
[[nodiscard]] inline prediction foretell(const result::baseline& base,
                                         const std::function<bool(const result::result&)>& chosen,
                                         const std::function<result::evidence(const std::string& id)>& ask) {
    prediction made;
    for (const result::result& each : base.results) {
        const bool measured = each.status == result::result_status::ok && !each.sessions.empty();
        if (!measured || each.what.metric != "time" || !chosen(each)) continue;
        const result::evidence& before = *usual_evidence(each);
        if (before.implementation.empty()) continue;
        predicted_result one{each.what.id, foretold::same, before.implementation, {}, {}};
        if (made.version_before.empty()) made.version_before = detail::version_of(before);
        try {
            const result::evidence after = ask(each.what.id);
            one.after = after.implementation;
            one.why = detail::new_alarms(each.what, before, after);
            if (one.after != one.before) {
                one.what = detail::not_offered(before, after) ? foretold::unknown : foretold::changed;
            }
            if (made.version_after.empty()) made.version_after = detail::version_of(after);
        } catch (const unsupported_error& e) {
            one.why = {e.what()};
        }
        if (!one.why.empty()) one.what = foretold::worse;
        made.results.push_back(std::move(one));
    }
    if (made.results.empty()) {
        throw environment_error(
            "prediction",
            "the baseline holds no measured convolution with the plan it ran, so there "
            "is nothing to predict; measure some on that GPU: --baseline --suite=standard --filter=^conv/");
    }
    std::sort(made.results.begin(), made.results.end(),
              [](const auto& a, const auto& b) { return a.what != b.what ? a.what < b.what : a.id < b.id; });
    if (made.count(foretold::worse) > 0) made.exit = exit_code::regressed;
    return made;
}

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
