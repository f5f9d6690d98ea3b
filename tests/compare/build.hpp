// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TESTS_COMPARE_BUILD_HPP
#define PLUMBLINE_TESTS_COMPARE_BUILD_HPP

// Small baselines for tests.

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/compare/comparison.hpp"
#include "plumbline/result/baseline.hpp"

namespace build {

namespace result = plumbline::result;
namespace compare = plumbline::compare;
using values = std::vector<double>;

/// An empty baseline of one board, boot and day with `sessions` sessions.
inline result::baseline baseline(std::size_t sessions, const std::string& board = "board",
                                 const std::string& boot = "boot", const std::string& day = "2026-11-30") {
    result::baseline b;
    b.created = day + "T01:02:03Z";
    b.device.backend = "cuda";
    b.device.uuid = board;
    for (std::size_t i = 0; i < sessions; ++i) {
        result::session s;
        s.started = day + "T01:02:0" + std::to_string(i) + "Z";
        s.when = {boot, day, board};
        b.sessions.push_back(s);
    }
    return b;
}

/// Adds a result with one session for each value; each session has that value as its only sample.
inline result::result& add(result::baseline& to, const std::string& id, const values& of,
                           plumbline::benchmark_class kind = plumbline::benchmark_class::kernel,
                           const std::string& unit = "us") {
    result::result r;
    r.what.id = id;
    r.what.family = "test";
    r.what.kind = kind;
    r.what.unit = unit;
    r.backend = to.device.backend;
    r.verified = true;
    for (std::size_t i = 0; i < of.size(); ++i) {
        result::session_result s;
        s.session = i;
        s.samples = {of[i]};
        r.sessions.push_back(s);
    }
    to.results.push_back(std::move(r));
    return to.results.back();
}

/// A baseline with one result "a".
inline result::baseline single(const values& of, plumbline::benchmark_class kind = plumbline::benchmark_class::kernel) {
    auto b = baseline(of.size());
    add(b, "a", of, kind);
    return b;
}

inline values scaled(values of, double factor) {
    for (double& v : of) v *= factor;
    return of;
}

/// The finding of an id; fails the test by an exception when there is none.
inline const compare::finding& at(const compare::comparison& in, const std::string& id,
                                  const std::string& metric = "time") {
    for (const auto& f : in.findings) {
        if (f.id == id && f.metric == metric) return f;
    }
    throw std::out_of_range("no finding " + id);
}

inline bool has_reason(const compare::finding& in, compare::reason_code code) {
    for (const auto& r : in.reasons) {
        if (r.code == code) return true;
    }
    return false;
}

} // namespace build

#endif
