#include "cli.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include "bench.hpp"
#include "command_tree.hpp"
#include "completion.hpp"
#include "config.hpp"
#include "demo.hpp"
#include "exit_code.hpp"
#include "schema.hpp"
#include "version.hpp"
#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <holdfast/base/error.hpp>

namespace holdfast::app {
namespace {

constexpr int kills_max = 1000;
constexpr int writers_max = 256;

constexpr const char* everywhere_help =
    "Everywhere: --db, --json, --config, --log-level, --log-format, --quiet; see holdfast "
    "--help.\n";

bool hidden(const CLI::App& command) {
    return command.get_group().empty();
}

std::vector<std::string> words_below(const CLI::App& command) {
    std::vector<std::string> words;
    for (const CLI::App* below : command.get_subcommands(nullptr)) {
        if (!hidden(*below)) {
            words.push_back(below->get_name());
        }
    }
    return words;
}

// "holdfast schema apply"
std::string path_of(const CLI::App& command) {
    const CLI::App* above = command.get_parent();
    return above == nullptr ? command.get_name() : path_of(*above) + " " + command.get_name();
}

class CommandLine {
public:
    CommandLine();

    std::variant<Request, Answer> parse(int argc, const char* const* argv);

private:
    struct Flag {
        CLI::Option* option;
        std::string key;
    };

    void add_globals();
    void add_demo();
    void add_schema();
    void add_bench();
    void add_config();
    void add_completion();
    void add_version();

    // A noun or a verb. `command` runs if nothing more follows it.
    CLI::App* add(CLI::App& above, const char* name, const char* help, Command command = {});
    void add_setting(const char* names,
                     const char* key,
                     const char* help,
                     Takes takes = Takes::text);
    void takes_choice(CLI::Option* option, std::vector<std::string> choices);

    // The command that the words name, as far as they were understood.
    [[nodiscard]] const CLI::App& deepest() const;
    [[noreturn]] void refuse(const CLI::ParseError& error) const;
    [[noreturn]] void refuse_word(const std::string& word) const;
    [[nodiscard]] OptionNode describe(const CLI::Option& option) const;
    [[nodiscard]] CommandNode describe(const CLI::App& command) const;

