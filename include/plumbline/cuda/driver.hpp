// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_DRIVER_HPP
#define PLUMBLINE_CUDA_DRIVER_HPP

#include <string>
#include <utility>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "plumbline/cuda/error.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// The few calls of the driver API that have no equivalent in every CUDA 12 runtime. They are asked of the runtime,
/// so that no program links libcuda and all start on machines without a driver.
class driver {
public:
    driver() {
        find(load_data_, "cuModuleLoadDataEx");
        find(unload_, "cuModuleUnload");
        find(get_function_, "cuModuleGetFunction");
        find(launch_, "cuLaunchKernel");
        find(attribute_, "cuFuncGetAttribute");
        find(error_name_, "cuGetErrorName");
        find_if_there(node_params_, "cuGraphKernelNodeGetParams", 12000);
        // Since CUDA 12.3; older drivers tell no names.
        find_if_there(function_name_, "cuFuncGetName", 12030);
        find_if_there(kernel_name_, "cuKernelGetName", 12030);
    }

    /// Loads machine code or PTX, as text or as a fat binary. Refused code (no image for this GPU, PTX newer than the
    /// driver) is unsupported_error.
    [[nodiscard]] CUmodule load(const void* image, const std::string& what) const {
        CUmodule loaded = nullptr;
        check_driver(load_data_(&loaded, image, 0, nullptr, nullptr), "cuModuleLoadDataEx", what);
        return loaded;
    }

    void unload(CUmodule loaded) const noexcept { static_cast<void>(unload_(loaded)); }

    [[nodiscard]] CUfunction function(CUmodule from, const char* name) const {
        CUfunction found = nullptr;
        check_driver(get_function_(&found, from, name), "cuModuleGetFunction", name);
        return found;
    }

    [[nodiscard]] int attribute(CUfunction of, CUfunction_attribute which) const {
        int value = 0;
        check_driver(attribute_(&value, which, of), "cuFuncGetAttribute", std::to_string(which));
        return value;
    }

    /// The (mangled) name of the kernel of a graph's kernel node; "" where the driver does not tell.
    [[nodiscard]] std::string kernel_name(cudaGraphNode_t node) const {
        CUDA_KERNEL_NODE_PARAMS kernel{};
        const char* name = nullptr;
        if (node_params_ == nullptr || node_params_(node, &kernel) != CUDA_SUCCESS) return {};
        CUresult told = CUDA_ERROR_NOT_SUPPORTED;
        if (kernel.func != nullptr && function_name_ != nullptr) told = function_name_(&name, kernel.func);
        if (kernel.func == nullptr && kernel_name_ != nullptr) told = kernel_name_(&name, kernel.kern);
        return told == CUDA_SUCCESS && name != nullptr ? name : "";
    }

    /// Enqueues a one-dimensional launch.
    void launch(CUfunction kernel, unsigned blocks, unsigned threads, cudaStream_t on, void** arguments) const {
        const CUresult status = launch_(kernel, blocks, 1, 1, threads, 1, 1, 0, on, arguments, nullptr);
        if (status != CUDA_SUCCESS) check_driver(status, "cuLaunchKernel", "");
    }

private:
    /// The address of a driver function as of CUDA `version`, or nullptr where the driver has none.
    [[nodiscard]] static void* look_up(const char* symbol, unsigned version) {
        void* address = nullptr;
        cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
        const cudaError_t status =
            cudaGetDriverEntryPointByVersion(symbol, &address, version, cudaEnableDefault, &found);
#else
        static_cast<void>(version); // the runtime asks for its own version
        const cudaError_t status = cudaGetDriverEntryPoint(symbol, &address, cudaEnableDefault, &found);
#endif
        if (status == cudaSuccess && found == cudaDriverEntryPointSuccess) return address;
        static_cast<void>(cudaGetLastError());
        return nullptr;
    }

    template <class Function>
    static void find_if_there(Function& entry, const char* symbol, unsigned version) {
        entry = reinterpret_cast<Function>(look_up(symbol, version));
    }

    template <class Function>
    static void find(Function& entry, const char* symbol) {
        find_if_there(entry, symbol, 12000);
        if (entry == nullptr) throw unsupported_error("the driver has no " + std::string(symbol));
    }

    void check_driver(CUresult status, const char* api, const std::string& object) const {
        if (status == CUDA_SUCCESS) return;
        const char* name = nullptr;
        if (error_name_(status, &name) != CUDA_SUCCESS || name == nullptr) name = "unknown error";
        const std::string message = std::string(api) + (object.empty() ? "" : " for " + object) + ": " + name;
        switch (status) {
        case CUDA_ERROR_NO_BINARY_FOR_GPU:
        case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
        case CUDA_ERROR_INVALID_PTX:
        case CUDA_ERROR_INVALID_IMAGE:
        case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
            throw unsupported_error(message + "; this driver cannot run that code on this GPU");
        default:
            throw cuda_error(static_cast<int>(status), api, message);
        }
    }

    decltype(&cuModuleLoadDataEx) load_data_ = nullptr;
    decltype(&cuModuleUnload) unload_ = nullptr;
    decltype(&cuModuleGetFunction) get_function_ = nullptr;
    decltype(&cuLaunchKernel) launch_ = nullptr;
    decltype(&cuFuncGetAttribute) attribute_ = nullptr;
    decltype(&cuGetErrorName) error_name_ = nullptr;
    decltype(&cuGraphKernelNodeGetParams) node_params_ = nullptr;
    CUresult (*function_name_)(const char**, CUfunction) = nullptr;
    CUresult (*kernel_name_)(const char**, CUkernel) = nullptr;
};

/// Owns a loaded module.
class code_module {
public:
    code_module(const driver& by, const void* image, const std::string& what)
        : driver_(&by), loaded_(by.load(image, what)) {}
    code_module(code_module&& other) noexcept
        : driver_(other.driver_), loaded_(std::exchange(other.loaded_, nullptr)) {}
    code_module& operator=(code_module&&) = delete;
    ~code_module() {
        if (loaded_ != nullptr) driver_->unload(loaded_);
    }

    [[nodiscard]] CUfunction function(const char* name) const { return driver_->function(loaded_, name); }

private:
    const driver* driver_; ///< outlives the module
    CUmodule loaded_;
};

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
