// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_CATALOGUE_HPP
#define PLUMBLINE_CUDA_CATALOGUE_HPP

#include <string>
#include <utility>
#include <vector>

#include "plumbline/cuda/backend.hpp"
#include "plumbline/cuda/conv.hpp"
#include "plumbline/cuda/gemm.hpp"
#include "plumbline/cuda/library_norm.hpp"
#include "plumbline/cuda/loader_copy.hpp"
#include "plumbline/cuda/loader_training.hpp"
#include "plumbline/cuda/probe.hpp"
#include "plumbline/cuda/training_step.hpp"
#include "plumbline/loader/family.hpp"
#include "plumbline/measure/benchmark.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// The families that this backend can make benchmarks of; `data` is what those of the DataLoader read.
[[nodiscard]] inline std::vector<measure::family<backend>> catalogue(loader::inputs data = loader::default_inputs()) {
    loader::family_settings<backend> loading;
    loading.data = std::move(data);
    loading.pinned = [](backend& on) { return loader_transfer(on.shared<pinned_pool>()); };
    loading.trained = loader_training_id;
    loading.training_step = loader_training;
    return {
        {"conv",
         [](const std::string& id) { return measure::make_benchmark<conv, backend>(workload::conv::parse(id)); }},
        {"gemm",
         [](const std::string& id) { return measure::make_benchmark<gemm, backend>(workload::gemm::parse(id)); }},
        {"layernorm", [](const std::string& id) { return make_norm(workload::layernorm::parse(id)); }},
        {"probe", [](const std::string& id) { return make_probe(workload::probe::parse(id)); }},
        {"training_step", make_training_step},
        loader::family(std::move(loading)),
    };
}

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
