#include "cli.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include "bench.hpp"
#include "command_tree.hpp"
#include "completion.hpp"
#include "config.hpp"
#include "demo.hpp"
#include "flow.hpp"
#include "schema.hpp"
#include "version.hpp"
#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/exit_code.hpp>

namespace holdfast::app {
namespace {

constexpr int orders_min = 3;
constexpr int orders_max = 100;
constexpr int flow_list_max = 1000;

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
    void add_flow();
    void add_flow_looks(CLI::App& noun);
    void add_flow_talks(CLI::App& noun);
    void add_flow_house(CLI::App& noun);
    void add_schema();
    void add_bench();
    void add_config();
    void add_completion();
    void add_version();

    // A verb of flow; `id`: about one instance.
    CLI::App* add_flow_verb(CLI::App& noun,
                            const char* name,
                            const char* help,
                            int (*run)(const Context&, const FlowRequest&),
                            bool id = true);
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
    DemoWorkerRequest demo_worker_;
    FlowRequest flow_;
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
    add_flow();
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
                         "A shop's orders, a kill -9 at the worst moments, every charge done once.",
                         [this](const Context& context) { return demo(context, demo_); });
    noun->add_option("--orders", demo_.orders, "How many at once.")
        ->check(CLI::Range(orders_min, orders_max))
        ->capture_default_str();
    noun->add_flag("--keep", demo_.keep, "Leave the orders and the ledger behind.");

    // The process that the demo kills.
    CLI::App* worker = add(root_, "demo-worker", "", [this](const Context& context) {
        return demo_worker(context, demo_worker_);
    });
    worker->group("");
    worker->add_option("--number", demo_worker_.number)->required();
    worker->add_option("--hold-at", demo_worker_.hold_at);
    worker->add_option("--hold-order", demo_worker_.hold_order);
}

void CommandLine::add_flow() {
    CLI::App* noun = add(root_, "flow", "Workflows: look at them, steer them, keep house.");
    noun->require_subcommand(1);
    add_flow_looks(*noun);
    add_flow_talks(*noun);
    add_flow_house(*noun);
}

CLI::App* CommandLine::add_flow_verb(CLI::App& noun,
                                     const char* name,
                                     const char* help,
                                     int (*run)(const Context&, const FlowRequest&),
                                     bool id) {
    CLI::App* verb =
        add(noun, name, help, [this, run](const Context& context) { return run(context, flow_); });
    if (id) {
        verb->add_option("id", flow_.id, "The instance.")->required();
    }
    return verb;
}

void CommandLine::add_flow_looks(CLI::App& noun) {
    CLI::App* list =
        add_flow_verb(noun, "list", "List instances, newest first.", &flow_list, false);
    takes_choice(list->add_option("--status", flow_.status, "Only those in this state."),
                 {"pending", "running", "completed", "failed", "cancelled"});
    list->add_option("--workflow", flow_.workflow, "Only those of this workflow.");
    list->add_option("--version", flow_.version, "Only those that run this version of it.");
    list->add_option("--prefix", flow_.prefix, "Only ids that begin like this.");
    list->add_option("--attribute", flow_.attributes, "Only those with NAME=JSON; repeatable.");
    list->add_option("--younger-than", flow_.younger_than, "Created less long ago than this: 2h.");
    list->add_option("--older-than", flow_.older_than, "Created longer ago than this: 30d.");
    list->add_option("--limit", flow_.limit, "How many.")
        ->check(CLI::Range(1, flow_list_max))
        ->capture_default_str();
    list->add_option("--page", flow_.page, "Where the page before ended, as it said.");
    CLI::App* show = add_flow_verb(
        noun, "show", "Show one: what it is, what it waits for, its timeline.", &flow_show);
    show->add_flag("--all", flow_.all, "Every step of a long timeline.");
    CLI::App* history = add_flow_verb(noun, "history", "Print its events.", &flow_history);
    for (CLI::App* verb : {show, history}) {
        verb->add_option("--execution", flow_.execution, "An earlier execution.");
    }
    add_flow_verb(noun, "tail", "Print its events as they happen, until it ends.", &flow_tail);
    add_flow_verb(noun, "stats", "Count what there is.", &flow_stats, false);
}

