// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_BINARY_HPP
#define PLUMBLINE_ENVIRONMENT_BINARY_HPP

#include <string>

#include "plumbline/environment/reader.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

/// The facts of a build as named values; PLUMBLINE_BUILD_FACTS fills in the arguments. Empty texts are left out.
[[nodiscard]] inline scalar_map build_facts(const std::string& compiler, bool optimised, bool assertions,
                                            bool sanitized, const std::string& architecture,
                                            const scalar_map& from_cmake) {
    scalar_map facts{{"compiler", compiler},
                     {"optimised", optimised},
                     {"assertions", assertions},
                     {"sanitized", sanitized},
                     {"architecture", architecture}};
    for (const auto& [name, value] : from_cmake) {
        if (!to_string(value).empty()) facts[name] = value;
    }
    return facts;
}

/// Facts of the build: compiler, flags, architectures. Two programs that differ here differ in what they time.
inline void read_binary(result::fingerprint& into, const host& machine) {
    recorder out(into, "build");
    out.config("build.plumbline", 2, result::reading::of(std::string(PLUMBLINE_VERSION)));
    for (const char* name : {"compiler", "optimised", "assertions", "sanitized", "architecture", "type", "cxx_flags",
                             "cuda_flags", "cuda_architectures", "cuda_compiler", "git"}) {
        const auto at = machine.build.find(name);
        out.config(std::string("build.") + name, 2,
                   at != machine.build.end() ? result::reading::of(at->second)
                                             : result::reading::absent("not said by the program"));
    }
}

} // namespace environment

PLUMBLINE_NAMESPACE_END

// PLUMBLINE_BUILD_FACTS is a macro because it must see the flags of the translation unit that writes it down: an
// inline function whose body depended on NDEBUG would break the one-definition rule. The program's main file does
// `machine.build = PLUMBLINE_BUILD_FACTS;`. CMake may define PLUMBLINE_BUILD_TYPE, PLUMBLINE_CXX_FLAGS,
// PLUMBLINE_CUDA_FLAGS, PLUMBLINE_CUDA_ARCHITECTURES, PLUMBLINE_CUDA_COMPILER and PLUMBLINE_GIT as strings.
#if defined(__clang__)
#define PLUMBLINE_DETAIL_COMPILER "clang " __clang_version__
#else
#define PLUMBLINE_DETAIL_COMPILER "gcc " __VERSION__
#endif
#if defined(__OPTIMIZE__)
#define PLUMBLINE_DETAIL_OPTIMISED true
#else
#define PLUMBLINE_DETAIL_OPTIMISED false
#endif
#if defined(NDEBUG)
#define PLUMBLINE_DETAIL_ASSERTIONS false
#else
#define PLUMBLINE_DETAIL_ASSERTIONS true
#endif
#define PLUMBLINE_DETAIL_SANITIZED false
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#undef PLUMBLINE_DETAIL_SANITIZED
#define PLUMBLINE_DETAIL_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#undef PLUMBLINE_DETAIL_SANITIZED
#define PLUMBLINE_DETAIL_SANITIZED true
#endif
#endif
#if defined(__x86_64__)
#define PLUMBLINE_DETAIL_ARCHITECTURE "x86_64"
#elif defined(__aarch64__)
#define PLUMBLINE_DETAIL_ARCHITECTURE "aarch64"
#else
#define PLUMBLINE_DETAIL_ARCHITECTURE "other"
#endif
#if !defined(PLUMBLINE_BUILD_TYPE)
#define PLUMBLINE_BUILD_TYPE ""
#endif
#if !defined(PLUMBLINE_CXX_FLAGS)
#define PLUMBLINE_CXX_FLAGS ""
#endif
#if !defined(PLUMBLINE_CUDA_FLAGS)
#define PLUMBLINE_CUDA_FLAGS ""
#endif
#if !defined(PLUMBLINE_CUDA_ARCHITECTURES)
#define PLUMBLINE_CUDA_ARCHITECTURES ""
#endif
#if !defined(PLUMBLINE_CUDA_COMPILER)
#define PLUMBLINE_CUDA_COMPILER ""
#endif
#if !defined(PLUMBLINE_GIT)
#define PLUMBLINE_GIT ""
#endif

#define PLUMBLINE_BUILD_FACTS                                                                                          \
    ::plumbline::environment::build_facts(                                                                             \
        PLUMBLINE_DETAIL_COMPILER, PLUMBLINE_DETAIL_OPTIMISED, PLUMBLINE_DETAIL_ASSERTIONS,                            \
        PLUMBLINE_DETAIL_SANITIZED, PLUMBLINE_DETAIL_ARCHITECTURE,                                                     \
        ::plumbline::scalar_map{{"type", std::string(PLUMBLINE_BUILD_TYPE)},                                           \
                                {"cxx_flags", std::string(PLUMBLINE_CXX_FLAGS)},                                       \
                                {"cuda_flags", std::string(PLUMBLINE_CUDA_FLAGS)},                                     \
                                {"cuda_architectures", std::string(PLUMBLINE_CUDA_ARCHITECTURES)},                     \
                                {"cuda_compiler", std::string(PLUMBLINE_CUDA_COMPILER)},                               \
                                {"git", std::string(PLUMBLINE_GIT)}})

#endif
