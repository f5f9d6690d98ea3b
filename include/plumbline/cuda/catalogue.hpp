// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_CATALOGUE_HPP
#define PLUMBLINE_CUDA_CATALOGUE_HPP

#include <string>
#include <vector>

#include "plumbline/cuda/backend.hpp"
#include "plumbline/cuda/gemm.hpp"
#include "plumbline/cuda/probe.hpp"
#include "plumbline/measure/benchmark.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// The families that this backend can make benchmarks of.
[[nodiscard]] inline std::vector<measure::family<backend>> catalogue() {
    return {
        {"gemm",
         [](const std::string& id) { return measure::make_benchmark<gemm, backend>(workload::gemm::parse(id)); }},
        {"probe", [](const std::string& id) { return make_probe(workload::probe::parse(id)); }},
    };
}

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
