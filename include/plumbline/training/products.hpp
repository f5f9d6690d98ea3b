// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TRAINING_PRODUCTS_HPP
#define PLUMBLINE_TRAINING_PRODUCTS_HPP

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "plumbline/training/value.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace training {

/// C = A B, or C += A B, for `batch` matrices: A m x k, B k x n, C m x n. Strides are in elements; of the two of A, and
/// of B, one is 1; columns of C lie side by side.
struct product {
    std::int64_t m = 0, n = 0, k = 0;
    std::int64_t a_row = 0, a_column = 1;
    std::int64_t b_row = 0, b_column = 1;
    std::int64_t c_row = 0;
    bool add = false;
    std::int64_t batch = 1;
    std::int64_t a_batch = 0, b_batch = 0, c_batch = 0;

    auto operator<=>(const product&) const = default;
};

/// The products of a training step by plain loops, in the precision of the sums: the reference, and what runs where no
/// library is wanted.
struct plain_products {
    template <class A, class B, class C>
    void multiply(const product& p, const A* a, const B* b, C* c) {
        using real = real_of<A>;
        std::vector<real> row(static_cast<std::size_t>(p.n));
        for (std::int64_t z = 0; z < p.batch; ++z, a += p.a_batch, b += p.b_batch, c += p.c_batch) {
            for (std::int64_t i = 0; i < p.m; ++i) {
                row.assign(row.size(), real{0});
                for (std::int64_t q = 0; q < p.k; ++q) {
                    const real left = static_cast<real>(a[i * p.a_row + q * p.a_column]);
                    const B* right = b + q * p.b_row;
                    for (std::size_t j = 0; j < row.size(); ++j) {
                        row[j] += left * static_cast<real>(right[static_cast<std::int64_t>(j) * p.b_column]);
                    }
                }
                C* out = c + i * p.c_row;
                for (std::size_t j = 0; j < row.size(); ++j) {
                    out[j] = static_cast<C>(p.add ? static_cast<real>(out[j]) + row[j] : row[j]);
                }
            }
        }
    }

    [[nodiscard]] std::string implementation() const { return "plain loops"; }
};

} // namespace training

PLUMBLINE_NAMESPACE_END

#endif
