// Command line of `holdfast dsql`.
#include "cli/command_line.hpp"

namespace holdfast::app {

void CommandLine::add_dsql() {
    CLI::App* noun =
        add(root_, "dsql", "Tools for Amazon Aurora DSQL, most of them without a cluster.");
    noun->require_subcommand(1);
    add_dsql_token(*noun);
    add_dsql_doctor(*noun);
    add_dsql_lint(*noun);
    add_dsql_leases(*noun);
    add_dsql_local(*noun);
    add_dsql_gateway(*noun);
}

void CommandLine::add_dsql_token(CLI::App& noun) {
    CLI::App* verb =
        add(noun,
            "token",
            "Print an IAM token, the password for one cluster: PGPASSWORD=$(...) psql ...",
            [this](const Context& context) { return dsql_token(context, dsql_token_); });
    verb->add_option("--endpoint", dsql_token_.endpoint, "Host name of the cluster")->required();
    verb->add_option(
        "--region", dsql_token_.region, "AWS region, if the host name does not contain it");
    verb->add_flag(
        "--admin", dsql_token_.admin, "Token for the user admin instead of the other roles");
    verb->add_option("--expires",
                     dsql_token_.expires,
                     "Lifetime in seconds or with a unit (15m); at most 7 days")
        ->capture_default_str();
    verb->add_option(
        "--profile", dsql_token_.profile, "Profile in the AWS files; default as in the AWS SDKs");
    verb->add_option(
        "--now", dsql_token_.now, "Time of the signature (2026-01-02T03:04:05Z); default now");
}

void CommandLine::add_dsql_doctor(CLI::App& noun) {
    add(noun,
        "doctor",
        "Check the connection to a cluster: credentials, region, certificates, token, login, "
        "limits.",
        &dsql_doctor);
}

void CommandLine::add_dsql_lint(CLI::App& noun) {
    CLI::App* verb = add(noun,
                         "lint",
                         "Report what DSQL refuses in SQL scripts, and what to write instead.",
                         [this](const Context& context) { return dsql_lint(context, dsql_lint_); });
    hints_[verb->add_option("files", dsql_lint_.files, "SQL scripts; - reads standard input")
               ->required()]
        .takes = Takes::file;
    verb->add_flag("--fix", dsql_lint_.fix, "Automatic rewrite of what is safe to rewrite");
}

void CommandLine::add_dsql_leases(CLI::App& noun) {
    CLI::App* leases =
        add(noun, "leases", "Connection leases that a fleet shares through DynamoDB.");
    leases->require_subcommand(1);
    const auto verb = [&](const char* name, const char* help, auto run) {
        CLI::App* made = add(*leases, name, help, [this, run](const Context& context) {
            return run(context, dsql_leases_);
        });
        made->add_option("--region", dsql_leases_.region, "AWS region of the tables");
        made->add_option("--leases-table",
                         dsql_leases_.leases_table,
                         "Table of leases; default is the setting dsql.leases.table");
        made->add_option("--profile",
                         dsql_leases_.profile,
                         "Profile in the AWS files; default as in the AWS SDKs");
        return made;
    };
    verb("setup", "Create the tables that do not exist yet.", &dsql_leases_setup)
        ->add_option("--limiter-table",
                     dsql_leases_.limiter_table,
                     "Table of the limiter; default is the setting dsql.limiter.table");
    verb("show", "Show how many connections each process holds.", &dsql_leases_show)
        ->add_option("--endpoint", dsql_leases_.endpoint, "Host name of the cluster");
    verb("reap", "Free the connections of dead processes.", &dsql_leases_reap)
        ->add_option("--endpoint", dsql_leases_.endpoint, "Host name of the cluster");
}

}  // namespace holdfast::app
