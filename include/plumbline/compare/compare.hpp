// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_COMPARE_HPP
#define PLUMBLINE_COMPARE_COMPARE_HPP

#include "plumbline/compare/comparison.hpp"
#include "plumbline/compare/policy.hpp"
#include "plumbline/result/baseline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare {

/// Compares a candidate with a base. Sessions of both sides that name the same round (session::control) are compared
/// as interleaved pairs. Throws usage_error (exit code 2) for an unknown unit or a duplicate (id, metric).
[[nodiscard]] inline comparison compare(const result::baseline& base, const result::baseline& candidate,
                                        const policy& rules = {});

/// Compares a candidate with a control measured beside it, the reference, and marks what the control says about the
/// stored base: a finding whose control has moved away from the base carries marker::baseline_drift.
[[nodiscard]] inline comparison compare(const result::baseline& base, const result::baseline& candidate,
                                        const result::baseline& control, const policy& rules);

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
