// SPDX-License-Identifier: Apache-2.0
// Gradients against central differences in float64, learning, and that planted mistakes are found and named.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/training/attention_check.hpp"
#include "plumbline/training/bottleneck.hpp"
#include "plumbline/training/invariants.hpp"
#include "plumbline/training/transformer.hpp"

using namespace plumbline;
using namespace plumbline::training;
using workload::dtype;
using workload::training_step::params;
using workload::training_step::parse;

namespace {

template <class Value, template <class> class Model>
struct run {
    using ops = host_operations<Value>;
    ops on;
    trainer<ops, Model> steps;

    explicit run(const params& p, const loss_scale_rules& rules = no_scaling()) : steps(on, p, rules) {}

    std::vector<double> losses(int count) {
        std::vector<double> found;
        for (int i = 0; i < count; ++i) {
            steps.step();
            found.push_back(static_cast<double>(on.read_control().loss));
        }
        return found;
    }
};

/// Every `stride`-th trained number: its gradient against (loss(w + h) - loss(w - h)) / 2h.
template <template <class> class Model>
void check_differences(const params& p, std::int64_t stride) {
    run<double, Model> of(p);
    auto& model = of.steps.model();
    const auto loss = [&] {
        of.on.begin_step();
        for (std::int64_t micro = 0; micro < p.accumulation; ++micro) model.forward(micro);
        return of.on.exact_loss();
    };
    of.on.begin_step();
    for (std::int64_t micro = 0; micro < p.accumulation; ++micro) model.accumulate(micro);
    const auto size = static_cast<std::size_t>(model.weights().size());
    const std::vector<double> gradient = of.on.download(model.weights().gradients(), size);
    for (const parameter& each : model.weights().list()) {
        double error = 0, norm = 0;
        for (std::int64_t i = each.offset; i < each.offset + each.count; i += stride) {
            double& w = model.weights().master()[i];
            const double kept = w;
            const double h = 1e-5;
            w = kept + h;
            const double above = loss();
            w = kept - h;
            const double below = loss();
            w = kept;
            const double exact = (above - below) / (2 * h);
            error += std::pow(gradient[static_cast<std::size_t>(i)] - exact, 2);
            norm += exact * exact;
        }
        CAPTURE(each.name);
        CHECK(std::sqrt(error) <= 1e-5 * std::sqrt(norm) + 1e-9);
        CHECK(norm > 0);
    }
}

/// Takes the slope of GELU for that of a ReLU.
struct wrong_gelu_operations : host_operations<float> {
    void linear_backward_input_gelu(const float* d_y, const float* w, const float* raised, float* d_raised,
                                    std::int64_t rows, std::int64_t in, std::int64_t out) {
        linear_backward_input(d_y, w, d_raised, rows, in, out);
        for (std::int64_t i = 0; i < rows * in; ++i) d_raised[i] = raised[i] > 0 ? d_raised[i] : 0;
    }
};

/// A tiny fp16 step with a planted mistake.
template <template <class> class Model>
std::string complaint(const char* id, fault mistake) {
    run<float16, Model> of(parse(id), {1024.0f, 2.0f, 0.5f, 1});
    of.steps.plant(mistake);
    step_check<host_operations<float16>, Model> check(of.steps, id);
    try {
        check.check_all();
    } catch (const verification_error& e) {
        return e.what();
    }
    return "";
}

constexpr const char* tiny_transformer = "training_step/transformer/fp16/l1d16h2f32v24b2t6";
constexpr const char* tiny_stack = "training_step/bottleneck/fp16/n4c8h4k6/accumulate2";

/// Forgets one row of a gradient.
struct forgetful_attention : host_operations<float> {
    std::size_t forgotten = 0; ///< of d_projected
    void attention_backward(const float* d_y, const float* projected, const float* y, const float* log_sums,
                            float* d_projected, const attention_shape& s) {
        host_operations<float>::attention_backward(d_y, projected, y, log_sums, d_projected, s);
        std::fill_n(d_projected + forgotten, s.head_width(), 0.0f);
    }
};

} // namespace

TEST_CASE("every gradient of the transformer agrees with central differences") {
    check_differences<transformer>(parse("training_step/transformer/fp32/l2d8h2f12v11b2t5"), 7);
    check_differences<transformer>(parse("training_step/transformer/fp32/l1d6h1f8v5b1t4/accumulate2"), 5);
}

TEST_CASE("every gradient of the bottleneck stack agrees with central differences") {
    check_differences<bottleneck>(parse("training_step/bottleneck/fp32/n3c8h5k4"), 13);
    check_differences<bottleneck>(parse("training_step/bottleneck/fp32/n2c4h4k3/accumulate2"), 5);
}

