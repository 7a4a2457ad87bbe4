// The words of `holdfast lock`.
#include "cli/command_line.hpp"

#include <holdfast/base/exit_code.hpp>

namespace holdfast::app {
namespace {

constexpr int lock_list_max = 10'000;
constexpr int purge_rows_max = 10'000'000;

}  // namespace

void CommandLine::add_lock() {
    CLI::App* noun = add(root_, "lock", "Locks with fences: take them, run programs under them.");
    noun->require_subcommand(1);
    add_lock_runs(*noun);
    add_lock_takes(*noun);
    add_lock_house(*noun);
    add_lock_tables(*noun);
}

CLI::App* CommandLine::add_lock_verb(
    CLI::App& noun, const char* name, const char* help, LockVerb run, bool key) {
    CLI::App* verb = add(noun, name, help, [this, run](const Context& context) {
        return run_lock_verb(run, context, lock_);
    });
    verb->footer(std::string(everywhere_help) + lock_exit_codes_help);
    if (key) {
        verb->add_option("key", lock_.key, "The lock.")->required();
    }
    return verb;
}

void CommandLine::add_lock_tables(CLI::App& noun) {
    add_setting(noun, "--locks-table", "lock.locks_table", "The table of locks.");
    add_setting(noun, "--fences-table", "lock.fences_table", "The table of fence counters.");
}

void CommandLine::add_lock_wait(CLI::App& verb) {
    verb.add_option("--ttl", lock_.ttl, "How long the lease lasts.")->capture_default_str();
    verb.add_flag("--wait", lock_.wait, "Wait for as long as it takes.");
    verb.add_flag("--no-wait", lock_.no_wait, "Try once.");
    verb.add_option("--timeout", lock_.timeout, "Wait at most this long; 5s if left out.");
    verb.add_option("--meta", lock_.meta, "A note for people who look at the lock.");
}

void CommandLine::add_lock_runs(CLI::App& noun) {
    CLI::App* run =
        add_lock_verb(noun,
                      "run",
                      "Run a command under a lock: run KEY -- COMMAND; end it if the lock is lost.",
                      &lock_run);
    add_lock_wait(*run);
    CLI::App* elect =
        add_lock_verb(noun,
                      "elect",
                      "Stand for election: elect KEY [-- COMMAND]; run the command while leading.",
                      &lock_elect);
    elect->add_option("--ttl", lock_.ttl, "How long a dead leader stands in the way.")
        ->capture_default_str();
    elect->add_option("--meta", lock_.meta, "A note for people who ask who leads.");
    for (CLI::App* verb : {run, elect}) {
        verb->add_option("--grace", lock_.grace, "Between SIGTERM and SIGKILL, if the lease lasts.")
            ->capture_default_str();
    }
}

void CommandLine::add_lock_takes(CLI::App& noun) {
    CLI::App* acquire = add_lock_verb(noun, "acquire", "Take a lock and leave.", &lock_acquire);
    add_lock_wait(*acquire);
    acquire->add_flag("--show-id", lock_.show_id, "Print the id: whoever has it can release.");
    hints_[acquire->add_option("--id-file", lock_.id_file, "Write the id there, for us alone.")]
        .takes = Takes::file;
    CLI::App* release = add_lock_verb(noun, "release", "Give it back.", &lock_release, false);
    CLI::App* extend =
        add_lock_verb(noun, "extend", "Let the lease last for another ttl.", &lock_extend, false);
    extend->add_option("--ttl", lock_.ttl, "From now on.")->capture_default_str();
    for (CLI::App* verb : {release, extend}) {
        hints_[verb->add_option("--id-file", lock_.id_file, "Where acquire wrote the id.")].takes =
            Takes::file;
        verb->add_flag("--id-stdin", lock_.id_stdin, "Read the id from standard input.");
    }
}

void CommandLine::add_lock_house(CLI::App& noun) {
    add_lock_verb(noun, "status", "Say who holds a lock, since when, until when.", &lock_status);
    CLI::App* list = add_lock_verb(noun, "list", "List locks by key.", &lock_list, false);
    list->add_option("--prefix", lock_.prefix, "Only keys that begin like this.");
    list->add_flag("--dead", lock_.dead, "Also those whose lease has run out.");
    list->add_option("--limit", lock_.limit, "How many.")
        ->check(CLI::Range(1, lock_list_max))
        ->capture_default_str();
    list->add_option("--after", lock_.after, "The last key of the page before.");
    CLI::App* force = add_lock_verb(
        noun, "force-release", "Take a lock from whoever holds it.", &lock_force_release);
    force->add_option("--fence", lock_.fence, "As status shows it: you have looked.")->required();
    CLI::App* purge =
        add_lock_verb(noun, "purge", "Remove dead locks; never a counter.", &lock_purge, false);
    purge->add_option("--limit", lock_.rows, "How many at most in a round.")
        ->check(CLI::Range(1, purge_rows_max))
        ->capture_default_str();
    purge->add_option("--every", lock_.every, "Again and again, as in 60s.");
    CLI::App* doctor =
        add_lock_verb(noun,
                      "doctor",
                      "Look at the tables; compare counters with fences, as after a restore.",
                      &lock_doctor,
                      false);
    doctor->add_flag("--repair", lock_.repair, "Lift the counters that are behind.");
    doctor->add_option("--gap", lock_.gap, "Lift all of them by this much more.")
        ->check(CLI::Range(std::int64_t{0}, std::int64_t{1'000'000'000}));
}

}  // namespace holdfast::app
