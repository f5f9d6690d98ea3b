// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_JSON_SUITE_HPP
#define PLUMBLINE_JSON_SUITE_HPP

#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include "plumbline/json/cursor.hpp"
#include "plumbline/json/file.hpp"
#include "plumbline/workload/suite.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace json {

/// A suite from {"name": ..., "description": ..., "cuda": [ids], "cpu": [ids]}; comments are allowed. schema_error
/// with the JSON pointer on anything else, an id listed twice for one backend included.
[[nodiscard]] inline workload::suite parse_suite(std::string_view text, const std::string& name) {
    const nlohmann::json document = parse_document(text, name, comments::allowed);
    const std::string at;
    const cursor top(document, name, at);
    top.allow({"name", "description", "cuda", "cpu"});
    workload::suite into;
    const cursor suite_name = top.at("name");
    into.name = suite_name.text();
    if (const auto description = top.find("description")) into.description = description->text();
    for (const char* backend : {"cuda", "cpu"}) {
        const auto list = top.find(backend);
        if (!list) continue;
        std::set<std::string> seen;
        list->elements([&](std::size_t, const cursor& each) {
            if (each.text().empty()) each.fail("must be a benchmark id, is empty");
            if (!seen.insert(each.text()).second) each.fail("\"" + each.text() + "\" is listed twice; keep one");
            into.ids[backend].push_back(each.text());
        });
    }
    if (into.ids.empty()) top.fail("lists no benchmarks; give ids under \"cuda\", \"cpu\" or both");
    return into;
}

/// parse_suite of a file's contents; file_error when it cannot be read.
[[nodiscard]] inline workload::suite load_suite(const std::filesystem::path& path) {
    return parse_suite(read_file(path), path.string());
}

} // namespace json

PLUMBLINE_NAMESPACE_END

#endif
