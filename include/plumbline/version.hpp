// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_VERSION_HPP
#define PLUMBLINE_VERSION_HPP

// The version of the headers, the language guard, and the name of the inline namespace.

#if !defined(__cplusplus) || __cplusplus < 202002L
#error "plumbline needs C++20: compile with -std=c++20 or newer"
#endif

#define PLUMBLINE_VERSION_MAJOR 0
#define PLUMBLINE_VERSION_MINOR 1
#define PLUMBLINE_VERSION_PATCH 0
#define PLUMBLINE_VERSION "0.1.0"

// Every header opens this namespace. A change that breaks callers gets a new one (v1, ...), so that two
// versions can live in one program without breaking the one-definition rule.
#define PLUMBLINE_NAMESPACE_BEGIN namespace plumbline { inline namespace v0 {
#define PLUMBLINE_NAMESPACE_END } }

#endif
