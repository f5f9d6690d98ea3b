// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <plumbline/compare/compare.hpp>
#include <plumbline/json/store.hpp>
#include <plumbline/plumbline.hpp>

#ifndef SECOND_API
#define SECOND_API
#endif

SECOND_API std::string second_hash(const std::string& text);
std::string second_hash(const std::string& text) { return plumbline::short_hash(text); }
