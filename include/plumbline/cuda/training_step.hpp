// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_TRAINING_STEP_HPP
#define PLUMBLINE_CUDA_TRAINING_STEP_HPP

#include <string>

#include "plumbline/cuda/training_device.hpp"
#include "plumbline/measure/benchmark.hpp"
#include "plumbline/training/fixture.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// One optimizer step on a GPU; as a graph it is one launch. Its scalars never leave the device in between.
template <class Value, template <class> class Model>
using training_step = training::fixture<backend, training_operations<Value, training_device<Value>>, Model>;

/// The benchmark of an id of the family.
[[nodiscard]] inline measure::benchmark<backend> make_training_step(const std::string& id) {
    using namespace workload::training_step;
    const params p = parse(id);
    const auto of_leg = [&p](auto value) {
        using Value = decltype(value);
        return p.net == network::transformer
                   ? measure::make_benchmark<training_step<Value, training::transformer>, backend>(p)
                   : measure::make_benchmark<training_step<Value, training::bottleneck>, backend>(p);
    };
    switch (p.type) {
    case workload::dtype::fp16:
        return of_leg(training::float16{});
    case workload::dtype::bf16:
        return of_leg(training::bfloat16{});
    default:
        return of_leg(float{});
    }
}

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
