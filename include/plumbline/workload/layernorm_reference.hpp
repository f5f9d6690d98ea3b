// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_WORKLOAD_LAYERNORM_REFERENCE_HPP
#define PLUMBLINE_WORKLOAD_LAYERNORM_REFERENCE_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/workload/inputs.hpp"
#include "plumbline/workload/layernorm.hpp"
#include "plumbline/workload/verify.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// Norms in float64, on plain arrays: the fixtures and the tests of the kernels compare with these.
namespace workload::layernorm {

/// Seeds of the inputs: element i of a tensor is element i of the stream of its seed, standard normal.
inline constexpr std::uint64_t seed_x = 0x6c31;
inline constexpr std::uint64_t seed_dy = 0x6c32;
inline constexpr std::uint64_t seed_gamma = 0x6c33;
inline constexpr std::uint64_t seed_beta = 0x6c34;

/// Elements first, first + step, ... of an input, as the kernel sees them.
[[nodiscard]] inline std::vector<double> input(dtype type, std::uint64_t seed, std::int64_t first, std::int64_t count,
                                               std::int64_t step = 1) {
    std::vector<double> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = input_value(type, seed, static_cast<std::uint64_t>(first + static_cast<std::int64_t>(i) * step));
    }
    return values;
}

/// Mean and inverse deviation of a row.
struct statistics {
    double mean = 0; ///< 0 for RMSNorm
    double inverse = 0;
};

[[nodiscard]] inline statistics statistics_of(const std::vector<double>& x, bool rms) {
    const auto length = static_cast<double>(x.size());
    statistics found;
    if (!rms) {
        for (double value : x) found.mean += value;
        found.mean /= length;
    }
    double squares = 0;
    for (double value : x) squares += (value - found.mean) * (value - found.mean);
    found.inverse = 1 / std::sqrt(squares / length + epsilon);
    return found;
}

/// y of a row; `beta` is not looked at for RMSNorm.
[[nodiscard]] inline std::vector<double> forward_row(const std::vector<double>& x, const std::vector<double>& gamma,
                                                     const std::vector<double>& beta, bool rms) {
    const statistics of = statistics_of(x, rms);
    std::vector<double> y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        y[i] = (x[i] - of.mean) * of.inverse * gamma[i] + (rms ? 0.0 : beta[i]);
    }
    return y;
}

/// dx of a row, the derivative of the sum of dy y with the statistics depending on x.
[[nodiscard]] inline std::vector<double> backward_row(const std::vector<double>& x, const std::vector<double>& dy,
                                                      const std::vector<double>& gamma, bool rms) {
    const statistics of = statistics_of(x, rms);
    const auto length = static_cast<double>(x.size());
    double g_mean = 0;
    double gh_mean = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double g = dy[i] * gamma[i];
        g_mean += rms ? 0.0 : g / length;
        gh_mean += g * (x[i] - of.mean) * of.inverse / length;
    }
    std::vector<double> dx(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        dx[i] = of.inverse * (dy[i] * gamma[i] - g_mean - (x[i] - of.mean) * of.inverse * gh_mean);
    }
    return dx;
}

/// The sizes of the terms that cancel in each dx of a row, with what a rounding of the mean does to them:
///
///     s (|g| + mean |g| + |h| mean |g h| + |m| s (mean |g h| + |h| mean |g|))
///
/// Where a row has few elements, or equal ones, dx is far smaller than these.
[[nodiscard]] inline std::vector<double> backward_terms(const std::vector<double>& x, const std::vector<double>& dy,
                                                        const std::vector<double>& gamma, bool rms) {
    const statistics of = statistics_of(x, rms);
    const auto length = static_cast<double>(x.size());
    const auto h = [&](std::size_t i) { return std::abs(x[i] - of.mean) * of.inverse; };
    double g_mean = 0;
    double gh_mean = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        g_mean += std::abs(dy[i] * gamma[i]) / length;
        gh_mean += std::abs(dy[i] * gamma[i]) * h(i) / length;
    }
    const double mean = std::abs(of.mean) * of.inverse;
    std::vector<double> terms(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        terms[i] = of.inverse * (std::abs(dy[i] * gamma[i]) + (rms ? 0.0 : g_mean) + h(i) * gh_mean +
                                 mean * (gh_mean + h(i) * g_mean));
    }
    return terms;
}

