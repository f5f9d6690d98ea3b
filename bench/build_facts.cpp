// SPDX-License-Identifier: Apache-2.0
// A file of its own, so that a new commit does not compile the whole program again.
#include "build_facts.hpp"

#include "plumbline/environment/binary.hpp"

plumbline::scalar_map bench::build_facts() {
    return PLUMBLINE_BUILD_FACTS;
}
