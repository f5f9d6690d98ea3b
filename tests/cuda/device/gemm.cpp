// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "device.hpp"
#include "plumbline/cuda/gemm.hpp"
#include "plumbline/result/alarm.hpp"
#include "plumbline/stats/descriptive.hpp"

using namespace plumbline;
using namespace std::chrono_literals;

namespace {

/// A verified product, or nothing where cublasLt has none for it.
std::optional<result::evidence> verified(const std::string& id) {
    cuda::backend& on = device();
    const auto p = workload::gemm::parse(id);
    try {
        const std::size_t slots = std::min<std::size_t>(cuda::gemm::slots(on, p), 3);
        cuda::gemm product(on, p, slots);
        product.verify(on);
        const result::evidence ran = product.evidence(on);
        std::printf("  %-44s %s, %s, %s\n", id.c_str(), ran.implementation.c_str(),
                    to_string(ran.parts.at("operation")).c_str(), ran.kernels.empty() ? "?" : ran.kernels[0].c_str());
        return ran;
    } catch (const unsupported_error& refused) {
        std::printf("  %-44s not offered: %s\n", id.c_str(), refused.what());
        return std::nullopt;
    }
}

/// Changes device memory behind the backend's back, and waits: its stream does not wait for the default one.
template <class Change>
void change(Change call) {
    REQUIRE(call() == cudaSuccess);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
}

std::vector<result::alarm> alarms(const std::string& id, const result::evidence& ran) {
    return result::alarms(workload::gemm::describe(workload::gemm::parse(id)), ran);
}

std::string part(const result::evidence& ran, const char* name) {
    return to_string(ran.parts.at(name));
}

} // namespace

TEST_CASE("every dtype and layout gives the float64 result, at sizes that are no multiple of anything") {
    for (const char* type : {"fp32", "tf32", "fp16", "bf16"}) {
        for (const char* layout : {"tn", "nn", "nt", "tt"}) {
            const std::string id = std::string("gemm/") + type + '/' + layout + "/m129n65k257";
            CAPTURE(std::string(id));
            CHECK(verified(id).has_value());
        }
    }
    for (const char* id : {"gemm/bf16/tn/m1n1k1", "gemm/bf16/nn/m1n513k64", "gemm/fp32/nt/m1000n1k3000",
                           "gemm/fp16/tn/m256n16k8192", "gemm/tf32/nn/m512n512k512", "gemm/bf16/tn/m96n80k160b7",
                           "gemm/fp32/nn/m33n17k65b3", "gemm/bf16/nt/m640n384k1111"}) {
        CAPTURE(std::string(id));
        CHECK(verified(id).has_value());
    }
}

TEST_CASE("large products, odd ones too, are right") {
    if (small_tests()) return;
    for (const char* id :
         {"gemm/bf16/tn/m4096n4096k4096", "gemm/bf16/tn/m4095n4095k4095", "gemm/fp16/nn/m4096n4096k4096",
          "gemm/tf32/tn/m4096n4096k4096", "gemm/fp32/tn/m4096n4096k4096", "gemm/bf16/tn/m14336n16k4096",
          "gemm/bf16/tn/m512n8k500000", "gemm/bf16/nn/m2048n2048k128b64"}) {
        CAPTURE(std::string(id));
        CHECK(verified(id).has_value());
    }
}

TEST_CASE("bias and GELU follow the product") {
    for (const char* id :
         {"gemm/bf16/tn/m256n96k512/bias", "gemm/bf16/tn/m256n96k512/gelu", "gemm/fp16/nn/m256n96k512/bias",
          "gemm/fp16/tn/m256n96k512/gelu", "gemm/fp32/tn/m256n96k512/bias", "gemm/bf16/tn/m128n64k96b4/bias"}) {
        CAPTURE(std::string(id));
        CHECK(verified(id).has_value());
    }
}

TEST_CASE("gaps, displaced operands and every workspace give the right result, and the evidence says the workspace") {
    for (const char* id :
         {"gemm/bf16/tn/m256n96k512/pad1", "gemm/bf16/nn/m256n96k512/pad3", "gemm/fp32/nt/m256n96k512/pad1",
          "gemm/bf16/tn/m256n96k512/offset1", "gemm/fp16/nn/m256n96k512b3/bias/pad1/offset1",
          "gemm/tf32/tn/m256n96k512/offset1", "gemm/bf16/tn/m257n8k1/pad1", "gemm/bf16/tn/m64n8k1"}) {
        CAPTURE(std::string(id));
        CHECK(verified(id).has_value());
    }
    for (const char* mib : {"0", "4", "64"}) {
        const auto ran = verified(std::string("gemm/bf16/nn/m512n8k65536/ws") + mib);
        REQUIRE(ran.has_value());
        CHECK(std::get<std::int64_t>(ran->parts.at("workspace_offered_bytes")) == std::stoll(mib) << 20);
        CHECK(std::get<std::int64_t>(ran->parts.at("workspace_bytes")) <= std::stoll(mib) << 20);
    }
    CHECK_FALSE(verified("gemm/bf16/tn/m256n96k512/ws65").has_value());
}

