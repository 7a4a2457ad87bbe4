// The words of `holdfast dsql`.
#include "cli/command_line.hpp"

namespace holdfast::app {

void CommandLine::add_dsql() {
    CLI::App* noun = add(root_, "dsql", "Amazon Aurora DSQL: what it takes, without a cluster.");
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
            "Print a token, which is the password for one cluster: PGPASSWORD=$(...) psql ...",
            [this](const Context& context) { return dsql_token(context, dsql_token_); });
    verb->add_option("--endpoint", dsql_token_.endpoint, "The cluster's host name.")->required();
    verb->add_option("--region", dsql_token_.region, "If the host name does not say it.");
    verb->add_flag("--admin", dsql_token_.admin, "For the user admin; else for any other role.");
    verb->add_option("--expires", dsql_token_.expires, "Seconds, or as in 15m; 7 days at most.")
        ->capture_default_str();
    verb->add_option("--profile", dsql_token_.profile, "Of the AWS files; else as in the SDKs.");
    verb->add_option("--now", dsql_token_.now, "Sign for another moment: 2026-01-02T03:04:05Z.");
}

void CommandLine::add_dsql_doctor(CLI::App& noun) {
    add(noun,
        "doctor",
        "Check the way to a cluster: credentials, region, certificates, token, login, limits.",
        &dsql_doctor);
}

void CommandLine::add_dsql_lint(CLI::App& noun) {
    CLI::App* verb =
        add(noun,
            "lint",
            "Say what the service would refuse in these scripts, and what to write instead.",
            [this](const Context& context) { return dsql_lint(context, dsql_lint_); });
    hints_[verb->add_option("files", dsql_lint_.files, "SQL scripts; - is standard input.")
               ->required()]
        .takes = Takes::file;
    verb->add_flag("--fix", dsql_lint_.fix, "Rewrite what can be rewritten safely.");
}

void CommandLine::add_dsql_leases(CLI::App& noun) {
    CLI::App* leases =
        add(noun, "leases", "The connections that a fleet shares, as they stand in DynamoDB.");
    leases->require_subcommand(1);
    const auto verb = [&](const char* name, const char* help, auto run) {
        CLI::App* made = add(*leases, name, help, [this, run](const Context& context) {
            return run(context, dsql_leases_);
        });
        made->add_option("--region", dsql_leases_.region, "Where the tables are.");
        made->add_option(
            "--leases-table", dsql_leases_.leases_table, "Else the setting dsql.leases.table.");
        made->add_option(
            "--profile", dsql_leases_.profile, "Of the AWS files; else as in the SDKs.");
        return made;
    };
    verb("setup", "Make the tables, if they are not there.", &dsql_leases_setup)
        ->add_option(
            "--limiter-table", dsql_leases_.limiter_table, "Else the setting dsql.limiter.table.");
    verb("show", "Who holds how many connections.", &dsql_leases_show)
        ->add_option("--endpoint", dsql_leases_.endpoint, "The cluster's host name.");
    verb("reap", "Free the connections of processes that died.", &dsql_leases_reap)
        ->add_option("--endpoint", dsql_leases_.endpoint, "The cluster's host name.");
}

}  // namespace holdfast::app
