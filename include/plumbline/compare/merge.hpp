// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_MERGE_HPP
#define PLUMBLINE_COMPARE_MERGE_HPP

#include <string>
#include <vector>

#include "plumbline/compare/policy.hpp"
#include "plumbline/result/baseline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare {

/// Pools baselines of one device as sessions and epochs of one side: sessions are appended in the order given,
/// results united by (id, metric), the environment is that of the last one. A result that failed anywhere is failed;
/// one that was skipped in some and measured in others keeps what was measured. Noise is estimated anew wherever the
/// pool has enough sessions and epochs. Throws usage_error for an empty list, for baselines of different devices or
/// hardware, and where an id stands for different workloads, units or directions.
[[nodiscard]] inline result::baseline merge(const std::vector<result::baseline>& parts, const policy& rules = {});

/// Moves the results of `accepted` into `base`: those named by `ids`, or all that both have and that can be compared
/// when `ids` is empty. The results that are moved bring their sessions along, the others keep theirs, and an event
/// "accepted" records who, when and why. Throws usage_error without a reason, for an id that cannot be moved, and
/// when `ids` names improvements while leaving a regression behind (a baseline must not ratchet on lucky runs).
[[nodiscard]] inline result::baseline accept(const result::baseline& base, const result::baseline& accepted,
                                             const std::vector<std::string>& ids, const result::event& why,
                                             const policy& rules = {});

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
