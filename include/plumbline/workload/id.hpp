// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_WORKLOAD_ID_HPP
#define PLUMBLINE_WORKLOAD_ID_HPP

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/workload/dtype.hpp"
#include "plumbline/workload/modes.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace workload {

/// Reads a benchmark id part by part. Every refusal is a usage_error that names the id, the part, what was expected
/// there, and a right example.
class id_reader {
public:
    /// Splits `id` at its slashes and takes the family, which must be the first part. `example` is a right id of the
    /// family, for messages. Parts may hold letters, digits, '.', '_' and '-'.
    id_reader(std::string id, std::string_view family, std::string example)
        : id_(std::move(id)), example_(std::move(example)) {
        std::size_t begin = 0;
        while (begin <= id_.size()) {
            const std::size_t end = std::min(id_.find('/', begin), id_.size());
            parts_.push_back(id_.substr(begin, end - begin));
            begin = end + 1;
        }
        for (const std::string& part : parts_) {
            if (part.empty()) refuse("it has an empty part");
            for (char c : part) {
                const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                                   c == '.' || c == '_' || c == '-';
                if (!plain) refuse("'" + part + "' holds a character that no id has");
            }
        }
        if (parts_.front() != family) refuse("its family is not '" + std::string(family) + "'");
    }

    [[nodiscard]] const std::string& id() const noexcept { return id_; }
    [[nodiscard]] bool done() const noexcept { return at_ == parts_.size(); }

    /// The next part without taking it; "" at the end.
    [[nodiscard]] std::string_view peek() const noexcept {
        return done() ? std::string_view{} : std::string_view(parts_[at_]);
    }

    /// Takes the next part; `what` says what it should be.
    [[nodiscard]] const std::string& next(std::string_view what) {
        if (done()) refuse("it ends where " + std::string(what) + " was expected");
        return parts_[at_++];
    }

    /// Takes the next part if it is `word`.
    [[nodiscard]] bool take_if(std::string_view word) {
        const bool found = peek() == word;
        if (found) ++at_;
        return found;
    }

    /// Takes the next part if it is `word` followed by a number, "ws32": 0 <= number < 2^31, no leading zeros.
    [[nodiscard]] std::optional<std::int64_t> take_number(std::string_view word) {
        const std::string_view part = peek();
        if (part.size() <= word.size() || part.substr(0, word.size()) != word) return std::nullopt;
        const char* const begin = part.data() + word.size();
        const char* const end = part.data() + part.size();
        std::int64_t value = 0;
        const auto [stop, failure] = std::from_chars(begin, end, value);
        if (*begin == '-' || (*begin == '0' && end - begin > 1) || failure != std::errc{} || stop != end ||
            value >= (std::int64_t{1} << 31)) {
            return std::nullopt; // whatever it is, it is refused as that
        }
        ++at_;
        return value;
    }

    /// Takes the next part as one of the words of a table of (word, value) pairs.
    template <class Value, std::size_t N>
    [[nodiscard]] Value choice(std::string_view what, const std::pair<std::string_view, Value> (&table)[N]) {
        const std::string& part = next(what);
        std::string words;
        for (const auto& [word, value] : table) {
            if (word == part) return value;
            words += (words.empty() ? "" : ", ") + std::string(word);
        }
        refuse("'" + part + "' is not " + std::string(what) + " (one of " + words + ")");
    }

    /// Takes the next part as a dtype.
    [[nodiscard]] dtype type() {
        const std::string& part = next("a dtype");
        if (const auto found = dtype_of(part)) return *found;
        std::string words;
        for (dtype each : all_dtypes) words += (words.empty() ? "" : ", ") + std::string(name(each));
        refuse("'" + part + "' is not a dtype (one of " + words + ")");
    }

    /// Takes the next part as sizes, "m8192n16k4096": lower-case names, each followed by a number, 0 <= number
    /// < 2^40. `order` lists the names that must come, one letter each; `optional` those that may, with their
    /// defaults. Names outside both, twice the same, and a number with leading zeros are refused, so that two
    /// different ids never mean the same work.
    [[nodiscard]] std::map<char, std::int64_t> sizes(std::string_view order,
                                                     const std::map<char, std::int64_t>& optional = {}) {
        const std::string& part = next("a size such as " + std::string(order));
        std::map<char, std::int64_t> found;
        const char* at = part.data();
        const char* const end = at + part.size();
        while (at != end) {
            const char key = *at++;
            std::int64_t value = 0;
            const auto [stop, failure] = std::from_chars(at, end, value);
            const bool known = order.find(key) != std::string_view::npos || optional.count(key) == 1;
            const bool padded = stop - at > 1 && *at == '0';
            if (!known || failure != std::errc{} || *at == '-' || padded || value >= (std::int64_t{1} << 40) ||
                !found.emplace(key, value).second) {
                refuse("'" + part + "' is not a size made of " + std::string(order));
            }
            at = stop;
        }
        for (char key : order) {
            if (found.count(key) == 0) refuse("'" + part + "' lacks " + std::string(1, key));
        }
        found.insert(optional.begin(), optional.end());
        return found;
    }

    /// Takes all that is left as modes.
    [[nodiscard]] modes rest_as_modes() {
        modes mode;
        while (!done()) {
            const std::string& part = next("a mode");
            if (!set_mode(mode, part)) {
                refuse("'" + part + "' is not a mode here (best or pinned, hot, sustained, stream; each once)");
            }
        }
        return mode;
    }

    /// Checks that nothing is left and that `canonical`, the id made from what was read, is the id that was given:
    /// one work has one id.
    void finish(const std::string& canonical) const {
        if (!done()) refuse("'" + parts_[at_] + "' is one part too many");
        if (canonical != id_) refuse("it is written " + canonical);
    }

    [[noreturn]] void refuse(const std::string& why) const {
        throw usage_error("benchmark id '" + id_ + "': " + why + "; a right one is " + example_ +
                          " (bench --list shows all of a suite)");
    }

private:
    std::string id_;
    std::string example_;
    std::vector<std::string> parts_;
    std::size_t at_ = 1; ///< the family is taken
};

/// The family an id belongs to: its first part.
[[nodiscard]] inline std::string family_of(std::string_view id) {
    return std::string(id.substr(0, id.find('/')));
}

} // namespace workload

PLUMBLINE_NAMESPACE_END

#endif
