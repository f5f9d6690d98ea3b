// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_WORKLOAD_PROBE_HPP
#define PLUMBLINE_WORKLOAD_PROBE_HPP

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include "plumbline/workload/description.hpp"
#include "plumbline/workload/id.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// Small benchmarks of the machine itself, free of any operator library.
///
/// The canaries tell a slower machine from a changed library, so their code is frozen: whoever changes it raises
/// `params::revision`, which changes workload.hash.
namespace workload::probe {

enum class kind {
    canary_mma,        ///< bound by the matrix units, data in registers
    canary_fma,        ///< bound by fp32 fused multiply-add, data in registers
    canary_copy,       ///< bound by memory: our own copy loop
    device_copy,       ///< the vendor's copy within the device's memory (CPU backend: memcpy)
    launch,            ///< host time to enqueue one empty kernel, and until it is done
    graph_launch,      ///< the same for a graph of empty kernels
    h2d_pinned,        ///< host to device from pinned memory
    d2h_pinned,        ///< device to host into pinned memory
    h2d_pageable,      ///< host to device from pageable memory
    d2h_pageable,      ///< device to host into pageable memory
    cold_context,      ///< first call of the backend in a process: context creation
    cold_first_launch, ///< first launch: module load, first use of the library
    cold_jit,          ///< first launch of a kernel the driver must compile, cache empty
    cold_jit_cached,   ///< the same with the cache warm
    host_wake,         ///< how late a sleeping host thread wakes up
    idle_gap,          ///< time of a short kernel after pauses of growing length: what waking the device costs
    soak,              ///< the compute canary for a minute at the power cap: drift of time, clock and temperature
};

/// One kind as ids and formulas see it.
struct traits {
    kind what;
    std::string_view name;
    benchmark_class measured_as;
    std::int64_t default_bytes = 0; ///< size of the buffer that is copied; 0: the probe has no size
    int traffic = 0;                ///< bytes moved per byte of the buffer: 2 within one memory, 1 over a link
};

inline constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

/// All kinds, in the order of their enumerators.
inline constexpr std::array<traits, 17> all_kinds{{
    {kind::canary_mma, "canary_mma", benchmark_class::kernel},
    {kind::canary_fma, "canary_fma", benchmark_class::kernel},
    {kind::canary_copy, "canary_copy", benchmark_class::kernel, 256 * mebibyte, 2},
    {kind::device_copy, "device_copy", benchmark_class::kernel, 1024 * mebibyte, 2},
    {kind::launch, "launch", benchmark_class::host},
    {kind::graph_launch, "graph_launch", benchmark_class::host},
    {kind::h2d_pinned, "h2d_pinned", benchmark_class::kernel, 256 * mebibyte, 1},
    {kind::d2h_pinned, "d2h_pinned", benchmark_class::kernel, 256 * mebibyte, 1},
    {kind::h2d_pageable, "h2d_pageable", benchmark_class::host, 256 * mebibyte, 1},
    {kind::d2h_pageable, "d2h_pageable", benchmark_class::host, 256 * mebibyte, 1},
    {kind::cold_context, "cold_context", benchmark_class::host},
    {kind::cold_first_launch, "cold_first_launch", benchmark_class::host},
    {kind::cold_jit, "cold_jit", benchmark_class::host},
    {kind::cold_jit_cached, "cold_jit_cached", benchmark_class::host},
    {kind::host_wake, "host_wake", benchmark_class::host},
    {kind::idle_gap, "idle_gap", benchmark_class::host},
    {kind::soak, "soak", benchmark_class::sustained},
}};

[[nodiscard]] constexpr const traits& traits_of(kind what) noexcept {
    return all_kinds[static_cast<std::size_t>(what)];
}

static_assert([] {
    for (const traits& each : all_kinds) {
        if (traits_of(each.what).name != each.name) return false;
    }
    return true;
}());

struct params {
    kind what = kind::canary_fma;
    std::int64_t bytes = 0; ///< size of the buffer; only for kinds with a size
    int revision = 1;       ///< of the frozen code; not part of the id, part of workload.hash
    modes mode;             ///< "sustained", "hot" and "stream" where the kind is a kernel