/// dgamma and dbeta of one column from the column's x and dy and all rows' statistics.
[[nodiscard]] inline std::pair<double, double>
column_gradients(const std::vector<double>& x, const std::vector<double>& dy, const std::vector<statistics>& rows) {
    std::pair<double, double> sums{0, 0};
    for (std::size_t i = 0; i < x.size(); ++i) {
        sums.first += dy[i] * (x[i] - rows[i].mean) * rows[i].inverse;
        sums.second += dy[i];
    }
    return sums;
}

/// Largest allowed relative error of statistics, which are fp32 whatever the elements are.
inline constexpr double statistics_tolerance = 1e-5;

/// What fp32 arithmetic leaves of terms that cancel, relative to their size: 16 roundings of 2^-24.
inline constexpr double cancellation = 16.0 / (1 << 24);

/// Throws verification_error unless whole rows of y or dx are close to `expected`. `places` are their indices. `terms`
/// are the backward_terms of the same elements, empty for y: where they cancel so far that their roundings alone
/// exceed the tolerance, an element may be off by as much as these, `cancellation` times their size. In ordinary rows,
/// whose dx is of the size of its terms, that is never so.
inline void require_rows(const std::string& name, const params& p, const std::vector<double>& output,
                         const std::vector<double>& expected, const std::vector<std::int64_t>& places,
                         const std::vector<double>& terms = {}) {
    const double allowed = tolerance(p.type);
    double squares = 0;
    for (double each : expected) squares += each * each / static_cast<double>(expected.size());
    std::vector<double> judged = output;
    for (std::size_t i = 0; i < terms.size(); ++i) {
        const double roundings = cancellation * terms[i];
        const bool cancelled = roundings > allowed * std::max(std::abs(expected[i]), std::sqrt(squares));
        if (cancelled && std::abs(output[i] - expected[i]) <= roundings) judged[i] = expected[i];
    }
    require_close(name + (p.backward() ? ", dx" : ", y"), judged, expected, allowed,
                  [&](std::size_t i) { return static_cast<std::size_t>(places[i]); });
}

/// The same of statistics: `found` has the inverse deviations of some rows and then, for LayerNorm, their means, which
/// are held against the deviation, for near 0 a relative error means nothing.
inline void require_statistics(const std::string& name, const params& p, const std::vector<double>& found,
                               const std::vector<statistics>& expected) {
    std::vector<double> inverses, off, one;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        inverses.push_back(expected[i].inverse);
        if (p.rms()) continue;
        one.push_back(1);
        off.push_back(1 + (found[expected.size() + i] - expected[i].mean) * std::min(expected[i].inverse, 1.0));
    }
    const auto same = [](std::size_t i) { return i; };
    const auto middle = found.begin() + static_cast<std::ptrdiff_t>(expected.size());
    require_close(name + ", inverse deviation", {found.begin(), middle}, inverses, 10 * statistics_tolerance, same);
    require_close(name + ", mean", off, one, statistics_tolerance, same);
}

/// The rows and the columns that are compared: first, last and random ones, about `elements` elements of rows.
[[nodiscard]] inline std::vector<std::int64_t> check_rows(const params& p, std::int64_t elements = 1 << 16) {
    const std::int64_t count = elements / p.hidden;
    return pick(p.rows, count < 4 ? 4 : count, 101);
}
[[nodiscard]] inline std::vector<std::int64_t> check_columns(const params& p, std::int64_t elements = 1 << 18) {
    const std::int64_t count = elements / p.rows;
    return pick(p.hidden, count < 16 ? 16 : count > 256 ? 256 : count, 102);
}

} // namespace workload::layernorm

PLUMBLINE_NAMESPACE_END

#endif
