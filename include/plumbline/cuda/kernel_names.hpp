// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_KERNEL_NAMES_HPP
#define PLUMBLINE_CUDA_KERNEL_NAMES_HPP

#include <cstddef>
#include <string>
#include <vector>

#include "plumbline/cuda/backend.hpp"
#include "plumbline/cuda/driver.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// What `work()` enqueues, by name and in order: kernels as the driver knows them (mangled), "memcpy", "memset". Read
/// from a captured graph, so nothing runs and no profiler is needed. Empty where the driver tells no names or the work
/// cannot be captured: this is evidence, and never a reason to fail.
template <class Work>
[[nodiscard]] std::vector<std::string> kernel_names(backend& on, Work work) {
    std::vector<std::string> names;
    try {
        const driver& calls = on.shared<driver>();
        const graph captured = capture(on.stream(), work);
        std::size_t count = 0;
        check(cudaGraphGetNodes(captured.get(), nullptr, &count), "cudaGraphGetNodes");
        std::vector<cudaGraphNode_t> nodes(count);
        check(cudaGraphGetNodes(captured.get(), nodes.data(), &count), "cudaGraphGetNodes");
        for (cudaGraphNode_t node : nodes) {
            cudaGraphNodeType type{};
            check(cudaGraphNodeGetType(node, &type), "cudaGraphNodeGetType");
            if (type == cudaGraphNodeTypeMemcpy) names.emplace_back("memcpy");
            if (type == cudaGraphNodeTypeMemset) names.emplace_back("memset");
            if (type != cudaGraphNodeTypeKernel) continue;
            names.push_back(calls.kernel_name(node));
            if (names.back().empty()) return {};
        }
    } catch (const error&) {
        return {};
    }
    return names;
}

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
