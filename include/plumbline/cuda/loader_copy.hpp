// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_LOADER_COPY_HPP
#define PLUMBLINE_CUDA_LOADER_COPY_HPP

// Pinned batches and their way to the GPU for the DataLoader:
//
//     settings.pinned = [](cuda::backend&) { return cuda::loader_transfer(); };

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "plumbline/cuda/error.hpp"
#include "plumbline/cuda/handle.hpp"
#include "plumbline/loader/memory.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

namespace detail {

/// Device buffers of a loader, a stream of their own, and an event for each buffer.
class loader_buffers {
public:
    loader_buffers() { check(cudaGetDevice(&device_), "cudaGetDevice"); }

    void reserve(std::size_t buffers, std::size_t bytes) {
        stream_ = make_stream();
        for (std::size_t i = 0; i < buffers; ++i) {
            memory_.emplace_back(bytes);
            // The waiting thread sleeps: one that spins would take a CPU from the workers.
            done_.push_back(make_event(cudaEventDisableTiming | cudaEventBlockingSync));
        }
    }

    void start(std::size_t buffer, const std::byte* from, std::size_t bytes) {
        // The loader copies from a thread of its own, and the current device is a property of the thread.
        check(cudaSetDevice(device_), "cudaSetDevice");
        check(cudaMemcpyAsync(memory_[buffer].data(), from, bytes, cudaMemcpyHostToDevice, stream_.get()),
              "cudaMemcpyAsync", "a batch of " + std::to_string(bytes) + " bytes");
        check(cudaEventRecord(done_[buffer].get(), stream_.get()), "cudaEventRecord");
    }

    void wait(std::size_t buffer) { check(cudaEventSynchronize(done_[buffer].get()), "cudaEventSynchronize"); }

    [[nodiscard]] const void* address(std::size_t buffer) const { return memory_[buffer].data(); }

private:
    int device_ = 0;
    stream stream_;
    std::vector<device_memory> memory_;
    std::vector<event> done_;
};

} // namespace detail

/// Page-locked memory for the ring, written in place by the workers.
[[nodiscard]] inline loader::host_memory loader_memory() {
    const auto allocate = [](std::size_t bytes) {
        void* pages = nullptr;
        check(cudaHostAlloc(&pages, bytes, cudaHostAllocDefault), "cudaHostAlloc", std::to_string(bytes) + " bytes");
        return static_cast<std::byte*>(pages);
    };
    const auto release = [](std::byte* pages, std::size_t) { static_cast<void>(cudaFreeHost(pages)); };
    return {allocate, release, true};
}

/// Pinned ring and copy to the current device, on a stream of its own.
[[nodiscard]] inline loader::transfer loader_transfer() {
    const auto buffers = std::make_shared<detail::loader_buffers>();
    loader::device_copy copy;
    copy.reserve = [buffers](std::size_t count, std::size_t bytes) { buffers->reserve(count, bytes); };
    copy.start = [buffers](std::size_t at, const std::byte* from, std::size_t bytes) {
        buffers->start(at, from, bytes);
    };
    copy.wait = [buffers](std::size_t at) { buffers->wait(at); };
    copy.address = [buffers](std::size_t at) { return buffers->address(at); };
    return {loader_memory(), copy};
}

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
