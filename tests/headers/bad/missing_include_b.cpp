// SPDX-License-Identifier: Apache-2.0
#include "missing_include.hpp"
