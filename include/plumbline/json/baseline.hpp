// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_JSON_BASELINE_HPP
#define PLUMBLINE_JSON_BASELINE_HPP

// json::dump and json::parse_baseline: the baseline file of schema version 1.

#include "plumbline/json/baseline_reader.hpp"
#include "plumbline/json/baseline_writer.hpp"

#endif
