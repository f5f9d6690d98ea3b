// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_PROBE_HPP
#define PLUMBLINE_CUDA_PROBE_HPP

#include <string>
#include <utility>

#include "plumbline/cuda/canary/canary.hpp"
#include "plumbline/cuda/machine/cold_start.hpp"
#include "plumbline/cuda/machine/copy.hpp"
#include "plumbline/cuda/machine/jit.hpp"
#include "plumbline/cuda/machine/latency.hpp"
#include "plumbline/cuda/machine/soak.hpp"
#include "plumbline/measure/benchmark.hpp"
#include "plumbline/workload/probe.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

namespace detail {

/// The procedure behind a probe that is not a kernel.
inline measure::procedure_result run_probe(backend& on, const workload::probe::params& p, const measure::budget& time) {
    using workload::probe::kind;
    switch (p.what) {
    case kind::launch:
        return machine::launch(on, time);
    case kind::graph_launch:
        return machine::graph_launch(on, time);
    case kind::h2d_pageable:
    case kind::d2h_pageable:
        return machine::pageable_copy(on, p, time);
    case kind::cold_context:
        return machine::cold(on, true, time);
    case kind::cold_first_launch:
        return machine::cold(on, false, time);
    case kind::cold_jit:
        return machine::jit(on, false, time);
    case kind::cold_jit_cached:
        return machine::jit(on, true, time);
    case kind::host_wake:
        return machine::host_wake(on, time);
    case kind::idle_gap:
        return machine::idle_gap(on, time);
    case kind::soak:
        return machine::soak(on);
    default:
        throw unsupported_error(workload::probe::id(p) + ": the cuda backend has no such probe");
    }
}

} // namespace detail

/// The benchmark of a probe.
[[nodiscard]] inline measure::benchmark<backend> make_probe(const workload::probe::params& p) {
    using workload::probe::kind;
    switch (p.what) {
    case kind::canary_mma:
    case kind::canary_fma:
        return measure::make_benchmark<canary::compute, backend>(p);
    case kind::canary_copy:
    case kind::h2d_pinned:
    case kind::d2h_pinned:
        return measure::make_benchmark<copy_probe, backend>(p);
    case kind::device_copy: {
        // Always a stream of copies: as a node of a graph a copy of 1 GiB takes another path, at 2.7 instead of
        // 4.2 TB/s (H200, CUDA 13.0).
        measure::benchmark<backend> made = measure::make_benchmark<copy_probe, backend>(p);
        made.graph = false;
        return made;
    }
    default:
        break;
    }
    measure::benchmark<backend> made;
    made.what = workload::probe::describe(p);
    made.measure = [p](backend& on, const measure::budget& time) { return detail::run_probe(on, p, time); };
    return made;
}

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
