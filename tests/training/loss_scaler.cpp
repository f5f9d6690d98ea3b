// SPDX-License-Identifier: Apache-2.0
#include "plumbline/training/loss_scaler.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace plumbline;
using training::loss_scale_rules;
using training::loss_scale_state;
using training::loss_scaler;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

/// One step whose only gradient is `gradient` before unscaling; whether the optimizer would have stepped.
bool step(loss_scaler& scaler, float gradient) {
    std::array<float, 1> gradients{gradient};
    (void)scaler.scaled(1.0f);
    scaler.unscale(gradients);
    const bool taken = scaler.step();
    scaler.update();
    return taken;
}

std::string refusal(void (*use)(loss_scaler&, std::span<float>)) {
    loss_scaler scaler;
    std::array<float, 2> gradients{1, 2};
    try {
        use(scaler, gradients);
    } catch (const usage_error& e) {
        return e.what();
    }
    return "";
}

} // namespace

TEST_CASE("the scale starts at 65536 and doubles after 2000 clean steps in a row") {
    loss_scaler scaler;
    CHECK(scaler.scale() == 65536.0f);
    for (int i = 0; i < 1999; ++i) REQUIRE(step(scaler, 1.0f));
    CHECK(scaler.scale() == 65536.0f);
    CHECK(scaler.state().clean_steps == 1999);
    CHECK(step(scaler, 1.0f));
    CHECK(scaler.scale() == 131072.0f);
    CHECK(scaler.state().clean_steps == 0);
    CHECK(scaler.state().taken == 2000);
    CHECK(scaler.state().skipped == 0);
}

TEST_CASE("a gradient that is not finite skips the step, halves the scale and starts the window anew") {
    for (float bad : {inf, -inf, std::numeric_limits<float>::quiet_NaN()}) {
        CAPTURE(bad);
        loss_scaler scaler({8.0f, 2.0f, 0.5f, 4});
        for (int i = 0; i < 3; ++i) CHECK(step(scaler, 1.0f));
        CHECK_FALSE(step(scaler, bad)); // in the middle of a window of four
        CHECK(scaler.scale() == 4.0f);
        CHECK(scaler.state().clean_steps == 0);
        CHECK(scaler.state().skipped == 1);
        CHECK(scaler.state().taken == 3);
        for (int i = 0; i < 3; ++i) CHECK(step(scaler, 1.0f));
        CHECK(scaler.scale() == 4.0f);
        CHECK(step(scaler, 1.0f));
        CHECK(scaler.scale() == 8.0f);
    }
}

TEST_CASE("the scale falls below 1 and never grows to infinity") {
    loss_scaler small({1.0f, 2.0f, 0.5f, 2000});
    for (int i = 0; i < 3; ++i) CHECK_FALSE(step(small, inf));
    CHECK(small.scale() == 0.125f);

    loss_scaler large({0x1p127f, 2.0f, 0.5f, 1});
    CHECK(step(large, 1.0f));
    CHECK(large.scale() == 0x1p127f);
    CHECK(large.state().clean_steps == 0);
}

TEST_CASE("accumulation: the scale stays through the micro-batches, one unscale and one update for all of them") {
    loss_scaler scaler({1024.0f, 2.0f, 0.5f, 1});
    std::vector<float> gradients(3, 0.0f);
    for (int micro = 0; micro < 4; ++micro) {
        const float loss = scaler.scaled(0.25f);
        CHECK(loss == 256.0f);
        for (float& g : gradients) g += loss * 3.0f; // d(3 w)/dw
    }
    scaler.unscale(gradients);
    for (float g : gradients) CHECK(g == 3.0f);
    CHECK(scaler.step());
    CHECK(scaler.scale() == 1024.0f);
    scaler.update();
    CHECK(scaler.scale() == 2048.0f);
}

TEST_CASE("all buffers of a step are unscaled and looked at, whichever holds the infinity") {
    for (std::size_t where = 0; where < 3; ++where) {
        loss_scaler scaler({4.0f, 2.0f, 0.5f, 2000});
        std::vector<std::vector<float>> buffers(3, std::vector<float>(5, 2.0f));
        buffers[where][4] = inf;
        (void)scaler.scaled(1.0f);
        scaler.unscale(buffers[0], buffers[1], buffers[2]);
        CHECK(buffers[(where + 1) % 3][0] == 0.5f);
        CHECK_FALSE(scaler.step());
    }
}

TEST_CASE("the inverse is rounded once, from float64") {
    CHECK(training::inverse_of(65536.0f) == 0x1p-16f);
    CHECK(training::inverse_of(3.0f) == static_cast<float>(1.0 / 3.0));
    std::array<double, 2> exact{3.0, 0x1p-1074};
    CHECK(training::unscale(exact.data(), 2, 1.0f));
    CHECK(exact[1] == 0x1p-1074); // a factor of 1 only looks
    static_assert(training::is_finite(1e38f));
    CHECK_FALSE(training::is_finite(inf));
}

TEST_CASE("calls out of order are refused and the message names the mistake") {
    CHECK(refusal([](loss_scaler& s, std::span<float> g) {
              s.unscale(g);
              s.unscale(g);
          }).find("unscaled twice") != std::string::npos);
    CHECK(refusal([](loss_scaler& s, std::span<float> g) {
              s.unscale(g);
              s.update();
          }).find("updated before the step") != std::string::npos);
    CHECK(refusal([](loss_scaler& s, std::span<float>) { (void)s.step(); }).find("still carry the scale") !=
          std::string::npos);
    CHECK(refusal([](loss_scaler& s, std::span<float> g) {
              s.unscale(g);
              (void)s.scaled(1.0f);
          }).find("accumulate all micro-batches") != std::string::npos);
    CHECK(refusal([](loss_scaler& s, std::span<float> g) {
              s.unscale(g);
              (void)s.step();
              (void)s.step();
          }).find("stepped twice") != std::string::npos);
}

TEST_CASE("rules under which the scale cannot move are refused") {
    for (const loss_scale_rules& bad : {loss_scale_rules{0.0f, 2.0f, 0.5f, 1}, loss_scale_rules{inf, 2.0f, 0.5f, 1},
                                        loss_scale_rules{1.0f, 1.0f, 0.5f, 1}, loss_scale_rules{1.0f, 2.0f, 1.0f, 1},
                                        loss_scale_rules{1.0f, 2.0f, 0.0f, 1}, loss_scale_rules{1.0f, 2.0f, 0.5f, 0}}) {
        CHECK_THROWS_AS(loss_scaler{bad}, usage_error);
    }
}
