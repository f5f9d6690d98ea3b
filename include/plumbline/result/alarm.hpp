// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RESULT_ALARM_HPP
#define PLUMBLINE_RESULT_ALARM_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "plumbline/core/scalar.hpp"
#include "plumbline/result/baseline.hpp"
#include "plumbline/result/limit.hpp"
#include "plumbline/result/result.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace result {

/// Something wrong with a result that no other run is needed to see.
struct alarm {
    std::string code;         ///< one of namespace alarm_code
    std::string text;         ///< what was seen and what to look at, for people
    std::size_t sessions = 0; ///< in which it was seen; 0: over all of them

    bool operator==(const alarm&) const = default;
};

namespace alarm_code {
inline constexpr const char* fallback = "fallback";               ///< the library's engine of last resort
inline constexpr const char* no_tensor_cores = "no_tensor_cores"; ///< 16-bit or 8-bit work without them
inline constexpr const char* tf32_in_fp32 = "tf32_in_fp32";       ///< fp32 was asked for and computed in less
inline constexpr const char* no_tf32 = "no_tf32";                 ///< TF32 was asked for and not used
inline constexpr const char* far_below_limit = "far_below_limit"; ///< of what the device can do
} // namespace alarm_code

/// A result below this share of the device's limit is far from it. The slowest sound ones on an H200 are the first
/// convolution of ResNet-50 (three channels), which cuDNN and PyTorch alike compute at 0.066 of what its bytes allow,
/// and a bf16 product with odd leading dimensions at 0.16; engines of last resort reach 0.02.
inline constexpr double far_below_limit = 0.05;

/// Work whose limit is less than this many seconds is ruled by what it costs to begin and end it, not by the limit.
inline constexpr double shortest_limited_s = 20e-6;

