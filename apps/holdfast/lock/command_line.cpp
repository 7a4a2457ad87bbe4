// Command line of `holdfast lock`.
#include "cli/command_line.hpp"

#include <holdfast/base/exit_code.hpp>

namespace holdfast::app {
namespace {

constexpr int lock_list_max = 10'000;
constexpr int purge_rows_max = 10'000'000;

}  // namespace

void CommandLine::add_lock() {
    CLI::App* noun =
        add(root_, "lock", "Acquire, inspect and release locks; run programs under them.");
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
        verb->add_option("key", lock_.key, "Key of the lock")->required();
    }
    return verb;
}

void CommandLine::add_lock_tables(CLI::App& noun) {
    add_setting(noun, "--locks-table", "lock.locks_table", "Table of locks");
    add_setting(noun, "--fences-table", "lock.fences_table", "Table of fence counters");
}

void CommandLine::add_lock_wait(CLI::App& verb) {
    verb.add_option("--ttl", lock_.ttl, "Duration of the lease")->capture_default_str();
    verb.add_flag("--wait", lock_.wait, "No limit on the wait");
    verb.add_flag("--no-wait", lock_.no_wait, "One attempt, without waiting");
    verb.add_option("--timeout", lock_.timeout, "Maximum wait; 5s by default");
    verb.add_option("--meta", lock_.meta, "Note that lock status shows");
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
    elect
        ->add_option(
            "--ttl", lock_.ttl, "Duration of the lease: the time until a dead leader is replaced")
        ->capture_default_str();
    elect->add_option("--meta", lock_.meta, "Note that lock status shows");
    for (CLI::App* verb : {run, elect}) {
        explain_words(
            *verb,
            "the command comes after --: holdfast lock " + verb->get_name() + " KEY -- COMMAND...");
        verb->add_option("--grace", lock_.grace, "Time from SIGTERM to SIGKILL, within the lease")
            ->capture_default_str();
    }
}

void CommandLine::add_lock_takes(CLI::App& noun) {
    CLI::App* acquire = add_lock_verb(noun, "acquire", "Acquire a lock and exit.", &lock_acquire);
    add_lock_wait(*acquire);
    acquire->add_flag(
        "--show-id", lock_.show_id, "Lock id in the output; it is enough to release the lock");
    hints_[acquire->add_option(
               "--id-file", lock_.id_file, "File for the lock id, readable by its owner only")]
        .takes = Takes::file;
    CLI::App* release = add_lock_verb(noun, "release", "Release a lock.", &lock_release, false);
    CLI::App* extend =
        add_lock_verb(noun, "extend", "Extend the lease of a lock.", &lock_extend, false);
    extend->add_option("--ttl", lock_.ttl, "Duration of the lease from now on")
        ->capture_default_str();
    for (CLI::App* verb : {release, extend}) {
        hints_[verb->add_option(
                   "--id-file", lock_.id_file, "File to which lock acquire wrote the lock id")]
            .takes = Takes::file;
        verb->add_flag("--id-stdin", lock_.id_stdin, "Lock id from standard input");
    }
}

void CommandLine::add_lock_house(CLI::App& noun) {
    add_lock_verb(
        noun, "status", "Show the holder of a lock, since when and until when.", &lock_status);
    CLI::App* list = add_lock_verb(noun, "list", "List locks by key.", &lock_list, false);
    list->add_option("--prefix", lock_.prefix, "Locks whose key has this prefix");
    list->add_flag("--dead", lock_.dead, "Expired locks too");
    list->add_option("--limit", lock_.limit, "Maximum number of locks")
        ->check(CLI::Range(1, lock_list_max))
        ->capture_default_str();
    list->add_option("--after", lock_.after, "Last key of the previous page");
    CLI::App* force = add_lock_verb(
        noun, "force-release", "Release a lock that another process holds.", &lock_force_release);
    force->add_option("--fence", lock_.fence, "Fence of the lock, as lock status shows it")
        ->required();
    CLI::App* purge = add_lock_verb(
        noun, "purge", "Remove expired locks; fence counters stay.", &lock_purge, false);
    purge->add_option("--limit", lock_.rows, "Maximum number of locks per round")
        ->check(CLI::Range(1, purge_rows_max))
        ->capture_default_str();
    purge->add_option("--every", lock_.every, "Interval to repeat the purge (60s)");
    CLI::App* doctor = add_lock_verb(
        noun,
        "doctor",
        "Check the tables, and the fence counters against the locks, for example after a restore.",
        &lock_doctor,
        false);
    doctor->add_flag("--repair", lock_.repair, "Repair of counters that are behind");
    doctor->add_option("--gap", lock_.gap, "Number to add to every counter")
        ->check(CLI::Range(std::int64_t{0}, std::int64_t{1'000'000'000}));
}

}  // namespace holdfast::app
