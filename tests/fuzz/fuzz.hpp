// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TESTS_FUZZ_FUZZ_HPP
#define PLUMBLINE_TESTS_FUZZ_FUZZ_HPP

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <string>
#include <string_view>

#include "plumbline/compare/compare.hpp"
#include "plumbline/compare/explain.hpp"
#include "plumbline/json/store.hpp"
#include "plumbline/report/comparison.hpp"

namespace plumbline::tests {

/// Ends the process as a crash does, so that the fuzzer keeps the input.
[[noreturn]] inline void broken(const char* what) {
    std::fprintf(stderr, "fuzz: %s\n", what);
    std::abort();
}

/// Runs an action that may refuse its input, but only with plumbline's own errors and a message.
template <class F>
bool accepted(F&& action) {
    try {
        action();
    } catch (const error& problem) {
        if (std::string_view(problem.what()).empty()) broken("an error without a message");
        return false;
    } catch (const std::exception& problem) {
        broken(problem.what()); // a foreign exception would reach the user as "unexpected"
    }
    return true;
}

/// Compares, checks what must hold for any two baselines, and writes the report in one of the formats: all of them for
/// every input would be most of the work. `choice` is any number.
inline void compare_and_report(const result::baseline& base, const result::baseline& candidate,
                               const compare::policy& rules, std::size_t choice) {
    accepted([&] {
        compare::comparison found = compare::compare(base, candidate, rules);
        found.why = compare::explain(found, base, candidate, rules);
        std::size_t counted = 0;
        for (const compare::verdict each : compare::all_verdicts) counted += found.count(each);
        if (counted != found.findings.size()) broken("a finding was not counted");
        const report::format as = report::formats[choice % report::formats.size()].second;
        std::ostringstream text;
        report::write_comparison(text, as, found, rules, {"base"}, {"candidate"}, {});
        if (text.str().empty()) broken("an empty report");
        if (as == report::format::json) static_cast<void>(json::parse_document(text.str(), "report"));
    });
}

} // namespace plumbline::tests

#endif
