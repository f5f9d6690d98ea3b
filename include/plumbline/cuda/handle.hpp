// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_HANDLE_HPP
#define PLUMBLINE_CUDA_HANDLE_HPP

#include <cstddef>
#include <string>
#include <utility>

#include "plumbline/cuda/error.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// Owns one handle of a C API and releases it with `Release`; move-only. A failing release is ignored: it can only
/// mean that the context is already lost, and destructors do not throw.
template <class Handle, auto Release>
class unique_handle {
public:
    unique_handle() noexcept = default;
    explicit unique_handle(Handle handle) noexcept : handle_(handle) {}
    unique_handle(unique_handle&& other) noexcept : handle_(std::exchange(other.handle_, Handle{})) {}
    unique_handle& operator=(unique_handle&& other) noexcept {
        if (this != &other) {
            reset();
            handle_ = std::exchange(other.handle_, Handle{});
        }
        return *this;
    }
    ~unique_handle() { reset(); }

    [[nodiscard]] Handle get() const noexcept { return handle_; }
    explicit operator bool() const noexcept { return handle_ != Handle{}; }

    void reset() noexcept {
        if (handle_ != Handle{}) static_cast<void>(Release(std::exchange(handle_, Handle{})));
    }

    /// Where a creating call writes its handle; what was owned before is released.
    [[nodiscard]] Handle* out() noexcept {
        reset();
        return &handle_;
    }

private:
    Handle handle_{};
};

using stream = unique_handle<cudaStream_t, cudaStreamDestroy>;
using event = unique_handle<cudaEvent_t, cudaEventDestroy>;
using graph = unique_handle<cudaGraph_t, cudaGraphDestroy>;
using graph_exec = unique_handle<cudaGraphExec_t, cudaGraphExecDestroy>;

/// A stream that does not wait for the legacy default stream.
[[nodiscard]] inline stream make_stream() {
    stream made;
    check(cudaStreamCreateWithFlags(made.out(), cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    return made;
}

/// An event that takes time stamps; waiting for it spins.
[[nodiscard]] inline event make_event(unsigned flags = cudaEventDefault) {
    event made;
    check(cudaEventCreateWithFlags(made.out(), flags), "cudaEventCreateWithFlags");
    return made;
}

/// Device time between two events that have both happened, ns.
[[nodiscard]] inline double elapsed_ns(const event& begin, const event& end) {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) * 1e6;
}

/// Owns device memory; aligned to at least 256 bytes.
class device_memory {
public:
    device_memory() noexcept = default;
    explicit device_memory(std::size_t bytes, where at = where::here()) : bytes_(bytes) {
        if (bytes == 0) return;
        check(cudaMalloc(memory_.out(), bytes), "cudaMalloc", std::to_string(bytes) + " bytes", at);
    }

    [[nodiscard]] void* data() const noexcept { return memory_.get(); }
    [[nodiscard]] std::size_t size() const noexcept { return bytes_; }

    template <class T>
    [[nodiscard]] T* as() const noexcept {
        return static_cast<T*>(memory_.get());
    }

private:
    unique_handle<void*, cudaFree> memory_;
    std::size_t bytes_ = 0;
};

/// Owns page-locked host memory that the device can also reach (mapped, portable).
class pinned_memory {
public:
    pinned_memory() noexcept = default;
    explicit pinned_memory(std::size_t bytes, where at = where::here()) : bytes_(bytes) {
        if (bytes == 0) return;
        check(cudaHostAlloc(memory_.out(), bytes, cudaHostAllocMapped | cudaHostAllocPortable), "cudaHostAlloc",
              std::to_string(bytes) + " bytes", at);
    }

    [[nodiscard]] void* data() const noexcept { return memory_.get(); }
    [[nodiscard]] std::size_t size() const noexcept { return bytes_; }

    template <class T>
    [[nodiscard]] T* as() const noexcept {
        return static_cast<T*>(memory_.get());
    }

    /// The same memory as the device sees it.
    template <class T>
    [[nodiscard]] T* on_device() const {
        void* pointer = nullptr;
        check(cudaHostGetDevicePointer(&pointer, memory_.get(), 0), "cudaHostGetDevicePointer");
        return static_cast<T*>(pointer);
    }

private:
    unique_handle<void*, cudaFreeHost> memory_;
    std::size_t bytes_ = 0;
};

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
