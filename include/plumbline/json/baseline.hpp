// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_JSON_BASELINE_HPP
#define PLUMBLINE_JSON_BASELINE_HPP

#include <string>
#include <string_view>

#include "plumbline/result/baseline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace json {

/// The baseline as a JSON document of schema version 1 (baselines/schema/baseline-1.json), numbers in full precision.
/// Throws plumbline::error when the baseline cannot be said in JSON: a non-finite number, text that is not UTF-8, two
/// results of one id and metric, a session index out of range.
[[nodiscard]] std::string dump(const result::baseline& from);

/// Strict inverse of dump; `name` (the file) goes into messages. schema_error with the JSON pointer on anything else
/// than a valid document of schema major version 1.
[[nodiscard]] result::baseline parse_baseline(std::string_view text, const std::string& name);

} // namespace json

PLUMBLINE_NAMESPACE_END

#endif
