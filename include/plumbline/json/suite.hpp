// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_JSON_SUITE_HPP
#define PLUMBLINE_JSON_SUITE_HPP

#include <filesystem>
#include <string>
#include <string_view>

#include "plumbline/workload/suite.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace json {

/// A suite from {"name": ..., "description": ..., "cuda": [ids], "cpu": [ids]}; comments are allowed. schema_error
/// with the JSON pointer on anything else, an id listed twice for one backend included.
[[nodiscard]] workload::suite parse_suite(std::string_view text, const std::string& name);

/// parse_suite of a file's contents; file_error when it cannot be read.
[[nodiscard]] workload::suite load_suite(const std::filesystem::path& path);

} // namespace json

PLUMBLINE_NAMESPACE_END

#endif
