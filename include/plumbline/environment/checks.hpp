// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_CHECKS_HPP
#define PLUMBLINE_ENVIRONMENT_CHECKS_HPP

#include <chrono>
#include <exception>
#include <iterator>
#include <utility>
#include <vector>

#include "plumbline/environment/check.hpp"
#include "plumbline/environment/checks/driver.hpp"
#include "plumbline/environment/checks/gpu.hpp"
#include "plumbline/environment/checks/host.hpp"
#include "plumbline/environment/checks/work.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

/// Every check there is, in the order they are printed: driver, GPU, host, measured work.
[[nodiscard]] inline std::vector<check> all_checks() {
    std::vector<check> all = checks::of_driver();
    for (std::vector<check> part : {checks::of_gpu(), checks::of_host(), checks::of_work()}) {
        all.insert(all.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
    }
    return all;
}

/// Runs one check. One that throws ends as failed with the message.
[[nodiscard]] inline check_outcome run_check(const check& one, const check_context& context) {
    const auto start = std::chrono::steady_clock::now();
    check_outcome outcome;
    try {
        outcome = one.run(context);
    } catch (const std::exception& problem) {
        outcome = checks::failed(problem.what(), "the check runs to its end", "the message above says what stopped it");
    }
    outcome.name = one.name;
    outcome.link = one.link;
    outcome.if_failed = one.if_failed;
    outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return outcome;
}

/// Runs the checks of a set, those that need no work on a device (`context.measured`) included: they end as skipped.
[[nodiscard]] inline std::vector<check_outcome> run_checks(const check_context& context, extent set) {
    std::vector<check_outcome> outcomes;
    for (const check& one : all_checks()) {
        if (set == extent::quick && one.set == extent::full) continue;
        outcomes.push_back(run_check(one, context));
    }
    return outcomes;
}

} // namespace environment

PLUMBLINE_NAMESPACE_END

#endif
