// SPDX-License-Identifier: Apache-2.0
// Planted fault: uses std::string without including <string>.
#pragma once
inline std::string planted() { return "x"; }
