// SPDX-License-Identifier: Apache-2.0
// bench: puts the backends that were built in and the built-in suites into run::program.
#include <iostream>

#include "build_facts.hpp"
#include "plumbline/run/program.hpp"
#include "suites.hpp"
#ifdef PLUMBLINE_HAS_CPU
#include "cpu_entry.hpp"
#endif
#ifdef PLUMBLINE_HAS_CUDA
#include "cuda_entry.hpp"
#include "plumbline/cuda/machine/cold_start.hpp"
#endif

int main(int argc, char** argv) {
#ifdef PLUMBLINE_HAS_CUDA
    // A cold start is measured in a fresh process of this program, before anything else has happened in it.
    if (const auto code = plumbline::cuda::machine::serve_cold_start(argc, argv)) return *code;
#endif
    plumbline::run::program_settings settings(std::cout, std::cerr);
    settings.suites = bench::built_in_suites();
    settings.build = bench::build_facts();
    return plumbline::run::program(argc, argv, settings
#ifdef PLUMBLINE_HAS_CUDA
                                   ,
                                   bench::cuda_entry()
#endif
#ifdef PLUMBLINE_HAS_CPU
                                       ,
                                   bench::cpu_entry()
#endif
    );
}
