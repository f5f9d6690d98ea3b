// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_CHECKS_WORK_HPP
#define PLUMBLINE_ENVIRONMENT_CHECKS_WORK_HPP

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "plumbline/core/unit.hpp"
#include "plumbline/environment/checks/support.hpp"
#include "plumbline/result/limit.hpp"
#include "plumbline/stats/descriptive.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment::checks {

/// Median of all samples of a result, in its own unit; NaN where there are none.
[[nodiscard]] inline double median_of(const result::result& measured) {
    std::vector<double> all;
    for (const result::session_result& session : measured.sessions) {
        all.insert(all.end(), session.samples.begin(), session.samples.end());
    }
    return stats::median(std::move(all));
}

/// Bytes per second of a copy; empty where the result is no time or has no bytes.
[[nodiscard]] inline std::optional<double> rate_of(const result::result& measured) {
    const auto unit = find_unit(measured.what.unit);
    const double value = median_of(measured);
    if (!unit || !std::isfinite(value) || value <= 0) return std::nullopt;
    if (unit->dimension == "B/s") return value * unit->factor;
    if (unit->dimension != "s" || measured.what.bytes <= 0) return std::nullopt;
    return measured.what.bytes / (value * unit->factor);
}

namespace detail {

/// The first result of an id that starts so, that was measured.
[[nodiscard]] inline const result::result* find_result(const check_context& on, const std::string& prefix) {
    if (on.measured == nullptr) return nullptr;
    for (const result::result& each : on.measured->results) {
        if (each.what.id.rfind(prefix, 0) == 0 && each.status == result::result_status::ok) return &each;
    }
    return nullptr;
}

[[nodiscard]] inline bool is_16_bit(const result::result& measured) {
    const auto dtype = measured.what.params.find("dtype");
    if (dtype == measured.what.params.end()) return false;
    const std::string name = to_string(dtype->second);
    return name == "fp16" || name == "bf16";
}

/// Most 16-bit operations an SM can do in a clock, dense, by major compute capability (NVIDIA's architecture
/// whitepapers: A100 2048, H100 4096, B200 8192). Used only to see that a time is possible at all.
[[nodiscard]] inline double most_flop_per_clock(std::int64_t major) {
    if (major == 7) return 1024;
    if (major == 9) return 4096;
    if (major == 10) return 8192;
    return 2048;
}

/// Whether a 16-bit time is possible on this GPU: "" when it is, or cannot be told; else what is wrong.
[[nodiscard]] inline std::string impossible_time(const check_context& on, const result::result& measured) {
    const auto unit = find_unit(measured.what.unit);
    const auto sms = known_int(on, "gpu.sm_count"), clock = known_int(on, "gpu.max_sm_clock_mhz");
    const auto capability = known_number(on, "gpu.compute_capability");
    if (!unit || unit->dimension != "s" || measured.what.flop <= 0 || !sms || !clock || !capability) return {};
    const double most = most_flop_per_clock(static_cast<std::int64_t>(*capability)) * static_cast<double>(*sms) *
                        static_cast<double>(*clock) * 1e6;
    const double rate = measured.what.flop / (median_of(measured) * unit->factor);
    const std::string text = environment::detail::shown(rate * 1e-12) + " TFLOP/s, where " +
                             environment::detail::shown(most * 1e-12) + " is the most this GPU can do";
    if (rate > 1.1 * most) return text + ": too fast to be true";
    // Small sizes reach little; less than a hundredth of the peak is no work of tensor cores at any size used here.
    if (is_16_bit(measured) && rate < 0.01 * most) return text + ": as slow as if the GPU had not done it";
    return {};
}

/// Everything that is wrong with one result, "" when nothing is.
[[nodiscard]] inline std::string fault_of(const check_context& on, const result::result& measured) {
    const std::string& id = measured.what.id;
    if (measured.status == result::result_status::failed) return id + ": " + measured.reason;
    if (measured.status == result::result_status::skipped) return {};
    const std::string wanted = on.cuda_expected ? "cuda" : "cpu";
    if (measured.backend != wanted) return id + " ran on " + measured.backend + ", not on " + wanted;
    if (!measured.verified) return id + ": the result was not verified";
    if (!std::isfinite(median_of(measured)) || median_of(measured) <= 0) return id + ": no time was measured";
    for (const result::session_result& session : measured.sessions) {
        const auto cores = session.ran.parts.find("tensor_cores");
        if (is_16_bit(measured) && cores != session.ran.parts.end() && cores->second == scalar{false}) {
            return id + " ran without tensor cores: " + session.ran.implementation;
        }
        // The SM clock is read by the GPU inside the sample: no cycles means that no SM ran.
        if (on.cuda_expected && !session.samples.empty() && session.cycles.empty()) {
            return id + ": no SM cycles were counted inside the samples";
        }
    }
    const std::string impossible = on.cuda_expected ? impossible_time(on, measured) : std::string();
    return impossible.empty() ? std::string() : id + ": " + impossible;
}

} // namespace detail

