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
#include "plumbline/cpu/elements.hpp"
#include "plumbline/cpu/memory.hpp"
#include "plumbline/cpu/onednn.hpp"
#include "plumbline/result/result.hpp"
#include "plumbline/workload/digest.hpp"
#include "plumbline/workload/gemm_reference.hpp"
#include "plumbline/workload/projection.hpp"
#include "plumbline/workload/verify.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cpu {

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
        const onednn::memory_desc source = transpose_of(p.b_view(), type);
        const onednn::memory_desc weights = transpose_of(p.a_view(), type);
        const onednn::memory_desc destination = transpose_of(p.d_view(), out);
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

    /// Poisons the output of slot 0, runs once, looks at every element for poison and NaN, compares those of
    /// workload::gemm::check_grid with the float64 reference, and the others by the sums of their rows.
    void verify(backend& on) {
        const buffer& d = slots_.front().d;
        std::memset(d.data(), workload::poison_byte(p_.type), d.size());
        run(on, 0);
        const bool integers = p_.type == workload::dtype::int8;
        const std::vector<double> output = widened(first(d, out_bytes()), p_.d_view().stored(), p_.type, integers);
        require_written(name(), output, p_.type);
        const workload::gemm::grid where = workload::gemm::check_grid(p_);
        std::vector<double> chosen(where.size());
        const auto index = [&](std::size_t i) { return static_cast<std::size_t>(where.index(p_, i)); };
        for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i] = output[index(i)];
        workload::require_close(name(), chosen, workload::gemm::reference(p_, where),
                                workload::tolerance(p_.type, static_cast<double>(p_.k)), index);
        if (where.size() < output.size()) verify_rows(output);
    }

    [[nodiscard]] std::string output_hash(backend& on) {
        run(on, 0);
        const buffer& d = slots_.front().d;
        return workload::digest(first(d, out_bytes()), d.size() - static_cast<std::size_t>(p_.offset) * out_bytes());
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
        if (p_.workspace_mib != workload::gemm::default_workspace_mib) {
            throw unsupported_error(name() + ": oneDNN is not offered a workspace");
        }
        if (p_.type == workload::dtype::int8 && p_.after != workload::gemm::epilogue::none) {
            throw unsupported_error(name() + ": int8 has no epilogue here");
        }
        require_room(name(), p_.type, bytes_per_slot(p_));
    }

    [[nodiscard]] std::size_t in_bytes() const noexcept { return workload::input_bytes(p_.type); }
    [[nodiscard]] std::size_t out_bytes() const noexcept { return workload::output_bytes(p_.type); }

    /// The first element of an operand in its memory.
    [[nodiscard]] std::byte* first(const buffer& of, std::size_t element_bytes) const {
        return of.data() + static_cast<std::size_t>(p_.offset) * element_bytes;
    }

    /// The transpose of a stored matrix, or of a batch of them.
    [[nodiscard]] static onednn::memory_desc transpose_of(const workload::matrix_view& view, onednn::data_type type) {
        const dnnl::memory::dims strides{view.column_stride, view.row_stride};
        if (view.batch == 1) return {{view.columns, view.rows}, type, strides};
        return {{view.batch, view.columns, view.rows}, type, {view.batch_stride, strides[0], strides[1]}};
    }

    void verify_rows(const std::vector<double>& output) const {
        using workload::gemm::operand;
        const std::vector<double> a = widened(first(slots_.front().a, in_bytes()), p_.a_view().stored(), p_.type);
        const std::vector<double> b = widened(first(slots_.front().b, in_bytes()), p_.b_view().stored(), p_.type);
        workload::gemm::verify_rows(name(), p_, [&](operand which, const workload::matrix_view& view, const auto& x) {
            const std::vector<double>& from = which == operand::a ? a : which == operand::b ? b : output;
            return workload::project(
                view, [&](std::size_t i) { return from[i]; }, x);
        });
    }

    void allocate(std::size_t slots, const onednn::memory_desc& source, const onednn::memory_desc& weights,
                  const std::optional<onednn::memory_desc>& bias, const onednn::memory_desc& destination) {
        const buffer a = filled(p_.a_view().stored(), p_.offset, p_.type, workload::gemm::seed_a);
        const buffer b = filled(p_.b_view().stored(), p_.offset, p_.type, workload::gemm::seed_b);
        if (bias) bias_.emplace(filled(p_.bias_elements(), 0, p_.type, workload::gemm::seed_bias));
        const buffer zeros(static_cast<std::size_t>(p_.d_view().stored() + p_.offset) * out_bytes());
        std::memset(zeros.data(), 0, zeros.size());
        for (std::size_t i = 0; i < slots; ++i) {
            buffer_set made{buffer(a.size()), buffer(b.size()), buffer(zeros.size()), {}};
            onednn::copy(on_, a.data(), made.a.data(), a.size());
            onednn::copy(on_, b.data(), made.b.data(), b.size());
            onednn::copy(on_, zeros.data(), made.d.data(), made.d.size());
            made.arguments.emplace(DNNL_ARG_SRC, dnnl::memory(source, on_.engine, first(made.b, in_bytes())));
            made.arguments.emplace(DNNL_ARG_WEIGHTS, dnnl::memory(weights, on_.engine, first(made.a, in_bytes())));
            made.arguments.emplace(DNNL_ARG_DST, dnnl::memory(destination, on_.engine, first(made.d, out_bytes())));
            if (bias) made.arguments.emplace(DNNL_ARG_BIAS, dnnl::memory(*bias, on_.engine, bias_->data()));
            slots_.push_back(std::move(made));
        }
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
