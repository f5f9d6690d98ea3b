// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CPU_LAYERNORM_HPP
#define PLUMBLINE_CPU_LAYERNORM_HPP

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
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
#include "plumbline/workload/layernorm_reference.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cpu {

/// LayerNorm by oneDNN, forward for training and backward; gamma, beta and their gradients are fp32. Where our kernels
/// keep the inverse deviation, oneDNN keeps the variance. It has no RMSNorm.
class layernorm {
public:
    using params = workload::layernorm::params;

    /// Buffer sets for a cold run; see cold_slots.
    [[nodiscard]] static std::size_t slots(backend&, const params& p) { return cold_slots(bytes_per_slot(p)); }

    /// Throws unsupported_error where processor, library or memory cannot do it.
    layernorm(backend&, const params& p, std::size_t slots) : p_(p) {
        check_supported();
        matrix_ = {{p.rows, p.hidden}, onednn::input_type(p.type), dnnl::memory::dims{p.hidden, 1}};
        statistic_ = {{p.rows}, onednn::data_type::f32, dnnl::memory::dims{1}};
        vector_ = {{p.hidden}, onednn::data_type::f32, dnnl::memory::dims{1}};
        built_ = onednn::layer_norm(on_, p.backward(), matrix_, statistic_,
                                    static_cast<float>(workload::layernorm::epsilon));
        allocate(slots);
    }

    void run(backend&, std::size_t slot) {
        onednn::checked("layer normalization", [&] {
            built_.primitive.execute(on_.stream, slots_[slot].arguments);
            on_.stream.wait();
        });
    }

    /// Poisons what slot 0 writes, runs once, looks at every element for poison and NaN, and compares the rows and
    /// columns of workload::layernorm::check_rows and check_columns with the float64 reference.
    void verify(backend& on) {
        poison_outputs();
        run(on, 0);
        namespace reference = workload::layernorm;
        const buffer_set& set = slots_.front();
        const std::vector<double> out = widened(set.out.data(), p_.elements(), p_.type);
        require_written(name(), out, p_.type);
        const std::vector<double> scale = vector_values(set.gamma);
        const std::vector<double> shift = vector_values(set.beta);
        std::vector<double> found, expected, terms;
        std::vector<std::int64_t> places;
        for (std::int64_t row : reference::check_rows(p_)) {
            const auto x = reference::input(p_.type, reference::seed_x, row * p_.hidden, p_.hidden);
            std::vector<double> one;
            if (p_.backward()) {
                const auto dy = reference::input(p_.type, reference::seed_dy, row * p_.hidden, p_.hidden);
                one = reference::backward_row(x, dy, scale, false);
                const std::vector<double> sizes = reference::backward_terms(x, dy, scale, false);
                terms.insert(terms.end(), sizes.begin(), sizes.end());
            } else {
                one = reference::forward_row(x, scale, shift, false);
            }
            expected.insert(expected.end(), one.begin(), one.end());
            for (std::int64_t i = 0; i < p_.hidden; ++i) {
                places.push_back(row * p_.hidden + i);
                found.push_back(out[static_cast<std::size_t>(places.back())]);
            }
        }
        reference::require_rows(name(), p_, found, expected, places, terms);
        if (p_.backward())
            verify_columns();
        else
            verify_statistics();
    }

    [[nodiscard]] std::string output_hash(backend& on) {
        run(on, 0);
        const buffer& out = slots_.front().out;
        return workload::digest(out.data(), out.size());
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
        buffer x, dy, out, mean, variance, gamma, beta, dgamma, dbeta;
        std::unordered_map<int, dnnl::memory> arguments; ///< views of the buffers, which stay where they are
    };

    [[nodiscard]] static std::size_t bytes_per_slot(const params& p) {
        return static_cast<std::size_t>(workload::layernorm::bytes(p));
    }

    [[nodiscard]] std::string name() const { return workload::layernorm::id(p_); }

    void check_supported() const {
        if (p_.by != workload::layernorm::implementation::onednn) {
            throw unsupported_error(name() + ": the CPU backend computes norms with oneDNN (.../onednn)");
        }
        if (p_.rms()) throw unsupported_error(name() + ": this oneDNN has no RMSNorm");
        require_room(name(), p_.type, bytes_per_slot(p_));
    }

    [[nodiscard]] std::vector<double> vector_values(const buffer& of) const {
        return widened(of.data(), p_.hidden, workload::dtype::fp32);
    }
    [[nodiscard]] std::vector<double> row_values(const buffer& of) const {
        return widened(of.data(), p_.rows, workload::dtype::fp32);
    }

    void poison_outputs() {
        buffer_set& set = slots_.front();
        const auto poison = [&](buffer& of) { std::memset(of.data(), workload::poison_byte(p_.type), of.size()); };
        poison(set.out);
        poison(p_.backward() ? set.dgamma : set.mean);
        poison(p_.backward() ? set.dbeta : set.variance);
    }

    void verify_statistics() const {
        namespace reference = workload::layernorm;
        std::vector<double> inverses = row_values(slots_.front().variance);
        const std::vector<double> means = row_values(slots_.front().mean);
        require_written(name() + ", variance", inverses, p_.type);
        require_written(name() + ", mean", means, p_.type);
        for (double& each : inverses) each = 1 / std::sqrt(each + reference::epsilon);
        std::vector<double> found, chosen_means;
        std::vector<reference::statistics> expected;
        for (std::int64_t row : reference::check_rows(p_)) {
            found.push_back(inverses[static_cast<std::size_t>(row)]);
            chosen_means.push_back(means[static_cast<std::size_t>(row)]);
            expected.push_back(reference::statistics_of(
                reference::input(p_.type, reference::seed_x, row * p_.hidden, p_.hidden), false));
        }
        found.insert(found.end(), chosen_means.begin(), chosen_means.end());
        reference::require_statistics(name(), p_, found, expected);
    }

