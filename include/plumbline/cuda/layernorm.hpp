// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_LAYERNORM_HPP
#define PLUMBLINE_CUDA_LAYERNORM_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plumbline/cuda/backend.hpp"
#include "plumbline/cuda/buffers.hpp"
#include "plumbline/cuda/inspect.hpp"
#include "plumbline/cuda/kernel_names.hpp"
#include "plumbline/workload/layernorm_reference.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// Shared memory that a block can ask for on the current device, bytes.
[[nodiscard]] inline std::size_t shared_bytes_of_block() {
    int device = 0;
    int bytes = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "cudaDeviceGetAttribute");
    return static_cast<std::size_t>(bytes);
}

/// How our kernels divide a forward pass on this device.
[[nodiscard]] inline kernels::norm_plan forward_plan(const backend& on, const workload::layernorm::params& p) {
    const int sms = on.device().sm_count;
    return kernels::fitted(kernels::plan_forward(p.rows, p.hidden, workload::input_bytes(p.type), sms), 1,
                           shared_bytes_of_block(), p.rows, sms);
}

/// The tensors of a norm on the device, and how they are compared with float64; shared by all implementations.
class norm_operands {
public:
    using params = workload::layernorm::params;

    /// Fills the inputs. For a backward pass mean and inverse deviation come from our own forward kernel.
    norm_operands(backend& on, const params& p, std::size_t slots)
        : p_(p), vector_type_(workload::layernorm::vector_type(p)), slots_(slots),
          x_(p.elements(), 0, element_bytes(), slots), out_(p.elements(), 0, element_bytes(), slots),
          dy_(p.backward() ? p.elements() : 0, 0, element_bytes(), slots),
          mean_(p.rms() ? 0 : p.rows, 0, sizeof(float), slots), inverse_(p.rows, 0, sizeof(float), slots),
          gamma_(p.hidden, 0, vector_bytes(), 1), beta_(p.hidden, 0, vector_bytes(), 1),
          dgamma_(p.hidden, 0, vector_bytes(), 1), dbeta_(p.hidden, 0, vector_bytes(), 1) {
        namespace layernorm = workload::layernorm;
        const auto fill = [&](void* at, workload::dtype type, std::int64_t count, std::uint64_t seed) {
            kernels::fill_normal(on.stream(), at, input_storage(type), static_cast<std::uint64_t>(count), seed);
        };
        fill(gamma(), vector_type_, p.hidden, layernorm::seed_gamma);
        fill(beta(), vector_type_, p.hidden, layernorm::seed_beta);
        for (std::size_t slot = 0; slot < slots; ++slot) {
            fill(x(slot), p.type, p.elements(), layernorm::seed_x);
            if (p.backward()) {
                fill(dy(slot), p.type, p.elements(), layernorm::seed_dy);
                fill_statistics(on, slot);
            }
        }
        on.synchronize();
    }

    /// Buffer sets so that nothing of one launch is in the cache from an earlier one.
    [[nodiscard]] static std::size_t slots(const backend& on, const params& p) {
        return cold_slots(static_cast<std::size_t>(workload::layernorm::bytes(p)), on.device().l2_bytes);
    }

    [[nodiscard]] void* x(std::size_t slot) const noexcept { return x_.at(slot); }
    [[nodiscard]] void* dy(std::size_t slot) const noexcept { return dy_.at(slot); }
    [[nodiscard]] void* out(std::size_t slot) const noexcept { return out_.at(slot); } ///< y or dx
    [[nodiscard]] float* mean(std::size_t slot) const noexcept { return static_cast<float*>(mean_.at(slot)); }
    [[nodiscard]] float* inverse(std::size_t slot) const noexcept { return static_cast<float*>(inverse_.at(slot)); }
    [[nodiscard]] void* gamma() const noexcept { return gamma_.at(0); }
    [[nodiscard]] void* beta() const noexcept { return beta_.at(0); }
    [[nodiscard]] void* dgamma() const noexcept { return dgamma_.at(0); }
    [[nodiscard]] void* dbeta() const noexcept { return dbeta_.at(0); }
    [[nodiscard]] const params& of() const noexcept { return p_; }

    /// Poisons what a launch writes, launches on the first and the last buffer set, and looks at it: every element must
    /// be written and finite, and the rows and columns of workload::layernorm::check_rows and check_columns are
    /// compared with float64. `run(slot)` launches.
    template <class Run>
    void verify(backend& on, Run run) const {
        verify_slot(on, 0, run);
        if (slots_ > 1) verify_slot(on, slots_ - 1, run);
    }

    /// Hash of the large output and, backward, of dgamma, after one launch on buffer set 0.
    template <class Run>
    [[nodiscard]] std::string output_hash(backend& on, Run run) const {
        poison_outputs(on, 0);
        run(std::size_t{0});
        // Whole pairs of bytes: one element of a 16-bit type, half of an fp32 one.
        std::string text = hash(on, out(0), out_.bytes());
        if (p_.backward()) text += hash(on, dgamma(), dgamma_.bytes());
        return text;
    }

private:
    [[nodiscard]] std::size_t element_bytes() const noexcept { return workload::input_bytes(p_.type); }
    [[nodiscard]] std::size_t vector_bytes() const noexcept { return workload::input_bytes(vector_type_); }

