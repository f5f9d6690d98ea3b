// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TRAINING_ATTENTION_CHECK_HPP
#define PLUMBLINE_TRAINING_ATTENTION_CHECK_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/core/scalar.hpp"
#include "plumbline/workload/training_step.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace training {

/// What attention and its gradients may differ by from float64, relative: weights and scores are rounded in between.
[[nodiscard]] constexpr double attention_tolerance(workload::dtype leg) noexcept {
    switch (leg) {
    case workload::dtype::fp32:
        return 5e-5;
    case workload::dtype::tf32:
        return 4e-3;
    case workload::dtype::fp16:
        return 2e-3;
    default:
        return 1.2e-2;
    }
}

namespace detail {

/// Causal attention of one head in float64, and the rows of its gradients that are asked for.
class exact_head {
public:
    using matrix = std::vector<std::vector<double>>; ///< tokens x head width

    exact_head(matrix query, matrix key, matrix value, matrix d_y)
        : query_(std::move(query)), key_(std::move(key)), value_(std::move(value)), d_y_(std::move(d_y)),
          scale_(1 / std::sqrt(static_cast<double>(query_.front().size()))) {
        std::vector<double> weights(tokens());
        for (std::size_t row = 0; row < tokens(); ++row) {
            double sum = 0;
            double largest = -INFINITY;
            for (std::size_t k = 0; k <= row; ++k) largest = std::max(largest, weights[k] = score(row, k));
            for (std::size_t k = 0; k <= row; ++k) sum += weights[k] = std::exp(weights[k] - largest);
            std::vector<double> y(value_.front().size());
            for (std::size_t k = 0; k <= row; ++k) add(y, weights[k] / sum, value_[k]);
            log_sums_.push_back(largest + std::log(sum));
            row_products_.push_back(dot(y, d_y_[row]));
            y_.push_back(std::move(y));
        }
    }

    [[nodiscard]] std::size_t tokens() const noexcept { return query_.size(); }
    [[nodiscard]] const std::vector<double>& y(std::size_t row) const { return y_[row]; }
    [[nodiscard]] double log_sum(std::size_t row) const { return log_sums_[row]; }

    [[nodiscard]] std::vector<double> d_query(std::size_t row) const {
        std::vector<double> made(key_.front().size());
        for (std::size_t k = 0; k <= row; ++k) add(made, d_score(row, k), key_[k]);
        return made;
    }
    [[nodiscard]] std::vector<double> d_key(std::size_t key) const {
        std::vector<double> made(query_.front().size());
        for (std::size_t row = key; row < tokens(); ++row) add(made, d_score(row, key), query_[row]);
        return made;
    }
    [[nodiscard]] std::vector<double> d_value(std::size_t key) const {
        std::vector<double> made(d_y_.front().size());
        for (std::size_t row = key; row < tokens(); ++row) add(made, weight(row, key), d_y_[row]);
        return made;
    }

private:
    [[nodiscard]] static double dot(const std::vector<double>& a, const std::vector<double>& b) {
        double sum = 0;
        for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
        return sum;
    }
    static void add(std::vector<double>& to, double factor, const std::vector<double>& row) {
        for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * row[i];
    }
    [[nodiscard]] double score(std::size_t row, std::size_t key) const { return dot(query_[row], key_[key]) * scale_; }
    [[nodiscard]] double weight(std::size_t row, std::size_t key) const {
        return std::exp(score(row, key) - log_sums_[row]);
    }
    [[nodiscard]] double d_score(std::size_t row, std::size_t key) const {
        return weight(row, key) * (dot(d_y_[row], value_[key]) - row_products_[row]) * scale_;
    }

    matrix query_, key_, value_, d_y_, y_;
    double scale_;
    std::vector<double> log_sums_, row_products_;
};

/// How far rows are from float64.
class row_difference {
public:
    template <class Value>
    void add(const Value* found, const std::vector<double>& expected) {
        for (std::size_t i = 0; i < expected.size(); ++i) {
            const double off = static_cast<double>(found[i]) - expected[i];
            error_ += off * off;
            norm_ += expected[i] * expected[i];
            largest_ = std::max(largest_, std::abs(off));
        }
    }
    /// Throws verification_error where they are too far, or not numbers.
    void check(const std::string& name, const char* what, double allowed) const {
        const double off = std::sqrt(error_ / norm_);
        if (off <= allowed) return;
        throw verification_error(name + ": " + what + " of attention is off by " + to_string(scalar(off)) +
                                     " of its norm at the size that is timed, allowed " + to_string(scalar(allowed)),
                                 largest_, off, 0);
    }

private:
    double error_ = 0, norm_ = 0, largest_ = 0;
};

} // namespace detail

