// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_WORKLOAD_DESCRIPTION_HPP
#define PLUMBLINE_WORKLOAD_DESCRIPTION_HPP

#include <string>

#include "plumbline/core/hash.hpp"
#include "plumbline/core/scalar.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// Which way a metric gets better.
enum class direction { lower, higher };

/// What a benchmark is to the statistics: each class has its own starting noise and margin (compare/policy.hpp).
enum class benchmark_class { kernel, sustained, training_step, dataloader, host, imported };

/// The names of the classes in files, policies and messages.
[[nodiscard]] constexpr const char* to_string(benchmark_class kind) noexcept {
    switch (kind) {
    case benchmark_class::kernel:
        return "kernel";
    case benchmark_class::sustained:
        return "sustained";
    case benchmark_class::training_step:
        return "training_step";
    case benchmark_class::dataloader:
        return "dataloader";
    case benchmark_class::host:
        return "host";
    case benchmark_class::imported:
        return "imported";
    }
    return "unknown";
}

namespace workload {

/// What is timed, free of any backend: the id, the parameters that define the work, and the work by formula.
struct description {
    std::string id;     ///< family/variant/dtype/layout/size[/implementation][/mode...], made from the parameters
    std::string family; ///< "gemm", "conv", "layernorm", "training_step", "dataloader", "probe", or the user's own
    scalar_map params;  ///< every parameter that defines what is computed; a change of any changes the hash
    benchmark_class kind = benchmark_class::kernel;
    std::string metric = "time";
    std::string unit = "ns";
    direction better = direction::lower;
    double flop = 0;  ///< floating-point operations of one launch by formula; 0 where it has no meaning
    double bytes = 0; ///< fewest bytes one launch must move through memory by formula; 0 where it has no meaning

    /// workload.hash of the baseline file: two results may be compared only if it is equal.
    [[nodiscard]] std::string hash() const {
        scalar_map all = params;
        all["family"] = family;
        all["metric"] = metric;
        return short_hash(all);
    }
};

} // namespace workload

PLUMBLINE_NAMESPACE_END

#endif
