// A tree of verbs, the options that every verb has, and how a command line is read with them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "cli/cli.hpp"
#include "cli/command_tree.hpp"
#include <CLI/CLI.hpp>

namespace holdfast::app {

// For the footer of a verb's help.
inline constexpr const char* everywhere_help =
    "Global options: --db, --json, --config, --log-level, --log-format, --quiet; see holdfast "
    "--help.\n";

// Starts with the global options and no verb.
class CommandParser {
public:
    CommandParser();

    // A noun or a verb. `command` runs if nothing more follows it.
    CLI::App* add(CLI::App& above, const char* name, const char* help, Command command = {});

    CLI::Option* add_setting(CLI::App& to,
                             const char* names,
                             const char* key,
                             const char* help,
                             Takes takes = Takes::text);
    void takes_file(CLI::Option* option);
    void takes_folder(CLI::Option* option);
    void takes_choice(CLI::Option* option, std::vector<std::string> choices);

    // `words` are those after the program's name. Invalid_argument for what is not understood.
    std::variant<Request, Answer> parse(std::vector<std::string> words);

protected:
    // What an unknown word below `command` is answered with, instead of the nearest known one.
    void explain_words(const CLI::App& command, std::string usage);
    [[nodiscard]] CommandNode describe(const CLI::App& command) const;

    CLI::App root_{"Durable execution and coordination on the SQL database you already have.",
                   "holdfast"};
    std::map<const CLI::Option*, OptionNode> hints_;  // What completion cannot see from outside.

private:
    struct Flag {
        CLI::Option* option;
        std::string key;
    };

    void add_globals();
    // The command that the words name, as far as they were understood.
    [[nodiscard]] const CLI::App& deepest() const;
    [[noreturn]] void refuse(const CLI::ParseError& error) const;
    [[noreturn]] void refuse_word(const std::string& word) const;
    [[nodiscard]] OptionNode describe(const CLI::Option& option) const;

    std::map<const CLI::App*, Command> commands_;
    std::map<const CLI::App*, std::string> words_usage_;
    std::vector<Flag> settings_;
    Request request_;
};

// A command reads what was parsed into the tree, so it keeps the tree alive.
[[nodiscard]] std::variant<Request, Answer> keep_alive(std::shared_ptr<CommandParser> tree,
                                                       std::variant<Request, Answer> parsed);

}  // namespace holdfast::app
