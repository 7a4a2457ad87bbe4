#include "cli/completion.hpp"

#include "cli/terminal.hpp"
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/exit_code.hpp>

namespace holdfast::app {
namespace {

// ---- bash --------------------------------------------------------------------------------------

// What bash offers for a value.
std::string bash_values(const OptionNode& option) {
    switch (option.takes) {
        case Takes::file:
            return "compgen -f -- \"$current\"";
        case Takes::folder:
            return "compgen -d -- \"$current\"";
        case Takes::choice:
            return fmt::format("compgen -W \"{}\" -- \"$current\"", fmt::join(option.choices, " "));
        case Takes::nothing:
        case Takes::text:
            break;
    }
    return ":";
}

// One branch for each command: its words, and what follows each of its options.
void add_bash_branch(std::string& script, const CommandNode& command, const std::string& path) {
    std::vector<std::string> words;
    words.reserve(command.commands.size() + command.options.size());
    std::string values;
    for (const CommandNode& below : command.commands) {
        words.push_back(below.name);
    }
    for (const OptionNode& argument : command.arguments) {
        words.insert(words.end(), argument.choices.begin(), argument.choices.end());
    }
    for (const OptionNode& option : command.options) {
        words.insert(words.end(), option.names.begin(), option.names.end());
        if (option.takes != Takes::nothing) {
            values += fmt::format("                {}) mapfile -t COMPREPLY < <({}); return ;;\n",
                                  fmt::join(option.names, "|"),
                                  bash_values(option));
        }
    }
    script += fmt::format(
        "        \"{}\")\n            case $previous in\n{}            esac\n"
        "            words=\"{}\"\n            ;;\n",
        path,
        values,
        fmt::join(words, " "));
    for (const CommandNode& below : command.commands) {
        add_bash_branch(script, below, path + " " + below.name);
    }
}

void collect_paths(std::vector<std::string>& paths,
                   const CommandNode& command,
                   const std::string& path) {
    paths.push_back(path);
    for (const CommandNode& below : command.commands) {
        collect_paths(paths, below, path + " " + below.name);
    }
}

// ---- zsh ---------------------------------------------------------------------------------------

// For text between single quotes in which zsh gives brackets and colons a meaning.
std::string zsh_quoted(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '\'') {
            out += "'\\''";
            continue;
        }
        if (c == '[' || c == ']' || c == ':') {
            out += '\\';
        }
        out += c;
    }
    return out;
}

std::string zsh_values(const OptionNode& option) {
    switch (option.takes) {
        case Takes::nothing:
            return "";
        case Takes::text:
            return ":value: ";
        case Takes::file:
            return ":file:_files";
        case Takes::folder:
            return ":folder:_files -/";
        case Takes::choice:
            return fmt::format(":value:({})", fmt::join(option.choices, " "));
    }
    return "";
}

std::string zsh_function(std::string_view path) {
    std::string name = "_holdfast";
    for (const char c : path) {
        name += c == ' ' || c == '-' ? '_' : c;
    }
    return name;
}

void add_zsh_function(std::string& script, const CommandNode& command, const std::string& path) {
    script += fmt::format("{}() {{\n    _arguments -C \\\n", zsh_function(path));
    for (const OptionNode& option : command.options) {
        for (const std::string& name : option.names) {
            script += fmt::format(
                "        '{}[{}]{}' \\\n", name, zsh_quoted(option.help), zsh_values(option));
        }
    }
    for (const OptionNode& argument : command.arguments) {
        script += fmt::format("        '{}' \\\n", zsh_values(argument));
    }
    if (command.commands.empty()) {
        script += "        && return\n}\n\n";
        return;
    }
    script +=
        "        ':command:->command' '*::argument:->argument' && return\n"
        "    case $state in\n        command)\n            local -a commands=(\n";
    for (const CommandNode& below : command.commands) {
        script += fmt::format("                '{}:{}'\n", below.name, zsh_quoted(below.help));
    }
    script +=
        "            )\n            _describe command commands\n            ;;\n"
        "        argument)\n            case $words[1] in\n";
    for (const CommandNode& below : command.commands) {
        script += fmt::format(
            "                {}) {} ;;\n", below.name, zsh_function(path + " " + below.name));
    }
    script += "            esac\n            ;;\n    esac\n}\n\n";
    for (const CommandNode& below : command.commands) {
        add_zsh_function(script, below, path + " " + below.name);
    }
}

}  // namespace

std::string bash_completion(const CommandNode& root) {
    std::vector<std::string> paths;
    collect_paths(paths, root, "");
    std::string branches;
    add_bash_branch(branches, root, "");
    std::string known;
    for (const std::string& path : paths) {
        known += fmt::format("{}\"{}\"", known.empty() ? "" : "|", path);
    }
    return fmt::format(R"(# bash completion for holdfast, written by `holdfast completion bash`.
_holdfast() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
    local path="" words="" word
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD - 1}}"; do
        case "$path $word" in
            {}) path="$path $word" ;;
        esac
    done
    case $path in
{}    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -F _holdfast holdfast
)",
                       known,
                       branches);
}

std::string zsh_completion(const CommandNode& root) {
    std::string script =
        "#compdef holdfast\n# zsh completion for holdfast, written by `holdfast completion "
        "zsh`.\n\n";
    add_zsh_function(script, root, "");
    script +=
        "if [ \"$funcstack[1]\" = \"_holdfast\" ]; then\n    _holdfast \"$@\"\nelse\n"
        "    compdef _holdfast holdfast\nfi\n";
    return script;
}

int completion(const std::string& shell, const CommandNode& root) {
    if (shell != "bash" && shell != "zsh") {
        throw InvalidArgument(
            fmt::format("there is no completion for '{}'; choose from bash, zsh", shell));
    }
    print(shell == "bash" ? bash_completion(root) : zsh_completion(root));
    return exit_done;
}

}  // namespace holdfast::app
