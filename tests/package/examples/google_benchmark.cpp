// SPDX-License-Identifier: Apache-2.0
// plumbline added to a Google Benchmark program that exists: the three lines marked below. Its benchmarks stay as they
// are; with --plumbline_out=FILE they go into a baseline with the environment they were taken in, for bench-compare.
#include <algorithm>
#include <cstddef>
#include <vector>

#include <benchmark/benchmark.h>
#include <plumbline/cpu/backend.hpp> // 1
#include <plumbline/gbench/main.hpp> // 2

static void sort_descending(benchmark::State& state) {
    const auto size = static_cast<std::size_t>(state.range(0));
    for (auto _ : state) {
        std::vector<std::size_t> numbers(size);
        for (std::size_t i = 0; i < size; ++i) numbers[i] = size - i;
        std::sort(numbers.begin(), numbers.end());
        benchmark::DoNotOptimize(numbers.data());
    }
}
BENCHMARK(sort_descending)->Arg(1000)->Repetitions(3);

int main(int argc, char** argv) { // instead of BENCHMARK_MAIN()
    plumbline::cpu::backend cpu;
    plumbline::gbench::session session(cpu);
    return plumbline::gbench::main(argc, argv, session); // 3
}
