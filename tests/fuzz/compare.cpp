// SPDX-License-Identifier: Apache-2.0
// Two baselines made of the input's bytes, through the writer, the reader, the comparator and every report. Hashes
// would stop nearly every mutation of a text, so the bytes choose values and shapes instead.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "../json/sample.hpp"
#include "fuzz.hpp"

using namespace plumbline;

namespace {

/// Bytes of the input, zeros when they are used up.
class source {
public:
    source(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}

    std::uint8_t byte() {
        if (left_ == 0) return 0;
        --left_;
        return *data_++;
    }
    std::size_t below(std::size_t limit) { return byte() % limit; }
    bool one_in(std::size_t n) { return below(n) == n - 1; }
    template <class T, std::size_t N>
    T pick(const std::array<T, N>& from) {
        return from[below(N)];
    }

    /// Mostly plausible times, sometimes the edges of what a double can be, sometimes any finite bits.
    double value() {
        constexpr double huge = std::numeric_limits<double>::max();
        switch (below(16)) {
        case 0:
            return pick(std::array{0.0, -0.0, -1.0, huge, -huge, 5e-324, 1e-300, 1e300});
        case 1: {
            std::uint64_t bits = 0;
            for (int i = 0; i < 8; ++i) bits = bits << 8 | byte();
            double any = 0;
            std::memcpy(&any, &bits, sizeof any);
            return any - any == 0 ? any : 1.0;
        }
        case 2:
            return 1000;
        default:
            return 1000 + byte() * 0.25;
        }
    }

private:
    const std::uint8_t* data_;
    std::size_t left_;
};

result::session_result session_of(source& from, std::size_t index) {
    result::session_result one;
    one.session = index;
    const std::size_t samples = from.below(6);
    for (std::size_t i = 0; i < samples; ++i) one.samples.push_back(from.value());
    if (from.one_in(3)) one.cycles.assign(samples, from.value());
    if (from.one_in(4)) one.clean.assign(samples, from.one_in(2));
    if (from.one_in(8)) {
        one.flags = {from.pick(std::array{result::flag::throttled, result::flag::foreign_load,
                                          result::flag::below_resolution, "unheard_of"})};
    }
    one.ran.implementation = from.pick(std::array{"", "lt/id66/t19", "lt/id66/t20", "cudnn/A/eng0"});
    if (from.one_in(4)) one.state["sm_clock_mhz"] = from.value();
    if (from.one_in(8)) one.state["timer_resolution_ns"] = from.value();
    return one;
}

result::result result_of(source& from, std::size_t index, std::size_t sessions) {
    result::result one;
    one.what.id =
        from.pick(std::array{"gemm/bf16/tn/m1", "probe/canary_mma/1", "layernorm/fwd", "x"}) + std::to_string(index);
    one.what.family = "gemm";
    one.what.params["dtype"] = std::string(from.pick(std::array{"bf16", "fp32"}));
    one.what.metric = from.pick(std::array{"time", "time", "time", "throughput"});
    one.what.unit = from.pick(std::array{"ns", "ns", "ns", "us", "s", "items/s", "furlongs"});
    one.what.better = from.one_in(4) ? direction::higher : direction::lower;
    one.what.kind = static_cast<benchmark_class>(from.below(6));
    if (from.one_in(2)) one.what.flop = static_cast<double>(from.byte()) * 1e9;
    if (from.one_in(2)) one.what.bytes = static_cast<double>(from.byte()) * 1e6;
    one.status = static_cast<result::result_status>(from.one_in(8) ? from.below(3) : 0);
    one.reason =
        one.status == result::result_status::ok ? "" : from.pick(std::array{"no such dtype", "wrong result", ""});
    one.backend = from.one_in(16) ? "cpu" : "cuda";
    one.verified = !from.one_in(4);
    for (std::size_t i = 0; i < sessions; ++i) {
        if (!from.one_in(8)) one.sessions.push_back(session_of(from, i));
    }
    return one;
}

result::baseline baseline_of(source& from) {
    result::baseline all = tests::sample_baseline();
    all.noise.clear();
    all.results.clear();
    const result::session first = all.sessions[0];
    all.sessions.assign(from.below(12), first);
    for (auto& each : all.sessions) {
        each.seed = from.byte();
        each.when.day = from.pick(std::array{"2026-11-30", "2026-11-30", "2026-12-01", ""});
        each.when.board = from.pick(std::array{"a", "a", "a", "b"});
        each.control = from.pick(std::array{"", "", "round-0", "round-1", "round-2"});
        each.failed = from.one_in(8);
    }
    if (from.one_in(2)) all.device.uuid = from.pick(std::array{"a", "b"});
    if (from.one_in(8)) all.environment.attributes["gpu.sm_count"].read = result::reading::of(std::int64_t{114});
    if (from.one_in(4)) all.environment.attributes["cudnn.version"].read = result::reading::absent("no cuDNN");
    if (from.one_in(4)) {
        const auto size = [&from] { return static_cast<double>(from.byte()) * 1e-4; };
        const double freedom = 1.0 + from.byte();
        all.noise[from.pick(std::array{"kernel", "gemm/bf16/tn/m10"})] = {size(), size(), freedom, from.byte(),
                                                                          from.byte()};
    }
    if (from.one_in(4)) all.selected.left_out = {"gemm/bf16/tn/m10"};
    const std::size_t results = from.below(8);
    for (std::size_t i = 0; i < results; ++i) all.results.push_back(result_of(from, i, all.sessions.size()));
    return all;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    source from(data, size);
    compare::policy rules;
    rules.strict = from.one_in(2);
    rules.allow_hardware_diff = from.one_in(4);
    rules.rank_minimum = from.below(8);
    const std::size_t choice = from.byte();
    std::array<result::baseline, 2> sides;
    for (result::baseline& side : sides) {
        side = baseline_of(from);
        if (choice % 8 != 0) continue; // writing and reading is slower by far than comparing
        const bool through = tests::accepted([&] { side = json::parse_baseline(json::dump(side), "made"); });
        if (!through) tests::broken("a baseline cannot be written and read back");
    }
    tests::compare_and_report(sides[0], sides[1], rules, choice);
    return 0;
}
