// SPDX-License-Identifier: Apache-2.0
#include "warning.hpp"
int main() {}
