// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CPU_BACKEND_HPP
#define PLUMBLINE_CPU_BACKEND_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "plumbline/measure/concepts.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cpu {

/// The host's processors as a place to run: launches are plain calls that return when their work is done, time is
/// std::chrono::steady_clock. There is no clock to read without privileges, so every sample counts as clean.
class backend {
public:
    using clock = std::chrono::steady_clock;

    /// A prepared sample: the launches themselves, and where the rotation over the buffer sets stands.
    class recording {
    public:
        recording(measure::launch run, const measure::recording_request& how) : run_(std::move(run)), how_(how) {}

    private:
        friend class backend;
        measure::launch run_;
        measure::recording_request how_;
        std::size_t slot_ = 0;
    };

    backend() : resolution_ns_(measured_resolution_ns()) {}

    [[nodiscard]] std::string_view name() const noexcept { return "cpu"; }

    /// Smallest step seen between two readings of the clock, which includes what a reading costs.
    [[nodiscard]] double timer_resolution_ns() const noexcept { return resolution_ns_; }

    [[nodiscard]] bool has_clock() const noexcept { return false; }

    [[nodiscard]] recording record(const measure::launch& run, const measure::recording_request& how) {
        return recording(run, how);
    }

    /// Runs `samples` samples, one after the other; errors of a launch come through.
    [[nodiscard]] std::vector<measure::sample> play(recording& tape, std::size_t samples) {
        std::vector<measure::sample> taken(samples);
        for (measure::sample& each : taken) {
            const clock::time_point begin = clock::now();
            for (std::size_t i = 0; i < tape.how_.launches; ++i) {
                tape.run_(tape.slot_);
                if (++tape.slot_ == tape.how_.slots) tape.slot_ = 0;
            }
            each.elapsed_ns = std::chrono::duration<double, std::nano>(clock::now() - begin).count();
        }
        return taken;
    }

    void synchronize() noexcept {} // launches have ended when they return

    void idle(std::chrono::nanoseconds pause) { std::this_thread::sleep_for(pause); }

    /// Keeps this thread busy for `time`: the planted slowdown of the self-test.
    void spin(std::chrono::nanoseconds time) noexcept {
        const clock::time_point end = clock::now() + time;
        while (clock::now() < end) {
        }
    }

private:
    [[nodiscard]] static double measured_resolution_ns() {
        double step = 1e9;
        for (int i = 0; i < 200; ++i) {
            const clock::time_point begin = clock::now();
            clock::time_point end = clock::now();
            while (end == begin) end = clock::now();
            step = std::min(step, std::chrono::duration<double, std::nano>(end - begin).count());
        }
        return step;
    }

    double resolution_ns_;
};

static_assert(measure::backend<backend>);

} // namespace cpu

PLUMBLINE_NAMESPACE_END

#endif
