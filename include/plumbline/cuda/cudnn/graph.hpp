// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_CUDNN_GRAPH_HPP
#define PLUMBLINE_CUDA_CUDNN_GRAPH_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "plumbline/cuda/cudnn/descriptor.hpp"
#include "plumbline/workload/dtype.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda::cudnn {

/// How cuDNN stores elements of a dtype; throws unsupported_error for what is not used with it here.
[[nodiscard]] inline cudnnDataType_t data_type(workload::dtype type) {
    switch (type) {
    case workload::dtype::fp32:
    case workload::dtype::tf32:
        return CUDNN_DATA_FLOAT;
    case workload::dtype::fp16:
        return CUDNN_DATA_HALF;
    case workload::dtype::bf16:
        return CUDNN_DATA_BFLOAT16;
    case workload::dtype::fp8:
    case workload::dtype::int8:
        break;
    }
    throw unsupported_error("dtype " + std::string(workload::name(type)) + " is not offered through cuDNN here");
}

/// A tensor of an operation graph. Dimensions are in cuDNN's order (N, C, spatial ...) whatever the layout is; strides,
/// in elements, carry the layout.
struct tensor {
    std::int64_t id = 0; ///< its name in the graph and in variant packs
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    std::vector<std::int64_t> dimensions;
    std::vector<std::int64_t> strides;
    std::int64_t alignment = 16; ///< bytes that every pointer for it is a multiple of
    bool is_virtual = false;     ///< exists only between operations of the graph
    bool by_value = false;       ///< a scalar that the variant pack points to in host memory
};

[[nodiscard]] inline descriptor make(const tensor& t) {
    descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor " + std::to_string(t.id));
    made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, t.id)
        .set(CUDNN_ATTR_TENSOR_DATA_TYPE, t.type)
        .set(CUDNN_ATTR_TENSOR_DIMENSIONS, t.dimensions)
        .set(CUDNN_ATTR_TENSOR_STRIDES, t.strides)
        .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, t.alignment);
    if (t.is_virtual) made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
    if (t.by_value) made.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
    return made.finalize();
}

/// A graph of finalized operations. Without a handle it can be asked for engines but not run.
[[nodiscard]] inline descriptor operation_graph(const std::vector<descriptor>& operations, const std::string& what,
                                                cudnnHandle_t handle = nullptr) {
    descriptor made(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "graph of " + what);
    if (handle != nullptr) made.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
    return made.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations).finalize();
}

/// The pointers of one launch: ids and pointers in the same order, and a workspace. Made once for each buffer set, for
/// making one costs host time.
[[nodiscard]] inline descriptor variant_pack(const std::vector<std::int64_t>& ids, const std::vector<void*>& pointers,
                                             void* workspace) {
    descriptor made(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "variant pack");
    return made.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids)
        .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, pointers)
        .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace)
        .finalize();
}

} // namespace cuda::cudnn

PLUMBLINE_NAMESPACE_END

#endif
