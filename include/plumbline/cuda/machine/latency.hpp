// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_MACHINE_LATENCY_HPP
#define PLUMBLINE_CUDA_MACHINE_LATENCY_HPP

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "plumbline/cuda/canary/canary.hpp"
#include "plumbline/cuda/machine/repeat.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// What the host pays to get work onto the device and to learn that it is done. All times are the host's.
namespace cuda::machine {

namespace detail {

/// Two metrics of something that is enqueued: "time", until it is done, and "enqueue", the call alone among 32.
inline measure::procedure_result enqueue_and_done(backend& on, const measure::budget& time,
                                                  const std::function<void()>& enqueue) {
    constexpr int in_a_row = 32; // far fewer than the launch queue holds, so that none waits for room
    for (int i = 0; i < 3; ++i) enqueue();
    on.synchronize();
    const measure::budget half{time.total / 2};
    measure::procedure_result found;
    found.metrics.push_back(time_metric("time", repeat(half, 30, [&] {
                                            return host_time_ns([&] {
                                                enqueue();
                                                on.synchronize();
                                            });
                                        })));
    found.metrics.push_back(time_metric("enqueue", repeat(half, 30, [&] {
                                            const double all = host_time_ns([&] {
                                                for (int i = 0; i < in_a_row; ++i) enqueue();
                                            });
                                            on.synchronize();
                                            return all / in_a_row;
                                        })));
    found.ran.implementation = on.can_hold() ? "asynchronous" : "blocking"; // CUDA_LAUNCH_BLOCKING, a profiler
    return found;
}

} // namespace detail

/// launch: one empty kernel.
[[nodiscard]] inline measure::procedure_result launch(backend& on, const measure::budget& time) {
    return detail::enqueue_and_done(on, time, [&on] { kernels::nothing(on.stream()); });
}

/// graph_launch: a graph of 20 empty kernels.
[[nodiscard]] inline measure::procedure_result graph_launch(backend& on, const measure::budget& time) {
    measure::recording_request how;
    how.launches = 20;
    backend::recording tape = on.record([&on](std::size_t) { kernels::nothing(on.stream()); }, how);
    return detail::enqueue_and_done(on, time, [&] { tape.enqueue(on.stream()); });
}

/// host_wake: from the end of a kernel of 300 us, as a spinning thread sees it in pinned memory, until a thread that
/// sleeps in cudaEventSynchronize runs again. Needs a second free core to be exact.
[[nodiscard]] inline measure::procedure_result host_wake(backend& on, const measure::budget& time) {
    const event done = make_event(cudaEventBlockingSync | cudaEventDisableTiming);
    const pinned_memory cell(sizeof(unsigned));
    auto& seen = *cell.as<unsigned>();
    seen = 0;
    unsigned round = 0;
    const auto once = [&] {
        ++round;
        std::chrono::steady_clock::time_point ended;
        std::thread watcher([&] {
            const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(5);
            do {
                ended = std::chrono::steady_clock::now();
            } while (std::atomic_ref<unsigned>(seen).load(std::memory_order_acquire) != round && ended < give_up);
        });
        std::chrono::steady_clock::time_point woken;
        try {
            kernels::spin_and_signal(on.stream(), 300000, cell.on_device<unsigned>(), round);
            check(cudaEventRecord(done.get(), on.stream()), "cudaEventRecord");
            check(cudaEventSynchronize(done.get()), "cudaEventSynchronize", on.place());
            woken = std::chrono::steady_clock::now();
        } catch (...) {
            watcher.join();
            throw;
        }
        watcher.join();
        // The watcher may itself have been off its core; a wake before it saw the end is then as good as none.
        return std::max(std::chrono::duration<double, std::nano>(woken - ended).count(), 1.0);
    };
    static_cast<void>(once());
    measure::procedure_result found;
    found.metrics.push_back(time_metric("time", repeat(time, 30, once)));
    found.ran.implementation = "cudaEventBlockingSync";
    return found;
}

/// idle_gap: one launch of the FMA canary, until the host sees its end, after pauses of growing length: "time" after
/// 100 ms, "time_after_1ms", "time_after_10ms", "time_after_400ms".
[[nodiscard]] inline measure::procedure_result idle_gap(backend& on, const measure::budget& time) {
    workload::probe::params p = workload::probe::of(workload::probe::kind::canary_fma);
    canary::compute kernel(on, p, 1);
    const auto after = [&](std::chrono::milliseconds pause) {
        on.idle(pause);
        return host_time_ns([&] {
            kernel.run(on, 0);
            on.synchronize();
        });
    };
    static_cast<void>(after(std::chrono::milliseconds(1)));
    measure::procedure_result found;
    for (const int pause : {100, 1, 10, 400}) {
        const std::string name = pause == 100 ? "time" : "time_after_" + std::to_string(pause) + "ms";
        found.metrics.push_back(
            time_metric(name, repeat({time.total / 4}, 5, [&] { return after(std::chrono::milliseconds(pause)); })));
    }
    found.ran = kernel.evidence(on);
    return found;
}

/// h2d_pageable and d2h_pageable: host time of copying `bytes` between ordinary memory, two buffers in turn, and the
/// device.
[[nodiscard]] inline measure::procedure_result pageable_copy(backend& on, const workload::probe::params& p,
                                                             const measure::budget& time) {
    const auto bytes = static_cast<std::size_t>(p.bytes);
    const bool to_device = p.what == workload::probe::kind::h2d_pageable;
    const device_memory original((bytes + 15) / 16 * 16);
    const device_memory copied(original.size());
    kernels::fill_normal(on.stream(), original.data(), kernels::storage::fp32, original.size() / 4, 0x7067);
    std::vector<std::vector<char>> host(2, std::vector<char>(original.size()));
    for (auto& buffer : host) {
        check(cudaMemcpyAsync(buffer.data(), original.data(), buffer.size(), cudaMemcpyDeviceToHost, on.stream()),
              "cudaMemcpyAsync", "pageable buffer");
        on.synchronize();
    }
    std::size_t turn = 0;
    const auto once = [&] {
        char* const buffer = host[turn++ % 2].data();
        return host_time_ns([&] {
            check(to_device ? cudaMemcpyAsync(copied.data(), buffer, bytes, cudaMemcpyHostToDevice, on.stream())
                            : cudaMemcpyAsync(buffer, original.data(), bytes, cudaMemcpyDeviceToHost, on.stream()),
                  "cudaMemcpyAsync", "pageable buffer");
            on.synchronize();
        });
    };
    static_cast<void>(once());
    measure::procedure_result found;
    found.metrics.push_back(time_metric("time", repeat(time, 10, once)));
    found.ran.implementation = "cudaMemcpyAsync";
    // What is compared on the device is the last buffer that took part, sent there again where it was a destination.
    check(cudaMemcpyAsync(copied.data(), host[(turn - 1) % 2].data(), original.size(), cudaMemcpyHostToDevice,
                          on.stream()),
          "cudaMemcpyAsync", "pageable buffer");
    const std::size_t even = bytes / 2 * 2;
    if (hash(on, copied.data(), even) != hash(on, original.data(), even)) {
        throw verification_error(workload::probe::id(p) + ": the copy differs from its source: check the host's memory",
                                 1, 1, 0);
    }
    found.verified = true;
    return found;
}

} // namespace cuda::machine

PLUMBLINE_NAMESPACE_END

#endif