    void fill_statistics(backend& on, std::size_t slot) const {
        const kernels::norm how = {input_storage(p_.type), p_.rms(), p_.rows, p_.hidden,
                                   static_cast<float>(workload::layernorm::epsilon)};
        const kernels::norm_plan plan = forward_plan(on, p_);
        // y goes where dx will be; x stands in for gamma and beta, on which the statistics do not depend.
        kernels::norm_forward(on.stream(), how, plan, x(slot), x(slot), x(slot), out(slot), mean(slot), inverse(slot));
    }

    void poison_outputs(backend& on, std::size_t slot) const {
        poison(on, out(slot), out_.bytes(), p_.type);
        if (p_.backward()) {
            poison(on, dgamma(), dgamma_.bytes(), vector_type_);
            poison(on, dbeta(), dbeta_.bytes(), vector_type_);
            return;
        }
        if (!p_.rms()) poison(on, mean(slot), mean_.bytes(), workload::dtype::fp32);
        poison(on, inverse(slot), inverse_.bytes(), workload::dtype::fp32);
    }

    template <class Run>
    void verify_slot(backend& on, std::size_t slot, Run run) const {
        poison_outputs(on, slot);
        run(slot);
        const auto written = [&](const char* what, const void* data, workload::dtype type, std::int64_t count) {
            require_written(on, name() + ", " + what, data, input_storage(type), static_cast<std::uint64_t>(count));
        };
        written(p_.backward() ? "dx" : "y", out(slot), p_.type, p_.elements());
        written("inverse deviation", inverse(slot), workload::dtype::fp32, p_.rows);
        if (!p_.rms()) written("mean", mean(slot), workload::dtype::fp32, p_.rows);
        verify_rows(on, slot);
        if (!p_.backward()) return;
        written("dgamma", dgamma(), vector_type_, p_.hidden);
        if (!p_.rms()) written("dbeta", dbeta(), vector_type_, p_.hidden);
        verify_columns(on, slot);
    }

    void verify_rows(backend& on, std::size_t slot) const {
        namespace layernorm = workload::layernorm;
        const std::vector<std::int64_t> rows = layernorm::check_rows(p_);
        const std::vector<double> scale = layernorm::input(vector_type_, layernorm::seed_gamma, 0, p_.hidden);
        const std::vector<double> shift = layernorm::input(vector_type_, layernorm::seed_beta, 0, p_.hidden);
        std::vector<std::int64_t> places;
        std::vector<double> expected, terms;
        std::vector<layernorm::statistics> statistics;
        for (std::int64_t row : rows) {
            const std::vector<double> from = layernorm::input(p_.type, layernorm::seed_x, row * p_.hidden, p_.hidden);
            std::vector<double> one;
            if (p_.backward()) {
                const auto dy = layernorm::input(p_.type, layernorm::seed_dy, row * p_.hidden, p_.hidden);
                one = layernorm::backward_row(from, dy, scale, p_.rms());
                const std::vector<double> sizes = layernorm::backward_terms(from, dy, scale, p_.rms());
                terms.insert(terms.end(), sizes.begin(), sizes.end());
            } else {
                one = layernorm::forward_row(from, scale, shift, p_.rms());
            }
            expected.insert(expected.end(), one.begin(), one.end());
            for (std::int64_t i = 0; i < p_.hidden; ++i) places.push_back(row * p_.hidden + i);
            statistics.push_back(layernorm::statistics_of(from, p_.rms()));
        }
        layernorm::require_rows(name(), p_, gather(on, out(slot), input_storage(p_.type), places), expected, places,
                                terms);
        // Wrong statistics in, wrong gradients out: they are looked at for both passes.
        std::vector<double> found = gather(on, inverse(slot), kernels::storage::fp32, rows);
        if (!p_.rms()) {
            const std::vector<double> means = gather(on, mean(slot), kernels::storage::fp32, rows);
            found.insert(found.end(), means.begin(), means.end());
        }
        layernorm::require_statistics(name(), p_, found, statistics);
    }

    void verify_columns(backend& on, std::size_t slot) const {
        namespace layernorm = workload::layernorm;
        // The statistics as the kernel read them: some were compared with float64, all come from the same kernel.
        std::vector<layernorm::statistics> statistics(static_cast<std::size_t>(p_.rows));
        const std::vector<float> means = p_.rms() ? std::vector<float>(statistics.size()) : download(on, mean(slot));
        const std::vector<float> inverses = download(on, inverse(slot));
        for (std::size_t i = 0; i < statistics.size(); ++i) statistics[i] = {means[i], inverses[i]};
        const std::vector<std::int64_t> columns = layernorm::check_columns(p_);
        std::vector<double> scales, shifts;
        for (std::int64_t column : columns) {
            const auto sums = layernorm::column_gradients(
                layernorm::input(p_.type, layernorm::seed_x, column, p_.rows, p_.hidden),
                layernorm::input(p_.type, layernorm::seed_dy, column, p_.rows, p_.hidden), statistics);
            scales.push_back(sums.first);
            shifts.push_back(sums.second);
        }
        const auto compare = [&](const char* what, const void* data, const std::vector<double>& expected) {
            workload::require_close(name() + ", " + what, gather(on, data, input_storage(vector_type_), columns),
                                    expected, workload::tolerance(vector_type_, static_cast<double>(p_.rows)),
                                    [&](std::size_t i) { return static_cast<std::size_t>(columns[i]); });
        };
        compare("dgamma", dgamma(), scales);
        if (!p_.rms()) compare("dbeta", dbeta(), shifts);
    }

