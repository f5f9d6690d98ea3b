// SPDX-License-Identifier: Apache-2.0
// A bench program of one's own: everything `bench` does (baselines, --compare, --check, sessions as processes) for a
// family of one's own beside the shipped ones.
#include <cmath>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <plumbline/entry/cpu.hpp>
#include <plumbline/run/program.hpp>

namespace {

using plumbline::cpu::backend;

struct softmax {
    struct params {
        std::int64_t columns;
    };
    softmax(backend&, const params& p, std::size_t) : x(std::size_t(p.columns), 0.5f), y(x.size()) {}
    void run(backend&, std::size_t) {
        float sum = 0;
        for (std::size_t i = 0; i < x.size(); ++i) sum += y[i] = std::exp(x[i]);
        for (float& each : y) each /= sum;
    }
    std::vector<float> x, y;
};
plumbline::workload::description describe(const softmax::params& p) {
    return {"softmax/fp32/c" + std::to_string(p.columns), "softmax", {{"columns", p.columns}}};
}

/// The family: makes a benchmark from its id, or refuses the id.
plumbline::measure::benchmark<backend> make_softmax(const std::string& id) {
    for (const std::int64_t columns : {1024, 32768}) {
        if (describe({columns}).id == id) return plumbline::measure::make_benchmark<softmax, backend>({columns});
    }
    throw plumbline::usage_error("benchmark id '" + id + "': softmax/fp32/c1024 and c32768 exist");
}

} // namespace

int main(int argc, char** argv) {
    auto cpu = plumbline::entry::cpu();
    cpu.families = [shipped = cpu.families](const std::filesystem::path& data) {
        auto families = shipped(data);
        families.push_back({"softmax", make_softmax});
        return families;
    };
    plumbline::run::program_settings settings(std::cout, std::cerr);
    settings.name = "own_bench";
    settings.suites["standard"] = R"({"name": "standard", "description": "ours",
        "cpu": ["softmax/fp32/c1024", "softmax/fp32/c32768", "gemm/fp32/tn/m64n64k64/hot"]})";
    return plumbline::run::program(argc, argv, settings, cpu);
}
