// SPDX-License-Identifier: Apache-2.0
// Planted fault: a narrowing that -Wconversion reports.
#pragma once
inline int planted(double x) { return x; }
