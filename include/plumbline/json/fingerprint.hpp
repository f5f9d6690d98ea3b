// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_JSON_FINGERPRINT_HPP
#define PLUMBLINE_JSON_FINGERPRINT_HPP

#include <string>
#include <string_view>

#include "plumbline/result/fingerprint.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace json {

/// The fingerprint as the object that baselines carry: comparability and provenance with their hashes, and state.
[[nodiscard]] std::string dump(const result::fingerprint& from);

/// Strict inverse of dump. schema_error with the JSON pointer; a hash that does not belong to its fields is an error.
[[nodiscard]] result::fingerprint parse_fingerprint(std::string_view text, const std::string& name);

} // namespace json

PLUMBLINE_NAMESPACE_END

#endif
