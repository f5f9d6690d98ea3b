// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_JSON_FINGERPRINT_HPP
#define PLUMBLINE_JSON_FINGERPRINT_HPP

#include <string>
#include <string_view>
#include <utility>

#include "plumbline/json/cursor.hpp"
#include "plumbline/json/print.hpp"
#include "plumbline/result/fingerprint.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace json {

namespace detail {

/// A reading: {"value": V}, or {"absent" | "denied" | "unsupported": REASON}.
[[nodiscard]] inline writable reading_to_writable(const result::reading& from) {
    writable object = writable::object();
    switch (from.status) {
    case result::reading_status::value:
        std::visit([&object](const auto& leaf) { object["value"] = leaf; }, from.value);
        break;
    case result::reading_status::absent:
        object["absent"] = from.reason;
        break;
    case result::reading_status::denied:
        object["denied"] = from.reason;
        break;
    case result::reading_status::unsupported:
        object["unsupported"] = from.reason;
        break;
    }
    return object;
}

/// An attribute: its reading, with "link" and "source".
[[nodiscard]] inline writable attribute_to_writable(const result::attribute& from) {
    writable object = reading_to_writable(from.read);
    object["link"] = from.link;
    object["source"] = from.source;
    return object;
}

[[nodiscard]] inline writable fields_to_writable(const result::fingerprint& from, result::attribute_class kind) {
    writable fields = writable::object();
    for (const auto& [name, each] : from.attributes) {
        if (each.kind == kind) fields[name] = attribute_to_writable(each);
    }
    return fields;
}

[[nodiscard]] inline result::reading read_reading(const cursor& from) {
    int found = 0;
    result::reading read;
    if (const auto value = from.find("value")) {
        ++found;
        read = result::reading::of(value->leaf());
    }
    if (const auto reason = from.find("absent")) {
        ++found;
        read = result::reading::absent(reason->text());
    }
    if (const auto reason = from.find("denied")) {
        ++found;
        read = result::reading::denied(reason->text());
    }
    if (const auto reason = from.find("unsupported")) {
        ++found;
        read = result::reading::unsupported(reason->text());
    }
    if (found != 1) {
        from.fail("must have exactly one of \"value\", \"absent\", \"denied\" and \"unsupported\", has " +
                  std::to_string(found));
    }
    return read;
}

inline void read_fields(const cursor& section, result::attribute_class kind, bool strict, result::fingerprint& into) {
    const cursor fields = section.at("fields");
    fields.members([&](const std::string& name, const cursor& field) {
        if (strict) field.allow({"value", "absent", "denied", "unsupported", "link", "source"});
        result::attribute entry;
        entry.kind = kind;
        entry.read = read_reading(field);
        const cursor link = field.at("link");
        entry.link = static_cast<int>(link.count(6));
        if (entry.link < 1) link.fail("must be a link of the chain, 1 to 6, is 0");
        const cursor source = field.at("source");
        entry.source = source.text();
        if (!into.attributes.emplace(name, std::move(entry)).second) {
            field.fail("the attribute is in two classes; it belongs to one of comparability, provenance and state");
        }
    });
}

/// A hash guards the fields it was made of: an edited fingerprint would make numbers comparable that are not.
inline void check_hash(const cursor& section, const std::string& expected) {
    const cursor hash = section.at("hash");
    if (hash.text() == expected) return;
    hash.fail("the hash does not belong to these fields (it would be " + expected +
              "): the file was edited or damaged; restore it, or measure again");
}

} // namespace detail

/// The fingerprint as the object that baselines carry: comparability and provenance with their hashes, and state.
[[nodiscard]] inline writable to_writable(const result::fingerprint& from) {
    using result::attribute_class;
    writable object = writable::object();
    object["comparability"]["hash"] = from.comparability_hash();
    object["comparability"]["fields"] = detail::fields_to_writable(from, attribute_class::identity);
    object["provenance"]["hash"] = from.provenance_hash();
    object["provenance"]["fields"] = detail::fields_to_writable(from, attribute_class::config);
    object["state"]["fields"] = detail::fields_to_writable(from, attribute_class::state);
    return object;
}

/// Reads the object that to_writable makes; with `strict`, unknown members are errors.
[[nodiscard]] inline result::fingerprint read_fingerprint(const cursor& from, bool strict = true) {
    using result::attribute_class;
    if (strict) from.allow({"comparability", "provenance", "state"});
    const cursor comparability = from.at("comparability");
    const cursor provenance = from.at("provenance");
    if (strict) comparability.allow({"hash", "fields"});
    if (strict) provenance.allow({"hash", "fields"});
    result::fingerprint into;
    detail::read_fields(comparability, attribute_class::identity, strict, into);
    detail::read_fields(provenance, attribute_class::config, strict, into);
    if (const auto state = from.find("state")) {
        if (strict) state->allow({"fields"});
        detail::read_fields(*state, attribute_class::state, strict, into);
    }
    detail::check_hash(comparability, into.comparability_hash());
    detail::check_hash(provenance, into.provenance_hash());
    return into;
}

/// The fingerprint as JSON text: what `bench --fingerprint` prints.
[[nodiscard]] inline std::string dump(const result::fingerprint& from) {
    std::string text;
    print(text, to_writable(from));
    return text + '\n';
}

/// Strict inverse of dump. schema_error with the JSON pointer; a hash that does not belong to its fields is an error.
[[nodiscard]] inline result::fingerprint parse_fingerprint(std::string_view text, const std::string& name) {
    const nlohmann::json document = parse_document(text, name);
    const std::string top;
    return read_fingerprint(cursor(document, name, top));
}

} // namespace json

PLUMBLINE_NAMESPACE_END

#endif
