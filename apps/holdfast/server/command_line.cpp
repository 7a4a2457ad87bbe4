// Command line of `holdfast server`.
#include "server/command_line.hpp"

namespace holdfast::app {
namespace {

constexpr const char* accepted = "Accepted for launchers of other servers, without effect";

void add_accepted(CLI::App& verb, ServerRequest& into) {
    verb.add_flag("--headless", into.headless, accepted);
    verb.add_option("--http-port", into.http_port, accepted);
    verb.add_option("--metrics-port", into.metrics_port, accepted);
    verb.add_option("--ui-port", into.ui_port, accepted);
    verb.add_option("--dynamic-config-value", into.dynamic_values, accepted)
        ->allow_extra_args(false);
    verb.add_option("--sqlite-pragma", into.sqlite_pragmas, accepted)->allow_extra_args(false);
}

}  // namespace

// The names of the options are those of the development server that the SDKs' test environments
// start, so that they can start this one instead.
void add_server(CommandParser& to, CLI::App& root, ServerRequest& into, ServerVerb start_dev) {
    CLI::App* noun =
        to.add(root, "server", "Serve workers and clients of the Temporal SDKs from one database.");
    noun->require_subcommand(1);
    CLI::App* verb =
        to.add(*noun,
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
    verb->add_option("-p,--port", into.port, "Port of gRPC; 0 picks a free one")
        ->capture_default_str();
    verb->add_option("--ip", into.ip, "Address to listen on")->capture_default_str();
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

}  // namespace holdfast::app
