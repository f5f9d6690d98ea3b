// SPDX-License-Identifier: Apache-2.0
// A Google Benchmark program on a scripted device, for program_test.sh.
#include <benchmark/benchmark.h>

#include "kernels.hpp"
#include "plumbline/gbench/main.hpp"

namespace {

void own(benchmark::State& state) {
    for (auto _ : state) benchmark::ClobberMemory();
}
BENCHMARK(own)->Iterations(100);

void own_error(benchmark::State& state) {
    state.SkipWithError("the planted error of own_error");
    for (auto _ : state) benchmark::ClobberMemory();
}
BENCHMARK(own_error);

} // namespace

int main(int argc, char** argv) {
    fake::backend device;
    plumbline::gbench::session session(device);
    session.add<kernels::steady>({});
    session.add<kernels::steady>({"user/other", 500, ""});
    session.add<kernels::steady>({"user/bad", 1000, "fails"});
    session.add<kernels::steady>({"user/absent", 1000, "unsupported"});
    return plumbline::gbench::main(argc, argv, session);
}
