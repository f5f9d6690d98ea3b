// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_LOADER_COPY_HPP
#define PLUMBLINE_CUDA_LOADER_COPY_HPP

// Pinned batches and their way to the GPU for the DataLoader:
//
//     settings.pinned = [](cuda::backend& on) { return cuda::loader_transfer(on.shared<cuda::pinned_pool>()); };

#include <cstddef>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
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

/// Page-locked memory that waits for the next loader: pinning the ring of 16 workers takes the driver a second.
/// One thread at a time; freed with the pool, which must outlive all that was taken from it.
class pinned_pool {
public:
    [[nodiscard]] std::byte* take(std::size_t bytes) {
        auto& same = free_[bytes];
        if (same.empty()) same.emplace_back(bytes);
        pinned_memory block = std::move(same.back());
        same.pop_back();
        std::byte* const pages = block.as<std::byte>();
        taken_.emplace(pages, std::move(block));
        return pages;
    }
    void give_back(std::byte* pages) noexcept {
        auto block = taken_.extract(pages);
        if (block.empty()) return;
        // Without memory for the list the block is freed instead.
        try {
            free_[block.mapped().size()].push_back(std::move(block.mapped()));
        } catch (const std::bad_alloc&) {
        }
    }

private:
    std::map<std::size_t, std::vector<pinned_memory>> free_; ///< by size
    std::map<std::byte*, pinned_memory> taken_;
};

/// Page-locked memory for the ring, written in place by the workers; `from` must outlive it.
[[nodiscard]] inline loader::host_memory loader_memory(pinned_pool& from) {
    return {[&from](std::size_t bytes) { return from.take(bytes); },
            [&from](std::byte* pages, std::size_t) { from.give_back(pages); }, true};
}

/// Pinned ring, of the memory of `ring`, and copy to the current device, on a stream of its own.
[[nodiscard]] inline loader::transfer loader_transfer(pinned_pool& ring) {
    const auto buffers = std::make_shared<detail::loader_buffers>();
    loader::device_copy copy;
    copy.reserve = [buffers](std::size_t count, std::size_t bytes) { buffers->reserve(count, bytes); };
    copy.start = [buffers](std::size_t at, const std::byte* from, std::size_t bytes) {
        buffers->start(at, from, bytes);
    };
    copy.wait = [buffers](std::size_t at) { buffers->wait(at); };
    copy.address = [buffers](std::size_t at) { return buffers->address(at); };
    return {loader_memory(ring), copy};
}

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
