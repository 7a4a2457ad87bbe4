// Command line of `holdfast flow`.
#include "cli/command_line.hpp"

namespace holdfast::app {
namespace {

constexpr int flow_list_max = 1000;
constexpr std::int64_t number_max = 1'000'000'000;

// An empty value, as from an unset variable of a script, is not the same as no value.
void refuse_empty(CLI::Option& option) {
    option.check([](const std::string& text) {
        return text.empty() ? std::string("the value is empty; give one, or leave the option out")
                            : std::string{};
    });
}

}  // namespace

void CommandLine::add_flow() {
    CLI::App* noun = add(root_, "flow", "Inspect, control and clean up workflows.");
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
        verb->add_option("id", flow_.id, "Instance id")->required();
    }
    return verb;
}

void CommandLine::add_flow_looks(CLI::App& noun) {
    CLI::App* list =
        add_flow_verb(noun, "list", "List instances, newest first.", &flow_list, false);
    takes_choice(
        list->add_option("--status", flow_.status, "Instances with this status"),
        {"pending", "running", "blocked", "suspended", "completed", "failed", "cancelled"});
    add_where(*list);
    list->add_option("--workflow", flow_.workflow, "Instances of this workflow");
    list->add_option("--version", flow_.version, "Instances that run this version of the workflow");
    list->add_option("--prefix", flow_.prefix, "Instances whose id has this prefix");
    list->add_option("--attribute",
                     flow_.attributes,
                     "Instances with the search attribute NAME=JSON; repeatable");
    list->add_option(
        "--younger-than", flow_.younger_than, "Instances created within this duration (2h)");
    list->add_option(
        "--older-than", flow_.older_than, "Instances created longer ago than this (30d)");
    list->add_option("--limit", flow_.limit, "Maximum number of instances")
        ->check(CLI::Range(1, flow_list_max))
        ->capture_default_str();
    list->add_option("--page", flow_.page, "Page token that the previous page printed");
    CLI::App* show = add_flow_verb(
        noun, "show", "Show an instance: its state, what it waits for, its timeline.", &flow_show);
    show->add_flag("--all", flow_.all, "Complete timeline, even a long one");
    CLI::App* history =
        add_flow_verb(noun, "history", "Print the events of an instance.", &flow_history);
    for (CLI::App* verb : {show, history}) {
        verb->add_option("--execution", flow_.execution, "Number of an earlier execution")
            ->check(CLI::Range(std::int64_t{1}, number_max));
    }
    add_flow_verb(noun,
                  "tail",
                  "Print its events as they happen, until it ends. Exit code 1 if it fails or is "
                  "cancelled.",
                  &flow_tail);
    add_flow_verb(noun, "stats", "Count instances, messages and activities.", &flow_stats, false);
}

void CommandLine::add_where(CLI::App& verb) {
    refuse_empty(*verb.add_option(
        "--where", flow_.where, "Filter: 'status=failed and workflow=shop.pay and older-than=1h'"));
}

// One instance by its id, or many by a filter.
void CommandLine::add_many(CLI::App& verb) {
    refuse_empty(*verb.add_option("id", flow_.id, "Instance id; --where selects many instead"));
    add_where(verb);
    verb.add_flag("--yes", flow_.yes, "No question before many instances change");
    verb.add_flag("--dry-run", flow_.dry_run, "Preview only; nothing changes");
    verb.add_option("--page", flow_.page, "Page token that an earlier run with --where printed");
}

