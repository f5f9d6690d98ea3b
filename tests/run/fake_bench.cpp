// SPDX-License-Identifier: Apache-2.0
// A bench program over the fake backend: the tests of run/ start it as a process.
#include <iostream>

#include "fake_backend.hpp"
#include "plumbline/run/program.hpp"

namespace run = plumbline::run;

namespace {

/// The machine of FAKE_ROOT, a folder that stands for "/", so that tests decide what hardware there is.
plumbline::environment::host fake_machine() {
    plumbline::environment::host machine = plumbline::environment::this_machine("cpu");
    if (const char* root = std::getenv("FAKE_ROOT")) machine.root = root;
    return machine;
}

} // namespace

int main(int argc, char** argv) {
    run::program_settings settings{std::cout, std::cerr};
    settings.suites = {
        {"quick", R"({"name": "quick", "description": "", "cpu": ["fake/work/1", "fake/work/2"]})"},
        {"standard", R"({"name": "standard", "description": "", "cuda": ["fake/work/7"],
                         "cpu": ["fake/work/1", "fake/work/2", "fake/work/3", "fake/unsupported/1"]})"},
        {"check", R"({"name": "check", "description": "", "cpu": ["fake/work/1"]})"},
    };
    settings.machine = fake_machine;
    if (std::getenv("FAKE_CUDA") != nullptr) {
        return run::program(argc, argv, settings, fake::entry("cuda"), fake::entry("cpu"));
    }
    return run::program(argc, argv, settings, fake::entry("cpu"));
}
