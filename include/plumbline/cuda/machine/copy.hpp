// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_MACHINE_COPY_HPP
#define PLUMBLINE_CUDA_MACHINE_COPY_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "plumbline/cuda/canary/canary.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// Copies of one buffer: canary_copy (our frozen kernel), device_copy (the driver's), h2d_pinned and d2h_pinned.
/// Each buffer set has a source of random data and a destination.
class copy_probe {
public:
    using params = workload::probe::params;
    using kind = workload::probe::kind;

    /// Within the device: enough sets to leave the cache. Over the link: two, alternating.
    [[nodiscard]] static std::size_t slots(const backend& on, const params& p) {
        if (!within_device(p.what)) return 2;
        return cold_slots(2 * static_cast<std::size_t>(p.bytes), on.device().l2_bytes);
    }

    copy_probe(backend& on, const params& p, std::size_t slots)
        : params_(p), bytes_(static_cast<std::size_t>(p.bytes)), stride_((bytes_ + 255) / 256 * 256),
          source_(stride_ * slots), slots_(slots) {
        if (p.what == kind::canary_copy) {
            if (bytes_ % 16 != 0) throw unsupported_error(name() + ": the canary copies multiples of 16 bytes");
            loaded_ = &on.shared<canary::code>();
        }
        // Filled on the device in any case: making as much random data on the host takes seconds.
        kernels::fill_normal(on.stream(), source_.data(), kernels::storage::fp32, source_.size() / 4, seed);
        if (within_device(p.what) || p.what == kind::h2d_pinned) target_ = device_memory(stride_ * slots);
        if (!within_device(p.what)) host_ = pinned_memory(stride_ * slots);
        if (p.what == kind::h2d_pinned) {
            check(cudaMemcpyAsync(host_.data(), source_.data(), source_.size(), cudaMemcpyDeviceToHost, on.stream()),
                  "cudaMemcpyAsync", "pinned source");
        }
        on.synchronize();
    }

    void run(backend& on, std::size_t slot) {
        if (loaded_ != nullptr) {
            void* to = to_at(slot);
            const void* from = from_at(slot);
            unsigned long long count = bytes_ / 16;
            void* arguments[] = {&to, &from, &count};
            // 2048 groups of 16 bytes for each block of 512 threads: part of the frozen code.
            loaded_->calls.launch(loaded_->copy, static_cast<unsigned>((count + 2047) / 2048), 512, on.stream(),
                                  arguments);
            return;
        }
        const cudaError_t status = cudaMemcpyAsync(to_at(slot), from_at(slot), bytes_, cudaMemcpyDefault, on.stream());
        if (status != cudaSuccess) check(status, "cudaMemcpyAsync", name());
    }

    /// Poisons the destinations of the first and the last set, copies, and compares with the source.
    void verify(backend& on) {
        verify_slot(on, 0);
        if (slots_ > 1) verify_slot(on, slots_ - 1);
    }

    [[nodiscard]] result::evidence evidence(backend& on) const {
        if (loaded_ != nullptr) return canary::describe_code(on, loaded_->copy);
        result::evidence ran;
        ran.implementation = "cudaMemcpyAsync";
        return ran;
    }

private:
    static constexpr std::uint64_t seed = 0x6370;

    [[nodiscard]] static bool within_device(kind what) noexcept {
        return what == kind::canary_copy || what == kind::device_copy;
    }

    [[nodiscard]] char* from_at(std::size_t slot) const noexcept {
        char* const base = params_.what == kind::h2d_pinned ? host_.as<char>() : source_.as<char>();
        return base + slot * stride_;
    }
    [[nodiscard]] char* to_at(std::size_t slot) const noexcept {
        char* const base = params_.what == kind::d2h_pinned ? host_.as<char>() : target_.as<char>();
        return base + slot * stride_;
    }

    void verify_slot(backend& on, std::size_t slot) {
        char* const to = to_at(slot);
        if (params_.what == kind::d2h_pinned)
            std::memset(to, 0xff, bytes_);
        else
            check(cudaMemsetAsync(to, 0xff, bytes_, on.stream()), "cudaMemsetAsync", name());
        run(on, slot);
        on.synchronize();
        const std::size_t even = bytes_ / 2 * 2;
        // The source is on the device also where the copy starts from the host; pinned memory is read over the link.
        const char* const copied = params_.what == kind::d2h_pinned ? host_.on_device<char>() + slot * stride_ : to;
        const char* const original = source_.as<char>() + slot * stride_;
        if (hash(on, copied, even) == hash(on, original, even)) return;
        constexpr double inf = std::numeric_limits<double>::infinity();
        throw verification_error(name() + ": the copy differs from its source: check the GPU's memory and its link",
                                 inf, inf, 0);
    }

    [[nodiscard]] std::string name() const { return workload::probe::id(params_); }

    params params_;
    std::size_t bytes_;
    std::size_t stride_;
    device_memory source_;
    std::size_t slots_;
    device_memory target_;
    pinned_memory host_;
    canary::code* loaded_ = nullptr; ///< owned by the backend; nullptr: the driver copies
};

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
