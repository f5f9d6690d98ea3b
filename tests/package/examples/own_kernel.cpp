// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <plumbline/cpu/backend.hpp>
#include <plumbline/gbench/main.hpp>

namespace {
using plumbline::cpu::backend;
struct gelu {
    struct params {
        std::int64_t elements;
    };
    gelu(backend&, const params& p, std::size_t) : x(std::size_t(p.elements), 0.5f), y(x.size()) {}
    void run(backend&, std::size_t) {
        for (std::size_t i = 0; i < x.size(); ++i) y[i] = 0.5f * x[i] * (1 + std::erf(x[i] * 0.70710678f));
    }
    std::vector<float> x, y;
};
plumbline::workload::description describe(const gelu::params& p) {
    return {"user/gelu/n" + std::to_string(p.elements), "user", {{"elements", p.elements}}};
}
} // namespace

int main(int argc, char** argv) {
    backend cpu;
    plumbline::gbench::session session(cpu);
    for (std::int64_t elements : {8192, 32768}) session.add<gelu>({elements});
    return plumbline::gbench::main(argc, argv, session);
}
