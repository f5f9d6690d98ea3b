// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_CUDNN_ATTENTION_HPP
#define PLUMBLINE_CUDA_CUDNN_ATTENTION_HPP

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/cuda/cudnn/plan.hpp"
#include "plumbline/workload/training_step.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda::cudnn {

/// The ids of causal attention's tensors in its graphs and in variant packs.
inline constexpr std::int64_t attention_query = 1;
inline constexpr std::int64_t attention_key = 2;
inline constexpr std::int64_t attention_value = 3;
inline constexpr std::int64_t attention_y = 4;
inline constexpr std::int64_t attention_log_sums = 5;
inline constexpr std::int64_t attention_scale = 6;    ///< fp32 in host memory
inline constexpr std::int64_t attention_excluded = 7; ///< fp32 in host memory: the score of a key that is not seen
inline constexpr std::int64_t attention_one = 8;      ///< fp32 in host memory
inline constexpr std::int64_t attention_d_y = 11;
inline constexpr std::int64_t attention_d_query = 12;
inline constexpr std::int64_t attention_d_key = 13;
inline constexpr std::int64_t attention_d_value = 14;
inline constexpr std::int64_t attention_row_products = 15; ///< sums of y x d_y, fp32: batch x heads x tokens
inline constexpr std::int64_t attention_d_query_sum = 16;  ///< fp32: batch x heads x tokens x head width

/// The score of a key that is not seen. Before 9.10 cuDNN's engines wanted a finite one.
[[nodiscard]] inline float attention_nothing() {
    using limits = std::numeric_limits<float>;
    return cudnnGetVersion() >= 91000 ? -limits::infinity() : limits::lowest();
}

namespace detail {

/// Operations of a graph in the making, and the tensors between them.
class attention_maker {
public:
    using shape = workload::training_step::transformer_shape;

    attention_maker(workload::dtype type, const shape& s) : type_(data_type(type)), s_(s) {}

    /// Query, key or value, or their gradients: heads of one third of the rows of a projection.
    [[nodiscard]] tensor third(std::int64_t id) const { return heads(id, 3 * s_.width); }
    /// The output of attention or its gradient.
    [[nodiscard]] tensor output(std::int64_t id) const { return heads(id, s_.width); }
    [[nodiscard]] static tensor transposed(tensor t) {
        std::swap(t.dimensions[2], t.dimensions[3]);
        std::swap(t.strides[2], t.strides[3]);
        return t;
    }
    /// fp32, one for each row and head, or `columns` of them.
    [[nodiscard]] tensor rows(std::int64_t id, std::int64_t columns = 1) const {
        tensor made;
        made.id = id;
        made.dimensions = {s_.batch, s_.heads, s_.tokens, columns};
        made.strides = {s_.heads * s_.tokens * columns, s_.tokens * columns, columns, 1};
        return made;
    }
    [[nodiscard]] static tensor scalar(std::int64_t id) {
        tensor made;
        made.id = id;
        made.dimensions = made.strides = {1, 1, 1, 1};
        made.by_value = true;
        return made;
    }
    /// A tensor that exists only inside of the graph.
    [[nodiscard]] tensor inner(std::vector<std::int64_t> dimensions, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
        tensor made;
        made.id = next_++;
        made.type = type;
        made.dimensions = std::move(dimensions);
        made.strides.assign(4, 1);
        for (std::size_t i = 3; i-- > 0;) made.strides[i] = made.strides[i + 1] * made.dimensions[i + 1];
        made.is_virtual = true;
        return made;
    }
    [[nodiscard]] tensor scores(cudnnDataType_t type = CUDNN_DATA_FLOAT) {
        return inner({s_.batch, s_.heads, s_.tokens, s_.tokens}, type);
    }
    [[nodiscard]] tensor row() { return inner({s_.batch, s_.heads, s_.tokens, 1}); }
    [[nodiscard]] cudnnDataType_t type() const noexcept { return type_; }
    [[nodiscard]] const shape& of() const noexcept { return s_; }

