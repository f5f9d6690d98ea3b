// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_MEASURE_BENCHMARK_HPP
#define PLUMBLINE_MEASURE_BENCHMARK_HPP

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/measure/concepts.hpp"
#include "plumbline/result/result.hpp"
#include "plumbline/workload/modes.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace measure {

/// How a kernel is measured.
enum class regime {
    burst,     ///< short bursts between idling, so that the power cap is never reached (default)
    sustained, ///< back to back for seconds, at whatever clock the cap leaves
};

/// A kernel with its types erased: what the engine runs. Empty functions stand for members the kernel does not have.
struct prepared_kernel {
    launch run;
    std::size_t slots = 1;
    std::function<void()> verify;                   ///< poisons the output, runs once, compares with a float64
                                                    ///< reference; throws verification_error
    std::function<std::string()> output_hash;       ///< of the output of one launch on slot 0
    std::function<result::evidence()> evidence;     ///< what really ran; called after the first launch
    std::function<scalar_map()> verification_facts; ///< what verify() saw beside
    std::shared_ptr<void> keep;                     ///< owns the kernel

    /// Called before each recording with the launches in a sample and the expected device time of one.
    std::function<void(std::size_t launches, double sample_ns)> planned;
};

/// One figure a procedure returns: its own metric of the same benchmark id.
struct metric {
    std::string name; ///< "time", "throughput", "waiting_share", ...
    std::string unit; ///< "ns", "items/s", "1", ...
    direction better = direction::lower;
    std::vector<double> samples; ///< in `unit`
    std::vector<sample> raw;     ///< the timed samples behind it where there are any
    scalar_map state;
};

/// What a procedure has measured.
struct procedure_result {
    std::vector<metric> metrics;
    result::evidence ran;
    bool verified = false;
    std::vector<std::string> flags;
    bool hot = false; ///< it may have brought the device to its power cap: the next benchmark rests as after that
};

/// Time a benchmark may spend in one session, and what a procedure need not find out again in it.
struct budget {
    std::chrono::nanoseconds total{std::chrono::seconds{2}};
    scalar_map earlier = {}; ///< state of the same benchmark in the first session of this run; empty in that one
};

/// One benchmark of a suite on backend B, types erased: either a kernel (prepare) or a procedure (measure).
template <class B>
struct benchmark {
    workload::description what;
    regime how = regime::burst;
    bool graph = true;
    bool cold = true;   ///< rotate over enough buffers that nothing is in the cache by accident
    bool plans = false; ///< the library offers several plans: "best" and "pinned" mean something
    std::function<prepared_kernel(B&)> prepare;
    std::function<procedure_result(B&, const budget&)> measure;
};

/// Erases the type of kernel K: the one place where optional members are looked for.
///
/// Members of K that are used when they exist: `void verify(B&)`, `std::string output_hash(B&)`,
/// `result::evidence evidence(B&) const`, `scalar_map verification_facts(B&) const` (what verify() saw beside, added to
/// the parts of the evidence of the session that verified), and `static std::size_t slots(B&, const params&)`, the
/// number of buffer sets needed so that a cold kernel finds nothing of its own in the cache (1 when absent), and
/// `static constexpr bool has_plans` (false when absent). A member `mode` of the parameters (workload::modes) chooses
/// regime, cache state and launching.
template <class K, class B>
    requires kernel<K, B>
[[nodiscard]] benchmark<B> make_benchmark(const typename K::params& params) {
    benchmark<B> erased;
    erased.what = describe(params);
    if constexpr (requires {
                      { params.mode } -> std::convertible_to<const workload::modes&>;
                  }) {
        erased.how = params.mode.sustained ? regime::sustained : regime::burst;
        erased.cold = !params.mode.hot;
        erased.graph = !params.mode.stream;
    }
    if constexpr (requires { K::has_plans; }) erased.plans = K::has_plans;
    const bool cold = erased.cold;
    erased.prepare = [params, cold](B& on) {
        static_cast<void>(cold); // where K has no slots
        std::size_t slots = 1;
        if constexpr (requires {
                          { K::slots(on, params) } -> std::convertible_to<std::size_t>;
                      }) {
            if (cold) slots = std::max<std::size_t>(1, K::slots(on, params));
        } else {
            static_cast<void>(cold); // one set serves cold and hot alike
        }
        auto owned = std::make_shared<K>(on, params, slots);
        K* k = owned.get();
        B* b = &on;
        prepared_kernel ready;
        ready.slots = slots;
        ready.run = [k, b](std::size_t slot) { k->run(*b, slot); };
        if constexpr (requires { k->verify(on); }) ready.verify = [k, b] { k->verify(*b); };
        if constexpr (requires {
                          { k->output_hash(on) } -> std::convertible_to<std::string>;
                      }) {
            ready.output_hash = [k, b] { return k->output_hash(*b); };
        }
        if constexpr (requires {
                          { k->evidence(on) } -> std::convertible_to<result::evidence>;
                      }) {
            ready.evidence = [k, b] { return k->evidence(*b); };
        }
        if constexpr (requires {
                          { k->verification_facts(on) } -> std::convertible_to<scalar_map>;
                      }) {
            ready.verification_facts = [k, b] { return k->verification_facts(*b); };
        }
        ready.keep = std::move(owned);
        return ready;
    };
    return erased;
}

/// Says to people what is going on outside of measuring. Both functions may be called from any thread.
struct listener {
    std::function<void(const std::string&)> step; ///< what is being done right now
    std::function<void(const std::string&)> note; ///< a remark that stays
};

/// A family of benchmarks that a backend can make from ids. `make` throws usage_error when the id, whose first part
/// is the family's name, does not parse.
template <class B>
struct family {
    std::string name; ///< first part of its ids: "gemm", "probe", ...
    std::function<benchmark<B>(const std::string& id)> make;

    /// Makes what benchmarks with these ids need on disk, before a device is opened. May be empty. What it cannot
    /// make it throws as plumbline::error; then those benchmarks fail for the same reason when they are run.
    std::function<void(const std::vector<std::string>& ids, const listener& to)> prepare = {};
};

} // namespace measure

PLUMBLINE_NAMESPACE_END

#endif
