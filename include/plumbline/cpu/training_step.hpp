// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CPU_TRAINING_STEP_HPP
#define PLUMBLINE_CPU_TRAINING_STEP_HPP

#include <cstdint>
#include <string>

#include "plumbline/cpu/backend.hpp"
#include "plumbline/cpu/gemm.hpp"
#include "plumbline/cpu/products.hpp"
#include "plumbline/measure/benchmark.hpp"
#include "plumbline/training/fixture.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cpu {

/// The operators of a training step on the CPU: products, and convolutions as products of patches, by oneDNN with all
/// its threads; everything else by one thread in plain loops, which is a small part of the time.
template <class Value>
class training_operations : public training::host_operations<Value, onednn_products> {
public:
    /// Throws unsupported_error where the processor has no bf16 arithmetic.
    training_operations(backend&, const workload::training_step::params& p) {
        if (p.type == workload::dtype::bf16 && !has_native_bf16()) {
            throw unsupported_error(workload::training_step::id(p) + ": this processor has no bf16 arithmetic");
        }
    }

    [[nodiscard]] result::evidence evidence() {
        result::evidence found;
        found.implementation = this->products().implementation();
        found.parts["library"] = "onednn " + onednn::version();
        if (const auto count = onednn::threads()) found.parts["threads"] = static_cast<std::int64_t>(*count);
        return found;
    }
};

template <class Value, template <class> class Model>
using training_step = training::fixture<backend, training_operations<Value>, Model>;

/// The benchmark of an id of the family; legs that need tensor cores say so when they are run.
[[nodiscard]] inline measure::benchmark<backend> make_training_step(const std::string& id) {
    using namespace workload::training_step;
    const params p = parse(id);
    const bool transformer = p.net == network::transformer;
    switch (p.type) {
    case workload::dtype::fp32:
        return transformer ? measure::make_benchmark<training_step<float, training::transformer>, backend>(p)
                           : measure::make_benchmark<training_step<float, training::bottleneck>, backend>(p);
    case workload::dtype::bf16:
        return transformer
                   ? measure::make_benchmark<training_step<training::bfloat16, training::transformer>, backend>(p)
                   : measure::make_benchmark<training_step<training::bfloat16, training::bottleneck>, backend>(p);
    default: {
        measure::benchmark<backend> refused;
        refused.what = describe(p);
        refused.prepare = [id](backend&) -> measure::prepared_kernel {
            throw unsupported_error(id + ": the CPU backend trains in fp32 and bf16");
        };
        return refused;
    }
    }
}

} // namespace cpu

PLUMBLINE_NAMESPACE_END

#endif
