// Command line of `holdfast server`.
#include "cli/command_line.hpp"

namespace holdfast::app {

void CommandLine::add_server() {
    CLI::App* noun =
        add(root_, "server", "Serve workers and clients of the Temporal SDKs from one database.");
    noun->require_subcommand(1);
    add_server_start_dev(*noun);
}

// The names are those of the development server that the SDKs' test environments start, so that
// they can start this one instead.
void CommandLine::add_server_start_dev(CLI::App& noun) {
    CLI::App* verb =
        add(noun,
            "start-dev",
            "Start a server on this machine, in memory unless a database is named.",
            [this](const Context& context) { return server_start_dev(context, server_); });
    hints_[verb->add_option("-f,--db-filename",
                            server_.db_filename,
                            "SQLite file, created if it does not exist; instead of --db")]
        .takes = Takes::file;
    verb->add_option("-n,--namespace",
                     server_.namespaces,
                     "Namespace created at start, beside default; may be repeated")
        ->allow_extra_args(false);
    verb->add_option("-p,--port", server_.port, "Port of gRPC; 0 picks a free one")
        ->capture_default_str();
    verb->add_option("--ip", server_.ip, "Address to listen on")->capture_default_str();
    const auto level =
        add_setting(*verb,
                    "--log-level",
                    "log.level",
                    "Lowest level that is logged: debug, info, warn, error or never");
    level->transform(CLI::Transformer({{"never", "off"}}));
    const auto format = add_setting(*verb,
                                    "--log-format",
                                    "log.format",
                                    "Format of log lines: text, pretty (the same) or json");
    format->transform(CLI::Transformer({{"pretty", "text"}}));

    const std::string accepted = "Accepted for launchers of other servers, without effect";
    verb->add_flag("--headless", server_.headless, accepted);
    verb->add_option("--http-port", server_.http_port, accepted);
    verb->add_option("--metrics-port", server_.metrics_port, accepted);
    verb->add_option("--ui-port", server_.ui_port, accepted);
    verb->add_option("--dynamic-config-value", server_.dynamic_values, accepted)
        ->allow_extra_args(false);
    verb->add_option("--sqlite-pragma", server_.sqlite_pragmas, accepted)->allow_extra_args(false);
}

}  // namespace holdfast::app
