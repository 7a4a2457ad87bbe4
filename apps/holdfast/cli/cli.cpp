#include "cli/cli.hpp"

#include <algorithm>
#include <memory>
#include <span>

#include "bench/command_line.hpp"
#include "cli/command_line.hpp"
#include "cli/completion.hpp"
#include "config.hpp"
#include "schema/parts.hpp"
#include "server/command_line.hpp"
#include "server/test_server_words.hpp"
#include "version.hpp"

#include <holdfast/base/error.hpp>
#include <holdfast/base/exit_code.hpp>

namespace holdfast::app {
namespace {

// Index of the `--` after which the command of `lock run` or `lock elect` begins; it is not parsed.
int program_begins_at(int argc, const char* const* argv) {
    const std::span words(argv, static_cast<std::size_t>(argc));
    const auto is = [](std::string_view word) {
        return [word](const char* other) { return word == other; };
    };
    const auto mark = std::ranges::find_if(words, is("--"));
    const auto noun = std::find_if(words.begin(), mark, is("lock"));
    const bool runs = std::any_of(noun, mark, is("run")) || std::any_of(noun, mark, is("elect"));
    return runs ? static_cast<int>(mark - words.begin()) : argc;
}

}  // namespace

CommandLine::CommandLine() {
    add_demo(*this, root_, demo_);
    add_flow();
    add_lock();
    add_dsql();
    add_poolsim();
    add_schema();
    add_server(*this,
               root_,
               server_,
               {.start_dev = &hand_over_to_server,
                .start_test = &hand_over_to_server,
                .run = &hand_over_to_server,
                .check = &hand_over_to_server});
    add_bench(*this, root_, bench_, &bench);
    add_config();
    add_completion();
    add_version();
}

void CommandLine::add_schema() {
    CLI::App* noun = add(root_, "schema", "Create, check and print the tables.");
    noun->require_subcommand(1);
    const auto verb = [this, noun](const char* name,
                                   const char* help,
                                   int (*run)(const Context&, const SchemaRequest&)) {
        CLI::App* added = add(*noun, name, help, [this, run](const Context& context) {
            return run(context, schema_);
        });
        takes_choice(
            added->add_option("--part", schema_.part, "One part of the schema instead of all"),
            part_names());
        return added;
    };
    add_lock_tables(*noun);
    verb("apply", "Bring the tables to the newest version; creates an SQLite file.", &schema_apply);
    verb("status", "Show the version in the database and the newest known one.", &schema_status);
    CLI::App* dump = verb("dump", "Print the statements, to run them by hand.", &schema_dump);
    takes_choice(
        dump->add_option("--dialect", schema_.dialect, "SQL dialect: sqlite, postgres or dsql")
            ->required(),
        {"sqlite", "postgres", "dsql"});
}

void CommandLine::add_config() {
    CLI::App* noun = add(root_,
                         "config",
                         "Show the settings: flags override the environment, the file and the "
                         "defaults, in this order.");
    noun->require_subcommand(1);
    add(*noun, "show", "Print every setting, its value and its source.", &config_show);
}

void CommandLine::add_completion() {
    CLI::App* noun = add(
        root_, "completion", "Print the completion script for a shell.", [this](const Context&) {
            return completion(shell_, describe(root_));
        });
    takes_choice(noun->add_option("shell", shell_, "Shell: bash or zsh")->required(),
                 {"bash", "zsh"});
}

void CommandLine::add_version() {
    add(root_, "version", "Print the version.", &version);
}

std::variant<Request, Answer> CommandLine::parse(int argc, const char* const* argv) {
    const int own = program_begins_at(argc, argv);
    lock_.command.assign(argv + std::min(own + 1, argc), argv + argc);
    try {
        return CommandParser::parse(with_test_server_verb(
            without_old_poolsim_flags({argv + std::min(1, own), argv + own})));
    } catch (const InvalidArgument& error) {
        throw InvalidArgument(with_old_poolsim_flags(error.what()));
    }
}

std::variant<Request, Answer> parse_command_line(int argc, const char* const* argv) {
    const auto line = std::make_shared<CommandLine>();
    return keep_alive(line, line->parse(argc, argv));
}

}  // namespace holdfast::app
