// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_CUDNN_NORM_HPP
#define PLUMBLINE_CUDA_CUDNN_NORM_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "plumbline/cuda/cudnn/plan.hpp"
#include "plumbline/workload/layernorm.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda::cudnn {

/// The ids of a norm's tensors in its graph and in variant packs.
inline constexpr std::int64_t norm_x = 1;
inline constexpr std::int64_t norm_out = 2; ///< y or dx
inline constexpr std::int64_t norm_dy = 3;
inline constexpr std::int64_t norm_scale = 4;
inline constexpr std::int64_t norm_bias = 5;
inline constexpr std::int64_t norm_mean = 6;
inline constexpr std::int64_t norm_inverse = 7;
inline constexpr std::int64_t norm_epsilon = 8; ///< fp32 in host memory
inline constexpr std::int64_t norm_dscale = 9;
inline constexpr std::int64_t norm_dbias = 10;

/// The graph of one pass: x is rows x hidden x 1 x 1; scale, bias and their gradients are fp32, one for each column;
/// mean and inverse deviation fp32, one for each row. Without a handle it can be asked for engines but not run.
[[nodiscard]] inline descriptor norm_graph(const workload::layernorm::params& p, cudnnHandle_t handle = nullptr) {
    const auto one = [&](std::int64_t id, cudnnDataType_t type, std::int64_t rows, std::int64_t columns) {
        tensor made;
        made.id = id;
        made.type = type;
        made.dimensions = {rows, columns, 1, 1};
        made.strides = {columns, 1, columns, columns};
        return make(made);
    };
    const auto matrix = [&](std::int64_t id) { return one(id, data_type(p.type), p.rows, p.hidden); };
    const auto column = [&](std::int64_t id) { return one(id, CUDNN_DATA_FLOAT, 1, p.hidden); };
    const auto row = [&](std::int64_t id) { return one(id, CUDNN_DATA_FLOAT, p.rows, 1); };
    const cudnnBackendNormMode_t mode = p.rms() ? CUDNN_RMS_NORM : CUDNN_LAYER_NORM;
    const std::string what(workload::layernorm::name(p.variant));
    if (p.backward()) {
        descriptor made(CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR, what);
        made.set(CUDNN_ATTR_OPERATION_NORM_BWD_MODE, mode)
            .set(CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, matrix(norm_x))
            .set(CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, row(norm_inverse))
            .set(CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, matrix(norm_dy))
            .set(CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, column(norm_scale))
            .set(CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, column(norm_dscale))
            .set(CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, matrix(norm_out));
        if (!p.rms()) {
            made.set(CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, row(norm_mean))
                .set(CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, column(norm_dbias));
        }
        return operation_graph({made.finalize()}, workload::layernorm::id(p), handle);
    }
    tensor epsilon;
    epsilon.id = norm_epsilon;
    epsilon.dimensions = epsilon.strides = {1, 1, 1, 1};
    epsilon.by_value = true;
    descriptor made(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, what);
    made.set(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, mode)
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_NORM_FWD_TRAINING)
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, matrix(norm_x))
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, row(norm_inverse))
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, column(norm_scale))
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, make(epsilon))
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, matrix(norm_out));
    if (!p.rms()) {
        made.set(CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, row(norm_mean))
            .set(CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, column(norm_bias));
    }
    return operation_graph({made.finalize()}, workload::layernorm::id(p), handle);
}

} // namespace cuda::cudnn

PLUMBLINE_NAMESPACE_END

#endif
