// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_WORKLOAD_LAYERNORM_HPP
#define PLUMBLINE_WORKLOAD_LAYERNORM_HPP

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "plumbline/workload/description.hpp"
#include "plumbline/workload/dtype.hpp"
#include "plumbline/workload/id.hpp"
#include "plumbline/workload/modes.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// LayerNorm and RMSNorm over the last dimension of a row-major rows x hidden matrix x, as training runs them.
///
///     LayerNorm  y = (x - m) s gamma + beta,  m the mean of the row, s = 1 / sqrt(variance + epsilon)
///     RMSNorm    y = x s gamma,               s = 1 / sqrt(mean of squares + epsilon)
///
/// The forward pass also writes m (LayerNorm only) and s, one fp32 each for a row, for the backward pass, which writes
/// dx, dgamma and dbeta (LayerNorm only). gamma, beta and their gradients have the type of x; through cuDNN and oneDNN,
/// which want it so, fp32.
namespace workload::layernorm {

enum class pass { forward, backward, rms_forward, rms_backward };

/// Whose code is timed: ours, cuDNN's or oneDNN's.
enum class implementation { native, cudnn, onednn };

/// Inside the root, for both norms.
inline constexpr double epsilon = 1e-5;

struct params {
    pass variant = pass::forward;
    dtype type = dtype::bf16;
    std::int64_t rows = 0;
    std::int64_t hidden = 0;
    implementation by = implementation::native;
    modes mode;

    bool operator==(const params&) const = default;

    [[nodiscard]] bool rms() const noexcept { return variant == pass::rms_forward || variant == pass::rms_backward; }
    [[nodiscard]] bool backward() const noexcept { return variant == pass::backward || variant == pass::rms_backward; }
    [[nodiscard]] std::int64_t elements() const noexcept { return rows * hidden; }
};

inline constexpr std::pair<std::string_view, pass> pass_names[] = {
    {"fwd", pass::forward}, {"bwd", pass::backward}, {"rms_fwd", pass::rms_forward}, {"rms_bwd", pass::rms_backward}};
inline constexpr std::pair<std::string_view, implementation> implementation_names[] = {
    {"native", implementation::native}, {"cudnn", implementation::cudnn}, {"onednn", implementation::onednn}};

[[nodiscard]] constexpr std::string_view name(pass variant) noexcept {
    for (const auto& [word, value] : pass_names) {
        if (value == variant) return word;
    }
    return "?";
}

[[nodiscard]] constexpr std::string_view name(implementation by) noexcept {
    for (const auto& [word, value] : implementation_names) {
        if (value == by) return word;
    }
    return "?";
}

/// layernorm/PASS/DTYPE/rROWShHIDDEN/IMPLEMENTATION[/mode...]
[[nodiscard]] inline std::string id(const params& p) {
    return "layernorm/" + std::string(name(p.variant)) + '/' + std::string(workload::name(p.type)) + "/r" +
           std::to_string(p.rows) + 'h' + std::to_string(p.hidden) + '/' + std::string(name(p.by)) + suffix(p.mode);
}

/// The type of gamma, beta and their gradients.
[[nodiscard]] constexpr dtype vector_type(const params& p) noexcept {
    return p.by == implementation::native ? p.type : dtype::fp32;
}

/// Fewest bytes one launch moves, with R rows, H hidden and e bytes an element, each tensor read or written once:
/// LayerNorm forward (2RH + 2H)e + 8R, backward (3RH + 3H)e + 8R; RMSNorm has no beta and no mean: forward
/// (2RH + H)e + 4R, backward (3RH + 2H)e + 4R. The accounting of cudnn-frontend's benchmark/norms.
[[nodiscard]] inline double bytes(const params& p) {
    const auto element = static_cast<double>(input_bytes(p.type));
    const auto vector_element = static_cast<double>(input_bytes(vector_type(p)));
    const double matrices = p.backward() ? 3 : 2;
    const double vectors = (p.backward() ? 3 : 2) - (p.rms() ? 1 : 0);
    const double statistics = p.rms() ? 4 : 8;
    return matrices * static_cast<double>(p.elements()) * element +
           vectors * static_cast<double>(p.hidden) * vector_element + statistics * static_cast<double>(p.rows);
}

/// FLOP are not counted: the limit of a norm is memory, and a TFLOP/s of it says nothing.
[[nodiscard]] inline description describe(const params& p) {
    description what;
    what.id = id(p);
    what.family = "layernorm";
    what.params = {{"pass", std::string(name(p.variant))},
                   {"dtype", std::string(workload::name(p.type))},
                   {"rows", p.rows},
                   {"hidden", p.hidden},
                   {"epsilon", epsilon},
                   {"implementation", std::string(name(p.by))}};
    add_modes(what.params, p.mode);
    what.kind = p.mode.sustained ? benchmark_class::sustained : benchmark_class::kernel;
    what.bytes = bytes(p);
    return what;
}

/// The parameters of an id; throws usage_error when it is not one of this family.
[[nodiscard]] inline params parse(const std::string& id_text) {
    id_reader reader(id_text, "layernorm", "layernorm/fwd/bf16/r16384h4096/native");
    params p;
    p.variant = reader.choice("a pass", pass_names);
    p.type = reader.type();
    if (p.type != dtype::fp32 && p.type != dtype::fp16 && p.type != dtype::bf16) {
        reader.refuse("a norm has the dtype fp32, fp16 or bf16");
    }
    const auto sizes = reader.sizes("rh");
    p.rows = sizes.at('r');
    p.hidden = sizes.at('h');
    if (p.rows < 1 || p.rows > (std::int64_t{1} << 24)) reader.refuse("r must be between 1 and 16777216");
    if (p.hidden < 1 || p.hidden > 65536) reader.refuse("h must be between 1 and 65536");
    p.by = reader.choice("an implementation", implementation_names);
    p.mode = reader.rest_as_modes();
    if (p.by != implementation::cudnn && p.mode.plan != plan_choice::heuristic) {
        reader.refuse(std::string(name(p.by)) + " offers one implementation, there is none to choose");
    }
    reader.finish(id(p));
    return p;
}

} // namespace workload::layernorm

PLUMBLINE_NAMESPACE_END

#endif
