// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_JSON_KNOWLEDGE_HPP
#define PLUMBLINE_JSON_KNOWLEDGE_HPP

#include <filesystem>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "plumbline/compare/knowledge.hpp"
#include "plumbline/core/nearest.hpp"
#include "plumbline/json/cursor.hpp"
#include "plumbline/json/file.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace json {

namespace detail {

/// A list of globs or texts; what is empty in it is a mistake.
inline void read_texts(const cursor& from, const char* name, std::vector<std::string>& into) {
    const auto list = from.find(name);
    if (!list) return;
    list->elements([&](std::size_t, const cursor& each) {
        if (each.text().empty()) each.fail("must not be empty");
        into.push_back(each.text());
    });
}

inline void read_text(const cursor& from, const char* name, std::string& into) {
    if (const auto text = from.find(name)) into = text->text();
}

/// A number from `least` on.
inline void read_number(const cursor& from, const char* name, double& into, double least) {
    const auto found = from.find(name);
    if (!found) return;
    into = found->number();
    if (into < least) found->fail("must be at least " + to_string(least) + ", is " + to_string(into));
}

/// A mechanism by its name; schema_error with the nearest known one for any other.
[[nodiscard]] inline compare::mechanism read_mechanism(const cursor& from) {
    std::vector<std::string_view> names;
    for (const auto& [each, name] : compare::mechanism_names) {
        if (from.text() == name) return each;
        names.emplace_back(name);
    }
    const std::string meant = nearest(from.text(), names);
    from.fail("is not a mechanism" + (meant.empty() ? ": see compare/cause.hpp" : "; did you mean \"" + meant + "\"?"));
}

[[nodiscard]] inline compare::knowledge read_knowledge(const cursor& from) {
    from.allow({"component", "attributes", "way",     "at_least",       "at_least_share", "reaches",
                "to",        "backend",    "touches", "touches_on_cpu", "spares",         "always",
                "shows",     "clock",      "canary",  "most",           "weight",         "in_proportion",
                "symptom",   "effect",     "remedy",  "experiment",     "sources"});
    compare::knowledge into;
    for (const auto& [name, member] : {std::pair("component", &into.component), std::pair("backend", &into.backend),
                                       std::pair("effect", &into.effect), std::pair("remedy", &into.remedy),
                                       std::pair("experiment", &into.experiment)}) {
        read_text(from, name, *member);
    }
    for (const auto& [name, member] :
         {std::pair("attributes", &into.attributes), std::pair("to", &into.to), std::pair("touches", &into.touches),
          std::pair("touches_on_cpu", &into.touches_on_cpu), std::pair("spares", &into.spares),
          std::pair("always", &into.always), std::pair("sources", &into.sources)}) {
        read_texts(from, name, *member);
    }
    for (const auto& [name, member, least] :
         {std::tuple("at_least", &into.at_least, 0.0), std::tuple("at_least_share", &into.at_least_share, 0.0),
          std::tuple("weight", &into.weight, 0.0), std::tuple("most", &into.most, 1.0)}) {
        read_number(from, name, *member, least);
    }
    if (const auto reaches = from.find("reaches")) into.reaches = reaches->number();
    for (const auto& [name, member] : {std::pair("clock", &into.clock), std::pair("in_proportion", &into.in_proportion),
                                       std::pair("symptom", &into.symptom)}) {
        if (const auto flag = from.find(name)) *member = flag->boolean();
    }
    if (const auto way = from.find("way")) into.way = way->one_of<compare::turn>({"any", "up", "down"});
    if (const auto canary = from.find("canary")) {
        into.canary = canary->one_of<compare::canary_view>({"spared", "either", "slowed"});
    }
    if (const auto shows = from.find("shows")) {
        shows->elements([&](std::size_t, const cursor& each) { into.shows.push_back(read_mechanism(each)); });
    }
    const cursor attributes = from.at("attributes");
    if (into.attributes.empty()) attributes.fail("must name at least one attribute, such as \"env.MY_SETTING\"");
    (void)from.at("touches"); // may be empty: then the attribute is known to do nothing
    const cursor effect = from.at("effect");
    if (into.effect.empty()) effect.fail("must say what the change does, in one sentence");
    return into;
}

} // namespace detail

/// Knowledge from {"knowledge": [entries]}, with the members of compare::knowledge by their names; comments are
/// allowed. An entry needs "attributes", "touches" (an empty list: it does nothing) and "effect". schema_error with the
/// JSON pointer for an unknown name, a wrong type or a number out of its range.
[[nodiscard]] inline std::vector<compare::knowledge> parse_knowledge(std::string_view text, const std::string& name) {
    const nlohmann::json document = parse_document(text, name, comments::allowed);
    const std::string at;
    const cursor top(document, name, at);
    top.allow({"knowledge"});
    std::vector<compare::knowledge> into;
    const cursor list = top.at("knowledge");
    list.elements([&](std::size_t, const cursor& each) { into.push_back(detail::read_knowledge(each)); });
    return into;
}

/// What is built in, with the entries of a file before it; without a file (an empty path) what is built in alone.
/// file_error when the file cannot be read.
[[nodiscard]] inline std::vector<compare::knowledge> knowledge_with(const std::filesystem::path& file) {
    std::vector<compare::knowledge> all;
    if (!file.empty()) all = parse_knowledge(read_file(file), file.string());
    for (compare::knowledge& each : compare::built_in_knowledge()) all.push_back(std::move(each));
    return all;
}

} // namespace json

PLUMBLINE_NAMESPACE_END

#endif