TEST_CASE("one wrong tile and one wrong element in a large output are found by the sums of its rows") {
    if (small_tests()) return;
    cuda::backend& on = device();
    const auto p = workload::gemm::parse("gemm/bf16/tn/m2048n4096k512");
    cuda::gemm product(on, p, 1);
    product.verify(on);
    const auto check_rows = [&] {
        using workload::gemm::operand;
        workload::gemm::verify_rows("it", p, [&](operand which, const auto& view, const std::vector<double>& x) {
            void* const data = which == operand::a ? product.a(0) : which == operand::b ? product.b(0) : product.d(0);
            return cuda::project(on, data, cuda::kernels::storage::bf16, view, x);
        });
    };
    product.run(on, 0);
    on.synchronize();
    CHECK_NOTHROW(check_rows());
    auto* const d = static_cast<std::uint16_t*>(product.d(0));
    change([&] { return cudaMemset2D(d + 2048 * 1000 + 512, 2048 * 2, 0, 128 * 2, 128); });
    CHECK_THROWS_WITH_AS(check_rows(), doctest::Contains("random signs"), verification_error);
    product.run(on, 0);
    on.synchronize();
    std::uint16_t one = 0;
    change([&] { return cudaMemcpy(&one, d + 123456, sizeof one, cudaMemcpyDeviceToHost); });
    one = workload::to_bf16(workload::from_bf16(one) + 45.0f); // two deviations of an element
    change([&] { return cudaMemcpy(d + 123456, &one, sizeof one, cudaMemcpyHostToDevice); });
    CHECK_THROWS_WITH_AS(check_rows(), doctest::Contains("row 576, added up"), verification_error);
}

TEST_CASE("fp8 and int8 run where the device has them, and what is not offered is unsupported, not wrong") {
    const auto fp8 = verified("gemm/fp8/tn/m256n128k512");
    if (device().device().capability() >= 89) {
        REQUIRE(fp8.has_value());
        CHECK(part(*fp8, "fast_accumulation") == "true");
        const auto precise = verified("gemm/fp8/tn/m256n128k512/precise");
        REQUIRE(precise.has_value());
        CHECK(part(*precise, "fast_accumulation") == "false");
        CHECK(verified("gemm/fp8/tn/m4096n512k4096").has_value());
    }
    const auto int8 = verified("gemm/int8/tn/m256n128k512");
    REQUIRE(int8.has_value());
    CHECK(part(*int8, "accumulator") == "int32");
    CHECK_FALSE(verified("gemm/int8/tn/m256n128k512/bias").has_value());
    for (const char* id : {"gemm/int8/nn/m256n128k512", "gemm/fp8/nn/m256n128k512", "gemm/fp8/tn/m257n129k513",
                           "gemm/int8/tn/m257n129k513", "gemm/fp8/tn/m256n128k512/bias"}) {
        CAPTURE(std::string(id));
        CHECK_NOTHROW(static_cast<void>(verified(id)));
    }
}

TEST_CASE("the evidence says how it was computed") {
    const auto bf16 = verified("gemm/bf16/tn/m512n512k512");
    REQUIRE(bf16.has_value());
    CHECK(part(*bf16, "tensor_cores") == "true");
    CHECK(part(*bf16, "accumulator") == "fp32");
    CHECK(bf16->implementation.find("lt/id") == 0);
    CHECK(part(*bf16, "position") == "0");
    CHECK(alarms("gemm/bf16/tn/m512n512k512", *bf16).empty());
    int driver_version = 0;
    REQUIRE(cudaDriverGetVersion(&driver_version) == cudaSuccess);
    if (driver_version >= 12030) CHECK_FALSE(bf16->kernels.empty());
    const auto fp32 = verified("gemm/fp32/tn/m512n512k512");
    REQUIRE(fp32.has_value());
    CHECK(part(*fp32, "input") != "tf32");
    CHECK(part(*fp32, "tensor_cores") == "false");
    const auto tf32 = verified("gemm/tf32/tn/m512n512k512");
    REQUIRE(tf32.has_value());
    const char* forced = std::getenv("NVIDIA_TF32_OVERRIDE");
    if (forced == nullptr || std::string(forced) != "0") {
        CHECK(part(*tf32, "input") == "tf32");
        CHECK(part(*tf32, "tensor_cores") == "true");
        CHECK(alarms("gemm/tf32/tn/m512n512k512", *tf32).empty());
    } else {
        const auto raised = alarms("gemm/tf32/tn/m512n512k512", *tf32);
        REQUIRE(raised.size() == 1);
        CHECK(raised[0].code == result::alarm_code::no_tf32);
    }
    CHECK(alarms("gemm/fp32/tn/m512n512k512", *fp32).empty());
}

