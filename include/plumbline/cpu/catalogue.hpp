// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CPU_CATALOGUE_HPP
#define PLUMBLINE_CPU_CATALOGUE_HPP

#include <string>
#include <utility>
#include <vector>

#include "plumbline/cpu/backend.hpp"
#include "plumbline/cpu/conv.hpp"
#include "plumbline/cpu/gemm.hpp"
#include "plumbline/cpu/layernorm.hpp"
#include "plumbline/cpu/loader_training.hpp"
#include "plumbline/cpu/probe.hpp"
#include "plumbline/cpu/training_step.hpp"
#include "plumbline/loader/family.hpp"
#include "plumbline/measure/benchmark.hpp"
#include "plumbline/measure/host_wake.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cpu {

namespace detail {

/// The benchmark of a probe id. Probes of a device that is not there are benchmarks that say so when they are run.
[[nodiscard]] inline measure::benchmark<backend> make_probe(const std::string& id) {
    using workload::probe::kind;
    const workload::probe::params p = workload::probe::parse(id);
    measure::benchmark<backend> made;
    made.what = workload::probe::describe(p);
    switch (p.what) {
    case kind::canary_fma:
        made = measure::make_benchmark<probe::canary_fma, backend>(p);
        made.what.flop = canary::fma_flop;
        break;
    case kind::canary_copy:
        made = measure::make_benchmark<probe::canary_copy, backend>(p);
        break;
    case kind::device_copy:
        made = measure::make_benchmark<probe::device_copy, backend>(p);
        break;
    case kind::launch:
        made = measure::make_benchmark<probe::launch, backend>(p);
        break;
    case kind::cold_first_launch:
        made.measure = probe::cold_first_launch;
        break;
    case kind::host_wake:
        made.measure = [](backend&, const measure::budget& time) { return measure::measure_host_wake(time); };
        break;
    default:
        made.prepare = [id](backend&) -> measure::prepared_kernel {
            throw unsupported_error(id + ": the CPU backend has no device to probe");
        };
    }
    return made;
}

} // namespace detail

/// The families that this backend can make benchmarks of; `data` is what those of the DataLoader read.
[[nodiscard]] inline std::vector<measure::family<backend>> catalogue(loader::inputs data = loader::default_inputs()) {
    const auto make_conv = [](const std::string& id) {
        return measure::make_benchmark<conv, backend>(workload::conv::parse(id));
    };
    const auto make_gemm = [](const std::string& id) {
        return measure::make_benchmark<gemm, backend>(workload::gemm::parse(id));
    };
    const auto make_norm = [](const std::string& id) {
        return measure::make_benchmark<layernorm, backend>(workload::layernorm::parse(id));
    };
    loader::family_settings<backend> loading;
    loading.data = std::move(data);
    loading.trained = loader_training_id;
    loading.training_step = loader_training;
    return {{"conv", make_conv},
            {"gemm", make_gemm},
            {"layernorm", make_norm},
            {"probe", detail::make_probe},
            {"training_step", make_training_step},
            loader::family(std::move(loading))};
}

} // namespace cpu

PLUMBLINE_NAMESPACE_END

#endif
