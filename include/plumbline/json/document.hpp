// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_JSON_DOCUMENT_HPP
#define PLUMBLINE_JSON_DOCUMENT_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "plumbline/core/error.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace json {

/// What a document may cost. The defaults allow 10,000 benchmarks of 20 sessions with 30 samples and cycles, and keep
/// a hostile file within about 1 GiB: a value takes 16 bytes in an array and about 100 in an object.
struct limits {
    std::size_t depth = 32;
    std::size_t live_values = 4'000'000; ///< held at one time; streamed elements count only until they are handed over
    std::size_t total_values = 32'000'000; ///< in the whole document
};

/// Takes the elements of one array of the document's top level as soon as each is complete, so that the document is
/// never in memory as a whole. Streaming begins only after the member `after` was read, which lets the sink know what
/// kind of document it is; elements that come earlier stay in the document.
struct element_stream {
    std::string array;
    std::string after;
    std::function<void(const nlohmann::json& document, std::size_t index, const nlohmann::json& element)> sink;
};

namespace detail {

/// One token of a JSON pointer (RFC 6901).
[[nodiscard]] inline std::string escape_pointer(std::string_view token) {
    std::string text;
    for (char c : token) {
        if (c == '~')
            text += "~0";
        else if (c == '/')
            text += "~1";
        else
            text += c;
    }
    return text;
}

/// Builds a document from nlohmann's events and refuses what its own builder lets pass: a key given twice (the last
/// one would win), nesting without end, and more values than a limit. Errors name the JSON pointer they occurred at.
class document_builder {
public:
    document_builder(const std::string& name, const limits& bounds, const element_stream* stream)
        : name_(name), bounds_(bounds), stream_(stream) {}

    [[nodiscard]] nlohmann::json take() { return std::move(root_); }

    // The events; names and signatures are nlohmann's SAX interface.
    bool null() { return add(nullptr); }
    bool boolean(bool value) { return add(value); }
    bool number_integer(std::int64_t value) { return add(value); }
    bool number_unsigned(std::uint64_t value) { return add(value); }
    bool number_float(double value, const std::string&) { return add(value); }
    bool string(std::string& value) { return add(std::move(value)); }
    bool binary(nlohmann::json::binary_t&) { return false; } // JSON text has none
    bool start_object(std::size_t) { return open(nlohmann::json::object()); }
    bool start_array(std::size_t) { return open(nlohmann::json::array()); }
    bool end_object() { return close(); }
    bool end_array() { return close(); }
    bool key(std::string& name) {
        frame& top = frames_.back();
        top.key = std::move(name);
        if (top.container->contains(top.key)) fail("the key occurs twice in this object; keep one of them");
        return true;
    }
    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& problem) {
        // "[json.exception.parse_error.101] parse error at line 1, column 2: ...": the identifier is of no use here.
        const std::string text = problem.what();
        const std::size_t end = text.find("] ");
        fail("is not JSON: " + (end == std::string::npos ? text : text.substr(end + 2)));
    }

private:
    struct frame {
        nlohmann::json* container;
        std::string key;       // of the member being read, when the container is an object
        std::size_t index = 0; // of the element being read, when it is an array
    };

    [[noreturn]] void fail(const std::string& problem) const {
        std::string pointer;
        for (const frame& each : frames_) {
            if (each.container->is_array())
                pointer += '/' + std::to_string(each.index);
            else if (!each.key.empty() || !each.container->empty())
                pointer += '/' + escape_pointer(each.key);
        }
        throw schema_error(name_, pointer, problem);
    }

    template <class T>
    nlohmann::json* place(T&& value) {
        if (++total_ > bounds_.total_values) {
            fail("has more than " + std::to_string(bounds_.total_values) + " values; split the file");
        }
        if (++live_ > bounds_.live_values) {
            std::string remedy;
            if (stream_) remedy = " at once; write \"" + stream_->after + "\" before \"" + stream_->array + "\"";
            fail("has more than " + std::to_string(bounds_.live_values) + " values" + remedy);
        }
        if (frames_.empty()) {
            root_ = std::forward<T>(value);
            return &root_;
        }
        frame& top = frames_.back();
        if (top.container->is_array()) {
            // The reference stays good: nothing is appended to an array before its last element is complete.
            top.container->get_ref<nlohmann::json::array_t&>().emplace_back(std::forward<T>(value));
            return &top.container->back();
        }
        return &((*top.container)[top.key] = std::forward<T>(value));
    }

    template <class T>
    bool add(T&& value) {
        place(std::forward<T>(value));
        complete();
        return true;
    }

    bool open(nlohmann::json&& container) {
        if (frames_.size() >= bounds_.depth) {
            fail("is nested more than " + std::to_string(bounds_.depth) + " levels deep");
        }
        nlohmann::json* placed = place(std::move(container));
        if (frames_.size() == 1) live_outside_ = live_;
        frames_.push_back({placed, {}});
        return true;
    }

    bool close() {
        frames_.pop_back();
        complete();
        return true;
    }

    /// A value of the innermost open container is complete.
    void complete() {
        if (frames_.empty()) return;
        frame& top = frames_.back();
        if (!top.container->is_array()) return;
        if (stream_ && frames_.size() == 2 && frames_[0].container->is_object() && frames_[0].key == stream_->array &&
            root_.contains(stream_->after)) {
            stream_->sink(root_, top.index, top.container->back());
            top.container->get_ref<nlohmann::json::array_t&>().pop_back();
            live_ = live_outside_; // of one array either all elements are streamed or none
        }
        ++top.index;
    }

    const std::string& name_;
    const limits bounds_;
    const element_stream* stream_;
    nlohmann::json root_;
    std::vector<frame> frames_;
    std::size_t total_ = 0;
    std::size_t live_ = 0;
    std::size_t live_outside_ = 0; // before the first element of the array or object below the top level
};

} // namespace detail

/// Whether `//` and `/* */` comments are allowed: in files that people write, not in those that programs write.
enum class comments { refused, allowed };

/// Parses JSON strictly: one value, UTF-8, no NaN or infinity, no number out of range, no key twice, within `bounds`.
/// `name` (the file) goes into messages; schema_error with the JSON pointer, and line and column, on anything else.
[[nodiscard]] inline nlohmann::json parse_document(std::string_view text, const std::string& name,
                                                   comments remarks = comments::refused, const limits& bounds = {},
                                                   const element_stream* stream = nullptr) {
    detail::document_builder builder(name, bounds, stream);
    nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &builder, nlohmann::json::input_format_t::json,
                              true, remarks == comments::allowed);
    return builder.take();
}

} // namespace json

PLUMBLINE_NAMESPACE_END

#endif
