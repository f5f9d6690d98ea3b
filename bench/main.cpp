// SPDX-License-Identifier: Apache-2.0
// bench: puts the backends that were built in and the built-in suites into run::program.
#include <iostream>

#include "backends.hpp"
#include "build_facts.hpp"
#include "plumbline/run/program.hpp"
#include "suites.hpp"

int main(int argc, char** argv) {
    plumbline::run::program_settings settings(std::cout, std::cerr);
    settings.suites = bench::built_in_suites();
    settings.build = bench::build_facts();
    return plumbline::run::program(argc, argv, settings
#ifdef PLUMBLINE_HAS_CUDA
                                   ,
                                   bench::cuda_backend()
#endif
#ifdef PLUMBLINE_HAS_CPU
                                       ,
                                   bench::cpu_backend()
#endif
    );
}