    [[nodiscard]] std::vector<float> download(backend& on, const float* from) const {
        std::vector<float> values(static_cast<std::size_t>(p_.rows));
        check(cudaMemcpyAsync(values.data(), from, values.size() * sizeof(float), cudaMemcpyDeviceToHost, on.stream()),
              "cudaMemcpyAsync", "statistics");
        on.synchronize();
        return values;
    }

    [[nodiscard]] std::string name() const { return workload::layernorm::id(p_); }

    params p_;
    workload::dtype vector_type_; ///< of gamma, beta and their gradients
    std::size_t slots_;
    buffers x_;
    buffers out_; ///< y or dx
    buffers dy_;
    buffers mean_;
    buffers inverse_;
    buffers gamma_; ///< the vectors once: they are small and every launch reads or writes them
    buffers beta_;
    buffers dgamma_;
    buffers dbeta_;
};

/// LayerNorm and RMSNorm by plumbline's own kernels, which no library update changes.
class native_norm {
public:
    using params = workload::layernorm::params;

    [[nodiscard]] static std::size_t slots(const backend& on, const params& p) { return norm_operands::slots(on, p); }

    native_norm(backend& on, const params& p, std::size_t slots)
        : how_{input_storage(p.type), p.rms(), p.rows, p.hidden, static_cast<float>(workload::layernorm::epsilon)},
          plan_(default_plan(on, p)), data_(on, p, slots),
          partial_(p.backward()
                       ? kernels::partial_elements(plan_, p.hidden, workload::input_bytes(p.type)) * sizeof(float)
                       : 0) {}

    /// Another way to divide the same work; for trying out which is best. Throws error where no kernel has it.
    void use(const kernels::norm_plan& plan) {
        plan_ = plan;
        if (data_.of().backward()) {
            partial_ = device_memory(
                kernels::partial_elements(plan_, how_.hidden, workload::input_bytes(data_.of().type)) * sizeof(float));
        }
    }

    /// Enqueues one launch on buffer set `slot`.
    void run(backend& on, std::size_t slot) {
        if (!data_.of().backward()) {
            kernels::norm_forward(on.stream(), how_, plan_, data_.x(slot), data_.gamma(), data_.beta(), data_.out(slot),
                                  data_.mean(slot), data_.inverse(slot));
            return;
        }
        kernels::norm_backward(on.stream(), how_, plan_, data_.x(slot), data_.dy(slot), data_.gamma(), data_.mean(slot),
                               data_.inverse(slot), data_.out(slot), how_.type, data_.dgamma(), data_.dbeta(),
                               partial_.as<float>());
    }

    void verify(backend& on) {
        data_.verify(on, [&](std::size_t slot) { run(on, slot); });
    }

    [[nodiscard]] std::string output_hash(backend& on) {
        return data_.output_hash(on, [&](std::size_t slot) { run(on, slot); });
    }

    /// How the work was divided, and the kernels.
    [[nodiscard]] result::evidence evidence(backend& on) {
        result::evidence ran;
        ran.implementation = "native/r" + std::to_string(revision) + "/t" + std::to_string(plan_.threads) + 'u' +
                             std::to_string(plan_.units) + 's' + std::to_string(plan_.stages) + 'b' +
                             std::to_string(plan_.blocks);
        ran.parts = {
            {"revision", std::int64_t{revision}},   {"threads", std::int64_t{plan_.threads}},
            {"units", std::int64_t{plan_.units}},   {"stages", std::int64_t{plan_.stages}},
            {"blocks", std::int64_t{plan_.blocks}}, {"workspace_bytes", static_cast<std::int64_t>(partial_.size())}};
        add_kernels(ran, on, [&] { run(on, 0); });
        return ran;
    }

    [[nodiscard]] const norm_operands& data() const noexcept { return data_; }

private:
    /// Of the kernels: raised when they change, so that a comparison does not take that for the machine.
    static constexpr int revision = 2;

    [[nodiscard]] static kernels::norm_plan default_plan(const backend& on, const params& p) {
        const std::size_t element = workload::input_bytes(p.type);
        const int sms = on.device().sm_count;
        if (!p.backward()) return forward_plan(on, p);
        return kernels::fitted(kernels::plan_backward(p.rows, p.hidden, element, sms), 2, shared_bytes_of_block(),
                               p.rows, sms);
    }

    kernels::norm how_;
    kernels::norm_plan plan_;
    norm_operands data_;
    device_memory partial_; ///< the blocks' sums for dgamma and dbeta
};

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