    void multiply(const descriptor& a, const descriptor& b, const descriptor& c) {
        descriptor how(CUDNN_BACKEND_MATMUL_DESCRIPTOR, "product of attention");
        how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT).finalize();
        descriptor made(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "product of attention");
        operations_.push_back(made.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how)
                                  .set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a)
                                  .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b)
                                  .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c)
                                  .finalize());
    }
    /// y = mode(x, b, t); what is none is not set.
    void pointwise(cudnnPointwiseMode_t mode, const descriptor& x, const descriptor& b, const descriptor& y,
                   const descriptor& t = {}, cudnnDataType_t precision = CUDNN_DATA_FLOAT, std::int64_t axis = -1) {
        descriptor how(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "pointwise " + std::to_string(mode));
        how.set(CUDNN_ATTR_POINTWISE_MODE, mode).set(CUDNN_ATTR_POINTWISE_MATH_PREC, precision);
        if (axis >= 0) how.set(CUDNN_ATTR_POINTWISE_AXIS, axis);
        how.finalize();
        descriptor made(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "pointwise " + std::to_string(mode));
        made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how).set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
        if (b) made.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
        if (t) made.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
        operations_.push_back(made.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y).finalize());
    }
    void reduce(cudnnReduceTensorOp_t by, const descriptor& x, const descriptor& y) {
        descriptor how(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, "reduction of attention");
        how.set(CUDNN_ATTR_REDUCTION_OPERATOR, by).set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT).finalize();
        descriptor made(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, "reduction of attention");
        operations_.push_back(made.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how)
                                  .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x)
                                  .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y)
                                  .finalize());
    }
    void reshape(const descriptor& x, const descriptor& y) {
        descriptor made(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, "transposition of attention");
        operations_.push_back(
            made.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x).set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y).finalize());
    }

    /// Scores where a key comes after its query become those that count for nothing.
    [[nodiscard]] descriptor masked(const descriptor& from) {
        const descriptor row = make(scores(CUDNN_DATA_INT32)), column = make(scores(CUDNN_DATA_INT32));
        const descriptor seen = make(scores(CUDNN_DATA_BOOLEAN)), to = make(scores());
        pointwise(CUDNN_POINTWISE_GEN_INDEX, from, {}, row, {}, CUDNN_DATA_FLOAT, 2);
        pointwise(CUDNN_POINTWISE_GEN_INDEX, from, {}, column, {}, CUDNN_DATA_FLOAT, 3);
        pointwise(CUDNN_POINTWISE_CMP_GE, row, column, seen, {}, CUDNN_DATA_BOOLEAN);
        pointwise(CUDNN_POINTWISE_BINARY_SELECT, from, make(scalar(attention_excluded)), to, seen);
        return to;
    }

    [[nodiscard]] descriptor graph(const std::string& what, cudnnHandle_t handle) const {
        return operation_graph(operations_, what, handle);
    }

private:
    [[nodiscard]] tensor heads(std::int64_t id, std::int64_t row) const {
        tensor made;
        made.id = id;
        made.type = type_;
        made.dimensions = {s_.batch, s_.heads, s_.tokens, s_.head_width()};
        made.strides = {s_.tokens * row, s_.head_width(), row, 1};
        return made;
    }

    cudnnDataType_t type_;
    shape s_;
    std::int64_t next_ = 100;
    std::vector<descriptor> operations_;
};

} // namespace detail