    bool operator==(const params&) const = default;
};

/// The parameters of a kind with its default size.
[[nodiscard]] constexpr params of(kind what) {
    params p;
    p.what = what;
    p.bytes = traits_of(what).default_bytes;
    return p;
}

/// "64MiB", "1GiB" or "48B": the largest of B, KiB, MiB, GiB that divides the size.
[[nodiscard]] inline std::string size_text(std::int64_t bytes) {
    constexpr const char* units[] = {"B", "KiB", "MiB", "GiB"};
    std::size_t unit = 0;
    for (; unit < 3 && bytes != 0 && bytes % 1024 == 0; ++unit) bytes /= 1024;
    return std::to_string(bytes) + units[unit];
}

/// probe/KIND[/SIZE][/mode...]; the size is written when it is not the kind's default.
[[nodiscard]] inline std::string id(const params& p) {
    const traits& t = traits_of(p.what);
    std::string text = "probe/" + std::string(t.name);
    if (p.bytes != t.default_bytes) text += '/' + size_text(p.bytes);
    return text + suffix(p.mode);
}

[[nodiscard]] inline description describe(const params& p) {
    const traits& t = traits_of(p.what);
    description what;
    what.id = id(p);
    what.family = "probe";
    what.params = {{"kind", std::string(t.name)}, {"revision", std::int64_t{p.revision}}};
    if (t.default_bytes != 0) what.params["bytes"] = p.bytes;
    add_modes(what.params, p.mode);
    what.kind = p.mode.sustained ? benchmark_class::sustained : t.measured_as;
    what.bytes = static_cast<double>(p.bytes) * t.traffic;
    return what;
}

/// The parameters of an id; throws usage_error when it is not one of this family.
[[nodiscard]] inline params parse(const std::string& id_text) {
    id_reader reader(id_text, "probe", "probe/device_copy/64MiB");
    const std::string word = reader.next("a kind of probe");
    const auto* found =
        std::find_if(all_kinds.begin(), all_kinds.end(), [&word](const traits& each) { return each.name == word; });
    if (found == all_kinds.end()) {
        std::string words;
        for (const traits& each : all_kinds) words += (words.empty() ? "" : ", ") + std::string(each.name);
        reader.refuse("'" + word + "' is not a kind of probe (one of " + words + ")");
    }
    params p = of(found->what);
    const bool sized = p.bytes != 0;
    const std::string_view next = reader.peek();
    if (sized && !next.empty() && next.front() >= '0' && next.front() <= '9') {
        const std::string text = reader.next("a size");
        std::int64_t count = 0;
        const char* const end = text.data() + text.size();
        const auto [stop, failure] = std::from_chars(text.data(), end, count);
        const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
        const int shift = unit == "B" ? 0 : unit == "KiB" ? 10 : unit == "MiB" ? 20 : unit == "GiB" ? 30 : -1;
        if (failure != std::errc{} || shift < 0 || count < 1 || count > (std::int64_t{1} << 40) >> shift) {
            reader.refuse("'" + text + "' is not a size between 1B and 1024GiB");
        }
        p.bytes = count << shift;
    }
    p.mode = reader.rest_as_modes();
    const bool kernel = traits_of(p.what).measured_as == benchmark_class::kernel;
    if (p.mode.plan != plan_choice::heuristic) reader.refuse("a probe has no plans to choose from");
    if (!kernel && p.mode != modes{}) reader.refuse(word + " has no modes");
    if (p.mode.hot && traits_of(p.what).traffic != 2) reader.refuse(word + " is neither hot nor cold");
    reader.finish(id(p));
    return p;
}

} // namespace workload::probe

PLUMBLINE_NAMESPACE_END

#endif