TEST_CASE("CUPTI, where it is, names the kernels that a graph names, and launches cost no more afterwards") {
    if (small_tests()) return;
    cuda::backend& on = device();
    cuda::gemm product(on, workload::gemm::parse("gemm/bf16/tn/m512n512k512"), 1);
    const auto work = [&] { product.run(on, 0); };
    work();
    const auto enqueue_ns = [&] {
        std::vector<double> taken;
        auto tape = on.record([&](std::size_t) { work(); }, {16, 1, false});
        for (const measure::sample& each : on.play(tape, 100)) taken.push_back(*each.enqueue_ns);
        return stats::median(taken);
    };
    const double before = enqueue_ns();
    std::vector<std::string> seen;
    try {
        seen = cuda::kernels_by_cupti(on, work);
    } catch (const unsupported_error& refused) {
        std::printf("  no CUPTI: %s\n", refused.what());
        return;
    }
    const double after = enqueue_ns();
    std::printf("  CUPTI saw %s; enqueueing 16 launches took %.1f us before it and %.1f us after\n",
                seen.empty() ? "nothing" : seen.back().c_str(), before / 1e3, after / 1e3);
    CHECK(seen == cuda::kernels_in_graph(on, work));
    CHECK(after <= 1.25 * before);
}

TEST_CASE("a wrong result is caught, in the first and in the last buffer set") {
    cuda::backend& on = device();
    const auto p = workload::gemm::parse("gemm/bf16/tn/m192n160k256");
    for (std::size_t slot : {0u, 2u}) {
        cuda::gemm product(on, p, 3);
        CHECK_NOTHROW(product.verify(on));
        // One of the 256 terms of each element is gone: about 6 % off, far less than a broken kernel.
        const std::size_t row = static_cast<std::size_t>(p.k) * 2;
        change([&] { return cudaMemset2D(product.a(slot), row, 0, 2, static_cast<std::size_t>(p.m)); });
        CHECK_THROWS_WITH_AS(product.verify(on), doctest::Contains("wrong result"), verification_error);
    }
    cuda::gemm product(on, p, 2);
    const std::uint16_t nan = 0x7fc0;
    change([&] { return cudaMemcpy(product.b(0), &nan, sizeof nan, cudaMemcpyHostToDevice); });
    CHECK_THROWS_WITH_AS(product.verify(on), doctest::Contains("192 of 30720 elements"), verification_error);
}

TEST_CASE("the output's hash repeats and depends on the inputs") {
    cuda::backend& on = device();
    const auto p = workload::gemm::parse("gemm/fp16/tn/m256n256k256");
    cuda::gemm product(on, p, 2);
    const std::string first = product.output_hash(on);
    CHECK(product.output_hash(on) == first);
    cuda::gemm again(on, p, 1);
    CHECK(again.output_hash(on) == first);
    change([&] { return cudaMemset(product.a(0), 0, 64); });
    CHECK(product.output_hash(on) != first);
}

