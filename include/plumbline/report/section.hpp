// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_REPORT_SECTION_HPP
#define PLUMBLINE_REPORT_SECTION_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

#include "plumbline/report/options.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace report {

/// One line of a table: what it is about, then its figures, and what is said below it.
template <std::size_t N>
struct table_row {
    static constexpr std::size_t columns = N;
    std::array<std::string, N> cells;
    std::vector<std::string> remarks;
};

namespace detail {

/// Writes a part of the report that has a table of its own.
class section {
public:
    section(std::ostream& out, const options& how) : out_(out), how_(how), colours_(how.colour) {}

    /// The first column on the left, the others on the right; where the terminal is too narrow for all of them each
    /// row is its first cell with the others in a sentence below.
    template <std::size_t N>
    void table(const std::array<const char*, N>& header, const std::vector<table_row<N>>& rows) {
        std::array<std::size_t, N> widths{};
        std::size_t wide = 0;
        for (std::size_t i = 0; i < N; ++i) {
            widths[i] = columns(header[i]);
            for (const table_row<N>& row : rows) widths[i] = std::max(widths[i], columns(row.cells[i]));
            wide += widths[i] + 2;
        }
        const bool fits = how_.width == 0 || wide - 2 <= how_.width;
        const auto put = [&](const auto& cells) {
            std::string line = pad_right(cells[0], widths[0]);
            for (std::size_t i = 1; i < N; ++i) line += "  " + pad_left(cells[i], widths[i]);
            return line;
        };
        bold(fits ? put(header) : header[0]);
        for (const table_row<N>& row : rows) {
            out_ << (fits ? put(row.cells) : row.cells[0]) << '\n';
            if (!fits) indent(sentence(header, row));
            for (const std::string& remark : row.remarks) indent(remark, &palette::yellow);
        }
    }

    using paint = std::string (palette::*)(const std::string&) const;

    /// A text below what it belongs to, wrapped.
    void indent(const std::string& text, paint colour = nullptr) {
        for (const std::string& line : wrapped(text, how_.width > 4 ? how_.width - 4 : 0)) {
            out_ << "    " << (colour != nullptr ? (colours_.*colour)(line) : line) << '\n';
        }
    }
    void bold(const std::string& line) { out_ << colours_.bold(line) << '\n'; }
    void plain(const std::string& line) { out_ << line << '\n'; }

private:
    template <std::size_t N>
    [[nodiscard]] static std::string sentence(const std::array<const char*, N>& header, const table_row<N>& row) {
        std::string text;
        for (std::size_t i = 1; i < N; ++i) {
            text += (i == 1 ? "" : "; ") + std::string(header[i]) + ' ' + row.cells[i];
        }
        return text;
    }

    std::ostream& out_;
    const options& how_;
    palette colours_;
};

} // namespace detail

} // namespace report

PLUMBLINE_NAMESPACE_END

#endif