void CommandLine::add_flow_talks(CLI::App& noun) {
    CLI::App* start = add_flow_verb(noun, "start", "Start a workflow.", &flow_start, false);
    start->add_option("workflow", flow_.workflow, "Name of the workflow")->required();
    refuse_empty(*start->add_option("--id", flow_.id, "Instance id; random by default"));
    start->add_option("--input", flow_.input, "Arguments as a JSON array")->capture_default_str();
    start->add_option(
        "--version", flow_.version, "Version of the workflow; the worker chooses by default");
    start->add_option("--delay", flow_.delay, "Delay before the start (30s)");
    start->add_option(
        "--cron", flow_.cron, "Cron schedule in UTC: '*/5 * * * *', @daily, '@every 90m'");
    takes_choice(start->add_option("--on-duplicate",
                                   flow_.on_duplicate,
                                   "Policy if the id exists: reject, use-existing or restart"),
                 {"reject", "use-existing", "restart"});
    CLI::App* signal =
        add_flow_verb(noun, "signal", "Send a message to a channel.", &flow_signal, false);
    add_many(*signal);
    signal->add_option(
        "channel", flow_.name, "Name of the channel; with --where no id precedes it");
    signal->add_option("message", flow_.data, "Message as JSON; null by default");
    signal->add_flag("--positional",
                     flow_.positional,
                     "Signal for an existing wait; only recorded if there is none");
    signal->add_flag(
        "--early", flow_.early, "Message kept for an instance that has not started yet");
    CLI::App* query =
        add_flow_verb(noun, "query", "Query an instance; a worker answers.", &flow_query);
    CLI::App* update =
        add_flow_verb(noun, "update", "Update an instance; a worker answers.", &flow_update);
    for (CLI::App* verb : {query, update}) {
        verb->add_option("name", flow_.name, "Name of the query or update")->required();
        verb->add_option("input", flow_.input, "Arguments as a JSON array")->capture_default_str();
        verb->add_option("--timeout", flow_.timeout, "Maximum time to wait for the answer")
            ->capture_default_str();
    }
    CLI::App* cancel = add_flow_verb(noun,
                                     "cancel",
                                     "Request cancellation: the workflow cleans up and ends.",
                                     &flow_cancel,
                                     false);
    add_many(*cancel);
    cancel->add_option("--grace", flow_.grace, "Time for the cleanup; 0 is the worker's default");
    CLI::App* terminate = add_flow_verb(
        noun, "terminate", "End an instance without running its code.", &flow_terminate, false);
    add_many(*terminate);
    CLI::App* fail = add_flow_verb(
        noun, "fail", "End an instance as failed, without running its code.", &flow_fail, false);
    add_many(*fail);
    CLI::App* suspend =
        add_flow_verb(noun, "suspend", "Suspend an instance until it is resumed.", &flow_suspend);
    for (CLI::App* verb : {cancel, terminate, fail, suspend}) {
        verb->add_option("--reason", flow_.reason, "Reason, recorded with the instance")
            ->capture_default_str();
    }
    add_flow_verb(noun, "resume", "Resume a suspended instance.", &flow_resume);
    CLI::App* reset =
        add_flow_verb(noun,
                      "reset",
                      "Reset an instance to an earlier event; it continues from there.",
                      &flow_reset,
                      false);
    add_many(*reset);
    reset->add_option("--to", flow_.to, "Id of the last event to keep")
        ->check(CLI::Range(std::int64_t{1}, number_max));
    reset->add_flag("--to-start", flow_.to_start, "Reset to the start event");
    reset->add_flag(
        "--before-failure", flow_.before_failure, "Reset to before the cause of the failure");
    reset->add_option("--version", flow_.version, "Version of the workflow that continues");
}

void CommandLine::add_flow_house(CLI::App& noun) {
    CLI::App* out = add_flow_verb(
        noun, "export", "Write the history of an instance, one JSON line per event.", &flow_export);
    hints_[out->add_option("file", flow_.file, "Output file; standard output by default")].takes =
        Takes::file;
    out->add_option("--execution", flow_.execution, "Number of an earlier execution")
        ->check(CLI::Range(std::int64_t{1}, number_max));
    CLI::App* in =
        add_flow_verb(noun, "import", "Create an instance from an exported history.", &flow_import);
    hints_[in->add_option("file", flow_.file, "File that flow export wrote; - reads standard input")
               ->required()]
        .takes = Takes::file;
    CLI::App* remove =
        add_flow_verb(noun,
                      "delete",
                      "Delete an instance with its children, or all that ended long ago.",
                      &flow_delete,
                      false);
    refuse_empty(*remove->add_option("id", flow_.id, "Instance id"));
    remove->add_flag("--force", flow_.force, "Deletion even if the instance has not ended");
    CLI::App* prune = add_flow_verb(noun,
                                    "prune",
                                    "Remove earlier executions of one, or of all those that ended "
                                    "long ago.",
                                    &flow_prune,
                                    false);
    refuse_empty(*prune->add_option("id", flow_.id, "Instance id"));
    prune->add_option("--keep", flow_.keep, "Number of executions to keep, with the current one")
        ->check(CLI::Range(1, flow_list_max))
        ->capture_default_str();
    for (CLI::App* verb : {remove, prune}) {
        verb->add_option(
            "--older-than", flow_.older_than, "Instances that ended longer ago than this (30d)");
        verb->add_option("--limit", flow_.limit, "Maximum number of instances, without an id")
            ->check(CLI::Range(1, flow_list_max));
    }
    CLI::App* replay =
        add_flow_verb(noun,
                      "replay",
                      "Check a history against the code; only in a program with your workflows.",
                      &flow_replay,
                      false);
    hints_[replay->add_option("file", flow_.file, "File that flow export wrote")].takes =
        Takes::file;
}

}  // namespace holdfast::app
