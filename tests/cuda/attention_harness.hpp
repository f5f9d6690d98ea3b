// SPDX-License-Identifier: Apache-2.0
// Causal attention against float64, whoever computed it and wherever: tests/emulation and tests/cuda.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "plumbline/training/host_operations.hpp"
#include "plumbline/training/value.hpp"

namespace attention_test {

using namespace plumbline;
using shape = workload::training_step::transformer_shape;

/// Sizes of attention alone.
inline shape sized(std::int64_t batch, std::int64_t heads, std::int64_t head_width, std::int64_t tokens) {
    return {1, heads * head_width, heads, 1, 1, batch, tokens};
}

/// Input and gradient, and what was made of them.
template <class Value>
struct trial {
    shape s;
    std::vector<Value> projected, d_y;
    std::vector<Value> y, d_projected;
    std::vector<float> log_sums;

    /// Normal values; queries and keys times `spread`, which makes the softmax sharp.
    explicit trial(const shape& size, float spread = 1) : s(size) {
        const auto rows = static_cast<std::size_t>(s.rows()), width = static_cast<std::size_t>(s.width);
        for (std::size_t i = 0; i < rows * 3 * width; ++i) {
            const bool value = i % (3 * width) >= 2 * width;
            projected.push_back(Value(workload::random::normal(1, i) * (value ? 1 : spread)));
        }
        for (std::size_t i = 0; i < rows * width; ++i) d_y.push_back(Value(workload::random::normal(2, i)));
    }
};

/// Relative differences, norm over norm; of log_sums the largest absolute one.
struct deviations {
    double y = 0, log_sums = 0, d_query = 0, d_key = 0, d_value = 0;
    [[nodiscard]] double largest() const { return std::max({y, d_query, d_key, d_value}); }
};

namespace detail {

struct difference {
    double error = 0, norm = 0;
    void add(double found, double expected) {
        error += (found - expected) * (found - expected);
        norm += expected * expected;
    }
    /// Infinite where something is not a number.
    [[nodiscard]] double relative() const {
        const double share = std::sqrt(error / norm);
        return share >= 0 ? share : INFINITY;
    }
};

} // namespace detail

/// One head of one sequence against the host's operators in float64.
template <class Value>
deviations off_in_head(const trial<Value>& of, std::int64_t sequence, std::int64_t head) {
    const std::int64_t t = of.s.tokens, w = of.s.head_width();
    const shape one = sized(1, 1, w, t);
    std::vector<double> in(static_cast<std::size_t>(t * 3 * w)), d_y(static_cast<std::size_t>(t * w)), y(d_y.size()),
        d_in(in.size()), log_sums(static_cast<std::size_t>(t));
    // Where a value of the head is among all heads: in a third of the projection's rows, or in the output's.
    const auto at = [&](std::int64_t row, std::int64_t thirds, std::int64_t which, std::int64_t i) {
        return static_cast<std::size_t>(((sequence * t + row) * thirds + which) * of.s.width + head * w + i);
    };
    const auto here = [&](std::int64_t row, std::int64_t thirds, std::int64_t which, std::int64_t i) {
        return static_cast<std::size_t>((row * thirds + which) * w + i);
    };
    const auto each = [&](std::int64_t thirds, auto body) {
        for (std::int64_t row = 0; row < t; ++row) {
            for (std::int64_t which = 0; which < thirds; ++which) {
                for (std::int64_t i = 0; i < w; ++i)
                    body(at(row, thirds, which, i), here(row, thirds, which, i), which);
            }
        }
    };
    each(3, [&](std::size_t all, std::size_t own, std::int64_t) { in[own] = static_cast<double>(of.projected[all]); });
    each(1, [&](std::size_t all, std::size_t own, std::int64_t) { d_y[own] = static_cast<double>(of.d_y[all]); });
    training::host_operations<double> exact;
    exact.attention(in.data(), y.data(), log_sums.data(), one);
    exact.attention_backward(d_y.data(), in.data(), y.data(), log_sums.data(), d_in.data(), one);

    deviations found;
    detail::difference off_y, off_thirds[3];
    each(1, [&](std::size_t all, std::size_t own, std::int64_t) { off_y.add(static_cast<double>(of.y[all]), y[own]); });
    each(3, [&](std::size_t all, std::size_t own, std::int64_t which) {
        off_thirds[which].add(static_cast<double>(of.d_projected[all]), d_in[own]);
    });
    for (std::int64_t row = 0; row < t; ++row) {
        const auto all = static_cast<std::size_t>((sequence * of.s.heads + head) * t + row);
        const double off = std::abs(static_cast<double>(of.log_sums[all]) - log_sums[static_cast<std::size_t>(row)]);
        found.log_sums = off >= 0 ? std::max(found.log_sums, off) : INFINITY;
    }
    found.y = off_y.relative();
    found.d_query = off_thirds[0].relative();
    found.d_key = off_thirds[1].relative();
    found.d_value = off_thirds[2].relative();
    return found;
}

/// The largest of some heads.
template <class Value>
deviations off(const trial<Value>& of, const std::vector<std::pair<std::int64_t, std::int64_t>>& heads) {
    deviations worst;
    for (const auto& [sequence, head] : heads) {
        const deviations one = off_in_head(of, sequence, head);
        worst.y = std::max(worst.y, one.y);
        worst.log_sums = std::max(worst.log_sums, one.log_sums);
        worst.d_query = std::max(worst.d_query, one.d_query);
        worst.d_key = std::max(worst.d_key, one.d_key);
        worst.d_value = std::max(worst.d_value, one.d_value);
    }
    return worst;
}

} // namespace attention_test
