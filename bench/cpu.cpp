// SPDX-License-Identifier: Apache-2.0
#include "backends.hpp"
#include "inputs.hpp"
#include "plumbline/entry/cpu.hpp"

plumbline::run::backend_entry<plumbline::cpu::backend> bench::cpu_backend() {
    return plumbline::entry::cpu(inputs);
}
