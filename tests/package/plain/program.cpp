// SPDX-License-Identifier: Apache-2.0
// Two translation units with the umbrella, the comparator and the JSON files: the second is linked in or a shared
// library.
#include <cstdio>
#include <string>

#include <plumbline/compare/compare.hpp>
#include <plumbline/json/store.hpp>
#include <plumbline/plumbline.hpp>

std::string second_hash(const std::string& text);

int main() {
    plumbline::result::baseline empty;
    empty.created = plumbline::utc_now();
    const std::string text = plumbline::json::dump(empty);
    if (plumbline::json::dump(plumbline::json::parse_baseline(text, "memory")) != text) return 1;
    if (second_hash("abc") != plumbline::short_hash("abc")) return 2;
    std::puts("ok");
}
