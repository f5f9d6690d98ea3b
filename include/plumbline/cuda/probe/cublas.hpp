// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_PROBE_CUBLAS_HPP
#define PLUMBLINE_CUDA_PROBE_CUBLAS_HPP

#include <cstdint>
#include <string>

#include <cublasLt.h>
#include <dlfcn.h>

#include "plumbline/environment/reader.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda::probe {

namespace detail {

/// cublasGetVersion wants a handle, and so a GPU; cublasGetProperty does not. cuBLAS itself need not be linked:
/// where it is not mapped, it did nothing here.
[[nodiscard]] inline result::reading cublas_version() {
    using property_call = int (*)(int, int*);
    const auto call = reinterpret_cast<property_call>(::dlsym(RTLD_DEFAULT, "cublasGetProperty"));
    if (call == nullptr) return result::reading::absent("libcublas is not loaded");
    int major = 0, minor = 0, patch = 0;
    if (call(MAJOR_VERSION, &major) != 0 || call(MINOR_VERSION, &minor) != 0 || call(PATCH_LEVEL, &patch) != 0) {
        return result::reading::unsupported("cublasGetProperty failed");
    }
    return result::reading::of(std::int64_t{major} * 10000 + minor * 100 + patch);
}

} // namespace detail

/// cuBLAS and cuBLASLt: versions, the runtime they were made for, and how many heuristic answers are kept. Needs no
/// GPU.
inline void read_cublas(result::fingerprint& into) {
    environment::recorder out(into, "cublaslt");
    out.config("cublas.version", 2, detail::cublas_version());
    out.config("cublaslt.version", 2, result::reading::of(static_cast<std::int64_t>(cublasLtGetVersion())));
    out.config("cublaslt.cudart_version", 2,
               result::reading::of(static_cast<std::int64_t>(cublasLtGetCudartVersion())));
    std::size_t capacity = 0;
    const cublasStatus_t status = cublasLtHeuristicsCacheGetCapacity(&capacity);
    out.config("cublaslt.heuristics_cache", 2,
               status == CUBLAS_STATUS_SUCCESS
                   ? result::reading::of(static_cast<std::int64_t>(capacity))
                   : result::reading::unsupported(std::string("cublasLtHeuristicsCacheGetCapacity: ") +
                                                  cublasLtGetStatusName(status)));
}

} // namespace cuda::probe

PLUMBLINE_NAMESPACE_END

#endif
