// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_CUDNN_ENGINE_HPP
#define PLUMBLINE_CUDA_CUDNN_ENGINE_HPP

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "plumbline/cuda/cudnn/descriptor.hpp"
#include "plumbline/result/result.hpp"
#include "plumbline/workload/dtype.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda::cudnn {

/// The lists cuDNN answers a graph with. A: fast, most graphs. B: more accurate, more host time. Fallback: engines that
/// are only meant to work. "Instant", an old name of A, is not offered.
enum class heuristic { a, b, fallback };

[[nodiscard]] constexpr std::string_view name(heuristic mode) noexcept {
    switch (mode) {
    case heuristic::a:
        return "A";
    case heuristic::b:
        return "B";
    case heuristic::fallback:
        return "FALLBACK";
    }
    return "?";
}

[[nodiscard]] constexpr std::optional<heuristic> heuristic_of(std::string_view text) noexcept {
    for (heuristic mode : {heuristic::a, heuristic::b, heuristic::fallback}) {
        if (name(mode) == text) return mode;
    }
    return std::nullopt;
}

/// One setting of an engine: a cudnnBackendKnobType_t and its value.
struct knob {
    std::int64_t type = 0;
    std::int64_t value = 0;
    bool operator==(const knob&) const = default;
};

/// What cuDNN says of an engine with its knobs set: everything but how fast it is.
struct engine_facts {
    std::int64_t engine = -1; ///< global index; names the same engine only within one version of cuDNN
    std::vector<knob> knobs;
    std::int64_t workspace_bytes = 0;
    std::vector<cudnnBackendNumericalNote_t> numerical;
    std::vector<cudnnBackendBehaviorNote_t> behavior;

    bool operator==(const engine_facts&) const = default;

    [[nodiscard]] bool has(cudnnBackendNumericalNote_t note) const noexcept {
        return std::find(numerical.begin(), numerical.end(), note) != numerical.end();
    }
    [[nodiscard]] bool has(cudnnBackendBehaviorNote_t note) const noexcept {
        return std::find(behavior.begin(), behavior.end(), note) != behavior.end();
    }
};

/// Asks an engine configuration, as the heuristics give it, what it is.
[[nodiscard]] inline engine_facts read_facts(const descriptor& config) {
    engine_facts found;
    const auto engines =
        config.descriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine of " + config.what());
    if (engines.size() != 1) throw error(config.what() + " has " + std::to_string(engines.size()) + " engines, not 1");
    const descriptor& engine = engines.front();
    found.engine = engine.value<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
    found.numerical = engine.values<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
    found.behavior = engine.values<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE);
    std::sort(found.numerical.begin(), found.numerical.end());
    std::sort(found.behavior.begin(), found.behavior.end());
    for (const descriptor& each :
         config.descriptors(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                            "knob of " + config.what(), CUDNN_KNOB_TYPE_COUNTS)) {
        found.knobs.push_back({each.value<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE),
                               each.value<std::int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE)});
    }
    found.workspace_bytes = config.value<std::int64_t>(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE);
    return found;
}

/// "k2=4_k13=0": knobs in cuDNN's order, types as numbers.
[[nodiscard]] inline std::string knobs_text(const std::vector<knob>& knobs) {
    std::string text;
    for (const knob& each : knobs) {
        text += (text.empty() ? "k" : "_k") + std::to_string(each.type) + '=' + std::to_string(each.value);
    }
    return text;
}

/// The knobs of knobs_text(); nothing when it is not one.
[[nodiscard]] inline std::optional<std::vector<knob>> parse_knobs(std::string_view text) {
    std::vector<knob> knobs;
    const char* at = text.data();
    const char* const end = at + text.size();
    const auto take = [&](char before, std::int64_t& into) {
        if (at == end || *at != before) return false;
        const auto [stop, failure] = std::from_chars(at + 1, end, into);
        at = stop;
        return failure == std::errc{};
    };
    while (at != end) {
        if (!knobs.empty() && *at++ != '_') return std::nullopt;
        knob each;
        if (!take('k', each.type) || !take('=', each.value)) return std::nullopt;
        knobs.push_back(each);
    }
    return knobs;
}

/// "eng62_k2=4_k13=0": the name cudnn-frontend and the logs of frameworks use for it.
[[nodiscard]] inline std::string engine_tag(const engine_facts& facts) {
    const std::string knobs = knobs_text(facts.knobs);
    return "eng" + std::to_string(facts.engine) + (knobs.empty() ? "" : "_") + knobs;
}

namespace detail {

/// Names of notes joined by '+'; "none" without any, a number where this file does not know one.
template <class Note, std::size_t N>
std::string note_names(const std::vector<Note>& notes, const std::array<const char*, N>& names) {
    std::string text;
    for (Note note : notes) {
        const auto at = static_cast<std::size_t>(note);
        if (!text.empty()) text += '+';
        text += at < N ? std::string(names[at]) : "note" + std::to_string(at);
    }
    return text.empty() ? "none" : text;
}

} // namespace detail

/// "tensor_core+nondeterministic": how the engine computes.
[[nodiscard]] inline std::string numerical_notes(const engine_facts& facts) {
    constexpr std::array<const char*, 10> names{"tensor_core",
                                                "down_convert_inputs",
                                                "reduced_precision_reduction",
                                                "fft",
                                                "nondeterministic",
                                                "winograd",
                                                "winograd_4x4",
                                                "winograd_6x6",
                                                "winograd_13x13",
                                                "strict_nan_prop"};
    return detail::note_names(facts.numerical, names);
}

/// "runtime_compilation+cublaslt": what else the engine needs or offers.
[[nodiscard]] inline std::string behavior_notes(const engine_facts& facts) {
    constexpr std::array<const char*, 5> names{"runtime_compilation", "int8x32_filter_reorder", "int8x32_bias_reorder",
                                               "native_cuda_graph", "cublaslt"};
    return detail::note_names(facts.behavior, names);
}

/// What a plan must satisfy to be taken.
struct requirements {
    workload::dtype type = workload::dtype::bf16;
    bool deterministic = false;
    std::int64_t workspace_limit = std::int64_t{1} << 30; ///< bytes
};

/// Why an engine must not be taken, or "". fp32 is computed in TF32 by every engine with the tensor-core note, and
/// engines that convert fp32 or tf32 inputs to 16 bits compute something else than was asked.
[[nodiscard]] inline std::string refusal(const engine_facts& facts, const requirements& wanted) {
    const bool single = wanted.type == workload::dtype::fp32 || wanted.type == workload::dtype::tf32;
    if (wanted.type == workload::dtype::fp32 && facts.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) return "computes in TF32";
    if (single && facts.has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)) return "converts its inputs to 16 bits";
    if (wanted.deterministic && facts.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return "is not deterministic";
    if (facts.workspace_bytes > wanted.workspace_limit) {
        return "needs a workspace of " + std::to_string(facts.workspace_bytes) + " bytes";
    }
    return "";
}

} // namespace cuda::cudnn

PLUMBLINE_NAMESPACE_END

#endif
