// SPDX-License-Identifier: Apache-2.0
// Planted fault: a function of a header without `inline`.
#pragma once
int planted() { return 1; }
