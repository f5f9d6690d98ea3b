// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_INSPECT_HPP
#define PLUMBLINE_CUDA_INSPECT_HPP

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "plumbline/cuda/backend.hpp"
#include "plumbline/workload/verify.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// How elements of the inputs and of the output of a dtype are stored.
[[nodiscard]] constexpr kernels::storage input_storage(workload::dtype type) noexcept {
    switch (type) {
    case workload::dtype::fp32:
    case workload::dtype::tf32:
        return kernels::storage::fp32;
    case workload::dtype::fp16:
        return kernels::storage::fp16;
    case workload::dtype::bf16:
        return kernels::storage::bf16;
    case workload::dtype::fp8:
        return kernels::storage::fp8;
    case workload::dtype::int8:
        return kernels::storage::int8;
    }
    return kernels::storage::fp32;
}

[[nodiscard]] constexpr kernels::storage output_storage(workload::dtype type) noexcept {
    if (type == workload::dtype::fp8) return kernels::storage::bf16;
    if (type == workload::dtype::int8) return kernels::storage::int32;
    return input_storage(type);
}

/// Fills an output with the poison of its dtype, so that an element that nothing writes is found.
inline void poison(backend& on, void* output, std::size_t bytes, workload::dtype type) {
    check(cudaMemsetAsync(output, workload::poison_byte(type), bytes, on.stream()), "cudaMemsetAsync", "output");
}

/// One value that a kernel on `on` leaves in device memory; `enqueue` is given the zeroed cell. Waits for it.
template <class Enqueue>
[[nodiscard]] std::uint64_t read_cell(backend& on, Enqueue enqueue) {
    const device_memory cell(sizeof(std::uint64_t));
    check(cudaMemsetAsync(cell.data(), 0, cell.size(), on.stream()), "cudaMemsetAsync", "cell");
    enqueue(cell.as<std::uint64_t>());
    std::uint64_t value = 0;
    check(cudaMemcpyAsync(&value, cell.data(), sizeof value, cudaMemcpyDeviceToHost, on.stream()), "cudaMemcpyAsync",
          "cell");
    on.synchronize();
    return value;
}

/// Throws verification_error if any element of an output is not finite or still as poisoned. `what` names it.
inline void require_written(backend& on, const std::string& what, const void* output, kernels::storage as,
                            std::uint64_t count) {
    const std::uint64_t bad =
        read_cell(on, [&](std::uint64_t* cell) { kernels::count_unwritten(on.stream(), output, as, count, cell); });
    if (bad == 0) return;
    constexpr double inf = std::numeric_limits<double>::infinity();
    throw verification_error(what + ": wrong result: " + std::to_string(bad) + " of " + std::to_string(count) +
                                 " elements were not written or are not finite; its time means nothing: check the "
                                 "library and the hardware",
                             inf, inf, 0);
}

/// Elements of a buffer on the device as float64, in the order of `where`.
[[nodiscard]] inline std::vector<double> gather(backend& on, const void* data, kernels::storage as,
                                                const std::vector<std::int64_t>& where) {
    std::vector<double> values(where.size());
    if (where.empty()) return values;
    const device_memory places(where.size() * sizeof where[0]);
    const device_memory found(where.size() * sizeof values[0]);
    check(cudaMemcpyAsync(places.data(), where.data(), places.size(), cudaMemcpyHostToDevice, on.stream()),
          "cudaMemcpyAsync", "places");
    kernels::gather(on.stream(), data, as, places.as<std::int64_t>(), where.size(), found.as<double>());
    check(cudaMemcpyAsync(values.data(), found.data(), found.size(), cudaMemcpyDeviceToHost, on.stream()),
          "cudaMemcpyAsync", "values");
    on.synchronize();
    return values;
}

/// workload::project of a buffer on the device.
[[nodiscard]] inline std::vector<double> project(backend& on, const void* data, kernels::storage as,
                                                 const workload::matrix_view& view, const std::vector<double>& x) {
    std::vector<double> sums(static_cast<std::size_t>(view.batch * view.rows));
    const device_memory factors(x.size() * sizeof x[0]);
    const device_memory found(sums.size() * sizeof sums[0]);
    check(cudaMemcpyAsync(factors.data(), x.data(), factors.size(), cudaMemcpyHostToDevice, on.stream()),
          "cudaMemcpyAsync", "factors");
    check(cudaMemsetAsync(found.data(), 0, found.size(), on.stream()), "cudaMemsetAsync", "sums");
    const std::int64_t step = x.size() == static_cast<std::size_t>(view.columns) ? 0 : view.columns;
    kernels::project(on.stream(), data, as, view, factors.as<double>(), step, found.as<double>());
    check(cudaMemcpyAsync(sums.data(), found.data(), found.size(), cudaMemcpyDeviceToHost, on.stream()),
          "cudaMemcpyAsync", "sums");
    on.synchronize();
    return sums;
}

/// A hash of a buffer on the device as 16 hexadecimal digits; `bytes` is even.
[[nodiscard]] inline std::string hash(backend& on, const void* data, std::size_t bytes) {
    std::uint64_t sum = read_cell(on, [&](std::uint64_t* cell) { kernels::hash(on.stream(), data, bytes, cell); });
    std::string text(16, '0');
    for (auto digit = text.rbegin(); digit != text.rend(); ++digit, sum >>= 4) *digit = "0123456789abcdef"[sum & 15];
    return text;
}

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
