// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_MEASURE_CEILINGS_HPP
#define PLUMBLINE_MEASURE_CEILINGS_HPP

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "plumbline/measure/stop_rule.hpp"
#include "plumbline/result/result.hpp"
#include "plumbline/stats/descriptive.hpp"
#include "plumbline/workload/probe.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace measure {

namespace detail {

[[nodiscard]] inline std::string text_param(const workload::description& what, const char* name) {
    const auto at = what.params.find(name);
    const auto* value = at == what.params.end() ? nullptr : std::get_if<std::string>(&at->second);
    return value == nullptr ? std::string{} : *value;
}

/// The names of the limits that a benchmark can raise, and its work: FLOP or bytes.
[[nodiscard]] inline std::pair<std::vector<std::string>, double> limits_of(const workload::description& what) {
    if (what.family == "gemm") return {{"gemm_" + text_param(what, "dtype") + "_flop_per_s"}, what.flop};
    if (what.family != "probe" || text_param(what, "cache") == "hot") return {};
    const std::string kind = text_param(what, "kind");
    if (kind == "h2d_pinned" || kind == "d2h_pinned") return {{kind + "_bytes_per_s"}, what.bytes};
    if (kind != "device_copy" && kind != "canary_copy") return {};
    const auto bytes = static_cast<std::int64_t>(what.bytes / 2); // read and written
    std::vector<std::string> names{"copy_" + workload::probe::size_text(bytes) + "_bytes_per_s"};
    // A smaller buffer fits into a cache, which is not the limit of memory.
    if (bytes >= 64 * workload::probe::mebibyte) names.push_back("copy_bytes_per_s");
    return {names, what.bytes};
}

} // namespace detail

/// The limits of a device as its own results show them, for result::device::ceilings: "copy_bytes_per_s", the best
/// copy within its memory of 64 MiB and more; "copy_SIZE_bytes_per_s" for each size that was copied; "h2d_pinned_" and
/// "d2h_pinned_bytes_per_s"; and "gemm_DTYPE_flop_per_s", the best product of each dtype. Only verified times of the
/// burst regime count, and copies only cold; for each session the median of its clean samples, and the best session.
[[nodiscard]] inline std::map<std::string, double> ceilings(const std::vector<result::result>& results) {
    std::map<std::string, double> found;
    for (const result::result& each : results) {
        const workload::description& what = each.what;
        if (each.status != result::result_status::ok || !each.verified) continue;
        if (what.metric != "time" || what.unit != "ns" || what.kind != benchmark_class::kernel) continue;
        const auto [names, work] = detail::limits_of(what);
        for (const result::session_result& session : each.sessions) {
            const double time_ns = stats::median(marked(session.samples, session.clean));
            if (!(time_ns > 0) || !(work > 0)) continue;
            for (const std::string& name : names) found[name] = std::max(found[name], work / time_ns * 1e9);
        }
    }
    return found;
}

} // namespace measure

PLUMBLINE_NAMESPACE_END

#endif
