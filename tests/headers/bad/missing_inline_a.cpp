// SPDX-License-Identifier: Apache-2.0
#include "missing_inline.hpp"
int main() {}
