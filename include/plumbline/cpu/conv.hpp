// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CPU_CONV_HPP
#define PLUMBLINE_CPU_CONV_HPP

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
#include "plumbline/workload/conv_reference.hpp"
#include "plumbline/workload/digest.hpp"
#include "plumbline/workload/verify.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cpu {

/// Convolution and its gradients by oneDNN: x and y in the layout of the id, the weights in the one oneDNN likes best,
/// as frameworks keep them; packing them is not timed.
class conv {
public:
    using params = workload::conv::params;

    /// Buffer sets for a cold run; see cold_slots.
    [[nodiscard]] static std::size_t slots(backend&, const params& p) { return cold_slots(bytes_per_slot(p)); }

    /// Throws unsupported_error where processor, library or memory cannot do it.
    conv(backend&, const params& p, std::size_t slots) : p_(p) {
        check_supported();
        x_ = tensor(p.n, p.c, p.depth(), p.h, p.w);
        y_ = tensor(p.n, p.k, p.o(), p.p(), p.q());
        w_ = weights();
        using onednn::convolution_pass;
        const auto pass = p.variant == workload::conv::pass::fprop   ? convolution_pass::forward
                          : p.variant == workload::conv::pass::dgrad ? convolution_pass::backward_data
                                                                     : convolution_pass::backward_weights;
        const auto all = [&](std::int64_t value) { return dnnl::memory::dims(p.three_d() ? 3 : 2, value); };
        const onednn::memory_desc open(weight_sizes(), onednn::input_type(p.type), dnnl::memory::format_tag::any);
        built_ = onednn::convolution(on_, pass, x_, open, y_, {all(p.stride), all(p.dilation), all(p.padding)});
        allocate(slots);
    }

    void run(backend&, std::size_t slot) {
        onednn::checked("convolution", [&] {
            built_.with.primitive.execute(on_.stream, slots_[slot].arguments);
            on_.stream.wait();
        });
    }

    /// Poisons the output of slot 0, runs once, looks at every element for poison and NaN, and compares those of
    /// workload::conv::check_grid with the float64 reference.
    void verify(backend& on) {
        const buffer& out = output(slots_.front());
        std::memset(out.data(), workload::poison_byte(p_.type), out.size());
        run(on, 0);
        const buffer plain = plain_output();
        const std::vector<double> values = widened(plain.data(), p_.output_elements(), p_.type);
        require_written(name(), values, p_.type);
        const workload::conv::grid where = workload::conv::check_grid(p_);
        const auto index = [&](std::size_t i) { return static_cast<std::size_t>(where.index(p_, i)); };
        std::vector<double> chosen(where.size());
        for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i] = values[index(i)];
        workload::require_close(name(), chosen, workload::conv::reference(p_, where),
                                workload::tolerance(p_.type, workload::conv::terms(p_)), index);
    }

    [[nodiscard]] std::string output_hash(backend& on) {
        run(on, 0);
        const buffer plain = plain_output();
        return workload::digest(plain.data(), plain.size());
    }

    [[nodiscard]] result::evidence evidence(backend&) const {
        result::evidence found;
        found.implementation = built_.with.implementation;
        found.parts = {{"library", "onednn " + onednn::version()},
                       {"implementation", built_.with.implementation},
                       {"packed_weights", built_.weights != w_},
                       {"slots", static_cast<std::int64_t>(slots_.size())},
                       {"rotated_bytes", static_cast<std::int64_t>(slots_.size() * bytes_per_slot(p_))}};
        if (const auto count = onednn::threads()) found.parts["threads"] = static_cast<std::int64_t>(*count);
        return found;
    }

