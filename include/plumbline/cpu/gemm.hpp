// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CPU_GEMM_HPP
#define PLUMBLINE_CPU_GEMM_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plumbline/cpu/backend.hpp"
#include "plumbline/cpu/memory.hpp"
#include "plumbline/cpu/onednn.hpp"
#include "plumbline/result/result.hpp"
#include "plumbline/workload/digest.hpp"
#include "plumbline/workload/gemm_reference.hpp"
#include "plumbline/workload/verify.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cpu {

/// Whether this processor multiplies bf16 by itself. oneDNN emulates it elsewhere, ten times slower, which says
/// nothing about the machine.
[[nodiscard]] inline bool has_native_bf16() {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512bf16") != 0;
#else
    return true; // oneDNN offers it only where the processor has it
#endif
}

/// D = epilogue(op(A) op(B)) by oneDNN's matmul on plain, unpacked layouts, as frameworks call it. A column-major
/// D is the row-major transpose of it, so oneDNN computes D^T = op(B)^T op(A)^T.
class gemm {
public:
    using params = workload::gemm::params;

    /// Buffer sets for a cold run; see cold_slots.
    [[nodiscard]] static std::size_t slots(backend&, const params& p) { return cold_slots(bytes_per_slot(p)); }

    /// Throws unsupported_error where processor, library or memory cannot do it.
    gemm(backend&, const params& p, std::size_t slots) : p_(p) {
        check_supported();
        const auto type = onednn::input_type(p.type);
        const auto out = onednn::output_type(p.type);
        using strides = dnnl::memory::dims;
        const onednn::memory_desc source = matrix(p.n, p.k, type, p.b_transposed() ? strides{1, p.n} : strides{p.k, 1});
        const onednn::memory_desc weights =
            matrix(p.k, p.m, type, p.a_transposed() ? strides{1, p.k} : strides{p.m, 1});
        const onednn::memory_desc destination = matrix(p.n, p.m, out, {p.m, 1});
        std::optional<onednn::memory_desc> bias;
        if (p.bias_elements() != 0) {
            bias.emplace(p.batch == 1 ? strides{1, p.m} : strides{1, 1, p.m}, out,
                         p.batch == 1 ? strides{p.m, 1} : strides{p.m, p.m, 1});
        }
        built_ = onednn::matmul(on_, source, weights, bias, destination, p.after == workload::gemm::epilogue::gelu);
        allocate(slots, source, weights, bias, destination);
    }

    void run(backend&, std::size_t slot) {
        onednn::checked("matmul", [&] {
            built_.primitive.execute(on_.stream, slots_[slot].arguments);
            on_.stream.wait();
        });
    }

    /// Poisons the output of slot 0, runs once, looks at every element for poison and NaN, and compares with the
    /// float64 reference.
    void verify(backend& on) {
        std::memset(slots_.front().d.data(), workload::poison_byte(p_.type), slots_.front().d.size());
        run(on, 0);
        const std::vector<double> output = widened();
        for (std::size_t i = 0; i < output.size(); ++i) {
            const bool poisoned = p_.type == workload::dtype::int8 && output[i] == workload::poisoned_int32;
            if (output[i] - output[i] != 0 || poisoned) {
                throw verification_error(name() + ": element " + std::to_string(i) + " of the output is " +
                                             to_string(scalar(output[i])) + ": it was not written or is not finite",
                                         0, 0, i);
            }
        }
        const workload::gemm::grid where = workload::gemm::check_grid(p_);
        std::vector<double> chosen(where.size());
        const auto index = [&](std::size_t i) { return static_cast<std::size_t>(where.index(p_, i)); };
        for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i] = output[index(i)];
        workload::require_close(name(), chosen, workload::gemm::reference(p_, where),
                                workload::tolerance(p_.type, static_cast<double>(p_.k)), index);
    }

    [[nodiscard]] std::string output_hash(backend& on) {
        run(on, 0);
        const buffer& d = slots_.front().d;
        return workload::digest(d.data(), d.size());
    }

    [[nodiscard]] result::evidence evidence(backend&) const {
        result::evidence found;
        found.implementation = built_.implementation;
        found.parts = {{"library", "onednn " + onednn::version()},
                       {"implementation", built_.implementation},
                       {"slots", static_cast<std::int64_t>(slots_.size())},
                       {"rotated_bytes", static_cast<std::int64_t>(slots_.size() * bytes_per_slot(p_))}};
        if (const auto count = onednn::threads()) found.parts["threads"] = static_cast<std::int64_t>(*count);
        return found;
    }

