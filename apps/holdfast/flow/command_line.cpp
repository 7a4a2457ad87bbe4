// The words of `holdfast flow`.
#include "cli/command_line.hpp"

namespace holdfast::app {
namespace {

constexpr int flow_list_max = 1000;
constexpr std::int64_t number_max = 1'000'000'000;

// What a script left empty by mistake is not what was left out.
void refuse_empty(CLI::Option& option) {
    option.check([](const std::string& text) {
        return text.empty() ? std::string("it is empty; name it, or leave it out") : std::string{};
    });
}

}  // namespace

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
    takes_choice(
        list->add_option("--status", flow_.status, "Only those in this state."),
        {"pending", "running", "blocked", "suspended", "completed", "failed", "cancelled"});
    add_where(*list);
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
        verb->add_option("--execution", flow_.execution, "An earlier execution.")
            ->check(CLI::Range(std::int64_t{1}, number_max));
    }
    add_flow_verb(noun,
                  "tail",
                  "Print its events as they happen, until it ends. Exit code 1 if it fails or is "
                  "cancelled.",
                  &flow_tail);
    add_flow_verb(noun, "stats", "Count what there is.", &flow_stats, false);
}

void CommandLine::add_where(CLI::App& verb) {
    refuse_empty(
        *verb.add_option("--where",
                         flow_.where,
                         "Filter: 'status=failed and workflow=shop.pay and older-than=1h'."));
}

// One instance by its id, or many by a filter.
void CommandLine::add_many(CLI::App& verb) {
    refuse_empty(*verb.add_option("id", flow_.id, "The instance; --where names many instead."));
    add_where(verb);
    verb.add_flag("--yes", flow_.yes, "Do not ask before changing many.");
    verb.add_flag("--dry-run", flow_.dry_run, "Only show what would happen.");
    verb.add_option("--page", flow_.page, "Where an earlier run with --where ended, as it said.");
}

void CommandLine::add_flow_talks(CLI::App& noun) {
    CLI::App* start = add_flow_verb(noun, "start", "Start a workflow.", &flow_start, false);
    start->add_option("workflow", flow_.workflow, "Its name.")->required();
    refuse_empty(
        *start->add_option("--id", flow_.id, "The instance's id; a random one if left out."));
    start->add_option("--input", flow_.input, "The arguments, as a JSON array.")
        ->capture_default_str();
    start->add_option("--version", flow_.version, "Of its code; the worker chooses if left out.");
    start->add_option("--delay", flow_.delay, "Begin this much later, as in 30s.");
    start->add_option(
        "--cron", flow_.cron, "Run by a schedule, in UTC: '*/5 * * * *', @daily, '@every 90m'.");
    takes_choice(
        start->add_option("--on-duplicate", flow_.on_duplicate, "If there is one of that id."),
        {"reject", "use-existing", "restart"});
    CLI::App* signal =
        add_flow_verb(noun, "signal", "Send a message to a channel.", &flow_signal, false);
    add_many(*signal);
    signal->add_option("channel", flow_.name, "Its name. With --where there is no id before it.");
    signal->add_option("message", flow_.data, "The message, as JSON; null if left out.");
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
    CLI::App* cancel =
        add_flow_verb(noun, "cancel", "Ask it to clean up and end.", &flow_cancel, false);
    add_many(*cancel);
    cancel->add_option("--grace", flow_.grace, "How long that may take.");
    CLI::App* terminate = add_flow_verb(
        noun, "terminate", "End it; its code gets no chance.", &flow_terminate, false);
    add_many(*terminate);
    CLI::App* suspend = add_flow_verb(noun, "suspend", "Let it rest.", &flow_suspend);
    for (CLI::App* verb : {cancel, terminate, suspend}) {
        verb->add_option("--reason", flow_.reason, "Why.")->capture_default_str();
    }
    add_flow_verb(noun, "resume", "Let a suspended one go on.", &flow_resume);
    CLI::App* reset = add_flow_verb(noun,
                                    "reset",
                                    "Take it back to an earlier point; it goes on from there.",
                                    &flow_reset,
                                    false);
    add_many(*reset);
    reset->add_option("--to", flow_.to, "The last event that stays.")
        ->check(CLI::Range(std::int64_t{1}, number_max));
    reset->add_flag("--to-start", flow_.to_start, "Only its start stays.");
    reset->add_flag("--before-failure", flow_.before_failure, "Undo the cause of its end.");
    reset->add_option("--version", flow_.version, "Of the code that goes on.");
}

void CommandLine::add_flow_house(CLI::App& noun) {
    CLI::App* out =
        add_flow_verb(noun, "export", "Write its history, one JSON line per event.", &flow_export);
    hints_[out->add_option("file", flow_.file, "Where; standard output if left out.")].takes =
        Takes::file;
    out->add_option("--execution", flow_.execution, "An earlier execution.")
        ->check(CLI::Range(std::int64_t{1}, number_max));
    CLI::App* in = add_flow_verb(noun, "import", "Make an instance of a history.", &flow_import);
    hints_[in->add_option("file", flow_.file, "What export wrote; - is standard input.")
               ->required()]
        .takes = Takes::file;
    CLI::App* remove = add_flow_verb(noun,
                                     "delete",
                                     "Remove one with its children, or those that ended long ago.",
                                     &flow_delete,
                                     false);
    refuse_empty(*remove->add_option("id", flow_.id, "The instance."));
    remove->add_flag("--force", flow_.force, "Even if it has not ended.");
    CLI::App* prune = add_flow_verb(noun,
                                    "prune",
                                    "Remove earlier executions of one, or of all those that ended "
                                    "long ago.",
                                    &flow_prune,
                                    false);
    refuse_empty(*prune->add_option("id", flow_.id, "The instance."));
    prune->add_option("--keep", flow_.keep, "How many to keep, the current one included.")
        ->check(CLI::Range(1, flow_list_max))
        ->capture_default_str();
    for (CLI::App* verb : {remove, prune}) {
        verb->add_option("--older-than", flow_.older_than, "Ended longer ago than this: 30d.");
        verb->add_option("--limit", flow_.limit, "Of how many instances at most, without an id.")
            ->check(CLI::Range(1, flow_list_max));
    }
    CLI::App* replay = add_flow_verb(noun,
                                     "replay",
                                     "Check a history against code; needs a program of yours.",
                                     &flow_replay,
                                     false);
    hints_[replay->add_option("file", flow_.file, "What export wrote.")].takes = Takes::file;
}

}  // namespace holdfast::app
