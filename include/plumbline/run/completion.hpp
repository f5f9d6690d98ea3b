// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RUN_COMPLETION_HPP
#define PLUMBLINE_RUN_COMPLETION_HPP

#include <algorithm>
#include <cctype>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "plumbline/core/error.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace run {

/// Help in which an option and its value are one word, as they are typed: "--suite=NAME", "--baseline[=FILE]".
class help_format : public CLI::Formatter {
public:
    std::string make_option(const CLI::Option* of, bool positional) const override {
        const std::string name = positional ? of->get_name(true) : of->get_name(false, true);
        std::string text = "  " + name + (positional ? "" : of->get_option_text());
        std::istringstream lines(of->get_description());
        const std::size_t column = get_column_width();
        for (std::string line; std::getline(lines, line);) {
            // A name that reaches into the text's column has a line of its own.
            if (text.size() - (text.rfind('\n') + 1) + 2 > column) text += '\n';
            text += std::string(column - std::min(column, text.size() - (text.rfind('\n') + 1)), ' ') + line + '\n';
        }
        return text;
    }
};

namespace detail {

/// What completion knows of an option, from the option table alone.
struct completed_option {
    std::string name; ///< "--suite"
    std::string text; ///< its description
    bool takes_value = false;
    bool needs_value = false;
    std::vector<std::string> words; ///< values that can be named: "quick", "standard"
    bool files = false;             ///< its value may be a file or a folder
};

/// Values are told by the option's text: "=quick|standard|FILE" is two words or a file, "[=FILE]" an optional file.
/// Words are lower case; FILE, DIR and PROGRAM are files; everything else is free.
[[nodiscard]] inline completed_option completed(const CLI::Option& of) {
    completed_option made;
    made.name = "--" + of.get_lnames().front();
    made.text = of.get_description();
    made.takes_value = of.get_items_expected_max() > 0;
    made.needs_value = made.takes_value && of.get_items_expected_min() > 0;
    std::string values;
    for (const char c : of.get_option_text())
        values += std::string_view("=[]").find(c) == std::string_view::npos ? c : '|';
    std::istringstream parts(values);
    for (std::string part; std::getline(parts, part, '|');) {
        if (part == "FILE" || part == "DIR" || part == "PROGRAM") made.files = true;
        const auto word = [](char c) { return std::islower(static_cast<unsigned char>(c)) != 0; };
        if (!part.empty() && std::all_of(part.begin(), part.end(), word)) made.words.push_back(part);
    }
    return made;
}

/// The options that a person is to know: those in a group.
[[nodiscard]] inline std::vector<completed_option> completed_options(const CLI::App& app) {
    std::vector<completed_option> all;
    for (const CLI::Option* each : app.get_options()) {
        if (!each->get_group().empty() && !each->get_lnames().empty()) all.push_back(completed(*each));
    }
    return all;
}

[[nodiscard]] inline std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& each : words) text += (text.empty() ? "" : " ") + each;
    return text;
}

/// A shell's function name: "bench-compare" gives "_bench_compare".
[[nodiscard]] inline std::string function_name(const std::string& program) {
    std::string name = "_" + program;
    std::replace_if(
        name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
    return name;
}

[[nodiscard]] inline std::string bash_completion(const CLI::App& app, const std::string& program) {
    const std::string function = function_name(program);
    std::string flags, cases;
    for (const completed_option& each : completed_options(app)) {
        flags += (flags.empty() ? "" : " ") + each.name + (each.needs_value ? "=" : "");
        if (!each.takes_value) continue;
        cases += "    " + each.name + ") COMPREPLY=(";
        if (!each.words.empty()) cases += "$(compgen -W \"" + joined(each.words) + "\" -- \"$word\")";
        if (each.files) cases += std::string(each.words.empty() ? "" : " ") + "$(compgen -f -- \"$word\")";
        cases += ") ;;\n";
    }
    return "# bash completion of " + program + ", made by " + program + " --completion=bash: do not edit\n" + function +
           R"(() {
    local word="${COMP_WORDS[COMP_CWORD]}" flag=""
    # bash takes '=' as a word of its own.
    if [[ $word == "=" ]]; then
        flag="${COMP_WORDS[COMP_CWORD-1]}" word=""
    elif [[ $COMP_CWORD -gt 1 && ${COMP_WORDS[COMP_CWORD-1]} == "=" ]]; then
        flag="${COMP_WORDS[COMP_CWORD-2]}"
    fi
    case $flag in
)" + cases +
           "    \"\")\n        if [[ $word == -* ]]; then\n            COMPREPLY=($(compgen -W \"" + flags +
           R"(" -- "$word"))
            if [[ ${COMPREPLY[*]} == *= ]]; then compopt -o nospace 2>/dev/null; fi
        else
            COMPREPLY=($(compgen -f -- "$word"))
        fi
        ;;
    *) COMPREPLY=() ;;
    esac
}
complete -o filenames -F )" +
           function + " " + program + "\n";
}

/// Text inside single quotes and the brackets of zsh's _arguments.
[[nodiscard]] inline std::string zsh_quoted(const std::string& text) {
    std::string safe;
    for (const char c : text) {
        if (c == '\'') {
            safe += "'\\''";
        } else {
            if (c == '[' || c == ']' || c == ':' || c == '\\') safe += '\\';
            safe += c;
        }
    }
    return safe;
}

[[nodiscard]] inline std::string zsh_completion(const CLI::App& app, const std::string& program) {
    std::string text = "#compdef " + program + "\n# zsh completion of " + program + ", made by " + program +
                       " --completion=zsh: do not edit\n_arguments \\\n";
    for (const completed_option& each : completed_options(app)) {
        text += "    '*" + each.name +
                (each.needs_value   ? "="
                 : each.takes_value ? "=-"
                                    : "") +
                "[" + zsh_quoted(each.text) + "]";
        if (each.takes_value) {
            std::string action = each.words.empty() ? "" : "compadd -- " + joined(each.words) + "; ";
            if (each.files) action += "_files; ";
            text += std::string(each.needs_value ? ":" : "::") + "value:" + (action.empty() ? "" : "{ " + action + "}");
        }
        text += "' \\\n";
    }
    return text + "    '*:file:_files'\n";
}

} // namespace detail

/// The completion script of a program for a shell, "bash" or "zsh", made of its option table: options without a group
/// are hidden, values come from option_text. Throws usage_error for another shell.
[[nodiscard]] inline std::string completion(const CLI::App& app, const std::string& program, const std::string& shell) {
    if (shell == "bash") return detail::bash_completion(app, program);
    if (shell == "zsh") return detail::zsh_completion(app, program);
    throw usage_error("--completion=" + shell + " is not made; use --completion=bash or --completion=zsh");
}

} // namespace run

PLUMBLINE_NAMESPACE_END

#endif
