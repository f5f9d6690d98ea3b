// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_PROBE_CUDNN_HPP
#define PLUMBLINE_CUDA_PROBE_CUDNN_HPP

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <cudnn.h>

#include "plumbline/cuda/cudnn/heuristics.hpp"
#include "plumbline/environment/reader.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda::probe {

namespace detail {

/// Each part of cuDNN compares its version with those it depends on: "agree", or what each one that does not says.
[[nodiscard]] inline result::reading sublibraries() {
    std::vector<std::string> problems;
    for (const auto& [name, check] :
         {std::pair{"graph", &cudnnGraphVersionCheck}, std::pair{"ops", &cudnnOpsVersionCheck},
          std::pair{"cnn", &cudnnCnnVersionCheck}, std::pair{"adv", &cudnnAdvVersionCheck}}) {
        const cudnnStatus_t status = check();
        if (status != CUDNN_STATUS_SUCCESS) {
            problems.push_back(std::string(name) + ": " + cudnnGetErrorString(status));
        }
    }
    return result::reading::of(problems.empty() ? std::string("agree") : environment::detail::join(problems, "; "));
}

} // namespace detail

/// cuDNN: versions, what it was made for, and whether its parts agree. Needs no GPU; loads all parts of cuDNN.
inline void read_cudnn(result::fingerprint& into) {
    environment::recorder out(into, "cudnn");
    out.config("cudnn.compiled_version", 2, result::reading::of(std::int64_t{CUDNN_VERSION}));
    out.config("cudnn.version", 2, result::reading::of(static_cast<std::int64_t>(cudnnGetVersion())));
    out.config("cudnn.cudart_version", 2, result::reading::of(static_cast<std::int64_t>(cudnnGetCudartVersion())));
    out.config("cudnn.max_device_version", 2,
               result::reading::of(static_cast<std::int64_t>(cudnnGetMaxDeviceVersion())));
    out.config("cudnn.sublibraries", 2, detail::sublibraries());
}

/// The device as cuDNN describes it to its own heuristics, as JSON: with it, cuDNN answers for this device on any
/// machine. From cuDNN 9.8 on; the layout of the JSON is cuDNN's own business.
[[nodiscard]] inline result::reading device_json(int ordinal) {
    try {
        return result::reading::of(cudnn::device_json(ordinal));
    } catch (const error& failure) {
        return result::reading::unsupported(failure.what());
    }
}

} // namespace cuda::probe

PLUMBLINE_NAMESPACE_END

#endif
