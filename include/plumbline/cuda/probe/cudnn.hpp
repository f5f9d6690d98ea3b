// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_PROBE_CUDNN_HPP
#define PLUMBLINE_CUDA_PROBE_CUDNN_HPP

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <cudnn.h>

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

/// A descriptor of the backend API that is destroyed with its scope.
class descriptor {
public:
    explicit descriptor(cudnnBackendDescriptorType_t type) { status_ = cudnnBackendCreateDescriptor(type, &handle_); }
    descriptor(const descriptor&) = delete;
    descriptor& operator=(const descriptor&) = delete;
    ~descriptor() {
        if (status_ == CUDNN_STATUS_SUCCESS) static_cast<void>(cudnnBackendDestroyDescriptor(handle_));
    }
    [[nodiscard]] cudnnStatus_t status() const noexcept { return status_; }
    [[nodiscard]] cudnnBackendDescriptor_t get() const noexcept { return handle_; }

private:
    cudnnBackendDescriptor_t handle_ = nullptr;
    cudnnStatus_t status_ = CUDNN_STATUS_NOT_INITIALIZED;
};

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
#if CUDNN_VERSION >= 90800
    const auto failed = [](cudnnStatus_t status, const char* call) {
        return result::reading::unsupported(std::string(call) + ": " + cudnnGetErrorString(status));
    };
    const detail::descriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    if (properties.status() != CUDNN_STATUS_SUCCESS) {
        return failed(properties.status(), "cudnnBackendCreateDescriptor(DEVICEPROP)");
    }
    const std::int32_t device = ordinal;
    cudnnStatus_t status =
        cudnnBackendSetAttribute(properties.get(), CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1, &device);
    if (status != CUDNN_STATUS_SUCCESS) return failed(status, "cudnnBackendSetAttribute(DEVICE_ID)");
    status = cudnnBackendFinalize(properties.get());
    if (status != CUDNN_STATUS_SUCCESS) return failed(status, "cudnnBackendFinalize(DEVICEPROP)");
    std::int64_t size = 0;
    status = cudnnBackendGetAttribute(properties.get(), CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0,
                                      &size, nullptr);
    if (status != CUDNN_STATUS_SUCCESS || size <= 0) return failed(status, "cudnnBackendGetAttribute(JSON)");
    std::string text(static_cast<std::size_t>(size), '\0');
    status = cudnnBackendGetAttribute(properties.get(), CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                      size, &size, text.data());
    if (status != CUDNN_STATUS_SUCCESS) return failed(status, "cudnnBackendGetAttribute(JSON)");
    text.resize(std::min(text.size(), text.find('\0'))); // the size may count the end mark
    return result::reading::of(text);
#else
    static_cast<void>(ordinal);
    return result::reading::unsupported("cuDNN before 9.8 does not describe a device");
#endif
}

} // namespace cuda::probe

PLUMBLINE_NAMESPACE_END

#endif
