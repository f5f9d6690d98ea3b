// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_JSON_CURSOR_HPP
#define PLUMBLINE_JSON_CURSOR_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/core/nearest.hpp"
#include "plumbline/core/scalar.hpp"
#include "plumbline/json/document.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace json {

/// A place in a document that knows how it got there: every wrong type, range or name becomes a schema_error with the
/// JSON pointer. A cursor refers to the one it came from, which must outlive it (that is why `at` needs an lvalue);
/// the pointer is put together only when something is wrong.
class cursor {
public:
    /// The top of a document; `name` and `prefix`, the pointer of a part that was taken out of a larger document, must
    /// outlive it.
    cursor(const nlohmann::json& value, const std::string& name, const std::string& prefix)
        : value_(&value), name_(&name), prefix_(&prefix) {}

    [[noreturn]] void fail(const std::string& problem) const { throw schema_error(*name_, pointer(), problem); }

    [[nodiscard]] std::string pointer() const {
        if (!parent_) return *prefix_;
        return parent_->pointer() + '/' +
               (parent_->value_->is_object() ? detail::escape_pointer(key_) : std::to_string(index_));
    }

    [[nodiscard]] const std::string& text() const {
        if (!value_->is_string()) wrong_type("a string");
        return value_->get_ref<const std::string&>();
    }
    [[nodiscard]] bool boolean() const {
        if (!value_->is_boolean()) wrong_type("true or false");
        return value_->get<bool>();
    }
    /// Any number; finite, for the parser lets nothing else pass.
    [[nodiscard]] double number() const {
        if (!value_->is_number()) wrong_type("a number");
        return value_->get<double>();
    }
    /// A whole number from 0 to `most`.
    [[nodiscard]] std::uint64_t count(std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) const {
        if (!value_->is_number_unsigned()) wrong_type("a whole number, 0 or more");
        const auto found = value_->get<std::uint64_t>();
        if (found > most) fail("must be at most " + std::to_string(most) + ", is " + std::to_string(found));
        return found;
    }
    /// A string, number or boolean; whole numbers must fit 64 bits with sign.
    [[nodiscard]] scalar leaf() const {
        if (value_->is_boolean()) return value_->get<bool>();
        if (value_->is_string()) return value_->get_ref<const std::string&>();
        if (value_->is_number_float()) return value_->get<double>();
        if (!value_->is_number_integer()) wrong_type("a string, a number, true or false");
        if (value_->is_number_unsigned() &&
            value_->get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
            fail("must be a whole number below 2^63, or one with a decimal point");
        }
        return value_->get<std::int64_t>();
    }
    /// One of a few names; `Enum` values in the order of `names`, from 0.
    template <class Enum>
    [[nodiscard]] Enum one_of(std::initializer_list<const char*> names) const {
        int index = 0;
        std::string expected;
        for (const char* name : names) {
            if (text() == name) return static_cast<Enum>(index);
            expected += (index++ ? ", \"" : "\"") + std::string(name) + '"';
        }
        fail("must be one of " + expected + ", is \"" + text() + '"');
    }

    /// The member of an object, which must be there. `key` must outlive the cursor: a literal does.
    [[nodiscard]] cursor at(std::string_view key) const& {
        const nlohmann::json* found = member(key);
        if (!found) fail("lacks the member \"" + std::string(key) + '"');
        return {*found, *this, key, 0};
    }
    cursor at(std::string_view key) const&& = delete;

    /// The member of an object if it is there.
    [[nodiscard]] std::optional<cursor> find(std::string_view key) const& {
        const nlohmann::json* found = member(key);
        if (!found) return std::nullopt;
        return cursor{*found, *this, key, 0};
    }
    std::optional<cursor> find(std::string_view key) const&& = delete;

    /// Calls f(name, cursor) for each member of an object, in the order of the names.
    template <class F>
    void members(F&& f) const& {
        for (const auto& [name, value] : object()) f(name, cursor{value, *this, name, 0});
    }
    /// Calls f(index, cursor) for each element of an array.
    template <class F>
    void elements(F&& f) const& {
        if (!value_->is_array()) wrong_type("an array");
        std::size_t index = 0;
        for (const nlohmann::json& value : *value_) {
            f(index, cursor{value, *this, {}, index});
            ++index;
        }
    }

    /// An array of strings, or of numbers.
    [[nodiscard]] std::vector<std::string> texts() const {
        std::vector<std::string> all;
        elements([&](std::size_t, const cursor& each) { all.push_back(each.text()); });
        return all;
    }
    [[nodiscard]] std::vector<double> numbers() const {
        std::vector<double> all;
        if (value_->is_array()) all.reserve(value_->size());
        elements([&](std::size_t, const cursor& each) { all.push_back(each.number()); });
        return all;
    }
    /// An object of strings, numbers and booleans.
    [[nodiscard]] scalar_map leaves() const {
        scalar_map all;
        members([&](const std::string& name, const cursor& each) { all.emplace_hint(all.end(), name, each.leaf()); });
        return all;
    }

    /// Refuses members that are not among `known`, with the name that was probably meant.
    void allow(std::initializer_list<std::string_view> known) const { allow(std::vector<std::string_view>(known)); }
    void allow(const std::vector<std::string_view>& known) const {
        for (const auto& entry : object()) {
            if (std::find(known.begin(), known.end(), entry.first) != known.end()) continue;
            const std::string meant = nearest(entry.first, known);
            cursor{entry.second, *this, entry.first, 0}.fail(
                "is not a known member" + (meant.empty() ? "" : "; did you mean \"" + meant + "\"?"));
        }
    }

private:
    cursor(const nlohmann::json& value, const cursor& parent, std::string_view key, std::size_t index)
        : value_(&value), name_(parent.name_), parent_(&parent), key_(key), index_(index) {}

    [[nodiscard]] const nlohmann::json::object_t& object() const {
        if (!value_->is_object()) wrong_type("an object");
        return value_->get_ref<const nlohmann::json::object_t&>();
    }
    [[nodiscard]] const nlohmann::json* member(std::string_view key) const {
        const auto& members = object();
        const auto at = members.find(key);
        return at == members.end() ? nullptr : &at->second;
    }
    [[noreturn]] void wrong_type(const char* expected) const {
        fail(std::string("must be ") + expected + ", is " + found_type());
    }
    [[nodiscard]] std::string found_type() const {
        if (value_->is_null()) return "null";
        if (value_->is_number()) return "the number " + value_->dump();
        if (value_->is_boolean()) return value_->dump();
        return std::string(value_->is_array() ? "an array" : value_->is_object() ? "an object" : "a string");
    }

    const nlohmann::json* value_;
    const std::string* name_;
    const std::string* prefix_ = nullptr; // of a top only
    const cursor* parent_ = nullptr;      // of all others
    std::string_view key_;                // in the parent, when that is an object
    std::size_t index_ = 0;               // in the parent, when that is an array
};

} // namespace json

PLUMBLINE_NAMESPACE_END

#endif
