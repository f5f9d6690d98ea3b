// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_CUDNN_ERROR_HPP
#define PLUMBLINE_CUDA_CUDNN_ERROR_HPP

#include <array>
#include <cstring>
#include <string>

#include <cudnn.h>

#include "plumbline/cuda/error.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

namespace cudnn::detail {

/// What cuDNN remembers of the last failure on this thread, in one line; "" when nothing. Reading it clears it.
[[nodiscard]] inline std::string last_words() {
    std::array<char, 1024> text{};
    cudnnGetLastErrorString(text.data(), text.size() - 1);
    std::string words(text.data());
    for (char& c : words) {
        if (c == '\n' || c == '\r' || c == '\t') c = ' ';
    }
    while (!words.empty() && words.back() == ' ') words.pop_back();
    return words;
}

/// What a person can do about a failing call; empty when nothing better than cuDNN's own words can be said.
[[nodiscard]] inline const char* remedy(cudnnStatus_t status) noexcept {
    switch (status) {
    case CUDNN_STATUS_NOT_INITIALIZED:
        return "cuDNN could not start: is there a GPU, and does its driver match the CUDA runtime (bench --check)?";
    case CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH:
    case CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED:
        return "parts of cuDNN are missing or of different versions: see LD_LIBRARY_PATH and bench --fingerprint";
    case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
        return "free device memory or choose a smaller size";
    default:
        return "";
    }
}

} // namespace cudnn::detail

/// Throws cuda_error unless `status` is success; unsupported_error when cuDNN says it cannot do this. `object` says
/// what the call was working on.
inline void check(cudnnStatus_t status, const char* api, const std::string& object = {}, where at = where::here()) {
    if (status == CUDNN_STATUS_SUCCESS) return;
    // cuDNN may leave a runtime error behind, which the next launch would be blamed for.
    static_cast<void>(cudaGetLastError());
    std::string message =
        std::string(api) + (object.empty() ? "" : " for " + object) + ": " + cudnnGetErrorString(status);
    const std::string words = cudnn::detail::last_words();
    if (!words.empty()) message += " (" + words + ")";
    if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) throw unsupported_error(message, at);
    if (*cudnn::detail::remedy(status) != '\0') message += std::string("; ") + cudnn::detail::remedy(status);
    throw cuda_error(static_cast<int>(status), api, message, at);
}

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
