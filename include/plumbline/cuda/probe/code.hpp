// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_PROBE_CODE_HPP
#define PLUMBLINE_CUDA_PROBE_CODE_HPP

#include <string>

#include <cuda_runtime_api.h>

#include "plumbline/cuda/probe/runtime.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda::probe {

/// Where the code of a kernel came from, by its attributes: "machine code sm_90", or "compiled from PTX compute_80 by
/// the driver". The driver compiles for the device it runs on, so code for exactly this device made from PTX of an
/// older one was compiled now. PTX of the device's own architecture looks like machine code here; growth of the JIT
/// cache (environment/jit_cache.hpp) tells the two apart.
[[nodiscard]] inline std::string describe_code(int binary_version, int ptx_version, int capability) {
    if (binary_version == capability && ptx_version < binary_version) {
        return "compiled from PTX compute_" + std::to_string(ptx_version) + " by the driver";
    }
    return "machine code sm_" + std::to_string(binary_version);
}

/// Records where the code of `kernel` (a __global__ function of the program) came from.
inline void read_code(result::fingerprint& into, const void* kernel, int ordinal) {
    environment::recorder out(into, "cudart");
    cudaFuncAttributes attributes{};
    const cudaError_t status = cudaFuncGetAttributes(&attributes, kernel);
    int major = 0, minor = 0;
    if (status == cudaErrorNoKernelImageForDevice) {
        static_cast<void>(cudaGetLastError());
        out.config("cuda.device_code", 2, result::reading::of(std::string("none for this GPU in the program")));
        return;
    }
    if (status != cudaSuccess ||
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal) != cudaSuccess ||
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, ordinal) != cudaSuccess) {
        out.config("cuda.device_code", 2, failed_call(status, "cudaFuncGetAttributes"));
        return;
    }
    out.config("cuda.device_code", 2,
               result::reading::of(describe_code(attributes.binaryVersion, attributes.ptxVersion, major * 10 + minor)));
}

} // namespace cuda::probe

PLUMBLINE_NAMESPACE_END

#endif
