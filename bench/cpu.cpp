// SPDX-License-Identifier: Apache-2.0
#include "plumbline/entry/cpu.hpp"
#include "backends.hpp"
#include "inputs.hpp"

plumbline::run::backend_entry<plumbline::cpu::backend> bench::cpu_backend() {
    return plumbline::entry::cpu(inputs);
}