    void verify_columns() const {
        namespace reference = workload::layernorm;
        const buffer_set& set = slots_.front();
        const std::vector<double> means = row_values(set.mean);
        const std::vector<double> variances = row_values(set.variance);
        std::vector<reference::statistics> rows;
        for (std::size_t i = 0; i < means.size(); ++i) {
            rows.push_back({means[i], 1 / std::sqrt(variances[i] + reference::epsilon)});
        }
        const std::vector<double> dgamma = vector_values(set.dgamma);
        const std::vector<double> dbeta = vector_values(set.dbeta);
        require_written(name() + ", dgamma", dgamma, p_.type);
        require_written(name() + ", dbeta", dbeta, p_.type);
        std::vector<double> found, expected;
        for (std::int64_t column : reference::check_columns(p_)) {
            const auto sums = reference::column_gradients(
                reference::input(p_.type, reference::seed_x, column, p_.rows, p_.hidden),
                reference::input(p_.type, reference::seed_dy, column, p_.rows, p_.hidden), rows);
            found.insert(found.end(),
                         {dgamma[static_cast<std::size_t>(column)], dbeta[static_cast<std::size_t>(column)]});
            expected.insert(expected.end(), {sums.first, sums.second});
        }
        workload::require_close(name() + ", dgamma and dbeta in turn", found, expected,
                                workload::tolerance(workload::dtype::fp32, static_cast<double>(p_.rows)),
                                [](std::size_t i) { return i; });
    }

    /// Mean and variance of each row of x, computed on the host in float64.
    void fill_statistics(buffer_set& set) const {
        const std::vector<double> x = widened(set.x.data(), p_.elements(), p_.type);
        for (std::int64_t row = 0; row < p_.rows; ++row) {
            const auto begin = x.begin() + row * p_.hidden;
            const auto of = workload::layernorm::statistics_of({begin, begin + p_.hidden}, false);
            const auto mean = static_cast<float>(of.mean);
            const auto variance = static_cast<float>(1 / (of.inverse * of.inverse) - workload::layernorm::epsilon);
            std::memcpy(set.mean.data() + 4 * row, &mean, 4);
            std::memcpy(set.variance.data() + 4 * row, &variance, 4);
        }
    }

    /// The first set as the reference has it; the others are copies.
    void allocate(std::size_t slots) {
        namespace reference = workload::layernorm;
        const auto rows = static_cast<std::size_t>(p_.rows) * sizeof(float);
        const auto columns = static_cast<std::size_t>(p_.hidden) * sizeof(float);
        const std::size_t matrix = matrix_.get_size();
        for (std::size_t i = 0; i < slots; ++i) {
            buffer_set made{buffer(matrix),  buffer(matrix),  buffer(matrix),  buffer(rows),    buffer(rows),
                            buffer(columns), buffer(columns), buffer(columns), buffer(columns), {}};
            if (i == 0) {
                made.x = filled(p_.elements(), 0, p_.type, reference::seed_x);
                made.dy = filled(p_.elements(), 0, p_.type, reference::seed_dy);
                made.gamma = filled(p_.hidden, 0, workload::dtype::fp32, reference::seed_gamma);
                made.beta = filled(p_.hidden, 0, workload::dtype::fp32, reference::seed_beta);
                fill_statistics(made);
            } else {
                buffer_set& first = slots_.front();
                const std::pair<const buffer*, const buffer*> pairs[] = {
                    {&first.x, &made.x},       {&first.dy, &made.dy},     {&first.gamma, &made.gamma},
                    {&first.beta, &made.beta}, {&first.mean, &made.mean}, {&first.variance, &made.variance}};
                for (const auto& [from, to] : pairs) onednn::copy(on_, from->data(), to->data(), from->size());
            }
            std::memset(made.out.data(), 0, matrix);
            const auto argument = [&](int which, const onednn::memory_desc& layout, const buffer& data) {
                made.arguments.emplace(which, dnnl::memory(layout, on_.engine, data.data()));
            };
            argument(DNNL_ARG_SRC, matrix_, made.x);
            argument(DNNL_ARG_MEAN, statistic_, made.mean);
            argument(DNNL_ARG_VARIANCE, statistic_, made.variance);
            argument(DNNL_ARG_SCALE, vector_, made.gamma);
            argument(DNNL_ARG_SHIFT, vector_, made.beta);
            argument(p_.backward() ? DNNL_ARG_DIFF_SRC : DNNL_ARG_DST, matrix_, made.out);
            if (p_.backward()) {
                argument(DNNL_ARG_DIFF_DST, matrix_, made.dy);
                argument(DNNL_ARG_DIFF_SCALE, vector_, made.dgamma);
                argument(DNNL_ARG_DIFF_SHIFT, vector_, made.dbeta);
            }
            slots_.push_back(std::move(made));
        }
    }

    params p_;
    onednn::context on_;
    onednn::memory_desc matrix_;
    onednn::memory_desc statistic_;
    onednn::memory_desc vector_;
    onednn::built built_;
    std::vector<buffer_set> slots_;
};

} // namespace cpu

PLUMBLINE_NAMESPACE_END

#endif
