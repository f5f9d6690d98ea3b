// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_CUDNN_CONVOLUTION_HPP
#define PLUMBLINE_CUDA_CUDNN_CONVOLUTION_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plumbline/cuda/cudnn/plan.hpp"
#include "plumbline/workload/conv.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda::cudnn {

/// The ids of a convolution's tensors in its graph, in variant packs too: x or dx, w or dw, y or dy.
inline constexpr std::int64_t conv_x = 1;
inline constexpr std::int64_t conv_w = 2;
inline constexpr std::int64_t conv_y = 3;

/// Each tensor begins at such a boundary, bytes; the engines are told.
inline constexpr std::int64_t conv_alignment = 128;

namespace detail {

/// A tensor of outer x channels x (depth, where there is one) x height x width in a layout, without gaps.
[[nodiscard]] inline tensor conv_tensor(std::int64_t id, const workload::conv::params& p, std::int64_t outer,
                                        std::int64_t channels, std::int64_t depth, std::int64_t height,
                                        std::int64_t width) {
    tensor made;
    made.id = id;
    made.type = data_type(p.type);
    made.alignment = conv_alignment;
    const std::int64_t places = depth * height * width;
    const bool innermost = p.stored == workload::conv::layout::nhwc;
    const std::int64_t step = innermost ? channels : 1; // from one place to the next
    made.dimensions = {outer, channels};
    made.strides = {channels * places, innermost ? 1 : places};
    if (p.three_d()) {
        made.dimensions.push_back(depth);
        made.strides.push_back(height * width * step);
    }
    made.dimensions.insert(made.dimensions.end(), {height, width});
    made.strides.insert(made.strides.end(), {width * step, step});
    return made;
}

} // namespace detail

/// x, w and y of a convolution. Groups are not said: cuDNN sees them from the channels of x and w.
[[nodiscard]] inline tensor x_of(const workload::conv::params& p) {
    return detail::conv_tensor(conv_x, p, p.n, p.c, p.depth(), p.h, p.w);
}
[[nodiscard]] inline tensor w_of(const workload::conv::params& p) {
    return detail::conv_tensor(conv_w, p, p.k, p.group_c(), p.filter_depth(), p.r, p.s);
}
[[nodiscard]] inline tensor y_of(const workload::conv::params& p) {
    return detail::conv_tensor(conv_y, p, p.n, p.k, p.o(), p.p(), p.q());
}

/// One pass of a convolution of tensors that are already made, summed in fp32: an operation for a graph of its own or
/// of several operations.
[[nodiscard]] inline descriptor conv_operation(const workload::conv::params& p, const descriptor& x,
                                               const descriptor& w, const descriptor& y) {
    const std::size_t dimensions = p.three_d() ? 3 : 2;
    const auto all = [dimensions](std::int64_t value) { return std::vector<std::int64_t>(dimensions, value); };
    descriptor how(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "convolution");
    how.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
        .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
        .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<std::int64_t>(dimensions))
        .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, all(p.stride))
        .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, all(p.padding))
        .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, all(p.padding))
        .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, all(p.dilation))
        .finalize();
    struct attributes {
        cudnnBackendDescriptorType_t operation;
        cudnnBackendAttributeName_t alpha, beta, convolution, x, w, y;
    };
    static constexpr attributes of_pass[] = {
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}};
    const attributes& of = of_pass[static_cast<std::size_t>(p.variant)];
    descriptor made(of.operation, std::string(workload::conv::name(p.variant)));
    return made.set(of.alpha, 1.0f)
        .set(of.beta, 0.0f)
        .set(of.convolution, how)
        .set(of.x, x)
        .set(of.w, w)
        .set(of.y, y)
        .finalize();
}

/// The graph of one pass; without a handle it can be asked for engines but not run.
[[nodiscard]] inline descriptor conv_graph(const workload::conv::params& p, cudnnHandle_t handle = nullptr) {
    const descriptor operation = conv_operation(p, make(x_of(p)), make(w_of(p)), make(y_of(p)));
    return operation_graph({operation}, workload::conv::id(p), handle);
}

/// What a plan of this convolution must satisfy, and the lists it may come from.
[[nodiscard]] inline requirements requirements_of(const workload::conv::params& p) {
    return {p.type, p.deterministic, p.workspace_mib << 20};
}
[[nodiscard]] inline std::vector<heuristic> lists_of(const workload::conv::params& p) {
    if (p.list == workload::conv::engine_list::b) return {heuristic::b};
    if (p.list == workload::conv::engine_list::fallback) return {heuristic::fallback};
    return {heuristic::a, heuristic::b, heuristic::fallback};
}

} // namespace cuda::cudnn

PLUMBLINE_NAMESPACE_END

#endif