/// Holds attention and its gradients at the full size of a step to float64, where the rest of the step is checked in a
/// small network: what computes attention is chosen by its size. One head of the last sequence; of gradients sixteen
/// rows and the last. Throws verification_error. Allocates what one layer has.
template <class Ops>
void check_attention(Ops& on, const workload::training_step::transformer_shape& s, workload::dtype leg,
                     const std::string& name) {
    using value = typename Ops::value;
    const auto rows = static_cast<std::size_t>(s.rows()), width = static_cast<std::size_t>(s.width);
    const auto tokens = static_cast<std::size_t>(s.tokens), head_width = static_cast<std::size_t>(s.head_width());
    auto projected = on.template make<value>(rows * 3 * width), d_projected = on.template make<value>(rows * 3 * width);
    auto y = on.template make<value>(rows * width), d_y = on.template make<value>(rows * width);
    auto log_sums = on.template make<typename Ops::real>(rows * static_cast<std::size_t>(s.heads));
    on.draw(projected.data(), static_cast<std::int64_t>(rows * 3 * width), 11, 1.0f, 0.0f);
    on.draw(d_y.data(), static_cast<std::int64_t>(rows * width), 12, 1.0f, 0.0f);
    on.attention(projected.data(), y.data(), log_sums.data(), s);
    on.attention_backward(d_y.data(), projected.data(), y.data(), log_sums.data(), d_projected.data(), s);

    // The last sequence, and of it the last head but one, where there are two: its neighbours are on both sides.
    const std::size_t head = static_cast<std::size_t>(std::max<std::int64_t>(s.heads - 2, 0));
    const std::size_t before = rows - tokens;
    const auto in = on.download(projected.data() + before * 3 * width, tokens * 3 * width);
    const auto d_in = on.download(d_projected.data() + before * 3 * width, tokens * 3 * width);
    const auto out = on.download(y.data() + before * width, tokens * width);
    const auto d_out = on.download(d_y.data() + before * width, tokens * width);
    const auto sums = on.download(log_sums.data() + before * static_cast<std::size_t>(s.heads) + head * tokens, tokens);
    const auto at = [&](std::size_t row, std::size_t thirds, std::size_t which) {
        return (row * thirds + which) * width + head * head_width;
    };
    const auto matrix = [&](const std::vector<value>& from, std::size_t thirds, std::size_t which) {
        detail::exact_head::matrix made;
        for (std::size_t row = 0; row < tokens; ++row) {
            const value* first = from.data() + at(row, thirds, which);
            made.emplace_back();
            for (std::size_t i = 0; i < head_width; ++i) made.back().push_back(static_cast<double>(first[i]));
        }
        return made;
    };
    const detail::exact_head exact(matrix(in, 3, 0), matrix(in, 3, 1), matrix(in, 3, 2), matrix(d_out, 1, 0));

    detail::row_difference off_y, off_sums, off_query, off_key, off_value;
    for (std::size_t row = 0; row < tokens; ++row) {
        off_y.add(out.data() + at(row, 1, 0), exact.y(row));
        off_sums.add(sums.data() + row, {exact.log_sum(row)});
        if (row % std::max<std::size_t>(tokens / 16, 1) != 0 && row + 1 != tokens) continue;
        off_query.add(d_in.data() + at(row, 3, 0), exact.d_query(row));
        off_key.add(d_in.data() + at(row, 3, 1), exact.d_key(row));
        off_value.add(d_in.data() + at(row, 3, 2), exact.d_value(row));
    }
    const double allowed = attention_tolerance(leg);
    off_y.check(name, "the output", allowed);
    off_sums.check(name, "the logarithm of the sum", allowed);
    off_query.check(name, "the gradient of queries", allowed);
    off_key.check(name, "the gradient of keys", allowed);
    off_value.check(name, "the gradient of values", allowed);
}

} // namespace training

PLUMBLINE_NAMESPACE_END

#endif
