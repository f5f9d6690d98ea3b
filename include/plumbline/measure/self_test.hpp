// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_MEASURE_SELF_TEST_HPP
#define PLUMBLINE_MEASURE_SELF_TEST_HPP

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "plumbline/core/error.hpp"
#include "plumbline/measure/settings.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace measure {

/// A backend that can spend a given device time doing nothing: spin() enqueues it as if it were a launch (so it can be
/// captured into a graph); a spin of 0 still costs what enqueueing one costs.
template <class B>
concept spinner = backend<B> && requires(B& b, nanoseconds time) {
    b.spin(time);
};

/// What every spin lasts at least, control and planted.
inline constexpr nanoseconds spin_floor = std::chrono::microseconds(3);

/// The same benchmark with a known slowdown planted: once per sample a spin of `fraction` of the sample's time.
///
/// The spin is `spin_floor` longer than that: an empty kernel takes 1 to 2 us anyway, which a shorter spin would hide.
/// The fraction 0 is the control, so that control and planted benchmark differ by the fraction alone. The description
/// stays as it is, so that a comparison takes both for the same work. Throws usage_error for a procedure, which has no
/// samples to plant into, and for a fraction that is negative or not finite.
template <spinner B>
[[nodiscard]] benchmark<B> plant_slowdown(benchmark<B> what, double fraction) {
    if (!what.prepare) {
        throw usage_error(what.what.id + " is a procedure: a slowdown can be planted into kernels only");
    }
    if (!(fraction >= 0) || !std::isfinite(fraction)) {
        throw usage_error(what.what.id + ": a planted slowdown is a fraction >= 0, 0.01 for one percent");
    }
    struct state {
        std::size_t launches = 1; ///< in a sample
        std::size_t done = 0;     ///< of them
        nanoseconds spin = spin_floor;
    };
    what.prepare = [inner = std::move(what.prepare), fraction](B& on) {
        prepared_kernel ready = inner(on);
        auto now = std::make_shared<state>();
        B* b = &on;
        ready.run = [run = std::move(ready.run), now, b](std::size_t slot) {
            run(slot);
            if (++now->done < now->launches) return;
            now->done = 0;
            b->spin(now->spin);
        };
        ready.planned = [planned = std::move(ready.planned), now, fraction](std::size_t launches, double sample_ns) {
            if (planned) planned(launches, sample_ns);
            now->launches = launches;
            now->done = 0;
            now->spin = spin_floor + nanoseconds(static_cast<std::int64_t>(std::llround(fraction * sample_ns)));
        };
        return ready;
    };
    return what;
}

} // namespace measure

PLUMBLINE_NAMESPACE_END

#endif
