// SPDX-License-Identifier: Apache-2.0
// A comparison inside a unit test: is the new code slower than the old one? Both are measured here and now in
// alternation, so that nothing has to be stored. Ends with 0, or with 1 where the new code is slower. "slow" as
// argument plants that.
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <plumbline/compare/compare.hpp>
#include <plumbline/cpu/backend.hpp>
#include <plumbline/measure/engine.hpp>
#include <plumbline/result/append.hpp>

namespace {

using plumbline::cpu::backend;

struct dot_product {
    struct params {
        std::size_t rounds; // what differs between the two sides; the id is the same
    };
    dot_product(backend&, const params& p, std::size_t) : rounds(p.rounds), a(4096, 0.5f), b(4096, 0.25f) {}
    void run(backend&, std::size_t) {
        for (std::size_t r = 0; r < rounds; ++r) {
            for (std::size_t i = 0; i < a.size(); ++i) sum = sum + a[i] * b[i];
        }
    }
    std::size_t rounds;
    std::vector<float> a, b;
    volatile float sum = 0;
};
plumbline::workload::description describe(const dot_product::params&) {
    return {"test/dot_product/n4096", "test", {}};
}

/// Adds one session of measurements.
void add(plumbline::result::baseline& to, std::vector<plumbline::result::result> measured) {
    plumbline::result::baseline part;
    part.sessions.resize(1);
    part.results = std::move(measured);
    for (plumbline::result::result& each : part.results) each.backend = "cpu";
    plumbline::result::append_sessions(to, std::move(part), [](auto& there, auto each) {
        there.sessions.push_back(std::move(each.sessions.front()));
    });
}

} // namespace

int main(int argc, char** argv) {
    const bool planted = argc > 1 && std::string_view(argv[1]) == "slow";
    backend cpu;
    plumbline::measure::engine<backend> engine(cpu);
    const auto old_code = plumbline::measure::make_benchmark<dot_product, backend>({10});
    const auto new_code = plumbline::measure::make_benchmark<dot_product, backend>({planted ? 40u : 10u});
    plumbline::result::baseline before, after;
    before.device.backend = after.device.backend = "cpu";
    for (int session = 0; session < 5; ++session) {
        add(before, engine.measure(old_code, {}));
        add(after, engine.measure(new_code, {}));
    }
    plumbline::compare::policy rules;
    plumbline::compare::rule busy; // red from twice the time on: a machine that runs tests is a busy one
    busy.match = "*";
    busy.margin = 1.0;
    rules.rules.push_back(busy);
    const plumbline::compare::comparison found = plumbline::compare::compare(before, after, rules);
    for (const auto& each : found.findings) {
        std::printf("%s: %s\n", each.id.c_str(), plumbline::compare::to_string(each.outcome));
    }
    return static_cast<int>(found.exit);
}
