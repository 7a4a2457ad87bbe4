// Command line of `holdfast bench`.
#include "bench/command_line.hpp"

#include <holdfast/bench/suite.hpp>

namespace holdfast::app {
namespace {

// The names of `bench NAME`, for help and completion.
std::vector<std::string> bench_names() {
    std::vector<std::string> names;
    for (const bench::SuiteEntry& entry : bench::suites()) {
        names.emplace_back(entry.name);
    }
    names.emplace_back(server_suite);
    return names;
}

// A text that is given once with each flag.
CLI::Option* repeated(CLI::Option* option) {
    return option->expected(1)->allow_extra_args(false)->multi_option_policy(
        CLI::MultiOptionPolicy::TakeAll);
}

void add_choices(CLI::App& noun, BenchRequest& into) {
    repeated(noun.add_option(
        "--only", into.only, "Name or prefix of a measurement: pg.update.c8, sqlite"));
    noun.add_option("--scenario",
                    into.scenario,
                    "Scenario (suite flow): chain1, chain5, parallel, parallel0, fanout, timers, "
                    "longhistory, largepayload");
    noun.add_option(
        "--keys", into.keys, "Lock keys (suite locks): distinct, or one for all clients");
    noun.add_option("--clients", into.clients, "Number of clients (suites locks and server)");
}

void add_server_suite(CLI::App& noun, BenchRequest& into) {
    repeated(noun.add_option("--target",
                             into.targets,
                             "Server to measure (suite server): HOST:PORT, or ours; given twice, "
                             "the first one is compared with the second"));
    repeated(noun.add_option("--pid",
                             into.pids,
                             "Process of a --target HOST:PORT (suite server), whose processor "
                             "time and memory are read"));
    noun.add_option("--namespace", into.name_space, "Namespace of the workflows (suite server)")
        ->capture_default_str();
    noun.add_option("--open",
                    into.open,
                    "Number of workflows in one measurement of backlog and idle (suite server)")
        ->capture_default_str();
}

}  // namespace

void add_bench(CommandParser& to, CLI::App& root, BenchRequest& into, BenchVerb bench) {
    CLI::App* noun =
        to.add(root,
               "bench",
               "Measure Holdfast against the bare database and print the ratio.",
               [&into, bench](const Context& context) { return bench(context, into); });
    to.takes_choice(
        noun->add_option(
            "name", into.name, "Name of a suite; by default all but server, which needs gRPC"),
        bench_names());
    add_choices(*noun, into);
    add_server_suite(*noun, into);
    noun->add_option("--rounds", into.rounds, "Number of measurements per side")
        ->capture_default_str();
    noun->add_option("--seconds", into.seconds, "Duration of one measurement, in seconds")
        ->capture_default_str();
    to.takes_folder(noun->add_option("--dir", into.folder, "Folder on the disk to measure"));
    to.takes_file(
        noun->add_option("--report", into.report, "HTML page with charts, created or extended"));
}

}  // namespace holdfast::app
