// Command line of `holdfast server`.
#include "server/command_line.hpp"

namespace holdfast::app {
namespace {

constexpr const char* accepted = "Accepted for launchers of other servers, without effect";

void add_accepted(CLI::App& verb, ServerRequest& into) {
    verb.add_flag("--headless", into.headless, accepted);
    verb.add_option("--ui-port", into.ui_port, accepted);
    verb.add_option("--sqlite-pragma", into.sqlite_pragmas, accepted)->allow_extra_args(false);
    for (const char* const names : {"--ui-ip",
                                    "--ui-public-path",
                                    "--ui-asset-path",
                                    "--ui-codec-endpoint",
                                    "-o,--output",
                                    "--time-format",
                                    "--color",
                                    "--env",
                                    "--env-file",
                                    "--config-file",
                                    "--profile",
                                    "--command-timeout",
                                    "--client-connect-timeout"}) {
        verb.add_option(names, into.ignored, accepted)->group("")->allow_extra_args(false);
    }
    for (const char* const name : {"--ui-disable-news-fetch",
                                   "--no-json-shorthand-payloads",
                                   "--disable-config-file",
                                   "--disable-config-env"}) {
        verb.add_flag(name, into.ignores, accepted)->group("");
    }
}

// What the SDKs' test environments know as the time-skipping test server.
void add_start_test(CommandParser& to, CLI::App& noun, ServerRequest& into, ServerVerb start) {
    CLI::App* verb =
        to.add(noun,
               "start-test",
               "Start a server in memory whose time can jump, for tests of workflows.",
               [&into, start](const Context& context) { return start(context, into); });
    verb->footer(std::string("`holdfast PORT [--enable-time-skipping]` is the same, as the test "
                             "environments of the SDKs write it.\n\n") +
                 everywhere_help);
    verb->add_option("-p,--port", into.port, "Port of gRPC; 0 picks a free one")
        ->capture_default_str();
    verb->add_flag("--enable-time-skipping",
                   into.time_skipping,
                   "Time is skipped at once, not only when a client unlocks it");
}

void add_ports(CLI::App& verb, ServerRequest& into) {
    verb.add_option("-p,--port", into.port, "Port of gRPC; 0 picks a free one")
        ->capture_default_str();
    verb.add_option(
        "--http-port", into.http_port, "Port of the API in JSON; 0, the default, picks a free one");
    verb.add_option("--metrics-port",
                    into.metrics_port,
                    "Port of /metrics, /healthz and /readyz; 0, the default, picks a free one");
    verb.add_option("--ip", into.ip, "Address to listen on, for all ports")->capture_default_str();
}

// The names of the options are those of the development server that the SDKs' test environments
// start, so that they can start this one instead.
void add_start_dev(CommandParser& to, CLI::App& noun, ServerRequest& into, ServerVerb start_dev) {
    CLI::App* verb =
        to.add(noun,
               "start-dev",
               "Start a server on this machine, in memory unless a database is named.",
               [&into, start_dev](const Context& context) { return start_dev(context, into); });
    to.takes_file(verb->add_option("-f,--db-filename",
                                   into.db_filename,
                                   "SQLite file, created if it does not exist; instead of --db"));
    verb->add_option("-n,--namespace",
                     into.namespaces,
                     "Namespace created at start, beside default; may be repeated")
        ->allow_extra_args(false);
    verb->add_option("--search-attribute",
                     into.search_attributes,
                     "NAME=TYPE, created in every namespace of this command; may be repeated. "
                     "Types: Text, Keyword, Int, Double, Bool, Datetime, KeywordList")
        ->allow_extra_args(false);
    add_ports(*verb, into);
    verb->add_option("--dynamic-config-value",
                     into.dynamic_values,
                     "KEY=JSON, a setting by its name in other servers; may be repeated")
        ->allow_extra_args(false);
    verb->add_flag(
        "--log-config", into.log_config, "Print the settings in force to standard error");
    to.add_setting(*verb,
                   "--log-level",
                   "log.level",
                   "Lowest level that is logged: debug, info, warn, error or never")
        ->transform(CLI::Transformer({{"never", "off"}}));
    to.add_setting(*verb,
                   "--log-format",
                   "log.format",
                   "Format of log lines: text, pretty (the same) or json")
        ->transform(CLI::Transformer({{"pretty", "text"}}));
    add_accepted(*verb, into);
}

}  // namespace

void add_server(CommandParser& to, CLI::App& root, ServerRequest& into, const ServerVerbs& verbs) {
    CLI::App* noun =
        to.add(root, "server", "Serve workers and clients of the Temporal SDKs from one database.");
    noun->require_subcommand(1);
    add_start_dev(to, *noun, into, verbs.start_dev);
    add_start_test(to, *noun, into, verbs.start_test);
    to.add(*noun,
           "run",
           "Serve as the file of --config says: addresses, TLS, database, namespaces.",
           [&into, run = verbs.run](const Context& context) { return run(context, into); });
    CLI::App* check = to.add(
        *noun,
        "check",
        "Read every run of a database with its history, and say what is wrong; writes nothing.",
        [&into, check = verbs.check](const Context& context) { return check(context, into); });
    check->add_option("--problems", into.problems_max, "Stop after so many runs that are not right")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
}

}  // namespace holdfast::app