private:
    struct buffer_set {
        buffer a;
        buffer b;
        buffer d;
        std::unordered_map<int, dnnl::memory> arguments; ///< views of the buffers, which stay where they are
    };

    [[nodiscard]] static std::size_t bytes_per_slot(const params& p) {
        return static_cast<std::size_t>(workload::gemm::bytes(p));
    }

    [[nodiscard]] std::string name() const { return workload::gemm::id(p_); }

    void check_supported() const {
        if (p_.mode.plan != workload::plan_choice::heuristic) {
            throw unsupported_error(name() + ": oneDNN offers one implementation, there is none to choose");
        }
        if (p_.type == workload::dtype::bf16 && !has_native_bf16()) {
            throw unsupported_error(name() + ": this processor has no bf16 arithmetic");
        }
        if (p_.type == workload::dtype::int8 && p_.after != workload::gemm::epilogue::none) {
            throw unsupported_error(name() + ": int8 has no epilogue here");
        }
        if (bytes_per_slot(p_) > free_memory_bytes()) {
            throw unsupported_error(name() + ": needs " + std::to_string(bytes_per_slot(p_)) + " bytes, " +
                                    std::to_string(free_memory_bytes()) + " are free");
        }
    }

    /// A rows x columns matrix with these strides, or a batch of them one after the other.
    [[nodiscard]] onednn::memory_desc matrix(std::int64_t rows, std::int64_t columns, onednn::data_type type,
                                             dnnl::memory::dims strides) const {
        if (p_.batch == 1) return {{rows, columns}, type, strides};
        strides.insert(strides.begin(), rows * columns);
        return {{p_.batch, rows, columns}, type, strides};
    }

    void allocate(std::size_t slots, const onednn::memory_desc& source, const onednn::memory_desc& weights,
                  const std::optional<onednn::memory_desc>& bias, const onednn::memory_desc& destination) {
        const buffer a = filled(p_.a_elements(), p_.type, workload::gemm::seed_a);
        const buffer b = filled(p_.b_elements(), p_.type, workload::gemm::seed_b);
        if (bias) bias_.emplace(filled(p_.bias_elements(), p_.type, workload::gemm::seed_bias));
        const buffer zeros(destination.get_size());
        std::memset(zeros.data(), 0, zeros.size());
        for (std::size_t i = 0; i < slots; ++i) {
            buffer_set made{buffer(a.size()), buffer(b.size()), buffer(destination.get_size()), {}};
            onednn::copy(on_, a.data(), made.a.data(), a.size());
            onednn::copy(on_, b.data(), made.b.data(), b.size());
            onednn::copy(on_, zeros.data(), made.d.data(), made.d.size());
            made.arguments.emplace(DNNL_ARG_SRC, dnnl::memory(source, on_.engine, made.b.data()));
            made.arguments.emplace(DNNL_ARG_WEIGHTS, dnnl::memory(weights, on_.engine, made.a.data()));
            made.arguments.emplace(DNNL_ARG_DST, dnnl::memory(destination, on_.engine, made.d.data()));
            if (bias) made.arguments.emplace(DNNL_ARG_BIAS, dnnl::memory(*bias, on_.engine, bias_->data()));
            slots_.push_back(std::move(made));
        }
    }

    /// The stream of a seed as stored elements.
    [[nodiscard]] static buffer filled(std::int64_t elements, workload::dtype type, std::uint64_t seed) {
        const auto count = static_cast<std::size_t>(elements);
        buffer made(count * workload::input_bytes(type));
        const auto fill = [&](auto element) {
            using stored = decltype(element(std::uint64_t{}));
            auto* at = reinterpret_cast<stored*>(made.data());
            for (std::size_t i = 0; i < count; ++i) at[i] = element(i);
        };
        namespace random = workload::random;
        switch (type) {
        case workload::dtype::fp16:
            fill([seed](auto i) { return workload::to_fp16(random::normal(seed, i)); });
            break;
        case workload::dtype::bf16:
            fill([seed](auto i) { return workload::to_bf16(random::normal(seed, i)); });
            break;
        case workload::dtype::int8:
            fill([seed](auto i) { return random::normal_int8(seed, i); });
            break;
        default:
            fill([seed](auto i) { return random::normal(seed, i); });
        }
        return made;
    }

    /// The output of slot 0 as float64.
    [[nodiscard]] std::vector<double> widened() const {
        const std::byte* data = slots_.front().d.data();
        std::vector<double> values(static_cast<std::size_t>(p_.d_elements()));
        const auto widen = [&](auto stored, auto value) {
            for (std::size_t i = 0; i < values.size(); ++i) {
                std::memcpy(&stored, data + i * sizeof stored, sizeof stored);
                values[i] = static_cast<double>(value(stored));
            }
        };
        switch (p_.type) {
        case workload::dtype::fp16:
            widen(std::uint16_t{}, workload::from_fp16);
            break;
        case workload::dtype::bf16:
            widen(std::uint16_t{}, workload::from_bf16);
            break;
        case workload::dtype::int8:
            widen(std::int32_t{}, [](std::int32_t v) { return v; });
            break;
        default:
            widen(float{}, [](float v) { return v; });
        }
        return values;
    }

    params p_;
    onednn::context on_;
    onednn::built built_;
    std::optional<buffer> bias_; ///< the same for all slots: it is small and every launch reads it
    std::vector<buffer_set> slots_;
};

} // namespace cpu

PLUMBLINE_NAMESPACE_END

#endif
