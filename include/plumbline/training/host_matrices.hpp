// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TRAINING_HOST_MATRICES_HPP
#define PLUMBLINE_TRAINING_HOST_MATRICES_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plumbline/training/products.hpp"
#include "plumbline/workload/random.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace training {

/// Memory and products of host_operations.hpp.
template <class Value, class Products>
class host_matrices {
public:
    using value = Value;
    using real = real_of<Value>;
    template <class T>
    using buffer = std::vector<T>;

    /// Memory. make() leaves zeros.
    template <class T>
    [[nodiscard]] buffer<T> make(std::size_t count) {
        allocated_bytes_ += count * sizeof(T);
        return buffer<T>(count);
    }
    template <class T>
    [[nodiscard]] buffer<T> upload(const std::vector<T>& from) {
        allocated_bytes_ += from.size() * sizeof(T);
        return from;
    }
    template <class T>
    void zero(T* data, std::size_t count) {
        std::fill(data, data + count, T{});
    }
    /// element i = normal(seed, i) x deviation + mean, in fp32 in every leg.
    template <class T>
    void draw(T* data, std::int64_t count, std::uint64_t seed, float deviation, float mean) {
        for (std::int64_t i = 0; i < count; ++i) {
            data[i] = T(workload::random::normal(seed, static_cast<std::uint64_t>(i)) * deviation + mean);
        }
    }
    void convert(const real* from, value* to, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<value>(from[i]);
    }
    [[nodiscard]] std::size_t allocated_bytes() const noexcept { return allocated_bytes_; }

    /// y = x w^T [+ residual]: x rows x in, w out x in, y and residual rows x out.
    void linear(const value* x, const value* w, value* y, std::int64_t rows, std::int64_t in, std::int64_t out,
                const value* residual) {
        if (residual != nullptr) std::copy(residual, residual + rows * out, y);
        products_.multiply({rows, out, in, in, 1, 1, in, out, residual != nullptr}, x, w, y);
    }
    /// d_x = d_y w.
    void linear_backward_input(const value* d_y, const value* w, value* d_x, std::int64_t rows, std::int64_t in,
                               std::int64_t out) {
        products_.multiply({rows, in, out, out, 1, in, 1, in, false}, d_y, w, d_x);
    }
    /// d_w (+)= d_y^T x.
    void linear_backward_weight(const value* d_y, const value* x, real* d_w, std::int64_t rows, std::int64_t in,
                                std::int64_t out, bool add) {
        products_.multiply({out, in, rows, 1, out, in, 1, in, add}, d_y, x, d_w);
    }

    [[nodiscard]] Products& products() noexcept { return products_; }

protected:
    template <class T>
    [[nodiscard]] static T square(T v) noexcept {
        return v * v;
    }

    Products products_;

private:
    std::size_t allocated_bytes_ = 0;
};

} // namespace training

PLUMBLINE_NAMESPACE_END

#endif
