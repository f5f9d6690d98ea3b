// SPDX-License-Identifier: Apache-2.0
// bench: puts the backends that were built in and the built-in suites into run::program.
#include <iostream>

#include "build_facts.hpp"
#include "plumbline/run/program.hpp"
#include "suites.hpp"
#ifdef PLUMBLINE_HAS_CPU
#include "plumbline/entry/cpu.hpp"
#endif
#ifdef PLUMBLINE_HAS_CUDA
#include "plumbline/entry/cuda.hpp"
#endif
#ifdef PLUMBLINE_HAS_JPEG
#include "plumbline/loader/jpeg/data.hpp"
constexpr auto inputs = plumbline::loader::jpeg_inputs;
#else
#include "plumbline/loader/inputs.hpp"
constexpr auto inputs = plumbline::loader::inputs_for;
#endif

int main(int argc, char** argv) {
    plumbline::run::program_settings settings(std::cout, std::cerr);
    settings.suites = bench::built_in_suites();
    settings.build = bench::build_facts();
    return plumbline::run::program(argc, argv, settings
#ifdef PLUMBLINE_HAS_CUDA
                                   ,
                                   plumbline::entry::cuda(inputs)
#endif
#ifdef PLUMBLINE_HAS_CPU
                                       ,
                                   plumbline::entry::cpu(inputs)
#endif
    );
}
