// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_WORKLOAD_TRAINING_STEP_HPP
#define PLUMBLINE_WORKLOAD_TRAINING_STEP_HPP

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "plumbline/workload/description.hpp"
#include "plumbline/workload/dtype.hpp"
#include "plumbline/workload/id.hpp"
#include "plumbline/workload/modes.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// One optimizer step of a small network: forward, loss, backward, gradient clipping, optimizer, and in fp16 dynamic
/// loss scaling. What is computed is written once, in training/; here is how it is named and counted.
namespace workload::training_step {

enum class network {
    transformer, ///< decoder: embedding, pre-norm layers (causal attention, GELU), head, cross-entropy; AdamW
    bottleneck,  ///< three ResNet bottleneck blocks, pooling, classifier, cross-entropy; SGD with momentum
};

inline constexpr std::pair<std::string_view, network> network_names[] = {{"transformer", network::transformer},
                                                                         {"bottleneck", network::bottleneck}};

[[nodiscard]] constexpr std::string_view name(network net) noexcept {
    for (const auto& [word, value] : network_names) {
        if (value == net) return word;
    }
    return "?";
}

/// Sizes of the transformer; `batch` sequences of `tokens` tokens are one micro-batch.
struct transformer_shape {
    std::int64_t layers = 6;
    std::int64_t width = 1024;
    std::int64_t heads = 16;
    std::int64_t hidden = 4096;
    std::int64_t vocabulary = 32000;
    std::int64_t batch = 8;
    std::int64_t tokens = 1024;

    bool operator==(const transformer_shape&) const = default;
    [[nodiscard]] std::int64_t rows() const noexcept { return batch * tokens; }
    [[nodiscard]] std::int64_t head_width() const noexcept { return width / heads; }
};

/// Sizes of the bottleneck stack: `batch` inputs of side x side x channels are one micro-batch. Blocks: channels with
/// channels / 4 inside, then stride 2 to 2 x channels with channels / 2 inside and a projection, then the same again
/// without stride.
struct bottleneck_shape {
    std::int64_t batch = 64;
    std::int64_t channels = 256;
    std::int64_t side = 56;
    std::int64_t classes = 1000;

    bool operator==(const bottleneck_shape&) const = default;
};

struct params {
    network net = network::transformer;
    dtype type = dtype::bf16; ///< the leg: fp32, tf32, fp16 (with loss scaling) or bf16
    transformer_shape transformer;
    bottleneck_shape bottleneck;
    std::int64_t accumulation = 1; ///< micro-batches of one optimizer step
    modes mode;                    ///< "sustained" and "stream"

    bool operator==(const params&) const = default;

    /// What one step consumes: tokens or images.
    [[nodiscard]] std::int64_t items() const noexcept {
        return accumulation * (net == network::transformer ? transformer.rows() : bottleneck.batch);
    }
    /// Whether the leg computes in 16 bits beside fp32 master weights.
    [[nodiscard]] bool mixed() const noexcept { return type == dtype::fp16 || type == dtype::bf16; }
};

/// "l6d1024h16f4096v32000b8t1024" or "n64c256h56k1000".
[[nodiscard]] inline std::string size_text(const params& p) {
    const auto part = [](char key, std::int64_t value) { return key + std::to_string(value); };
    if (p.net == network::bottleneck) {
        const bottleneck_shape& s = p.bottleneck;
        return part('n', s.batch) + part('c', s.channels) + part('h', s.side) + part('k', s.classes);
    }
    const transformer_shape& s = p.transformer;
    return part('l', s.layers) + part('d', s.width) + part('h', s.heads) + part('f', s.hidden) +
           part('v', s.vocabulary) + part('b', s.batch) + part('t', s.tokens);
}

/// training_step/NETWORK/DTYPE[/SIZE][/accumulate4][/mode...]; the size is written when it is not the default one.
[[nodiscard]] inline std::string id(const params& p) {
    std::string text = "training_step/" + std::string(name(p.net)) + '/' + std::string(workload::name(p.type));
    if (p.transformer != transformer_shape{} || p.bottleneck != bottleneck_shape{}) text += '/' + size_text(p);
    if (p.accumulation != 1) text += "/accumulate" + std::to_string(p.accumulation);
    return text + suffix(p.mode);
}

/// Trained numbers of the network.
[[nodiscard]] inline std::int64_t parameters(const params& p) {
    if (p.net == network::bottleneck) {
        const std::int64_t c = p.bottleneck.channels;
        const auto block = [](std::int64_t in, std::int64_t inner, std::int64_t out, bool projected) {
            const std::int64_t products = in * inner + 9 * inner * inner + inner * out + (projected ? in * out : 0);
            return products + 2 * (2 * inner + out + (projected ? out : 0)); // and scale and shift of each norm
        };
        return block(c, c / 4, c, false) + block(c, c / 2, 2 * c, true) + block(2 * c, c / 2, 2 * c, false) +
               2 * c * p.bottleneck.classes;
    }
    const transformer_shape& s = p.transformer;
    return 2 * s.vocabulary * s.width + s.layers * (4 * s.width * s.width + 2 * s.width * s.hidden + 4 * s.width) +
           2 * s.width;
}

/// FLOP of one step by formula: 2 for each multiply-add of the products of the forward pass, twice that again for the
/// backward pass (less the gradient of the bottleneck's input, which nobody needs), causal attention counted as the
/// half that it is. Norms, activations and optimizer are not counted.
[[nodiscard]] inline double flop(const params& p) {
    const auto d = [](std::int64_t value) { return static_cast<double>(value); };
    double forward = 0;
    double not_needed = 0;
    if (p.net == network::bottleneck) {
        const bottleneck_shape& s = p.bottleneck;
        const double large = d(s.batch * s.side * s.side);
        const std::int64_t half = (s.side + 1) / 2;
        const double small = d(s.batch * half * half);
        const double c = d(s.channels);
        const double first = large * c * c / 4;
        forward = 2 * (first + large * (9 * c * c / 16 + c * c / 4)                                 // 256-64-64-256
                       + large * c * c / 2 + small * (9 * c * c / 4 + c * c + 2 * c * c)            // 256-128/2-128-512
                       + small * (c * c + 9 * c * c / 4 + c * c) + d(s.batch * 2 * s.classes) * c); // 512-128-128-512
        not_needed = 2 * first;
    } else {
        const transformer_shape& s = p.transformer;
        const double products =
            d(s.layers) * (4 * d(s.width) * d(s.width) + 2 * d(s.width) * d(s.hidden)) + d(s.width) * d(s.vocabulary);
        const double attention = 2 * d(s.layers) * d(s.width) * d(s.batch) * d(s.tokens) * (d(s.tokens) + 1) / 2;
        forward = 2 * (products * d(s.rows()) + attention);
    }
    return d(p.accumulation) * (3 * forward - not_needed);
}

/// Bytes that a step needs by formula, workspaces of libraries and operators not counted, by what they hold.
struct footprint {
    std::int64_t weights = 0;     ///< fp32 master weights, and in mixed legs the 16-bit copy
    std::int64_t gradients = 0;   ///< fp32
    std::int64_t optimizer = 0;   ///< AdamW: two moments, SGD: the velocity; fp32
    std::int64_t activations = 0; ///< kept for the backward pass, gradients of activations, and the batches

