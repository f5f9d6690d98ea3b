// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_CUDNN_PLAN_HPP
#define PLUMBLINE_CUDA_CUDNN_PLAN_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "plumbline/cuda/cudnn/graph.hpp"
#include "plumbline/cuda/cudnn/heuristics.hpp"
#include "plumbline/result/result.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda::cudnn {

/// For whom plans are made: a handle, to run them, or a described device, to know them. Exactly one is set.
struct target {
    cudnnHandle_t handle = nullptr;
    descriptor device;
};

/// An engine that cuDNN is ready to run.
struct plan {
    descriptor executable;
    candidate from;
    std::int64_t workspace_bytes = 0;
    std::vector<std::string> passed_over; ///< engines before it in the lists, each with the reason it was not taken
};

/// Prepares a candidate, which may compile code. Throws unsupported_error or cuda_error where it cannot run here.
[[nodiscard]] inline plan build(const candidate& from, const target& to) {
    plan made;
    made.executable = descriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "plan " + engine_tag(from.facts));
    made.executable.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, from.config);
    // Later versions do not ask for the handle any more; earlier ones insist.
    if (to.handle != nullptr) made.executable.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, to.handle);
#if CUDNN_VERSION >= 91100
    if (to.device) made.executable.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, to.device);
#endif
    made.executable.finalize();
    made.from = from;
    made.workspace_bytes = made.executable.value<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
    return made;
}

/// Runs a plan once and says why it does not run, or "": cuDNN finds out about some only then.
using trial = std::function<std::string(const plan&)>;

[[nodiscard]] inline std::vector<heuristic> all_lists() {
    return {heuristic::a, heuristic::b, heuristic::fallback};
}

/// The first `count` engines that satisfy `wanted`, can be built and, with a trial, run; all of the first of `lists`
/// that has one. Throws unsupported_error with the reasons where there is none.
[[nodiscard]] inline std::vector<plan> first_plans(const descriptor& graph, const target& to,
                                                   const requirements& wanted, std::size_t count,
                                                   const std::vector<heuristic>& lists = all_lists(),
                                                   const trial& tried = {}) {
    std::vector<plan> plans;
    std::vector<std::string> passed_over;
    for (heuristic mode : lists) {
        for (const candidate& each : candidates(graph, mode, to.device)) {
            if (plans.size() == count) break;
            std::string why = refusal(each.facts, wanted);
            plan made;
            if (why.empty()) {
                try {
                    made = build(each, to);
                    // The engine foresees its workspace, the plan knows it.
                    candidate exact = each;
                    exact.facts.workspace_bytes = made.workspace_bytes;
                    why = refusal(exact.facts, wanted);
                } catch (const error& failure) {
                    why = std::string("cannot be built: ") + failure.what();
                }
            }
            if (why.empty() && tried) why = tried(made);
            if (!why.empty()) {
                passed_over.push_back(engine_tag(each.facts) + ' ' + why);
                continue;
            }
            made.passed_over = passed_over;
            plans.push_back(std::move(made));
        }
        if (!plans.empty()) return plans;
    }
    std::string reasons;
    for (std::size_t i = 0; i < passed_over.size() && i < 3; ++i) reasons += (i == 0 ? ": " : "; ") + passed_over[i];
    if (passed_over.size() > 3) reasons += "; and " + std::to_string(passed_over.size() - 3) + " more";
    throw unsupported_error("cuDNN " + std::to_string(cudnnGetVersion()) + " has no engine for the " + graph.what() +
                            (reasons.empty() ? "" : reasons));
}

/// What a plan is: "cudnn/A/eng62_k2=4_k13=0", and its parts. Numbers name the same engine only within one version of
/// cuDNN, which is in the parts; notes keep their meaning.
[[nodiscard]] inline result::evidence describe(const plan& chosen) {
    const engine_facts& facts = chosen.from.facts;
    result::evidence ran;
    ran.implementation = "cudnn/" + std::string(name(chosen.from.mode)) + '/' + engine_tag(facts);
    ran.parts["mode"] = std::string(name(chosen.from.mode));
    ran.parts["engine"] = facts.engine;
    ran.parts["knobs"] = knobs_text(facts.knobs);
    ran.parts["numerical_notes"] = numerical_notes(facts);
    ran.parts["behavior_notes"] = behavior_notes(facts);
    ran.parts["tensor_cores"] = facts.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
    ran.parts["workspace_bytes"] = chosen.workspace_bytes;
    ran.parts["position"] = chosen.from.position;
    ran.parts["candidates"] = chosen.from.candidates;
    ran.parts["passed_over"] = static_cast<std::int64_t>(chosen.passed_over.size());
    if (!chosen.passed_over.empty()) ran.parts["passed_over_first"] = chosen.passed_over.front();
    ran.parts["cudnn_version"] = static_cast<std::int64_t>(cudnnGetVersion());
    ran.parts["cudnn_cudart_version"] = static_cast<std::int64_t>(cudnnGetCudartVersion());
    return ran;
}

namespace detail {

template <class T>
[[nodiscard]] const T& part(const result::evidence& recorded, const char* name) {
    const auto at = recorded.parts.find(name);
    const T* value = at == recorded.parts.end() ? nullptr : std::get_if<T>(&at->second);
    if (value == nullptr) throw unsupported_error(std::string("the recorded plan lacks ") + name);
    return *value;
}

} // namespace detail

/// The plan that describe() told of, built again for the same graph. Its place in today's lists is not known. Throws
/// unsupported_error where it was recorded with another version, whose numbers name other engines.
[[nodiscard]] inline plan rebuild(const descriptor& graph, const target& to, const result::evidence& recorded) {
    const auto there = detail::part<std::int64_t>(recorded, "cudnn_version");
    const auto here = static_cast<std::int64_t>(cudnnGetVersion());
    if (there != here) {
        throw unsupported_error("the plan was recorded with cuDNN " + std::to_string(there) + ", this is " +
                                std::to_string(here) + ", where its numbers name other engines");
    }
    candidate same;
    same.facts.engine = detail::part<std::int64_t>(recorded, "engine");
    const auto& text = detail::part<std::string>(recorded, "knobs");
    const auto knobs = parse_knobs(text);
    const auto mode = heuristic_of(detail::part<std::string>(recorded, "mode"));
    if (!knobs || !mode) throw unsupported_error("the recorded plan has knobs or a mode that are none: " + text);
    same.facts.knobs = *knobs;
    same.config = recorded_config(graph, same.facts, to.device);
    same.facts = read_facts(same.config);
    same.mode = *mode;
    same.position = -1;
    return build(same, to);
}

} // namespace cuda::cudnn

PLUMBLINE_NAMESPACE_END

#endif