    CLI::App root_{"Durable execution and coordination on the SQL database you already have.",
                   "holdfast"};
    std::map<const CLI::App*, Command> commands_;
    std::map<const CLI::Option*, OptionNode> hints_;  // What completion cannot see from outside.
    std::vector<Flag> settings_;
    Request request_;
    DemoRequest demo_;
    DemoWriterRequest demo_writer_;
    SchemaRequest schema_;
    BenchRequest bench_;
    std::string shell_;
};

CommandLine::CommandLine() {
    root_.require_subcommand(1);
    root_.fallthrough();
    root_.footer(exit_codes_help);
    root_.set_version_flag("--version", version_text(), "Print the version.");
    root_.set_help_flag("-h,--help", "Print this help.");
    add_globals();
    add_demo();
    add_schema();
    add_bench();
    add_config();
    add_completion();
    add_version();
}

void CommandLine::add_globals() {
    add_setting(
        "--db", "db", "The database: sqlite:FILE or postgres://USER@HOST/NAME (HOLDFAST_DB).");
    add_setting(
        "--log-level", "log.level", "The least important log lines: debug, info, warn, ...");
    takes_choice(settings_.back().option, {"debug", "info", "warn", "error", "off"});
    add_setting("--log-format", "log.format", "How log lines look: text or json.");
    takes_choice(settings_.back().option, {"text", "json"});
    CLI::Option* file =
        root_.add_option("--config", request_.config_file, "Settings, as a YAML file.");
    hints_[file].takes = Takes::file;
    root_.add_flag(
        "--json", request_.json, "Print JSON for programs instead of tables for people.");
    root_.add_flag("-q,--quiet", request_.quiet, "Print no progress.");
}

void CommandLine::add_demo() {
    CLI::App* noun = add(root_,
                         "demo",
                         "Writers, a kill -9 in the middle, and the proof that nothing was lost.",
                         [this](const Context& context) { return demo(context, demo_); });
    noun->add_option("--kills", demo_.kills, "How often.")
        ->check(CLI::Range(1, kills_max))
        ->capture_default_str();
    noun->add_option("--writers", demo_.writers, "Concurrent writers.")
        ->check(CLI::Range(1, writers_max))
        ->capture_default_str();
    noun->add_flag("--keep", demo_.keep, "Leave the ledger behind.");

    // The process that the demo kills.
    CLI::App* writer = add(root_, "demo-writer", "", [this](const Context& context) {
        return demo_writer(context, demo_writer_);
    });
    writer->group("");
    writer->add_option("--run", demo_writer_.run)->required();
    writer->add_option("--kill-number", demo_writer_.kill_number)->required();
    writer->add_option("--writers", demo_writer_.writers)
        ->required()
        ->check(CLI::Range(1, writers_max));
}

void CommandLine::add_schema() {
    CLI::App* noun = add(root_, "schema", "The tables: create, compare, print.");
    noun->require_subcommand(1);
    const auto verb = [this, noun](const char* name,
                                   const char* help,
                                   int (*run)(const Context&, const SchemaRequest&)) {
        CLI::App* added = add(*noun, name, help, [this, run](const Context& context) {
            return run(context, schema_);
        });
        added->add_option("--part", schema_.part, "One part instead of all.");
        return added;
    };
    verb("apply", "Bring the tables to the newest version; creates an SQLite file.", &schema_apply);
    verb("status", "Say which version is there, and which is known.", &schema_status);
    CLI::App* dump = verb("dump", "Print the statements, to be run by hand.", &schema_dump);
    takes_choice(
        dump->add_option("--dialect", schema_.dialect, "For sqlite, postgres or dsql.")->required(),
        {"sqlite", "postgres", "dsql"});
}

void CommandLine::add_bench() {
    CLI::App* noun = add(root_,
                         "bench",
                         "Measure ours against the limit, in turns, and print the ratio.",
                         [this](const Context& context) { return bench(context, bench_); });
    takes_choice(noun->add_option("name", bench_.name, "Which; all if left out."), bench_names());
    noun->add_option("--only", bench_.only, "A single one, or a beginning: pg.update.c8, sqlite.")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    noun->add_option("--rounds", bench_.rounds, "How often each side is measured.")
        ->capture_default_str();
    noun->add_option("--seconds", bench_.seconds, "How long a side runs in a round.")
        ->capture_default_str();
    hints_[noun->add_option("--dir", bench_.folder, "A folder on the disk to measure.")].takes =
        Takes::folder;
    hints_[noun->add_option("--report", bench_.report, "Write a page with pictures, or add to it.")]
        .takes = Takes::file;
}

void CommandLine::add_config() {
    CLI::App* noun =
        add(root_, "config", "Settings: flags over environment over file over defaults.");
    noun->require_subcommand(1);
    add(*noun, "show", "Print every setting, its value and where that came from.", &config_show);
}

void CommandLine::add_completion() {
    CLI::App* noun = add(
        root_, "completion", "Print the completion script for a shell.", [this](const Context&) {
            return completion(shell_, describe(root_));
        });
    takes_choice(noun->add_option("shell", shell_, "bash or zsh.")->required(), {"bash", "zsh"});
}

void CommandLine::add_version() {
    add(root_, "version", "Print the version.", &version);
}

CLI::App* CommandLine::add(CLI::App& above, const char* name, const char* help, Command command) {
    CLI::App* added = above.add_subcommand(name, help);
    added->footer(std::string(everywhere_help) + exit_codes_help);
    if (command) {
        commands_.emplace(added, std::move(command));
    }
    return added;
}

void CommandLine::add_setting(const char* names, const char* key, const char* help, Takes takes) {
    // Nothing is kept here: Config reads the results, and says where each value came from.
    CLI::Option* option =
        root_.add_option_function<std::string>(names, [](const std::string&) {}, help);
    hints_[option].takes = takes;
    settings_.push_back({option, key});
}

void CommandLine::takes_choice(CLI::Option* option, std::vector<std::string> choices) {
    hints_[option] = {
        .names = {}, .help = {}, .takes = Takes::choice, .choices = std::move(choices)};
}

std::variant<Request, Answer> CommandLine::parse(int argc, const char* const* argv) {
    if (argc <= 1) {
        throw InvalidArgument(fmt::format("say what to do: {}; see holdfast --help",
                                          fmt::join(words_below(root_), ", ")));
    }
    try {
        root_.parse(argc, argv);
    } catch (const CLI::CallForVersion&) {
        return Answer{version_text() + "\n"};
    } catch (const CLI::CallForHelp&) {
        return Answer{root_.help()};
    } catch (const CLI::ParseError& error) {
        refuse(error);
    }
    for (const Flag& flag : settings_) {
        for (const std::string& value : flag.option->results()) {
            request_.flags.push_back({flag.key, "--" + flag.option->get_lnames()[0], value});
        }
    }
    request_.command = commands_.at(&deepest());
    return request_;
}

const CLI::App& CommandLine::deepest() const {
    const CLI::App* command = &root_;
    while (!command->get_subcommands().empty()) {
        command = command->get_subcommands().front();
    }
    return *command;
}

void CommandLine::refuse(const CLI::ParseError& error) const {
    const std::vector<std::string> unknown = root_.remaining(true);
    if (!unknown.empty()) {
        refuse_word(unknown.front());
    }
    const CLI::App& command = deepest();
    const std::vector<std::string> words = words_below(command);
    if (!words.empty() && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
        throw InvalidArgument(
            fmt::format("{} needs a verb: {}", command.get_name(), fmt::join(words, ", ")));
    }
    throw InvalidArgument(fmt::format("{}; see {} --help", error.what(), path_of(command)));
}

void CommandLine::refuse_word(const std::string& word) const {
    const CLI::App& command = deepest();
    const CommandNode node = describe(command);
    const bool option = word.starts_with('-');
    std::vector<std::string> candidates = words_below(command);
    if (option) {
        candidates.clear();
        for (const OptionNode& known : node.options) {
            candidates.insert(candidates.end(), known.names.begin(), known.names.end());
        }
    }
    const std::string name = word.substr(0, word.find('='));
    const std::string nearest = closest(name, candidates);
    throw InvalidArgument(
        fmt::format("unknown {} '{}'{}; see {} --help",
                    option ? "option" : "word",
                    name,
                    nearest.empty() ? std::string{} : fmt::format(" (did you mean {}?)", nearest),
                    path_of(command)));
}

OptionNode CommandLine::describe(const CLI::Option& option) const {
    const auto hint = hints_.find(&option);
    OptionNode node = hint == hints_.end() ? OptionNode{} : hint->second;
    for (const std::string& name : option.get_lnames()) {
        node.names.push_back("--" + name);
    }
    for (const std::string& name : option.get_snames()) {
        node.names.push_back("-" + name);
    }
    node.help = option.get_description();
    if (option.get_items_expected_max() == 0) {
        node.takes = Takes::nothing;
    }
    return node;
}

CommandNode CommandLine::describe(const CLI::App& command) const {
    CommandNode node{.name = command.get_name(),
                     .help = command.get_description(),
                     .options = {},
                     .arguments = {},
                     .commands = {}};
    for (const CLI::App* at = &command; at != nullptr; at = at->get_parent()) {
        for (const CLI::Option* option : at->get_options()) {
            // A parent's --help is hidden behind the command's own.
            if (at != &command && option == at->get_help_ptr()) {
                continue;
            }
            (option->get_positional() ? node.arguments : node.options).push_back(describe(*option));
        }
    }
    for (const CLI::App* below : command.get_subcommands(nullptr)) {
        if (!hidden(*below)) {
            node.commands.push_back(describe(*below));
        }
    }
    return node;
}

}  // namespace

std::variant<Request, Answer> parse_command_line(int argc, const char* const* argv) {
    const auto line = std::make_shared<CommandLine>();
    std::variant<Request, Answer> parsed = line->parse(argc, argv);
    if (auto* request = std::get_if<Request>(&parsed)) {
        // The command reads what was parsed into the tree, which must live as long.
        request->command = [line, command = std::move(request->command)](const Context& context) {
            return command(context);
        };
    }
    return parsed;
}

}  // namespace holdfast::app
