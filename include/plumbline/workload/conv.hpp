// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_WORKLOAD_CONV_HPP
#define PLUMBLINE_WORKLOAD_CONV_HPP

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "plumbline/workload/description.hpp"
#include "plumbline/workload/dtype.hpp"
#include "plumbline/workload/id.hpp"
#include "plumbline/workload/modes.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// Convolution as deep learning has it (cross-correlation), in two or three dimensions, and its two gradients:
///
///     fprop  y = x * w;   dgrad  dx from dy and w;   wgrad  dw from x and dy
///
/// x is N x C x [D] x H x W, w is K x C/groups x [T] x R x S, y is N x K x [O] x P x Q; what is called x, w, y below is
/// dx, dw or dy where the pass writes or reads that. Stride, padding and dilation are the same in every dimension.
namespace workload::conv {

enum class pass { fprop, dgrad, wgrad };

/// How all three tensors are stored: channels innermost, or next to the batch.
enum class layout { nhwc, nchw };

/// Which of cuDNN's lists of engines is asked: the usual one and, where it has nothing, the others; or one of the
/// others.
enum class engine_list { usual, b, fallback };

struct params {
    pass variant = pass::fprop;
    dtype type = dtype::bf16;
    layout stored = layout::nhwc;
    std::int64_t n = 0;
    std::int64_t c = 0;
    std::int64_t h = 0;
    std::int64_t w = 0;
    std::int64_t d = 0; ///< depth of x; 0: two dimensions
    std::int64_t k = 0;
    std::int64_t r = 0;
    std::int64_t s = 0;
    std::int64_t t = 0; ///< depth of the filter; 0: two dimensions
    std::int64_t stride = 1;
    std::int64_t padding = 0; ///< on each side
    std::int64_t groups = 1;
    std::int64_t dilation = 1;
    engine_list list = engine_list::usual;
    bool deterministic = false;        ///< only engines that give the same bits every time
    std::int64_t workspace_mib = 1024; ///< at most; the library must do with less

    modes mode;

    bool operator==(const params&) const = default;

    [[nodiscard]] constexpr bool three_d() const noexcept { return d != 0; }

    /// Sizes of x, w and y in depth; 1 in two dimensions.
    [[nodiscard]] constexpr std::int64_t depth() const noexcept { return three_d() ? d : 1; }
    [[nodiscard]] constexpr std::int64_t filter_depth() const noexcept { return three_d() ? t : 1; }
    [[nodiscard]] constexpr std::int64_t o() const noexcept { return three_d() ? out(d, t) : 1; }
    [[nodiscard]] constexpr std::int64_t p() const noexcept { return out(h, r); }
    [[nodiscard]] constexpr std::int64_t q() const noexcept { return out(w, s); }

    /// Channels of one group.
    [[nodiscard]] constexpr std::int64_t group_c() const noexcept { return c / groups; }
    [[nodiscard]] constexpr std::int64_t group_k() const noexcept { return k / groups; }

    [[nodiscard]] constexpr std::int64_t x_elements() const noexcept { return n * c * depth() * h * w; }
    [[nodiscard]] constexpr std::int64_t w_elements() const noexcept { return k * group_c() * filter_depth() * r * s; }
    [[nodiscard]] constexpr std::int64_t y_elements() const noexcept { return n * k * o() * p() * q(); }

    /// Elements of the tensor this pass writes.
    [[nodiscard]] constexpr std::int64_t output_elements() const noexcept {
        return variant == pass::fprop ? y_elements() : variant == pass::dgrad ? x_elements() : w_elements();
    }

