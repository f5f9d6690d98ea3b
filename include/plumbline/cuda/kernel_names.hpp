// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_KERNEL_NAMES_HPP
#define PLUMBLINE_CUDA_KERNEL_NAMES_HPP

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/cuda/backend.hpp"
#include "plumbline/cuda/cupti.hpp"
#include "plumbline/cuda/driver.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// What work enqueues, by name and in order: kernels as the driver knows them (mangled), "memcpy", "memset".
struct kernel_list {
    std::vector<std::string> names;
    std::string source;  ///< "graph" or "cupti"; empty where neither tells
    std::string problem; ///< why not, then
};

/// The kernels of `work()` by capturing it into a graph: nothing runs, and no profiler is needed. Throws error where
/// the driver tells no names (before 12.3) or the work cannot be captured.
template <class Work>
[[nodiscard]] std::vector<std::string> kernels_in_graph(backend& on, Work work) {
    const driver& calls = on.shared<driver>();
    const graph captured = capture(on.stream(), work);
    std::size_t count = 0;
    check(cudaGraphGetNodes(captured.get(), nullptr, &count), "cudaGraphGetNodes");
    std::vector<cudaGraphNode_t> nodes(count);
    check(cudaGraphGetNodes(captured.get(), nodes.data(), &count), "cudaGraphGetNodes");
    std::vector<std::string> names;
    for (cudaGraphNode_t node : nodes) {
        cudaGraphNodeType type{};
        check(cudaGraphNodeGetType(node, &type), "cudaGraphNodeGetType");
        if (type == cudaGraphNodeTypeMemcpy) names.emplace_back("memcpy");
        if (type == cudaGraphNodeTypeMemset) names.emplace_back("memset");
        if (type != cudaGraphNodeTypeKernel) continue;
        names.push_back(calls.kernel_name(node));
        if (names.back().empty()) throw unsupported_error("the driver does not tell the names of kernels");
    }
    return names;
}

/// The kernels of `work()` by running it once while CUPTI listens. Throws error where CUPTI is not at hand.
template <class Work>
[[nodiscard]] std::vector<std::string> kernels_by_cupti(backend& on, Work work) {
    const cupti::loaded library = cupti::load(cupti::usual_places());
    if (!library.calls) throw unsupported_error("CUPTI: " + library.problem);
    on.synchronize();
    const cupti::listener ears(*library.calls);
    work();
    on.synchronize(); // before it detaches
    return ears.names();
}

/// What `work()` enqueues: from a graph, else by CUPTI in this pass of its own, else why it is not known. This is
/// evidence, and never a reason to fail. Not to be called between timed samples.
template <class Work>
[[nodiscard]] kernel_list list_kernels(backend& on, Work work) {
    std::string problem;
    try {
        return {kernels_in_graph(on, work), "graph", {}};
    } catch (const error& failed) {
        problem = failed.what();
    }
    try {
        return {kernels_by_cupti(on, work), "cupti", {}};
    } catch (const error& failed) {
        problem += std::string("; ") + failed.what();
    }
    return {{}, {}, problem};
}

/// Adds the kernels of `work()` to evidence, with the source of their names, or why they are not known.
template <class Work>
void add_kernels(result::evidence& to, backend& on, Work work) {
    kernel_list found = list_kernels(on, work);
    to.kernels = std::move(found.names);
    if (!found.source.empty()) to.parts["kernel_names"] = found.source;
    if (!found.problem.empty()) to.parts["kernel_names_unknown"] = found.problem;
}

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