    [[nodiscard]] std::int64_t total() const noexcept { return weights + gradients + optimizer + activations; }
};

[[nodiscard]] inline footprint memory_of(const params& p) {
    const std::int64_t all = parameters(p);
    const std::int64_t e = p.mixed() ? 2 : 4;
    footprint made;
    made.weights = 4 * all + (p.mixed() ? 2 * all : 0);
    made.gradients = 4 * all;
    made.optimizer = (p.net == network::transformer ? 8 : 4) * all;
    if (p.net == network::transformer) {
        const transformer_shape& s = p.transformer;
        // x, both normed, query, key, value, attended, middle; raised and activated; statistics and softmax sums.
        const std::int64_t layer = e * (8 * s.width + 2 * s.hidden) + 4 * (s.heads + 4);
        const std::int64_t last = e * (2 * s.width + s.vocabulary) + 4 * 2;
        const std::int64_t passing = e * (5 * s.width + s.hidden);
        made.activations = s.rows() * (s.layers * layer + last + passing + 8 * p.accumulation);
        return made;
    }
    const bottleneck_shape& s = p.bottleneck;
    const std::int64_t c = s.channels, half = (s.side + 1) / 2;
    const std::int64_t large = s.batch * s.side * s.side, small = s.batch * half * half;
    const std::int64_t outputs =
        large * (c / 4 + c / 4 + c + c / 2) + small * (c / 2 + 2 * c + 2 * c + c / 2 + c / 2 + 2 * c);
    const std::int64_t channels = c / 4 + c / 4 + c + 4 * (c / 2) + 3 * 2 * c;
    const std::int64_t largest = large * c > small * 2 * c ? large * c : small * 2 * c;
    made.activations = e * (2 * outputs + 3 * largest + s.batch * (2 * 2 * c + s.classes)) + 4 * 4 * channels +
                       p.accumulation * (e * large * c + 4 * s.batch);
    return made;
}

/// The optimizer and the rest of the recipe: one place for every backend, for workload.hash and for the equivalent
/// script in PyTorch (tools/peers/pytorch_training_step.py).
struct recipe {
    double learning_rate;
    double clip_norm = 1.0; ///< of all gradients together
    double weight_decay;
    double beta1 = 0.9; ///< AdamW; the momentum of SGD
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double norm_epsilon = 1e-5;
    double statistics_momentum = 0.1; ///< of BatchNorm's running statistics, for one effective batch
};

/// Adam's steps have the size of the rate whatever the gradient is, and what a sum of `width` of them changes grows
/// with the width: so the rate falls with it (G. Yang et al., Tensor programs V, 2022), and 50 steps train networks of
/// all widths about as far, without a loss so small that rounding decides it. Wide ones take half of that: at width
/// 1024 and the whole rate the loss falls by 3 % a step after 50 steps, and PyTorch's own two modes (eager, compiled)
/// end 10 % apart in bf16.
[[nodiscard]] constexpr recipe recipe_of(const params& p) noexcept {
    if (p.net == network::bottleneck) return {0.003, 1.0, 1e-4, 0.9, 0, 0, 1e-5, 0.1};
    const double rate = (p.transformer.width > 512 ? 0.02 : 0.04) / static_cast<double>(p.transformer.width);
    return {rate < 5e-4 ? rate : 5e-4, 1.0, 0.01, 0.9, 0.999, 1e-8, 1e-5, 0.1};
}

[[nodiscard]] inline description describe(const params& p) {
    description what;
    what.id = id(p);
    what.family = "training_step";
    const recipe how = recipe_of(p);
    const bool transformer = p.net == network::transformer;
    what.params = {{"network", std::string(name(p.net))},
                   {"dtype", std::string(workload::name(p.type))},
                   {"size", size_text(p)},
                   {"accumulation", p.accumulation},
                   {"optimizer", std::string(transformer ? "adamw" : "sgd")},
                   {"learning_rate", how.learning_rate},
                   {"clip_norm", how.clip_norm},
                   {"weight_decay", how.weight_decay},
                   // Activations and the copy of the weights have 16 bits, sums, statistics, gradients of weights and
                   // master weights 32; the copy is made once a step, by the optimizer.
                   {"precision", std::string(p.mixed() ? "mixed" : "single")},
                   {"loss_scaling", p.type == dtype::fp16},
                   {"revision", std::int64_t{1}}};
    if (!transformer) what.params["running_statistics"] = std::string("momentum corrected for accumulation");
    add_modes(what.params, p.mode);
    what.kind = benchmark_class::training_step;
    what.flop = flop(p);
    return what;
}

/// Throws usage_error for a network that cannot be built. `refuse` says how.
template <class Refuse>
void check_shape(const params& p, Refuse refuse) {
    constexpr std::int64_t most = std::int64_t{1} << 20;
    const transformer_shape& t = p.transformer;
    for (std::int64_t size : {t.layers, t.width, t.heads, t.hidden, t.vocabulary, t.batch, t.tokens, p.bottleneck.batch,
                              p.bottleneck.channels, p.bottleneck.side, p.bottleneck.classes}) {
        if (size < 1 || size > most) refuse("each size must be between 1 and 1048576");
    }
    if (t.width % t.heads != 0) refuse("the width d must be a multiple of the heads h");
    if (t.vocabulary < 2 || p.bottleneck.classes < 2) refuse("a loss needs at least two classes");
    if (p.bottleneck.channels % 4 != 0) refuse("the channels c must be a multiple of 4");
    if (p.bottleneck.side < 2) refuse("the side h must be at least 2");
    if (p.accumulation < 1 || p.accumulation > 64) refuse("micro-batches must be between 1 and 64");
}

/// The parameters of an id; throws usage_error when it is not one of this family.
[[nodiscard]] inline params parse(const std::string& id_text) {
    id_reader reader(id_text, "training_step", "training_step/transformer/bf16");
    params p;
    p.net = reader.choice("a network", network_names);
    p.type = reader.type();
    if (p.type == dtype::fp8 || p.type == dtype::int8) {
        reader.refuse("a training step is fp32, tf32, fp16 or bf16");
    }
    const auto digit_follows = [](std::string_view part) {
        return part.size() > 1 && part[1] >= '0' && part[1] <= '9';
    };
    if (digit_follows(reader.peek())) {
        if (p.net == network::transformer) {
            const auto sizes = reader.sizes("ldhfvbt");
            p.transformer = {sizes.at('l'), sizes.at('d'), sizes.at('h'), sizes.at('f'),
                             sizes.at('v'), sizes.at('b'), sizes.at('t')};
        } else {
            const auto sizes = reader.sizes("nchk");
            p.bottleneck = {sizes.at('n'), sizes.at('c'), sizes.at('h'), sizes.at('k')};
        }
    }
    const std::string_view next = reader.peek();
    constexpr std::string_view accumulate = "accumulate";
    if (next.substr(0, accumulate.size()) == accumulate) {
        const std::string digits(next.substr(accumulate.size()));
        const bool number =
            !digits.empty() && digits.size() < 4 && digits.find_first_not_of("0123456789") == std::string::npos;
        if (!number) reader.refuse("'" + std::string(next) + "' is not accumulate4 or the like");
        p.accumulation = std::stoll(digits);
        static_cast<void>(reader.next("accumulation"));
    }
    p.mode = reader.rest_as_modes();
    if (p.mode.hot) reader.refuse("the work of a training step fits no cache: it is neither hot nor cold");
    if (p.mode.plan != plan_choice::heuristic) reader.refuse("a training step takes the libraries' own choices");
    check_shape(p, [&reader](const char* why) { reader.refuse(why); });
    reader.finish(id(p));
    return p;
}

} // namespace workload::training_step

PLUMBLINE_NAMESPACE_END

#endif
