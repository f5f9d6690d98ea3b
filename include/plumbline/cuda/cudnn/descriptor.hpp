// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_CUDNN_DESCRIPTOR_HPP
#define PLUMBLINE_CUDA_CUDNN_DESCRIPTOR_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/cuda/cudnn/error.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// cuDNN's graph API through its backend C interface, by RAII. Nothing here needs a GPU but what takes a handle.
namespace cuda::cudnn {

/// How the backend names the C++ type of an attribute's value: one specialisation for each.
template <class T>
inline constexpr cudnnBackendAttributeType_t attribute_type = CUDNN_TYPE_VOID_PTR;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<cudnnHandle_t> = CUDNN_TYPE_HANDLE;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<cudnnDataType_t> = CUDNN_TYPE_DATA_TYPE;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<bool> = CUDNN_TYPE_BOOLEAN;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<std::int64_t> = CUDNN_TYPE_INT64;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<std::int32_t> = CUDNN_TYPE_INT32;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<float> = CUDNN_TYPE_FLOAT;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<double> = CUDNN_TYPE_DOUBLE;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<char> = CUDNN_TYPE_CHAR;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<cudnnConvolutionMode_t> = CUDNN_TYPE_CONVOLUTION_MODE;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<cudnnBackendHeurMode_t> = CUDNN_TYPE_HEUR_MODE;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<cudnnBackendKnobType_t> = CUDNN_TYPE_KNOB_TYPE;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<cudnnBackendNumericalNote_t> = CUDNN_TYPE_NUMERICAL_NOTE;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<cudnnBackendBehaviorNote_t> = CUDNN_TYPE_BEHAVIOR_NOTE;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<cudnnPointwiseMode_t> = CUDNN_TYPE_POINTWISE_MODE;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<cudnnReduceTensorOp_t> = CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<cudnnBackendNormMode_t> = CUDNN_TYPE_NORM_MODE;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<cudnnBackendNormFwdPhase_t> = CUDNN_TYPE_NORM_FWD_PHASE;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<cudnnRngDistribution_t> = CUDNN_TYPE_RNG_DISTRIBUTION;

/// A backend descriptor: attributes are set, it is finalized, then it can be used and asked. Copies share it, and it
/// keeps those it was made from alive, for cuDNN does not promise to. Failures name the descriptor by `what`.
class descriptor {
public:
    /// None: evaluates to false and can only be assigned to.
    descriptor() noexcept = default;

    descriptor(cudnnBackendDescriptorType_t type, std::string what) : node_(std::make_shared<node>()) {
        node_->what = std::move(what);
        check(cudnnBackendCreateDescriptor(type, &node_->handle), "cudnnBackendCreateDescriptor", node_->what);
    }

    explicit operator bool() const noexcept { return node_ != nullptr; }
    [[nodiscard]] cudnnBackendDescriptor_t get() const noexcept { return node_ ? node_->handle : nullptr; }
    [[nodiscard]] const std::string& what() const noexcept { return node_->what; }

    /// Sets an attribute of one value, or of several. For pointers to data, T is void*.
    template <class T>
    descriptor& set(cudnnBackendAttributeName_t attribute, const T& value) {
        return put(attribute, attribute_type<T>, 1, &value);
    }
    template <class T>
    descriptor& set(cudnnBackendAttributeName_t attribute, const std::vector<T>& values) {
        return put(attribute, attribute_type<T>, values.size(), values.data());
    }

    /// Sets an attribute that is another descriptor, or several.
    descriptor& set(cudnnBackendAttributeName_t attribute, const descriptor& other) {
        return set(attribute, std::vector<descriptor>{other});
    }
    descriptor& set(cudnnBackendAttributeName_t attribute, const std::vector<descriptor>& others) {
        std::vector<cudnnBackendDescriptor_t> handles;
        for (const descriptor& each : others) {
            handles.push_back(each.get());
            node_->uses.push_back(each.node_);
        }
        return put(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, handles.size(), handles.data());
    }

    /// Ends the setting; cuDNN checks what was set. Throws unsupported_error for what it cannot do.
    descriptor& finalize() {
        check(cudnnBackendFinalize(get()), "cudnnBackendFinalize", what());
        return *this;
    }

    /// All values of an attribute.
    template <class T>
    [[nodiscard]] std::vector<T> values(cudnnBackendAttributeName_t attribute) const {
        std::vector<T> found(count(attribute, attribute_type<T>));
        found.resize(fetch(attribute, attribute_type<T>, found.size(), found.data()));
        return found;
    }

    /// The value of an attribute that has one.
    template <class T>
    [[nodiscard]] T value(cudnnBackendAttributeName_t attribute) const {
        T found{};
        if (fetch(attribute, attribute_type<T>, 1, &found) != 1) {
            throw error("cudnnBackendGetAttribute for " + what() + ": attribute " + std::to_string(attribute) +
                        " has no value");
        }
        return found;
    }

    /// A text; what cuDNN counts beyond its end mark is left out.
    [[nodiscard]] std::string text(cudnnBackendAttributeName_t attribute) const {
        const std::vector<char> found = values<char>(attribute);
        return {found.begin(), std::find(found.begin(), found.end(), '\0')};
    }

    /// Descriptors of one type that cuDNN made; they keep this one alive. Where cuDNN does not say how many there are
    /// (knobs), `room` is the most there can be.
    [[nodiscard]] std::vector<descriptor> descriptors(cudnnBackendAttributeName_t attribute,
                                                      cudnnBackendDescriptorType_t type, const std::string& name,
                                                      std::size_t room = 0) const {
        std::vector<descriptor> found;
        std::vector<cudnnBackendDescriptor_t> handles;
        if (room == 0) room = count(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR);
        for (std::size_t i = 0; i < room; ++i) {
            found.emplace_back(type, name);
            found.back().node_->uses.push_back(node_);
            handles.push_back(found.back().get());
        }
        found.resize(fetch(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, handles.size(), handles.data()));
        return found;
    }

private:
    struct node {
        node() = default;
        node(const node&) = delete;
        node& operator=(const node&) = delete;
        ~node() {
            if (handle != nullptr) static_cast<void>(cudnnBackendDestroyDescriptor(handle));
        }
        cudnnBackendDescriptor_t handle = nullptr;
        std::string what;
        std::vector<std::shared_ptr<node>> uses; ///< released after the handle is
    };

    descriptor& put(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type, std::size_t count,
                    const void* values) {
        check(cudnnBackendSetAttribute(get(), attribute, type, static_cast<std::int64_t>(count), values),
              "cudnnBackendSetAttribute", label(attribute));
        return *this;
    }

    [[nodiscard]] std::size_t count(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type) const {
        std::int64_t there = 0;
        check(cudnnBackendGetAttribute(get(), attribute, type, 0, &there, nullptr), "cudnnBackendGetAttribute",
              label(attribute));
        return static_cast<std::size_t>(std::max<std::int64_t>(there, 0));
    }

    std::size_t fetch(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type, std::size_t room,
                      void* values) const {
        if (room == 0) return 0;
        std::int64_t there = 0;
        check(cudnnBackendGetAttribute(get(), attribute, type, static_cast<std::int64_t>(room), &there, values),
              "cudnnBackendGetAttribute", label(attribute));
        return std::min(room, static_cast<std::size_t>(std::max<std::int64_t>(there, 0)));
    }

    [[nodiscard]] std::string label(cudnnBackendAttributeName_t attribute) const {
        return what() + ", attribute " + std::to_string(attribute);
    }

    std::shared_ptr<node> node_;
};

} // namespace cuda::cudnn

PLUMBLINE_NAMESPACE_END

#endif
