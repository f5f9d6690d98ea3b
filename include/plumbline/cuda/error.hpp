// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_ERROR_HPP
#define PLUMBLINE_CUDA_ERROR_HPP

#include <string>

#include <cuda_runtime_api.h>

#include "plumbline/core/error.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// A CUDA runtime, driver or library call that failed; `status` is the number the API returned, `api` the call.
class cuda_error : public error {
public:
    cuda_error(int status, std::string api, const std::string& message, where at = where::here())
        : error(message, exit_code::incomplete, at), status_(status), api_(std::move(api)) {}

    [[nodiscard]] int status() const noexcept { return status_; }
    [[nodiscard]] const std::string& api() const noexcept { return api_; }

private:
    int status_;
    std::string api_;
};

/// What a person can do about a failing runtime call; empty when nothing better than the name can be said.
[[nodiscard]] inline const char* remedy(cudaError_t status) noexcept {
    switch (status) {
    case cudaErrorMemoryAllocation:
        return "free device memory (nvidia-smi lists the processes that hold it) or choose a smaller size";
    case cudaErrorNoDevice:
    case cudaErrorDevicesUnavailable:
        return "check nvidia-smi, CUDA_VISIBLE_DEVICES and, in a container, NVIDIA_VISIBLE_DEVICES";
    case cudaErrorInsufficientDriver:
        return "there is no NVIDIA driver, or it is older than this CUDA runtime: install or update the driver";
    case cudaErrorNoKernelImageForDevice:
        return "the program holds no code for this GPU: rebuild with its architecture in CMAKE_CUDA_ARCHITECTURES";
    case cudaErrorSystemDriverMismatch:
        return "kernel module and user-space driver disagree: reboot, or restart the container";
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
        return "this work cannot be captured into a graph: measure it as a stream of launches (/stream)";
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
        return "the device context is lost: run again, under compute-sanitizer to find the kernel";
    default:
        return "";
    }
}

/// Throws cuda_error unless `status` is success. `object` says what the call was working on.
inline void check(cudaError_t status, const char* api, const std::string& object = {}, where at = where::here()) {
    if (status == cudaSuccess) return;
    // The last error is cleared, so that the next check does not report this one again.
    static_cast<void>(cudaGetLastError());
    std::string message = std::string(api) + (object.empty() ? "" : " on " + object) + ": " + cudaGetErrorName(status) +
                          " (" + cudaGetErrorString(status) + ")";
    if (*remedy(status) != '\0') message += std::string("; ") + remedy(status);
    throw cuda_error(static_cast<int>(status), api, message, at);
}

/// Throws if the launch before this call failed; `kernel` is its name.
inline void check_launch(const char* kernel, where at = where::here()) {
    check(cudaGetLastError(), "kernel launch", kernel, at);
}

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