    /// Where an element of x, w or y is stored. Depth comes first in space; 0 in two dimensions.
    [[nodiscard]] constexpr std::int64_t x_index(std::int64_t in, std::int64_t ic, std::int64_t id, std::int64_t ih,
                                                 std::int64_t iw) const noexcept {
        return index(in, ic, (id * h + ih) * w + iw, c, depth() * h * w);
    }
    [[nodiscard]] constexpr std::int64_t w_index(std::int64_t ik, std::int64_t ic, std::int64_t it, std::int64_t ir,
                                                 std::int64_t is) const noexcept {
        return index(ik, ic, (it * r + ir) * s + is, group_c(), filter_depth() * r * s);
    }
    [[nodiscard]] constexpr std::int64_t y_index(std::int64_t in, std::int64_t ik, std::int64_t io, std::int64_t ip,
                                                 std::int64_t iq) const noexcept {
        return index(in, ik, (io * p() + ip) * q() + iq, k, o() * p() * q());
    }

private:
    [[nodiscard]] constexpr std::int64_t out(std::int64_t in, std::int64_t filter) const noexcept {
        const std::int64_t room = in + 2 * padding - dilation * (filter - 1) - 1;
        return room < 0 ? 0 : room / stride + 1;
    }
    [[nodiscard]] constexpr std::int64_t index(std::int64_t outer, std::int64_t channel, std::int64_t place,
                                               std::int64_t channels, std::int64_t places) const noexcept {
        return stored == layout::nhwc ? (outer * places + place) * channels + channel
                                      : (outer * channels + channel) * places + place;
    }
};

inline constexpr std::pair<std::string_view, pass> pass_names[] = {
    {"fprop", pass::fprop}, {"dgrad", pass::dgrad}, {"wgrad", pass::wgrad}};
inline constexpr std::pair<std::string_view, layout> layout_names[] = {{"nhwc", layout::nhwc}, {"nchw", layout::nchw}};

[[nodiscard]] constexpr std::string_view name(pass variant) noexcept {
    for (const auto& [word, value] : pass_names) {
        if (value == variant) return word;
    }
    return "?";
}

[[nodiscard]] constexpr std::string_view name(layout stored) noexcept {
    return stored == layout::nhwc ? "nhwc" : "nchw";
}

[[nodiscard]] constexpr std::string_view name(engine_list list) noexcept {
    return list == engine_list::usual ? "usual" : list == engine_list::b ? "mode_b" : "fallback";
}

/// conv/PASS/DTYPE/LAYOUT/nNcChHwW[dD]kKrRsS[tT]uSTRIDEpPADDING[gGROUPS][lDILATION][/mode_b|/fallback]
/// [/deterministic][/wsMIB][/mode...]
[[nodiscard]] inline std::string id(const params& p) {
    std::string text = "conv/" + std::string(name(p.variant)) + '/' + std::string(workload::name(p.type)) + '/' +
                       std::string(name(p.stored)) + '/';
    const auto add = [&text](char key, std::int64_t value) { text += key + std::to_string(value); };
    add('n', p.n);
    add('c', p.c);
    add('h', p.h);
    add('w', p.w);
    if (p.three_d()) add('d', p.d);
    add('k', p.k);
    add('r', p.r);
    add('s', p.s);
    if (p.three_d()) add('t', p.t);
    add('u', p.stride);
    add('p', p.padding);
    if (p.groups != 1) add('g', p.groups);
    if (p.dilation != 1) add('l', p.dilation);
    if (p.list != engine_list::usual) text += '/' + std::string(name(p.list));
    if (p.deterministic) text += "/deterministic";
    if (p.workspace_mib != params{}.workspace_mib) text += "/ws" + std::to_string(p.workspace_mib);
    return text + suffix(p.mode);
}

/// FLOP of one launch, the same for the three passes: 2 N K O P Q (C/groups) T R S. Products with padding are counted,
/// and an engine that needs fewer (Winograd, FFT) is not credited with less.
[[nodiscard]] inline double flop(const params& p) {
    return 2.0 * static_cast<double>(p.y_elements()) * static_cast<double>(p.group_c()) *
           static_cast<double>(p.filter_depth() * p.r * p.s);
}

/// Fewest bytes one launch moves: each of x, w and y read or written once.
[[nodiscard]] inline double bytes(const params& p) {
    return static_cast<double>(input_bytes(p.type)) *
           static_cast<double>(p.x_elements() + p.w_elements() + p.y_elements());
}

/// Products in the sum of one element of the output: what the tolerance depends on.
[[nodiscard]] inline double terms(const params& p) {
    return flop(p) / 2 / static_cast<double>(p.output_elements());
}

[[nodiscard]] inline description describe(const params& p) {
    description what;
    what.id = id(p);
    what.family = "conv";
    what.params = {{"pass", std::string(name(p.variant))},
                   {"dtype", std::string(workload::name(p.type))},
                   {"layout", std::string(name(p.stored))},
                   {"n", p.n},
                   {"c", p.c},
                   {"d", p.d},
                   {"h", p.h},
                   {"w", p.w},
                   {"k", p.k},
                   {"t", p.t},
                   {"r", p.r},
                   {"s", p.s},
                   {"stride", p.stride},
                   {"padding", p.padding},
                   {"groups", p.groups},
                   {"dilation", p.dilation},
                   {"engine_list", std::string(name(p.list))},
                   {"deterministic", p.deterministic},
                   {"workspace_mib", p.workspace_mib}};
    add_modes(what.params, p.mode);
    what.kind = p.mode.sustained ? benchmark_class::sustained : benchmark_class::kernel;
    what.flop = flop(p);
    what.bytes = bytes(p);
    return what;
}

namespace detail {

/// Refuses sizes that make no convolution, and those whose element counts would not fit any memory.
inline void check_sizes(const id_reader& reader, const params& p, const std::map<char, std::int64_t>& sizes) {
    for (const auto& [key, value] : sizes) {
        const bool may_be_zero = key == 'p' || key == 'd' || key == 't';
        if (value < (may_be_zero ? 0 : 1) || value > (std::int64_t{1} << 20)) {
            reader.refuse(std::string(1, key) + " must be between " + (may_be_zero ? '0' : '1') + " and 1048576");
        }
    }
    if ((p.d == 0) != (p.t == 0)) reader.refuse("d and t, the depths of x and of the filter, come together");
    if (p.c % p.groups != 0 || p.k % p.groups != 0) reader.refuse("g must divide c and k");
    const double most = 1e12;
    const auto product = [](auto... factors) { return (1.0 * ... * static_cast<double>(factors)); };
    const double padded = product(p.n, p.c, p.depth() + 2 * p.padding, p.h + 2 * p.padding, p.w + 2 * p.padding);
    if (padded > most || product(p.k, p.c, p.filter_depth(), p.r, p.s) > most ||
        padded / static_cast<double>(p.c) * static_cast<double>(p.k) > most) {
        reader.refuse("a tensor would have more than 10^12 elements");
    }
    if (p.o() < 1 || p.p() < 1 || p.q() < 1) reader.refuse("the filter is larger than the padded input");
}

} // namespace detail

/// The parameters of an id; throws usage_error when it is not one of this family.
[[nodiscard]] inline params parse(const std::string& id_text) {
    id_reader reader(id_text, "conv", "conv/fprop/bf16/nhwc/n256c64h56w56k64r3s3u1p1");
    params p;
    p.variant = reader.choice("a pass", pass_names);
    p.type = reader.type();
    if (p.type == dtype::fp8 || p.type == dtype::int8) {
        reader.refuse("a convolution has the dtype fp32, tf32, fp16 or bf16");
    }
    p.stored = reader.choice("a layout", layout_names);
    const auto sizes = reader.sizes("nchwkrsup", {{'d', 0}, {'t', 0}, {'g', 1}, {'l', 1}});
    p.n = sizes.at('n');
    p.c = sizes.at('c');
    p.h = sizes.at('h');
    p.w = sizes.at('w');
    p.d = sizes.at('d');
    p.k = sizes.at('k');
    p.r = sizes.at('r');
    p.s = sizes.at('s');
    p.t = sizes.at('t');
    p.stride = sizes.at('u');
    p.padding = sizes.at('p');
    p.groups = sizes.at('g');
    p.dilation = sizes.at('l');
    detail::check_sizes(reader, p, sizes);
    if (reader.take_if(name(engine_list::b)))
        p.list = engine_list::b;
    else if (reader.take_if(name(engine_list::fallback)))
        p.list = engine_list::fallback;
    p.deterministic = reader.take_if("deterministic");
    p.workspace_mib = reader.take_number("ws").value_or(p.workspace_mib);
    p.mode = reader.rest_as_modes();
    reader.finish(id(p));
    return p;
}

} // namespace workload::conv

PLUMBLINE_NAMESPACE_END

#endif