/// A family's benchmarks really ran where they should: right result, right device, possible time, tensor cores.
[[nodiscard]] inline check_outcome family_works(const check_context& on, const std::string& family) {
    if (on.measured == nullptr) return skipped("nothing was measured in this check run");
    std::vector<std::string> faults, fine;
    std::string why_skipped;
    for (const result::result& each : on.measured->results) {
        if (each.what.family != family) continue;
        if (each.status == result::result_status::skipped) {
            why_skipped = each.what.id + ": " + each.reason;
            continue;
        }
        const std::string fault = detail::fault_of(on, each);
        if (!fault.empty())
            faults.push_back(fault);
        else
            fine.push_back(each.what.id + " " + environment::detail::shown(median_of(each)) + " " + each.what.unit);
    }
    const std::string expected = "right results on the " + std::string(on.cuda_expected ? "GPU" : "CPU");
    if (!faults.empty()) {
        return failed(
            environment::detail::join(faults, "; "), expected,
            "do not trust numbers of this machine: look at the library versions above, dmesg and the GPU's health");
    }
    if (fine.empty()) return skipped(why_skipped.empty() ? "no " + family + " benchmark was run" : why_skipped);
    return passed(environment::detail::join(fine, "; "), expected);
}

namespace detail {

/// Bytes per second one lane of PCIe moves, after line coding, by generation (PCI Express Base Specification).
[[nodiscard]] inline double lane_rate(std::int64_t generation) {
    constexpr double rates[] = {0, 0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9};
    return generation >= 1 && generation <= 6 ? rates[generation] : 0;
}

} // namespace detail

/// Copies from pinned memory reach what the link offers.
[[nodiscard]] inline check_outcome pinned_copies_fast(const check_context& on) {
    const auto generation = known_int(on, "pcie.max_generation"), width = known_int(on, "pcie.max_width");
    if (!generation || !width) return skipped(why_unknown(on, "pcie.max_generation"));
    const double link = detail::lane_rate(*generation) * static_cast<double>(*width);
    std::vector<std::string> seen;
    double worst = 1;
    for (const char* id : {"probe/h2d_pinned", "probe/d2h_pinned"}) {
        const result::result* measured = detail::find_result(on, id);
        const auto rate = measured != nullptr ? rate_of(*measured) : std::nullopt;
        if (!rate || link <= 0) continue;
        worst = std::min(worst, *rate / link);
        seen.push_back(std::string(id) + " " + environment::detail::shown(std::round(*rate * 1e-8) / 10) + " GB/s");
    }
    if (seen.empty()) return skipped("no copy was measured");
    const std::string line = environment::detail::join(seen, ", ");
    const std::string expected =
        "70 % or more of the link's " + environment::detail::shown(std::round(link * 1e-8) / 10) + " GB/s";
    if (worst >= 0.7) return passed(line, expected);
    const std::string remedy =
        "see pcie.link_under_load and numa.local; look at IOMMU settings (iommu=pt) and at other copies running";
    return worst < 0.4 ? failed(line, expected, remedy) : warned(line, expected, remedy);
}