TEST_CASE("a clean step passes in every leg") {
    CHECK(complaint<transformer>(tiny_transformer, fault::none) == "");
    CHECK(complaint<bottleneck>(tiny_stack, fault::none) == "");
    run<bfloat16, transformer> narrow(parse("training_step/transformer/bf16/l1d16h2f32v24b2t6/accumulate2"),
                                      {1024.0f, 2.0f, 0.5f, 1});
    CHECK_NOTHROW((step_check<host_operations<bfloat16>, transformer>(narrow.steps, "bf16").check_all()));
    run<float, bottleneck> single(parse("training_step/bottleneck/fp32/n4c8h4k6"), {1024.0f, 2.0f, 0.5f, 1});
    CHECK_NOTHROW((step_check<host_operations<float>, bottleneck>(single.steps, "fp32").check_all()));
}

TEST_CASE("each planted mistake makes an invariant fail with a message that names it") {
    const auto names = [](const std::string& message, const char* words) {
        CAPTURE(message);
        CHECK(message.find(words) != std::string::npos);
    };
    names(complaint<transformer>(tiny_transformer, fault::clip_before_unscale), "clipped before it was unscaled");
    names(complaint<transformer>(tiny_transformer, fault::update_before_unscale),
          "scale was updated before the gradient was unscaled");
    names(complaint<transformer>(tiny_transformer, fault::unscale_twice), "unscaled twice");
    names(complaint<bottleneck>(tiny_stack, fault::clip_before_unscale), "clipped before it was unscaled");
    names(complaint<bottleneck>(tiny_stack, fault::update_before_unscale),
          "scale was updated before the gradient was unscaled");
    names(complaint<bottleneck>(tiny_stack, fault::unscale_twice), "unscaled twice");
    names(complaint<bottleneck>(tiny_stack, fault::statistics_per_micro_batch), "updated for each micro-batch");
}

TEST_CASE("an update that does not look at this step's gradients is found by an overflow too") {
    run<float16, transformer> of(parse(tiny_transformer), {1024.0f, 2.0f, 0.5f, 2000});
    of.steps.plant(fault::update_before_unscale);
    step_check<host_operations<float16>, transformer> check(of.steps, "fp16");
    std::string message;
    try {
        check.check_overflow();
    } catch (const verification_error& e) {
        message = e.what();
    }
    CHECK(message.find("updated before the gradients were unscaled") != std::string::npos);
}

TEST_CASE("a wrong operator is found, and the tensor whose gradient it spoils is named") {
    using ops = wrong_gelu_operations;
    ops on;
    trainer<ops, transformer> steps(on, parse("training_step/transformer/fp32/l1d16h2f32v24b2t6"),
                                    {1024.0f, 2.0f, 0.5f, 1});
    step_check<ops, transformer> check(steps, "fp32");
    CHECK_THROWS_WITH_AS(check.check_clean_step(), doctest::Contains("the gradient of layer0.up is off by"),
                         verification_error);
}

TEST_CASE("norms that do not fit are refused whatever the reason") {
    observation seen{1024, 2048, 2.0, 2.0, 1.0};
    CHECK_NOTHROW(check_norms("x", seen, 1.0, 0.01));
    seen.applied = 0.5;
    CHECK_THROWS_WITH_AS(check_norms("x", seen, 1.0, 0.01),
                         doctest::Contains("a gradient of norm 0.5 reached the optimizer, expected 1"),
                         verification_error);
    seen.norm = 3.0;
    CHECK_THROWS_WITH_AS(check_norms("x", seen, 1.0, 0.01), doctest::Contains("the gradient is wrong"),
                         verification_error);
    seen.norm = std::nan("");
    CHECK_THROWS_AS(check_norms("x", seen, 1.0, 0.01), verification_error);
}

TEST_CASE("on one fixed batch the loss falls by 30 % in 50 steps and 16 bits stay within 2 %") {
    const params p = parse("training_step/transformer/fp32/l1d32h2f64v64b2t16");
    const auto exact = run<float, transformer>(p).losses(50);
    CHECK_NOTHROW(check_losses("fp32", exact, exact, 0));
    CHECK_NOTHROW(check_losses("bf16", run<bfloat16, transformer>(p).losses(50), exact, 0.02));
    CHECK_NOTHROW(check_losses("fp16", run<float16, transformer>(p, {}).losses(50), exact, 0.02));
    CHECK_THROWS_WITH_AS(check_losses("x", std::vector<double>(50, 3.0), exact, 0.02),
                         doctest::Contains("nothing is learned"), verification_error);
    std::vector<double> off = exact;
    off[30] *= 1.03;
    CHECK_THROWS_WITH_AS(check_losses("x", off, exact, 0.02), doctest::Contains("the loss of step 30"),
                         verification_error);
}

