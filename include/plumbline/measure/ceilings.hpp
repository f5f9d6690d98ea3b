// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_MEASURE_CEILINGS_HPP
#define PLUMBLINE_MEASURE_CEILINGS_HPP

#include <algorithm>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "plumbline/measure/stop_rule.hpp"
#include "plumbline/result/result.hpp"
#include "plumbline/stats/descriptive.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace measure {

/// The limits of a device as its own results show them, for result::device::ceilings: "copy_bytes_per_s", the best
/// copy within its memory that is larger than any cache (device_copy and canary_copy of 64 MiB and more, cold), and
/// "gemm_DTYPE_flop_per_s", the best product of each dtype. Only verified times of the burst regime count; for each
/// session the median of its clean samples, and the best session.
[[nodiscard]] inline std::map<std::string, double> ceilings(const std::vector<result::result>& results) {
    const auto text = [](const workload::description& what, const char* name) {
        const auto at = what.params.find(name);
        const auto* value = at == what.params.end() ? nullptr : std::get_if<std::string>(&at->second);
        return value == nullptr ? std::string{} : *value;
    };
    std::map<std::string, double> found;
    for (const result::result& each : results) {
        const workload::description& what = each.what;
        if (each.status != result::result_status::ok || !each.verified) continue;
        if (what.metric != "time" || what.unit != "ns" || what.kind != benchmark_class::kernel) continue;
        std::string name;
        double work = 0;
        if (what.family == "gemm") {
            name = "gemm_" + text(what, "dtype") + "_flop_per_s";
            work = what.flop;
        } else if (what.family == "probe") {
            const std::string kind = text(what, "kind");
            const bool large = what.bytes >= 2.0 * 64 * 1024 * 1024 && text(what, "cache") != "hot";
            if ((kind != "device_copy" && kind != "canary_copy") || !large) continue;
            name = "copy_bytes_per_s";
            work = what.bytes;
        }
        if (!(work > 0)) continue;
        for (const result::session_result& session : each.sessions) {
            const double time_ns = stats::median(marked(session.samples, session.clean));
            if (time_ns > 0) found[name] = std::max(found[name], work / time_ns * 1e9);
        }
    }
    return found;
}

} // namespace measure

PLUMBLINE_NAMESPACE_END

#endif
