#include "cli/cli.hpp"

#include <algorithm>
#include <memory>
#include <span>

#include "cli/command_line.hpp"
#include "cli/completion.hpp"
#include "config.hpp"
#include "schema/parts.hpp"
#include "version.hpp"
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/exit_code.hpp>

namespace holdfast::app {
namespace {

constexpr int orders_min = 3;
constexpr int orders_max = 100;

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

}  // namespace

CommandLine::CommandLine() {
    root_.require_subcommand(1);
    root_.fallthrough();
    root_.footer(exit_codes_help);
    root_.set_version_flag("--version", version_text(), "Version of the program");
    root_.set_help_flag("-h,--help", "This help");
    add_globals();
    add_demo();
    add_flow();
    add_lock();
    add_dsql();
    add_poolsim();
    add_schema();
    add_bench();
    add_config();
    add_completion();
    add_version();
}

void CommandLine::add_globals() {
    add_setting(root_,
                "--db",
                "db",
                "Database URL: sqlite:FILE, postgres://USER@HOST/NAME or dsql://ENDPOINT "
                "(HOLDFAST_DB)");
    add_setting(root_,
                "--log-level",
                "log.level",
                "Lowest level that is logged: debug, info, warn, error or off");
    takes_choice(settings_.back().option, {"debug", "info", "warn", "error", "off"});
    add_setting(root_, "--log-format", "log.format", "Format of log lines: text or json");
    takes_choice(settings_.back().option, {"text", "json"});
    CLI::Option* file = root_.add_option("--config", request_.config_file, "Settings file, YAML");
    hints_[file].takes = Takes::file;
    root_.add_flag("--json", request_.json, "JSON output instead of text");
    root_.add_flag("-q,--quiet", request_.quiet, "No progress output");
}

void CommandLine::add_demo() {
    CLI::App* noun = add(root_,
                         "demo",
                         "Process orders, kill the workers at the worst moments, and show that "
                         "every charge happens once.",
                         [this](const Context& context) { return demo(context, demo_); });
    noun->add_option("--orders", demo_.orders, "Number of orders")
        ->check(CLI::Range(orders_min, orders_max))
        ->capture_default_str();
    noun->add_flag("--keep", demo_.keep, "Orders and ledger stay in the database");

    // The process that the demo kills.
    CLI::App* worker = add(root_, "demo-worker", "", [this](const Context& context) {
        return demo_worker(context, demo_worker_);
    });
    worker->group("");
    worker->add_option("--number", demo_worker_.number)->required();
    worker->add_option("--hold-at", demo_worker_.hold_at);
    worker->add_option("--hold-order", demo_worker_.hold_order);
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

void CommandLine::add_bench() {
    CLI::App* noun = add(root_,
                         "bench",
                         "Measure Holdfast against the bare database and print the ratio.",
                         [this](const Context& context) { return bench(context, bench_); });
    takes_choice(noun->add_option("name", bench_.name, "Name of a suite; all by default"),
                 bench_names());
    noun->add_option("--only", bench_.only, "Name or prefix of a measurement: pg.update.c8, sqlite")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    noun->add_option("--scenario",
                     bench_.scenario,
                     "Scenario (suite flow): chain1, chain5, parallel, parallel0, fanout, timers, "
                     "longhistory, largepayload");
    noun->add_option(
        "--keys", bench_.keys, "Lock keys (suite locks): distinct, or one for all clients");
    noun->add_option("--clients", bench_.clients, "Number of clients (suite locks)");
    noun->add_option("--rounds", bench_.rounds, "Number of measurements per side")
        ->capture_default_str();
    noun->add_option("--seconds", bench_.seconds, "Duration of one measurement, in seconds")
        ->capture_default_str();
    hints_[noun->add_option("--dir", bench_.folder, "Folder on the disk to measure")].takes =
        Takes::folder;
    hints_[noun->add_option(
               "--report", bench_.report, "HTML page with charts, created or extended")]
        .takes = Takes::file;
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

CLI::App* CommandLine::add(CLI::App& above, const char* name, const char* help, Command command) {
    CLI::App* added = above.add_subcommand(name, help);
    added->footer(std::string(everywhere_help) + exit_codes_help);
    if (command) {
        commands_.emplace(added, std::move(command));
    }
    return added;
}

void CommandLine::add_setting(
    CLI::App& to, const char* names, const char* key, const char* help, Takes takes) {
    // Nothing is kept here: Config reads the results, and says where each value came from.
    CLI::Option* option =
        to.add_option_function<std::string>(names, [](const std::string&) {}, help);
    hints_[option].takes = takes;
    settings_.push_back({option, key});
}

void CommandLine::takes_choice(CLI::Option* option, std::vector<std::string> choices) {
    hints_[option] = {
        .names = {}, .help = {}, .takes = Takes::choice, .choices = std::move(choices)};
}

std::variant<Request, Answer> CommandLine::parse(int argc, const char* const* argv) {
    if (argc <= 1) {
        throw InvalidArgument(fmt::format("no command given; choose from {}; see holdfast --help",
                                          fmt::join(words_below(root_), ", ")));
    }
    const int own = program_begins_at(argc, argv);
    lock_.command.assign(argv + std::min(own + 1, argc), argv + argc);
    try {
        std::vector<std::string> words = without_old_poolsim_flags({argv + 1, argv + own});
        std::ranges::reverse(words);  // The order that CLI11 expects.
        root_.parse(std::move(words));
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
    throw InvalidArgument(
        with_old_poolsim_flags(fmt::format("{}; see {} --help", error.what(), path_of(command))));
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
    const std::string path = path_of(command);
    if (!option && (path == "holdfast lock run" || path == "holdfast lock elect")) {
        throw InvalidArgument(fmt::format(
            "unknown word '{}'; the command comes after --: {} KEY -- COMMAND...", word, path));
    }
    const std::string name = word.substr(0, word.find('='));
    const std::string nearest = closest(name, candidates);
    throw InvalidArgument(with_old_poolsim_flags(
        fmt::format("unknown {} '{}'{}; see {} --help",
                    option ? "option" : "word",
                    name,
                    nearest.empty() ? std::string{} : fmt::format(" (did you mean {}?)", nearest),
                    path)));
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