namespace detail {

[[nodiscard]] inline std::string text_of(const scalar_map& from, const char* name) {
    const auto at = from.find(name);
    const auto* text = at == from.end() ? nullptr : std::get_if<std::string>(&at->second);
    return text == nullptr ? std::string{} : *text;
}

[[nodiscard]] inline std::optional<bool> truth_of(const scalar_map& from, const char* name) {
    const auto at = from.find(name);
    const auto* truth = at == from.end() ? nullptr : std::get_if<bool>(&at->second);
    return truth == nullptr ? std::nullopt : std::optional(*truth);
}

[[nodiscard]] inline bool contains(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

/// cuDNN lists its fallback engines in a mode of their own; oneDNN names its reference loops.
[[nodiscard]] inline bool is_fallback(const evidence& ran) {
    return text_of(ran.parts, "mode") == "FALLBACK" || contains(ran.implementation, "/FALLBACK") ||
           ran.implementation.rfind("ref", 0) == 0;
}

/// Work that consists of products, which tensor cores are for: not a normalisation, say, whatever its library notes.
[[nodiscard]] inline bool multiplies(const workload::description& what) {
    return what.family == "gemm" || what.family == "conv" || (what.flop > 0 && what.flop >= 10 * what.bytes);
}

/// Whether tensor cores could take this work: of a convolution they want whole vectors of channels in each group. One
/// that is depthwise, or sees pixels of three colours, is sound without them.
[[nodiscard]] inline bool fits_tensor_cores(const workload::description& what, const std::string& dtype) {
    if (what.family != "conv") return true;
    const auto count = [&what](const char* name) {
        const auto at = what.params.find(name);
        const auto* number = at == what.params.end() ? nullptr : std::get_if<std::int64_t>(&at->second);
        return number == nullptr ? std::int64_t{0} : *number;
    };
    const std::int64_t groups = std::max<std::int64_t>(count("groups"), 1);
    const std::int64_t vector = dtype == "tf32" ? 4 : 8;
    return count("c") / groups % vector == 0 && count("k") / groups % vector == 0;
}

/// The limit of the datasheet where it is known, whose figures no result of this run has made.
[[nodiscard]] inline device by_datasheet(const device& on) {
    device sheet;
    const std::string lead = "datasheet.";
    for (const auto& [name, value] : on.properties) {
        const auto* figure = std::get_if<double>(&value);
        if (figure == nullptr || name.rfind(lead, 0) != 0) continue;
        const std::string what = name.substr(lead.size());
        sheet.ceilings[what == "copy_bytes_per_s" ? what : "gemm_" + what] = *figure;
    }
    return sheet;
}

} // namespace detail

/// What is wrong with how a benchmark was computed, by the evidence of one session and nothing else. Read are the
/// implementation, the parts "mode", "tensor_cores" and "input", and the dtype the benchmark asked for.
[[nodiscard]] inline std::vector<alarm> alarms(const workload::description& what, const evidence& ran) {
    std::vector<alarm> found;
    const auto add = [&found](const char* code, const std::string& text) { found.push_back({code, text, 1}); };
    if (detail::is_fallback(ran)) {
        add(alarm_code::fallback, "the library had nothing but its engine of last resort (" + ran.implementation + ")");
    }
    if (!detail::multiplies(what)) return found;
    const std::string dtype = detail::text_of(what.params, "dtype");
    const std::optional<bool> tensor_cores = detail::truth_of(ran.parts, "tensor_cores");
    const bool tf32_input = detail::contains(detail::text_of(ran.parts, "input"), "tf32");
    if (dtype == "fp32") {
        if (tf32_input || tensor_cores.value_or(false)) {
            add(alarm_code::tf32_in_fp32,
                "fp32 was computed on tensor cores, in TF32 or less: see NVIDIA_TF32_OVERRIDE and the math mode");
        }
    } else if (!detail::fits_tensor_cores(what, dtype)) {
        return found;
    } else if (dtype == "tf32" && !tensor_cores.value_or(true)) {
        add(alarm_code::no_tf32, "TF32 was asked for and not used: see NVIDIA_TF32_OVERRIDE");
    } else if (!dtype.empty() && !tensor_cores.value_or(true)) {
        add(alarm_code::no_tensor_cores, dtype + " was computed without tensor cores");
    }
    return found;
}

/// What is wrong with a result: what the evidence of its sessions says, each alarm once with the number of sessions it
/// was seen in, and whether even its fastest sample (others' load is in the rest) is far below what its device can do,
/// by the limits measured there or, where it is listed, by its datasheet. The probes are limits themselves and have no
/// such alarm, nor has what is no time of a kernel.
[[nodiscard]] inline std::vector<alarm> alarms(const result& of, const device& on) {
    std::vector<alarm> found;
    if (of.status != result_status::ok) return found;
    double fastest = std::numeric_limits<double>::infinity();
    for (const session_result& each : of.sessions) {
        for (const double sample : each.samples) fastest = std::min(fastest, sample);
        for (alarm& seen : alarms(of.what, each.ran)) {
            const auto known =
                std::find_if(found.begin(), found.end(), [&](const alarm& a) { return a.code == seen.code; });
            if (known == found.end())
                found.push_back(std::move(seen));
            else
                ++known->sessions;
        }
    }
    const bool kernel = of.what.kind == benchmark_class::kernel || of.what.kind == benchmark_class::sustained;
    if (!kernel || of.what.family == "probe" || !std::isfinite(fastest)) return found;
    const auto far = [&](const device& limits, const char* whose) {
        const auto shortest = speed_of_light_s(of.what, limits);
        const auto reached = fraction_of_limit(of.what, limits, fastest);
        if (!reached || *shortest < shortest_limited_s || *reached >= far_below_limit) return false;
        found.push_back({alarm_code::far_below_limit,
                         "reaches " + to_string(scalar(std::round(*reached * 1e3) / 10)) + " % of " + whose +
                             ": the implementation does not fit this work or this device",
                         0});
        return true;
    };
    if (!far(on, "the limit measured here")) far(detail::by_datasheet(on), "the datasheet's limit");
    return found;
}

} // namespace result

PLUMBLINE_NAMESPACE_END

#endif
