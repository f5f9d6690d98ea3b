// SPDX-License-Identifier: Apache-2.0
// Norm kernels against float64, on whatever memory they run in: the host's (tests/emulation) or a GPU's (tests/cuda).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/cuda/inspect.hpp"
#include "plumbline/workload/layernorm_reference.hpp"

namespace norm_test {

using namespace plumbline;
namespace kernels = plumbline::cuda::kernels;
namespace layernorm = plumbline::workload::layernorm;
using bytes = std::vector<unsigned char>;
using workload::dtype;

/// Values as elements of `type`, and back.
inline bytes encode(const std::vector<double>& values, dtype type) {
    bytes data(values.size() * workload::input_bytes(type));
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto value = static_cast<float>(values[i]);
        const std::uint16_t narrow = type == dtype::fp16 ? workload::to_fp16(value) : workload::to_bf16(value);
        if (type == dtype::fp32)
            std::memcpy(data.data() + 4 * i, &value, 4);
        else
            std::memcpy(data.data() + 2 * i, &narrow, 2);
    }
    return data;
}

inline std::vector<double> decode(const bytes& data, dtype type) {
    std::vector<double> values(data.size() / workload::input_bytes(type));
    for (std::size_t i = 0; i < values.size(); ++i) {
        float value = 0;
        std::uint16_t narrow = 0;
        if (type == dtype::fp32) {
            std::memcpy(&value, data.data() + 4 * i, 4);
        } else {
            std::memcpy(&narrow, data.data() + 2 * i, 2);
            value = type == dtype::fp16 ? workload::from_fp16(narrow) : workload::from_bf16(narrow);
        }
        values[i] = value;
    }
    return values;
}

/// What the rows of x look like.
enum class rows_like {
    normal,    ///< mean 0, deviation 1
    far,       ///< mean 1000, deviation 1
    tiny,      ///< deviation 1e-3
    huge,      ///< deviation 1e4
    constant,  ///< all elements of a row equal
    one_large, ///< normal but for one element of 300
};

struct norm_case {
    dtype type = dtype::fp32;
    bool rms = false;
    std::int64_t rows = 0;
    std::int64_t hidden = 0;
    std::vector<double> x, dy, gamma, beta; // as the kernel sees them
};

inline norm_case make_case(dtype type, bool rms, std::int64_t rows, std::int64_t hidden,
                           rows_like like = rows_like::normal) {
    norm_case made{type, rms, rows, hidden, {}, {}, {}, {}};
    const auto normal = [&](std::uint64_t seed, std::int64_t count) { return layernorm::input(type, seed, 0, count); };
    made.x = normal(layernorm::seed_x, rows * hidden);
    for (std::size_t i = 0; i < made.x.size(); ++i) {
        const auto column = static_cast<std::int64_t>(i) % hidden;
        const auto row = static_cast<std::int64_t>(i) / hidden;
        double& value = made.x[i];
        if (like == rows_like::far) value += 1000;
        if (like == rows_like::tiny) value *= 1e-3;
        if (like == rows_like::huge) value *= 1e4;
        if (like == rows_like::constant) value = 3.5 + static_cast<double>(row);
        if (like == rows_like::one_large && column == hidden / 3) value = 300;
    }
    made.x = decode(encode(made.x, type), type);
    made.dy = normal(layernorm::seed_dy, rows * hidden);
    made.gamma = normal(layernorm::seed_gamma, hidden);
    made.beta = normal(layernorm::seed_beta, hidden);
    return made;
}

inline std::vector<double> row_of(const std::vector<double>& matrix, std::int64_t row, std::int64_t hidden) {
    return {matrix.begin() + row * hidden, matrix.begin() + (row + 1) * hidden};
}

/// What workload::require_close holds against a tolerance, of all elements and of the worst one; NaN if anything is not
/// finite.
inline double error_of(const std::vector<double>& got, const std::vector<double>& expected) {
    const workload::difference off = workload::compare_outputs(got, expected);
    return std::max(off.relative_norm, off.element / workload::element_factor);
}

inline kernels::norm arguments(const norm_case& in) {
    return {cuda::input_storage(in.type), in.rms, in.rows, in.hidden, static_cast<float>(layernorm::epsilon)};
}

struct forward_result {
    std::vector<double> y, mean, inverse;
    bytes y_bits;
};

/// Memory has `void* place(const bytes&)`, which copies to memory of exactly that size at a 16-byte boundary, and
/// `bytes read(void*, std::size_t)`, which waits for the kernels.
template <class Memory>
forward_result run_forward(Memory& memory, const norm_case& in, const kernels::norm_plan& plan) {
    const auto count = static_cast<std::size_t>(in.rows);
    void* const x = memory.place(encode(in.x, in.type));
    void* const gamma = memory.place(encode(in.gamma, in.type));
    void* const beta = in.rms ? nullptr : memory.place(encode(in.beta, in.type));
    void* const y = memory.place(bytes(encode(in.x, in.type).size(), 0xff));
    void* const mean = in.rms ? nullptr : memory.place(bytes(count * 4, 0xff));
    void* const inverse = memory.place(bytes(count * 4, 0xff));
    kernels::norm_forward(memory.stream(), arguments(in), plan, x, gamma, beta, y, static_cast<float*>(mean),
                          static_cast<float*>(inverse));
    forward_result out;
    out.y_bits = memory.read(y, in.x.size() * workload::input_bytes(in.type));
    out.y = decode(out.y_bits, in.type);
    if (!in.rms) out.mean = decode(memory.read(mean, count * 4), dtype::fp32);
    out.inverse = decode(memory.read(inverse, count * 4), dtype::fp32);
    return out;
}

struct backward_result {
    std::vector<double> dx, dgamma, dbeta;
    bytes bits; ///< of all three
};