private:
    struct buffer_set {
        buffer x;
        buffer w;
        buffer y;
        std::unordered_map<int, dnnl::memory> arguments; ///< views of the buffers, which stay where they are
    };

    [[nodiscard]] static std::size_t bytes_per_slot(const params& p) {
        return static_cast<std::size_t>(workload::conv::bytes(p));
    }

    [[nodiscard]] std::string name() const { return workload::conv::id(p_); }

    void check_supported() const {
        if (p_.mode.plan != workload::plan_choice::heuristic) {
            throw unsupported_error(name() + ": oneDNN offers one implementation, there is none to choose");
        }
        if (p_.list != workload::conv::engine_list::usual || p_.deterministic ||
            p_.workspace_mib != params{}.workspace_mib) {
            throw unsupported_error(name() + ": lists of engines, determinism and workspace are cuDNN's, not oneDNN's");
        }
        require_room(name(), p_.type, bytes_per_slot(p_));
    }

    /// Strides of outer x channels x depth x height x width in the layout of the id.
    [[nodiscard]] dnnl::memory::dims strides(std::int64_t channels, std::int64_t depth, std::int64_t height,
                                             std::int64_t width) const {
        const std::int64_t places = depth * height * width;
        const bool innermost = p_.stored == workload::conv::layout::nhwc;
        const std::int64_t step = innermost ? channels : 1;
        dnnl::memory::dims made{channels * places, innermost ? 1 : places};
        if (p_.three_d()) made.push_back(height * width * step);
        made.insert(made.end(), {width * step, step});
        return made;
    }

    [[nodiscard]] onednn::memory_desc tensor(std::int64_t outer, std::int64_t channels, std::int64_t depth,
                                             std::int64_t height, std::int64_t width) const {
        dnnl::memory::dims sizes{outer, channels};
        if (p_.three_d()) sizes.push_back(depth);
        sizes.insert(sizes.end(), {height, width});
        return {sizes, onednn::input_type(p_.type), strides(channels, depth, height, width)};
    }

    /// Sizes of w; with groups they are a dimension of their own.
    [[nodiscard]] dnnl::memory::dims weight_sizes() const {
        dnnl::memory::dims sizes{p_.group_k(), p_.group_c()};
        if (p_.three_d()) sizes.push_back(p_.t);
        sizes.insert(sizes.end(), {p_.r, p_.s});
        if (p_.groups != 1) sizes.insert(sizes.begin(), p_.groups);
        return sizes;
    }

    /// w in the layout of the id.
    [[nodiscard]] onednn::memory_desc weights() const {
        dnnl::memory::dims steps = strides(p_.group_c(), p_.filter_depth(), p_.r, p_.s);
        if (p_.groups != 1) steps.insert(steps.begin(), p_.group_k() * steps.front());
        return {weight_sizes(), onednn::input_type(p_.type), steps};
    }

    [[nodiscard]] const buffer& output(const buffer_set& of) const noexcept {
        using workload::conv::pass;
        return p_.variant == pass::fprop ? of.y : p_.variant == pass::dgrad ? of.x : of.w;
    }

    /// The output of slot 0 in the layout of the id.
    [[nodiscard]] buffer plain_output() {
        const bool packed = p_.variant == workload::conv::pass::wgrad;
        const onednn::memory_desc& plain = packed ? w_ : p_.variant == workload::conv::pass::dgrad ? x_ : y_;
        buffer made(plain.get_size());
        onednn::reorder(on_, packed ? built_.weights : plain, output(slots_.front()).data(), plain, made.data());
        return made;
    }

    void allocate(std::size_t slots) {
        const buffer x = filled(p_.x_elements(), 0, p_.type, workload::conv::seed_x);
        const buffer w = filled(p_.w_elements(), 0, p_.type, workload::conv::seed_w);
        const buffer y = filled(p_.y_elements(), 0, p_.type, workload::conv::seed_y);
        using workload::conv::pass;
        const int x_name = p_.variant == pass::dgrad ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC;
        const int w_name = p_.variant == pass::wgrad ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS;
        const int y_name = p_.variant == pass::fprop ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST;
        for (std::size_t i = 0; i < slots; ++i) {
            buffer_set made{buffer(x.size()), buffer(built_.weights.get_size()), buffer(y.size()), {}};
            onednn::copy(on_, x.data(), made.x.data(), x.size());
            onednn::reorder(on_, w_, w.data(), built_.weights, made.w.data());
            onednn::copy(on_, y.data(), made.y.data(), y.size());
            made.arguments.emplace(x_name, dnnl::memory(x_, on_.engine, made.x.data()));
            made.arguments.emplace(w_name, dnnl::memory(built_.weights, on_.engine, made.w.data()));
            made.arguments.emplace(y_name, dnnl::memory(y_, on_.engine, made.y.data()));
            slots_.push_back(std::move(made));
        }
    }

    params p_;
    onednn::context on_;
    onednn::memory_desc x_;
    onednn::memory_desc w_; ///< as the id has it; built_.weights is how oneDNN wants it
    onednn::memory_desc y_;
    onednn::built_convolution built_;
    std::vector<buffer_set> slots_;
};

} // namespace cpu

PLUMBLINE_NAMESPACE_END

#endif
