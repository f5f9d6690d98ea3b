// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CPU_ONEDNN_HPP
#define PLUMBLINE_CPU_ONEDNN_HPP

#include <cstddef>
#include <cstring>
#include <dlfcn.h>
#include <optional>
#include <string>
#include <utility>

#include <oneapi/dnnl/dnnl.hpp>

#include "plumbline/core/error.hpp"
#include "plumbline/workload/dtype.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// The only place that knows oneDNN's versions: 2.x builds a primitive from an operation descriptor, 3.x (2022 on)
/// from its arguments.
namespace cpu::onednn {

using memory_desc = dnnl::memory::desc;
using data_type = dnnl::memory::data_type;

/// Calls `body` and turns oneDNN's exceptions into ours: what this library or processor does not implement is an
/// unsupported_error, everything else an error with the status code of dnnl_types.h.
template <class Body>
decltype(auto) checked(const std::string& what, Body&& body) {
    try {
        return std::forward<Body>(body)();
    } catch (const dnnl::error& e) {
        const std::string code = " (oneDNN status " + std::to_string(static_cast<int>(e.status)) + ")";
        if (e.status == dnnl_unimplemented) {
            throw unsupported_error(what + ": this oneDNN has no implementation of it for this processor" + code);
        }
        throw error(what + ": " + (e.message != nullptr ? e.message : "failed") + code);
    }
}

/// The version of the library that is loaded: "2.6.3".
[[nodiscard]] inline std::string version() {
    const dnnl_version_t* v = dnnl_version();
    return std::to_string(v->major) + '.' + std::to_string(v->minor) + '.' + std::to_string(v->patch);
}

/// Threads that oneDNN's OpenMP runtime will use, asked from the runtime that is in the process; nothing when oneDNN
/// was built with another one.
[[nodiscard]] inline std::optional<int> threads() {
    using query = int (*)();
    // POSIX promises that a pointer from dlsym can be a function pointer.
    const auto ask = reinterpret_cast<query>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
    if (ask == nullptr) return std::nullopt;
    return ask();
}

/// oneDNN, called from this thread, works in this thread alone while one of these lives. For work beside others':
/// OpenMP's threads wait for each other, and with one that lacks a processor all of them wait for a tick of the
/// scheduler. Does nothing when oneDNN was built with another runtime.
class in_this_thread {
public:
    in_this_thread() : set_(reinterpret_cast<setter>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))) {
        const std::optional<int> all = threads();
        if (!all) set_ = nullptr;
        if (set_ == nullptr) return;
        before_ = *all;
        set_(1);
    }
    ~in_this_thread() {
        if (set_ != nullptr) set_(before_);
    }
    in_this_thread(const in_this_thread&) = delete;
    in_this_thread& operator=(const in_this_thread&) = delete;

private:
    using setter = void (*)(int);
    setter set_;
    int before_ = 1;
};