/// The graph of causal attention as host_operations has it, 16-bit values. cuDNN knows it by its very operations:
/// product, scale, mask, softmax by maximum and sum, product.
[[nodiscard]] inline descriptor attention_graph(workload::dtype type,
                                                const workload::training_step::transformer_shape& s,
                                                cudnnHandle_t handle = nullptr) {
    detail::attention_maker on(type, s);
    const descriptor scores = make(on.scores()), scaled = make(on.scores());
    on.multiply(make(on.third(attention_query)), make(on.transposed(on.third(attention_key))), scores);
    on.pointwise(CUDNN_POINTWISE_MUL, scores, make(on.scalar(attention_scale)), scaled);
    const descriptor masked = on.masked(scaled);
    const descriptor largest = make(on.row()), less = make(on.scores()), raised = make(on.scores());
    const descriptor sum = make(on.row()), logarithm = make(on.row()), weights = make(on.scores(on.type()));
    on.reduce(CUDNN_REDUCE_TENSOR_MAX, masked, largest);
    on.pointwise(CUDNN_POINTWISE_SUB, masked, largest, less);
    on.pointwise(CUDNN_POINTWISE_EXP, less, {}, raised);
    on.reduce(CUDNN_REDUCE_TENSOR_ADD, raised, sum);
    on.pointwise(CUDNN_POINTWISE_LOG, sum, {}, logarithm);
    on.pointwise(CUDNN_POINTWISE_ADD, largest, logarithm, make(on.rows(attention_log_sums)));
    on.pointwise(CUDNN_POINTWISE_DIV, raised, sum, weights);
    on.multiply(weights, make(on.third(attention_value)), make(on.output(attention_y)));
    return on.graph("causal attention", handle);
}

/// The graph of its gradients.
[[nodiscard]] inline descriptor attention_backward_graph(workload::dtype type,
                                                         const workload::training_step::transformer_shape& s,
                                                         cudnnHandle_t handle = nullptr) {
    detail::attention_maker on(type, s);
    const descriptor d_y = make(on.output(attention_d_y)), query = make(on.third(attention_query));
    const descriptor key = make(on.transposed(on.third(attention_key)));
    const descriptor scale = make(on.scalar(attention_scale));
    const std::vector<std::int64_t> across{s.batch, s.heads, s.tokens, s.head_width()};

    const descriptor product = make(on.inner(across)), sum = make(on.row()),
                     rows = make(on.rows(attention_row_products));
    on.pointwise(CUDNN_POINTWISE_MUL, d_y, make(on.output(attention_y)), product);
    on.reduce(CUDNN_REDUCE_TENSOR_ADD, product, sum);
    on.pointwise(CUDNN_POINTWISE_MUL, sum, make(on.scalar(attention_one)), rows);

    const descriptor scores = make(on.scores()), scaled = make(on.scores()), less = make(on.scores());
    on.multiply(query, key, scores);
    on.pointwise(CUDNN_POINTWISE_MUL, scores, scale, scaled);
    on.pointwise(CUDNN_POINTWISE_SUB, scaled, make(on.rows(attention_log_sums)), less);
    const descriptor masked = on.masked(less), weights = make(on.scores());
    on.pointwise(CUDNN_POINTWISE_EXP, masked, {}, weights);
    const descriptor weights_turned = make(on.transposed(on.scores(on.type())));
    on.reshape(weights, weights_turned);
    on.multiply(weights_turned, d_y, make(on.third(attention_d_value)));

    const descriptor d_weights = make(on.scores()), centred = make(on.scores()), d_scaled = make(on.scores()),
                     d_scores = make(on.scores());
    on.multiply(d_y, make(on.transposed(on.third(attention_value))), d_weights);
    on.pointwise(CUDNN_POINTWISE_SUB, d_weights, rows, centred);
    on.pointwise(CUDNN_POINTWISE_MUL, centred, weights, d_scaled);
    on.pointwise(CUDNN_POINTWISE_MUL, d_scaled, scale, d_scores);
    const descriptor d_scores_turned = make(on.transposed(on.scores(on.type())));
    on.reshape(d_scores, d_scores_turned);
    on.multiply(d_scores_turned, query, make(on.third(attention_d_key)));

    tensor key_back = on.third(0);
    key_back.id = 99;
    key_back.is_virtual = true;
    const descriptor key_turned = make(key_back);
    on.reshape(key, key_turned);
    const descriptor d_query = make(on.rows(attention_d_query_sum, s.head_width()));
    on.multiply(d_scores, key_turned, d_query);
    on.pointwise(CUDNN_POINTWISE_IDENTITY, d_query, {}, make(on.third(attention_d_query)));
    return on.graph("the gradients of causal attention", handle);
}

} // namespace cuda::cudnn

PLUMBLINE_NAMESPACE_END

#endif
