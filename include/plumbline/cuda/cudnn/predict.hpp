// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_CUDNN_PREDICT_HPP
#define PLUMBLINE_CUDA_CUDNN_PREDICT_HPP

#include <string>
#include <vector>

#include "plumbline/cuda/cudnn/convolution.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda::cudnn {

/// The evidence that the cuDNN of this process would give on a described device, without that device, a GPU or a
/// driver: which engine it would run, with which knobs and notes. `device_json` is what device_json() said there, the
/// device property "cudnn.device" of a baseline. The plan is the library's own choice, whatever plan p's mode asks for.
///
/// Equal to what the fixture records on the device as long as that device builds the first engine offered, and this
/// machine is offered it: nothing is loaded or launched here, and where there is no driver cuDNN leaves out the engines
/// that are matrix products inside (seen with 9.19 and filters of 1x1: eng58, eng63, eng62 with one knob). The part
/// "offered_engines" has those that were offered, as engine_tag() writes them, between blanks. Throws unsupported_error
/// where this cuDNN answers for no described device (before 9.8), refuses the description, or has no engine for p.
///
/// NVIDIA_TF32_OVERRIDE of this process counts, as it would there.
[[nodiscard]] inline result::evidence predict(const std::string& device_json, const workload::conv::params& p) {
    const descriptor device = device_properties(device_json);
    const descriptor graph = conv_graph(p);
    const plan first = first_plans(graph, {nullptr, device}, requirements_of(p), 1, lists_of(p)).front();
    result::evidence ran = describe(first);
    std::string offered = " ";
    for (const candidate& each : candidates(graph, first.from.mode, device)) offered += engine_tag(each.facts) + ' ';
    ran.parts["offered_engines"] = offered;
    return ran;
}

} // namespace cuda::cudnn

PLUMBLINE_NAMESPACE_END

#endif