TEST_CASE("micro-batches are other data, and their mean is the effective batch") {
    // The mean of four micro-batches of two sequences is the batch of eight: same loss, same gradient.
    run<double, transformer> parts(parse("training_step/transformer/fp32/l1d16h2f32v24b2t6/accumulate4"));
    run<double, transformer> whole(parse("training_step/transformer/fp32/l1d16h2f32v24b8t6"));
    const auto a = parts.losses(5), b = whole.losses(5);
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-6));
}

TEST_CASE("the optimizers are those of PyTorch") {
    // Reference values: torch 2.11, AdamW(lr=0.001, weight_decay=0.01) and SGD(lr=0.003, momentum=0.9,
    // weight_decay=1e-4) on w = 1 with gradients 0.5 then -0.25, float64.
    host_operations<double> on;
    auto how = workload::training_step::recipe_of(parse(tiny_transformer));
    how.learning_rate = 1e-3;
    double w = 1, first = 0, second = 0, gradient = 0.5;
    on.adamw(&w, &gradient, &first, &second, nullptr, 1, how);
    on.update(no_scaling());
    CHECK(w == doctest::Approx(0.99899000002).epsilon(1e-12));
    gradient = -0.25;
    on.adamw(&w, &gradient, &first, &second, nullptr, 1, how);
    CHECK(w == doctest::Approx(0.9987136730870784).epsilon(1e-12));

    auto plain = workload::training_step::recipe_of(parse(tiny_stack));
    plain.learning_rate = 3e-3;
    double v = 1, velocity = 0;
    gradient = 0.5;
    on.sgd(&v, &gradient, &velocity, nullptr, 1, plain);
    gradient = -0.25;
    on.sgd(&v, &gradient, &velocity, nullptr, 1, plain);
    CHECK(v == doctest::Approx(0.99789913045009).epsilon(1e-12));
}

TEST_CASE("memory by formula is what the models allocate") {
    // Sizes without gaps between the tensors. The batch and its gradients are values, so the leg matters.
    const params t16 = parse("training_step/transformer/bf16/l2d128h2f128v128b1t3/accumulate2");
    run<bfloat16, transformer> narrow(t16);
    CHECK(static_cast<std::int64_t>(narrow.on.allocated_bytes()) == workload::training_step::memory_of(t16).total());
    const params t32 = parse("training_step/transformer/fp32/l1d128h4f256v128b2t3");
    run<float, transformer> wide(t32);
    CHECK(static_cast<std::int64_t>(wide.on.allocated_bytes()) == workload::training_step::memory_of(t32).total());
    const params b16 = parse("training_step/bottleneck/bf16/n1c512h3k128/accumulate2");
    run<bfloat16, bottleneck> stack(b16);
    CHECK(static_cast<std::int64_t>(stack.on.allocated_bytes()) == workload::training_step::memory_of(b16).total());
    const params b32 = parse("training_step/bottleneck/fp32/n2c512h4k128");
    run<float, bottleneck> even(b32);
    CHECK(static_cast<std::int64_t>(even.on.allocated_bytes()) == workload::training_step::memory_of(b32).total());
}

TEST_CASE("attention at full size is held to float64, and the part that is wrong is named") {
    const auto p = parse("training_step/transformer/bf16/l1d48h3f8v8b2t40");
    const auto said = [&](auto on, dtype leg) {
        try {
            check_attention(on, p.transformer, leg, "here");
        } catch (const verification_error& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    CHECK(said(host_operations<double>(), dtype::fp32) == "");
    CHECK(said(host_operations<float>(), dtype::fp32) == "");
    CHECK(said(host_operations<float16>(), dtype::fp16) == "");
    CHECK(said(host_operations<bfloat16>(), dtype::bf16) == "");
    // 16 bits are not enough for fp32.
    CHECK(said(host_operations<bfloat16>(), dtype::fp32).find("here: the output of attention is off by") == 0);
    const char* parts[] = {"queries", "keys", "values"};
    for (std::size_t which = 0; which < 3; ++which) {
        forgetful_attention on;
        on.forgotten = ((79 * 3 + which) * 3 + 1) * 16; // the last row, in the head that is looked at
        const std::string words = std::string("the gradient of ") + parts[which];
        CHECK(said(on, dtype::fp16).find(words) != std::string::npos);
    }
}
