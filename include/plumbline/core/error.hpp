// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CORE_ERROR_HPP
#define PLUMBLINE_CORE_ERROR_HPP

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include "plumbline/core/exit_code.hpp"
#include "plumbline/core/where.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// Base of everything plumbline throws: a message that says what failed, on which object, what was expected
/// and what to do next; the call site; and the exit code a program that does not handle it must end with.
class error : public std::runtime_error {
public:
    explicit error(const std::string& message, exit_code code = exit_code::incomplete, where at = where::here())
        : std::runtime_error(message), code_(code), at_(at) {}

    [[nodiscard]] exit_code code() const noexcept { return code_; }
    [[nodiscard]] const where& at() const noexcept { return at_; }

private:
    exit_code code_;
    where at_;
};

/// A bad flag, argument, regular expression, suite name or benchmark id (exit code 2).
class usage_error : public error {
public:
    explicit usage_error(const std::string& message, where at = where::here()) : error(message, exit_code::usage, at) {}
};

/// A file that cannot be read or written (exit code 2).
class file_error : public error {
public:
    file_error(std::string path, const std::string& message, where at = where::here())
        : error(path + ": " + message, exit_code::usage, at), path_(std::move(path)) {}

    [[nodiscard]] const std::string& path() const noexcept { return path_; }

private:
    std::string path_;
};

/// A document that does not follow its schema (exit code 2); `pointer` is the JSON pointer of the offending value.
class schema_error : public error {
public:
    schema_error(std::string document, std::string pointer, const std::string& expected, where at = where::here())
        : error(document + ": at " + (pointer.empty() ? "the top level" : pointer) + ": " + expected,
                exit_code::usage, at),
          document_(std::move(document)), pointer_(std::move(pointer)) {}

    [[nodiscard]] const std::string& document() const noexcept { return document_; }
    [[nodiscard]] const std::string& pointer() const noexcept { return pointer_; }

private:
    std::string document_;
    std::string pointer_;
};

/// A precondition of the machine that is not met before measuring (exit code 6); `field` names the attribute.
class environment_error : public error {
public:
    environment_error(std::string field, const std::string& message, where at = where::here())
        : error(message, exit_code::precondition, at), field_(std::move(field)) {}

    [[nodiscard]] const std::string& field() const noexcept { return field_; }

private:
    std::string field_;
};

/// A wrong numeric result (exit code 4): largest absolute and relative difference and where the first one is.
class verification_error : public error {
public:
    verification_error(const std::string& message, double max_abs, double max_rel, std::size_t index,
                       where at = where::here())
        : error(message, exit_code::incomplete, at), max_abs_(max_abs), max_rel_(max_rel), index_(index) {}

    [[nodiscard]] double max_abs() const noexcept { return max_abs_; }
    [[nodiscard]] double max_rel() const noexcept { return max_rel_; }
    [[nodiscard]] std::size_t index() const noexcept { return index_; }

private:
    double max_abs_;
    double max_rel_;
    std::size_t index_;
};

/// Something this machine, library or backend cannot do (a dtype, an engine). A benchmark that throws it is
/// skipped with the message as its reason, never failed.
class unsupported_error : public error {
public:
    explicit unsupported_error(const std::string& message, where at = where::here())
        : error(message, exit_code::incomplete, at) {}
};

PLUMBLINE_NAMESPACE_END

#endif