/// The CPU engine and a stream on it.
struct context {
    dnnl::engine engine{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream{engine};
};

/// oneDNN's type of the inputs; throws unsupported_error for what it has not.
[[nodiscard]] inline data_type input_type(workload::dtype type) {
    switch (type) {
    case workload::dtype::fp32:
        return data_type::f32;
    case workload::dtype::fp16:
        return data_type::f16;
    case workload::dtype::bf16:
        return data_type::bf16;
    case workload::dtype::int8:
        return data_type::s8;
    case workload::dtype::tf32:
    case workload::dtype::fp8:
        break;
    }
    throw unsupported_error("dtype " + std::string(workload::name(type)) + " does not exist on the CPU backend");
}

/// oneDNN's type of the output: int8 gives int32, everything else itself.
[[nodiscard]] inline data_type output_type(workload::dtype type) {
    return type == workload::dtype::int8 ? data_type::s32 : input_type(type);
}

/// A built primitive and the name of the implementation that oneDNN chose for it.
struct built {
    dnnl::primitive primitive;
    std::string implementation;
};

/// destination = [destination +] source x weights [+ bias] [then GELU, tanh form]; shapes (batch x) n x k, k x m,
/// 1 x m, n x m.
[[nodiscard]] inline built matmul(const context& on, const memory_desc& source, const memory_desc& weights,
                                  const std::optional<memory_desc>& bias, const memory_desc& destination, bool gelu,
                                  bool add = false) {
    return checked("matmul", [&] {
        dnnl::primitive_attr attributes;
        dnnl::post_ops after;
        if (add) after.append_sum(1.0f);
#if DNNL_VERSION_MAJOR >= 3
        if (gelu) after.append_eltwise(dnnl::algorithm::eltwise_gelu_tanh, 0.0f, 0.0f);
        attributes.set_post_ops(after);
        const dnnl::matmul::primitive_desc chosen =
            bias ? dnnl::matmul::primitive_desc(on.engine, source, weights, *bias, destination, attributes)
                 : dnnl::matmul::primitive_desc(on.engine, source, weights, destination, attributes);
#else
        if (gelu) after.append_eltwise(1.0f, dnnl::algorithm::eltwise_gelu_tanh, 0.0f, 0.0f);
        attributes.set_post_ops(after);
        const dnnl::matmul::desc wanted = bias ? dnnl::matmul::desc(source, weights, *bias, destination)
                                               : dnnl::matmul::desc(source, weights, destination);
        const dnnl::matmul::primitive_desc chosen(wanted, attributes, on.engine);
#endif
        return built{dnnl::matmul(chosen), chosen.impl_info_str()};
    });
}

/// Which of a convolution's tensors is computed from the other two.
enum class convolution_pass { forward, backward_data, backward_weights };

/// The sizes of a convolution that its tensors do not say, one value for each spatial dimension.
struct convolution_steps {
    dnnl::memory::dims strides;
    dnnl::memory::dims dilations; ///< 1: none
    dnnl::memory::dims padding;   ///< on each side
};

/// A built convolution and how it wants its weights.
struct built_convolution {
    built with;
    memory_desc weights;
};

/// One pass of a convolution of x (or dx) and y (or dy) as they are stored. The weights' layout is oneDNN's choice
/// where `weights` leaves it open.
[[nodiscard]] inline built_convolution convolution(const context& on, convolution_pass pass, const memory_desc& x,
                                                   const memory_desc& weights, const memory_desc& y,
                                                   const convolution_steps& steps) {
    constexpr auto algorithm = dnnl::algorithm::convolution_auto;
    constexpr auto training = dnnl::prop_kind::forward_training;
    const dnnl::memory::dims& strides = steps.strides;
    const dnnl::memory::dims& padding = steps.padding;
    dnnl::memory::dims gaps = steps.dilations; // oneDNN counts what lies between two taps
    for (auto& each : gaps) --each;
    return checked("convolution", [&]() -> built_convolution {
        using forward = dnnl::convolution_forward;
        using backward_data = dnnl::convolution_backward_data;
        using backward_weights = dnnl::convolution_backward_weights;
#if DNNL_VERSION_MAJOR >= 3
        const forward::primitive_desc ahead(on.engine, training, algorithm, x, weights, y, strides, gaps, padding,
                                            padding);
        const auto back = [&](auto tag, const memory_desc& from, const memory_desc& with, const memory_desc& to) {
            return typename decltype(tag)::primitive_desc(on.engine, algorithm, from, with, to, strides, gaps, padding,
                                                          padding, ahead);
        };
#else
        const forward::primitive_desc ahead({training, algorithm, x, weights, y, strides, gaps, padding, padding},
                                            on.engine);
        const auto back = [&](auto tag, const memory_desc& from, const memory_desc& with, const memory_desc& to) {
            using primitive = decltype(tag);
            const typename primitive::desc wanted(algorithm, from, with, to, strides, gaps, padding, padding);
            return typename primitive::primitive_desc(wanted, on.engine, ahead);
        };
#endif
        if (pass == convolution_pass::forward) return {{forward(ahead), ahead.impl_info_str()}, ahead.weights_desc()};
        if (pass == convolution_pass::backward_data) {
            const auto chosen = back(backward_data{}, x, weights, y);
            return {{backward_data(chosen), chosen.impl_info_str()}, chosen.weights_desc()};
        }
        const auto chosen = back(backward_weights{}, x, weights, y);
        return {{backward_weights(chosen), chosen.impl_info_str()}, chosen.diff_weights_desc()};
    });
}

/// LayerNorm over the last dimension of `matrix` with scale and shift, both fp32: forward for training, which writes
/// mean and variance (`statistic`), or backward.
[[nodiscard]] inline built layer_norm(const context& on, bool backward, const memory_desc& matrix,
                                      const memory_desc& statistic, float epsilon) {
    return checked("layer normalization", [&]() -> built {
        using forward = dnnl::layer_normalization_forward;
        using back = dnnl::layer_normalization_backward;
        constexpr auto training = dnnl::prop_kind::forward_training;
        const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
#if DNNL_VERSION_MAJOR >= 3
        const forward::primitive_desc ahead(on.engine, training, matrix, matrix, statistic, epsilon, flags);
        if (!backward) return {forward(ahead), ahead.impl_info_str()};
        const back::primitive_desc chosen(on.engine, dnnl::prop_kind::backward, matrix, matrix, matrix, statistic,
                                          epsilon, flags, ahead);
#else
        const forward::primitive_desc ahead({training, matrix, statistic, epsilon, flags}, on.engine);
        if (!backward) return {forward(ahead), ahead.impl_info_str()};
        const back::primitive_desc chosen({dnnl::prop_kind::backward, matrix, matrix, statistic, epsilon, flags},
                                          on.engine, ahead);
#endif
        return {back(chosen), chosen.impl_info_str()};
    });
}

/// Copies a tensor into another layout.
inline void reorder(context& on, const memory_desc& from_layout, const void* from, const memory_desc& to_layout,
                    void* to) {
    checked("reorder", [&] {
        // oneDNN takes no pointer to const; a reorder only reads its source.
        dnnl::memory source(from_layout, on.engine, const_cast<void*>(from));
        dnnl::memory destination(to_layout, on.engine, to);
        dnnl::reorder(source, destination).execute(on.stream, source, destination);
        on.stream.wait();
    });
}

/// Copies bytes with oneDNN's own threads, so that each page lands near a thread that will work on it. Little is copied
/// by this thread alone: hundreds of small buffer sets need no meeting of threads each.
inline void copy(context& on, const void* from, void* to, std::size_t bytes) {
    constexpr std::size_t little = std::size_t{256} << 10;
    if (bytes <= little) {
        std::memcpy(to, from, bytes);
        return;
    }
    const memory_desc flat({static_cast<dnnl::memory::dim>(bytes)}, data_type::u8, dnnl::memory::format_tag::a);
    reorder(on, flat, from, flat, to);
}

/// Turns oneDNN's cache of compiled primitives off while it lives, so that building one really compiles it.
class no_primitive_cache {
public:
    no_primitive_cache() : before_(dnnl::get_primitive_cache_capacity()) { dnnl::set_primitive_cache_capacity(0); }
    ~no_primitive_cache() { dnnl_set_primitive_cache_capacity(before_); }
    no_primitive_cache(const no_primitive_cache&) = delete;
    no_primitive_cache& operator=(const no_primitive_cache&) = delete;

private:
    int before_;
};

} // namespace cpu::onednn

PLUMBLINE_NAMESPACE_END

#endif
