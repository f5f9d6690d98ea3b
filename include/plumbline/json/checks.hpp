// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_JSON_CHECKS_HPP
#define PLUMBLINE_JSON_CHECKS_HPP

#include <string>
#include <vector>

#include "plumbline/environment/check.hpp"
#include "plumbline/json/print.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace json {

/// The outcomes of environment checks as JSON: what `bench --check --format=json` prints.
[[nodiscard]] inline std::string dump(const std::vector<environment::check_outcome>& from) {
    detail::document_printer to;
    to.member("schema", {{"name", "plumbline/checks"}, {"version", 1}});
    to.member("tool", {{"name", "plumbline"}, {"version", PLUMBLINE_VERSION}});
    to.member("exit_code", static_cast<int>(environment::code_of(from)));
    to.list("checks", from, [](const environment::check_outcome& each) {
        const bool fault = each.if_failed == environment::consequence::fault;
        return writable{{"name", each.name},
                        {"link", each.link},
                        {"status", environment::to_string(each.status)},
                        {"if_failed", fault ? "fault" : "precondition"},
                        {"seen", each.seen},
                        {"expected", each.expected},
                        {"remedy", each.remedy},
                        {"seconds", each.seconds}};
    });
    return to.take();
}

} // namespace json

PLUMBLINE_NAMESPACE_END

#endif