TEST_CASE("a search finds a plan at least as fast as the first, and a recorded plan can be replayed") {
    cuda::backend& on = device();
    auto p =
        workload::gemm::parse(small_tests() ? "gemm/bf16/tn/m256n256k256/best" : "gemm/bf16/tn/m1024n1024k1024/best");
    cuda::gemm best(on, p, cuda::gemm::slots(on, p));
    best.verify(on);
    const result::evidence found = best.evidence(on);
    std::printf("  best of %s is number %s, the first takes %.4f times as long; %s\n",
                part(found, "candidates").c_str(), part(found, "position").c_str(),
                std::get<double>(found.parts.at("heuristic_regret")), found.implementation.c_str());
    CHECK(std::get<double>(found.parts.at("heuristic_regret")) >= 1.0);

    p.mode.plan = workload::plan_choice::pinned;
    CHECK_THROWS_WITH_AS(cuda::gemm(on, p, 1), doctest::Contains("no plan to replay"), unsupported_error);
    auto unpinned = p;
    unpinned.mode.plan = workload::plan_choice::heuristic;
    on.pin(workload::gemm::id(unpinned), found);
    cuda::gemm replayed(on, p, 1);
    CHECK(replayed.evidence(on).implementation == found.implementation);
    CHECK_NOTHROW(replayed.verify(on));
    result::evidence broken = found;
    broken.parts["algo.id"] = std::int64_t{9999};
    on.pin(workload::gemm::id(unpinned), broken);
    CHECK_THROWS_AS(cuda::gemm(on, p, 1), error);
    broken.parts.erase("algo.id");
    on.pin(workload::gemm::id(unpinned), broken);
    CHECK_THROWS_WITH_AS(cuda::gemm(on, p, 1), doctest::Contains("lacks algo.id"), unsupported_error);
}

namespace {

/// Device time of one launch in a plain loop: a launch to get going, event, `count` launches, event; no hold, no graph.
double bare_loop_ns(cuda::gemm& product, std::size_t slots, std::size_t count) {
    cuda::backend& on = device();
    const cuda::event begin = cuda::make_event();
    const cuda::event end = cuda::make_event();
    product.run(on, slots - 1);
    cuda::check(cudaEventRecord(begin.get(), on.stream()), "cudaEventRecord");
    for (std::size_t i = 0; i < count; ++i) product.run(on, i % slots);
    cuda::check(cudaEventRecord(end.get(), on.stream()), "cudaEventRecord");
    on.synchronize();
    return cuda::elapsed_ns(begin, end) / static_cast<double>(count);
}

} // namespace

TEST_CASE("the time of a 4096^3 product is that of a bare event loop within 1 %, and a graph takes no longer") {
    if (small_tests()) return;
    cuda::backend& on = device();
    const auto p = workload::gemm::parse("gemm/bf16/tn/m4096n4096k4096");
    const std::size_t slots = cuda::gemm::slots(on, p);
    cuda::gemm product(on, p, slots);
    std::vector<double> played[2]; // launched one by one, in a graph
    std::vector<double> bare;
    measure::recording_request how{2, slots, false};
    auto stream = on.record([&](std::size_t slot) { product.run(on, slot); }, how);
    how.graph = true;
    auto graph = on.record([&](std::size_t slot) { product.run(on, slot); }, how);
    for (int round = 0; round < 9; ++round) {
        for (auto* tape : {&stream, &graph}) {
            on.idle(100ms);
            std::vector<double> burst;
            for (const measure::sample& each : on.play(*tape, 11)) burst.push_back(each.elapsed_ns / 2);
            burst.erase(burst.begin()); // the clock still ramps up
            played[tape == &graph].push_back(stats::median(burst));
        }
        on.idle(100ms);
        bare.push_back(bare_loop_ns(product, slots, 20));
    }
    std::printf("  4096^3 bf16: launched one by one %.2f us, in a graph %.2f us, bare loop %.2f us\n",
                stats::median(played[0]) / 1e3, stats::median(played[1]) / 1e3, stats::median(bare) / 1e3);
    CHECK(stats::median(played[0]) == doctest::Approx(stats::median(bare)).epsilon(0.01));
    CHECK(stats::median(played[1]) <= 1.01 * stats::median(bare));
}

TEST_CASE("short products in a graph take no longer than in a held stream") {
    if (small_tests() || !device().can_hold()) return;
    cuda::backend& on = device();
    const auto p = workload::gemm::parse("gemm/bf16/tn/m1024n1024k1024");
    const std::size_t slots = cuda::gemm::slots(on, p);
    cuda::gemm product(on, p, slots);
    std::vector<double> medians;
    for (bool graph : {true, false}) {
        measure::recording_request how;
        how.launches = 60;
        how.slots = slots;
        how.graph = graph;
        auto tape = on.record([&](std::size_t slot) { product.run(on, slot); }, how);
        on.idle(300ms);
        std::vector<double> times;
        for (const measure::sample& each : on.play(tape, 20)) times.push_back(each.elapsed_ns / 60);
        medians.push_back(stats::median(times));
    }
    std::printf("  1024^3 bf16: in a graph %.3f us, in a held stream %.3f us\n", medians[0] / 1e3, medians[1] / 1e3);
    CHECK(medians[0] <= 1.02 * medians[1]);
    CHECK(2 * 1024.0 * 1024 * 1024 / medians[0] * 1e9 > 20e12);
}
