// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_CUDNN_HEURISTICS_HPP
#define PLUMBLINE_CUDA_CUDNN_HEURISTICS_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/cuda/cudnn/engine.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda::cudnn {

/// The device heuristics answer for, where that is not the one of a handle. Needs cuDNN 9.8; throws unsupported_error
/// before, and for an architecture that this cuDNN does not have. The layout of the JSON is cuDNN's own; device_json()
/// of a real device gives it. usage_error for a text that is no such description.
[[nodiscard]] inline descriptor device_properties(const std::string& json) {
#if CUDNN_VERSION >= 90800
    // Real ones have about 1 KiB. cuDNN's reader recurses: 200,000 brackets overflow its stack.
    constexpr std::size_t longest = 16384;
    const auto refuse = [](const std::string& why) -> usage_error {
        return usage_error("\"cudnn.device\" is no description of a device that cuDNN reads: " + why +
                           "; the baseline was edited or damaged: restore it, or measure anew");
    };
    if (json.size() > longest) throw refuse(std::to_string(json.size()) + " bytes");
    descriptor made(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "device properties");
    // cuDNN counts the end mark.
    const std::vector<char> text(json.c_str(), json.c_str() + json.size() + 1);
    try {
        return made.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, text).finalize();
    } catch (const unsupported_error&) {
        throw;
    } catch (const error& e) {
        throw refuse(e.what());
    }
#else
    static_cast<void>(json);
    throw unsupported_error("cuDNN before 9.8 answers for the device of this process only");
#endif
}

/// Device `ordinal` as cuDNN describes it to its own heuristics; with it, cuDNN answers for this device on any machine.
[[nodiscard]] inline std::string device_json(int ordinal) {
#if CUDNN_VERSION >= 90800
    descriptor made(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "properties of device " + std::to_string(ordinal));
    made.set(CUDNN_ATTR_DEVICEPROP_DEVICE_ID, std::int32_t{ordinal}).finalize();
    return made.text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
#else
    static_cast<void>(ordinal);
    throw unsupported_error("cuDNN before 9.8 does not describe a device");
#endif
}

/// The engines cuDNN proposes for a graph, best estimate first; none where the list has none. The graph has a handle,
/// or `device` says for which device is asked. Mode B is not to be asked from two threads at once.
[[nodiscard]] inline std::vector<descriptor> engine_configs(const descriptor& graph, heuristic mode,
                                                            const descriptor& device = {}) {
    constexpr cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK};
    descriptor asked(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "heuristics of " + graph.what());
    asked.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
        .set(CUDNN_ATTR_ENGINEHEUR_MODE, modes[static_cast<std::size_t>(mode)]);
#if CUDNN_VERSION >= 90800
    if (device) asked.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
#else
    static_cast<void>(device);
#endif
    try {
        asked.finalize();
    } catch (const unsupported_error&) {
        return {}; // this list has nothing for such a graph
    }
    return asked.descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                             "engine of " + graph.what());
}

/// An engine cuDNN proposed, and where in its lists.
struct candidate {
    descriptor config;
    engine_facts facts;
    heuristic mode = heuristic::a;
    std::int64_t position = 0;   ///< in the list of its mode, best estimate first; -1: not from a list
    std::int64_t candidates = 0; ///< length of that list
};

/// The engines of one list and what they are, best estimate first.
[[nodiscard]] inline std::vector<candidate> candidates(const descriptor& graph, heuristic mode,
                                                       const descriptor& device = {}) {
    const std::vector<descriptor> configs = engine_configs(graph, mode, device);
    std::vector<candidate> listed;
    for (std::size_t i = 0; i < configs.size(); ++i) {
        listed.push_back({configs[i], read_facts(configs[i]), mode, static_cast<std::int64_t>(i),
                          static_cast<std::int64_t>(configs.size())});
    }
    return listed;
}

/// The engine configuration that `facts` names, for replaying a recorded plan; throws unsupported_error or cuda_error
/// where this cuDNN has no such engine or knob.
[[nodiscard]] inline descriptor recorded_config(const descriptor& graph, const engine_facts& facts,
                                                const descriptor& device = {}) {
    descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR,
                      "engine " + std::to_string(facts.engine) + " of " + graph.what());
    engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph).set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, facts.engine);
#if CUDNN_VERSION >= 90800
    if (device) engine.set(CUDNN_ATTR_ENGINE_DEVICEPROP, device);
#else
    static_cast<void>(device);
#endif
    engine.finalize();
    std::vector<descriptor> knobs;
    for (const knob& each : facts.knobs) {
        descriptor choice(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, "knob " + std::to_string(each.type));
        choice.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, static_cast<cudnnBackendKnobType_t>(each.type))
            .set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, each.value)
            .finalize();
        knobs.push_back(choice);
    }
    descriptor config(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "recorded " + engine_tag(facts) + " of " + graph.what());
    config.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
    if (!knobs.empty()) config.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, knobs);
    return config.finalize();
}

} // namespace cuda::cudnn

PLUMBLINE_NAMESPACE_END

#endif