/// Copies from pageable memory are not far slower than pinned ones: half is usual (rapidsai/dask-cuda#98).
[[nodiscard]] inline check_outcome pageable_copies_usual(const check_context& on) {
    const result::result* pinned = detail::find_result(on, "probe/h2d_pinned");
    const result::result* pageable = detail::find_result(on, "probe/h2d_pageable");
    const auto fast = pinned != nullptr ? rate_of(*pinned) : std::nullopt;
    const auto slow = pageable != nullptr ? rate_of(*pageable) : std::nullopt;
    if (!fast || !slow) return skipped("no copies were measured");
    const double share = *slow / *fast;
    const std::string seen = environment::detail::shown(std::round(share * 100)) + " % of the pinned rate";
    if (share >= 0.1) return passed(seen, "10 % or more of the pinned rate");
    return warned(seen, "10 % or more of the pinned rate",
                  "the host's memory is slow or far: see numa.local and cpu.quota; use pinned memory in the loader");
}

/// The share of its time that a training step waited for the DataLoader, as the sessions' state has it; empty where no
/// training step consumed the batches.
[[nodiscard]] inline std::optional<double> share_of_waiting(const result::result& measured) {
    std::vector<double> shares;
    for (const result::session_result& session : measured.sessions) {
        const auto share = session.state.find("waiting_share");
        if (share == session.state.end() || session.state.count("trains") == 0) continue;
        if (const auto* const value = std::get_if<double>(&share->second)) shares.push_back(*value);
    }
    if (shares.empty()) return std::nullopt;
    return stats::median(std::move(shares));
}

/// The data loader keeps up with a training step.
[[nodiscard]] inline check_outcome loader_keeps_up(const check_context& on) {
    if (on.measured == nullptr) return skipped("nothing was measured in this check run");
    for (const result::result& each : on.measured->results) {
        const auto share = each.status == result::result_status::ok ? share_of_waiting(each) : std::nullopt;
        if (!share) continue;
        const std::string seen =
            environment::detail::shown(std::round(*share * 1000) / 10) + " % of a step is spent waiting for data";
        const std::string expected = "5 % or less";
        if (*share <= 0.05) return passed(seen, expected);
        return warned(
            seen, expected,
            "more loader workers, pinned memory, a faster disk or smaller images: see the DataLoader's report");
    }
    return skipped("no training step was fed by the loader in this check run");
}

/// NCCL starts on all visible GPUs and adds up correctly.
[[nodiscard]] inline check_outcome nccl_works(const check_context& on) {
    if (!on.cuda_expected) return skipped("no GPU is used");
    if (on.cuda_devices.value_or(0) < 2) return skipped("a single GPU: nothing to reduce over");
    if (!on.nccl_all_reduce) return skipped("no NCCL here");
    const std::string problem = on.nccl_all_reduce();
    const std::string expected = "an all-reduce over the visible GPUs with the right sum";
    if (problem.empty()) return passed(std::to_string(*on.cuda_devices) + " GPUs", expected);
    return failed(problem, expected,
                  "run with NCCL_DEBUG=INFO; ACS and IOMMU settings are the usual cause (NVIDIA/nccl#606)");
}

/// Checks of measured work; their numbers come from the suite "check", run in a session of its own.
[[nodiscard]] inline std::vector<check> of_work() {
    constexpr auto fault = consequence::fault;
    std::vector<check> list;
    for (const char* family : {"gemm", "conv", "layernorm", "training_step"}) {
        const bool step = std::string(family) == "training_step";
        list.push_back({std::string("work.") + family, step ? 5 : 2, fault, step ? extent::full : extent::quick,
                        [family](const check_context& on) { return family_works(on, family); }});
    }
    list.push_back({"copy.pinned", 1, fault, extent::quick, pinned_copies_fast});
    list.push_back({"copy.pageable", 4, fault, extent::quick, pageable_copies_usual});
    list.push_back({"loader.keeps_up", 4, fault, extent::full, loader_keeps_up});
    list.push_back({"nccl.all_reduce", 1, fault, extent::full, nccl_works});
    return list;
}

} // namespace environment::checks

PLUMBLINE_NAMESPACE_END

#endif