template <class Memory>
backward_result run_backward(Memory& memory, const norm_case& in, const kernels::norm_plan& plan, dtype gradients) {
    std::vector<double> means, inverses;
    for (std::int64_t row = 0; row < in.rows; ++row) {
        const auto of = layernorm::statistics_of(row_of(in.x, row, in.hidden), in.rms);
        means.push_back(of.mean);
        inverses.push_back(of.inverse);
    }
    const std::size_t hidden = in.gamma.size();
    void* const x = memory.place(encode(in.x, in.type));
    void* const dy = memory.place(encode(in.dy, in.type));
    void* const gamma = memory.place(encode(in.gamma, in.type));
    void* const mean = in.rms ? nullptr : memory.place(encode(means, dtype::fp32));
    void* const inverse = memory.place(encode(inverses, dtype::fp32));
    void* const dx = memory.place(bytes(in.x.size() * workload::input_bytes(in.type), 0xff));
    const std::size_t gradient_bytes = hidden * workload::input_bytes(gradients);
    void* const dgamma = memory.place(bytes(gradient_bytes, 0xff));
    void* const dbeta = in.rms ? nullptr : memory.place(bytes(gradient_bytes, 0xff));
    void* const partial =
        memory.place(bytes(kernels::partial_elements(plan, in.hidden, workload::input_bytes(in.type)) * 4, 0xff));
    kernels::norm_backward(memory.stream(), arguments(in), plan, x, dy, gamma, static_cast<const float*>(mean),
                           static_cast<const float*>(inverse), dx, cuda::input_storage(gradients), dgamma, dbeta,
                           static_cast<float*>(partial));
    backward_result out;
    out.bits = memory.read(dx, in.x.size() * workload::input_bytes(in.type));
    out.dx = decode(out.bits, in.type);
    const bytes dgamma_bits = memory.read(dgamma, gradient_bytes);
    out.dgamma = decode(dgamma_bits, gradients);
    out.bits.insert(out.bits.end(), dgamma_bits.begin(), dgamma_bits.end());
    if (!in.rms) {
        const bytes dbeta_bits = memory.read(dbeta, gradient_bytes);
        out.dbeta = decode(dbeta_bits, gradients);
        out.bits.insert(out.bits.end(), dbeta_bits.begin(), dbeta_bits.end());
    }
    return out;
}

/// Every element of what the forward pass leaves. `tolerance` 0: that of the dtype.
template <class Memory>
void check_forward(Memory& memory, const norm_case& in, const kernels::norm_plan& plan, double tolerance = 0) {
    const forward_result got = run_forward(memory, in, plan);
    forward_result expected;
    for (std::int64_t row = 0; row < in.rows; ++row) {
        const std::vector<double> x = row_of(in.x, row, in.hidden);
        const std::vector<double> y = layernorm::forward_row(x, in.gamma, in.beta, in.rms);
        expected.y.insert(expected.y.end(), y.begin(), y.end());
        const auto of = layernorm::statistics_of(x, in.rms);
        if (!in.rms) expected.mean.push_back(of.mean);
        expected.inverse.push_back(of.inverse);
    }
    CHECK(error_of(got.y, expected.y) <= (tolerance > 0 ? tolerance : workload::tolerance(in.type)));
    CHECK(error_of(got.inverse, expected.inverse) <= std::max(tolerance, layernorm::statistics_tolerance));
    // A mean is as exact as the deviation allows: near 0 its relative error means nothing.
    for (std::size_t row = 0; row < got.mean.size(); ++row) {
        CHECK(std::abs(got.mean[row] - expected.mean[row]) <=
              1e-5 / expected.inverse[row] + 2e-7 * std::abs(expected.mean[row]));
    }
}

/// Every element of what the backward pass leaves.
template <class Memory>
void check_backward(Memory& memory, const norm_case& in, const kernels::norm_plan& plan, dtype gradients,
                    double tolerance = 0) {
    const backward_result got = run_backward(memory, in, plan, gradients);
    std::vector<double> dx;
    std::vector<layernorm::statistics> of;
    for (std::int64_t row = 0; row < in.rows; ++row) {
        const std::vector<double> x = row_of(in.x, row, in.hidden);
        const std::vector<double> one = layernorm::backward_row(x, row_of(in.dy, row, in.hidden), in.gamma, in.rms);
        dx.insert(dx.end(), one.begin(), one.end());
        of.push_back(layernorm::statistics_of(x, in.rms));
    }
    std::vector<double> dgamma, dbeta;
    for (std::int64_t column = 0; column < in.hidden; ++column) {
        std::vector<double> x, dy;
        for (std::int64_t row = 0; row < in.rows; ++row) {
            x.push_back(in.x[static_cast<std::size_t>(row * in.hidden + column)]);
            dy.push_back(in.dy[static_cast<std::size_t>(row * in.hidden + column)]);
        }
        const auto sums = layernorm::column_gradients(x, dy, of);
        dgamma.push_back(sums.first);
        dbeta.push_back(sums.second);
    }
    // Where the exact dx is 0, in rows of one element, only its size can be looked at.
    const double allowed = tolerance > 0 ? tolerance : workload::tolerance(in.type);
    if (in.hidden == 1 && !in.rms) {
        for (double each : got.dx) CHECK(std::abs(each) <= 1e-3);
    } else {
        CHECK(error_of(got.dx, dx) <= allowed);
    }
    const double sums_allowed = std::max(tolerance, workload::tolerance(gradients));
    if (in.hidden > 1 || in.rms) CHECK(error_of(got.dgamma, dgamma) <= sums_allowed);
    if (!in.rms) CHECK(error_of(got.dbeta, dbeta) <= sums_allowed);
}

} // namespace norm_test