void CommandLine::add_flow_talks(CLI::App& noun) {
    CLI::App* start = add_flow_verb(noun, "start", "Start a workflow.", &flow_start, false);
    start->add_option("workflow", flow_.workflow, "Its name.")->required();
    start->add_option("--id", flow_.id, "The instance's id; a random one if left out.");
    start->add_option("--input", flow_.input, "The arguments, as a JSON array.")
        ->capture_default_str();
    start->add_option("--version", flow_.version, "Of its code; the worker chooses if left out.");
    start->add_option("--delay", flow_.delay, "Begin this much later, as in 30s.");
    start->add_option(
        "--cron", flow_.cron, "Run by a schedule, in UTC: '*/5 * * * *', @daily, '@every 90m'.");
    takes_choice(
        start->add_option("--on-duplicate", flow_.on_duplicate, "If there is one of that id."),
        {"reject", "use-existing", "restart"});
    CLI::App* signal = add_flow_verb(noun, "signal", "Send a message to a channel.", &flow_signal);
    signal->add_option("channel", flow_.name, "Its name.")->required();
    signal->add_option("message", flow_.data, "The message, as JSON.")->capture_default_str();
    signal->add_flag("--positional", flow_.positional, "To a wait that is already there, or lost.");
    signal->add_flag("--early", flow_.early, "Keep it for an instance that is about to start.");
    CLI::App* query = add_flow_verb(noun, "query", "Ask; a worker answers.", &flow_query);
    CLI::App* update =
        add_flow_verb(noun, "update", "Change its state; a worker answers.", &flow_update);
    for (CLI::App* verb : {query, update}) {
        verb->add_option("name", flow_.name, "Of the question.")->required();
        verb->add_option("input", flow_.input, "The arguments, as a JSON array.")
            ->capture_default_str();
        verb->add_option("--timeout", flow_.timeout, "How long to wait.")->capture_default_str();
    }
    CLI::App* cancel = add_flow_verb(noun, "cancel", "Ask it to clean up and end.", &flow_cancel);
    cancel->add_option("--grace", flow_.grace, "How long that may take.");
    CLI::App* terminate =
        add_flow_verb(noun, "terminate", "End it; its code gets no chance.", &flow_terminate);
    CLI::App* suspend = add_flow_verb(noun, "suspend", "Let it rest.", &flow_suspend);
    for (CLI::App* verb : {cancel, terminate, suspend}) {
        verb->add_option("--reason", flow_.reason, "Why.")->capture_default_str();
    }
    add_flow_verb(noun, "resume", "Let a suspended one go on.", &flow_resume);
    CLI::App* reset = add_flow_verb(
        noun, "reset", "Take it back to an earlier point; it goes on from there.", &flow_reset);
    reset->add_option("--to", flow_.to, "The last event that stays.");
    reset->add_flag("--to-start", flow_.to_start, "Only its start stays.");
    reset->add_flag("--before-failure", flow_.before_failure, "Try again what failed last.");
    reset->add_option("--version", flow_.version, "Of the code that goes on.");
}

void CommandLine::add_flow_house(CLI::App& noun) {
    CLI::App* out =
        add_flow_verb(noun, "export", "Write its history, one JSON line per event.", &flow_export);
    hints_[out->add_option("file", flow_.file, "Where; standard output if left out.")].takes =
        Takes::file;
    out->add_option("--execution", flow_.execution, "An earlier execution.");
    CLI::App* in = add_flow_verb(noun, "import", "Make an instance of a history.", &flow_import);
    hints_[in->add_option("file", flow_.file, "What export wrote; - is standard input.")
               ->required()]
        .takes = Takes::file;
    CLI::App* remove = add_flow_verb(noun,
                                     "delete",
                                     "Remove one with its children, or those that ended long ago.",
                                     &flow_delete,
                                     false);
    remove->add_option("id", flow_.id, "The instance.");
    remove->add_flag("--force", flow_.force, "Even if it has not ended.");
    remove->add_option("--limit", flow_.limit, "How many of the old ones at most.")
        ->check(CLI::Range(1, flow_list_max));
    CLI::App* prune = add_flow_verb(noun, "prune", "Remove its earlier executions.", &flow_prune);
    prune->add_option("--keep", flow_.keep, "How many to keep, the current one included.")
        ->check(CLI::Range(1, flow_list_max))
        ->capture_default_str();
    for (CLI::App* verb : {remove, prune}) {
        verb->add_option("--older-than", flow_.older_than, "Ended longer ago than this: 30d.");
    }
    CLI::App* replay = add_flow_verb(noun,
                                     "replay",
                                     "Check a history against code; needs a program of yours.",
                                     &flow_replay,
                                     false);
    hints_[replay->add_option("file", flow_.file, "What export wrote.")].takes = Takes::file;
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
    noun->add_option("--scenario",
                     bench_.scenario,
                     "Of flow: chain1, chain5, parallel, parallel0, fanout, timers, longhistory, "
                     "largepayload.");
    noun->add_option("--keys", bench_.keys, "Of locks: distinct, or one for everybody.");
    noun->add_option("--clients", bench_.clients, "Of locks: how many at once.");
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
