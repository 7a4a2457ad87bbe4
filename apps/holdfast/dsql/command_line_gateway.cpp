// The words of `holdfast dsql` that are about a cluster of one's own.
#include "cli/command_line.hpp"

namespace holdfast::app {
namespace {

constexpr int job_duration_ms_max = 3'600'000;
constexpr int port_max = 65535;

}  // namespace

void CommandLine::add_dsql_gateway(CLI::App& noun) {
    CLI::App* verb = add(
        noun,
        "gateway",
        "Stand before a PostgreSQL and behave like a cluster: TLS, tokens, refusals, conflicts.",
        [this](const Context& context) { return dsql_gateway(context, dsql_gateway_); });
    DsqlGatewayRequest& to = dsql_gateway_;
    verb->add_option("--listen", to.listen, "HOST:PORT; port 0 is any free one.")
        ->capture_default_str();
    verb->add_option("--upstream", to.upstream, "postgres://SUPERUSER@HOST[/NAME], 15 or newer.")
        ->required();
    hints_[verb->add_option("--certificate", to.certificate, "PEM, with its chain.")->required()]
        .takes = Takes::file;
    hints_[verb->add_option("--key", to.key, "Of the certificate, PEM.")->required()].takes =
        Takes::file;
    hints_[verb->add_option("--credentials",
                            to.credentials,
                            "Who may sign tokens: lines ID:SECRET[:ARN]; or set "
                            "HOLDFAST_GATEWAY_KEYS.")]
        .takes = Takes::file;
    verb->add_option("--region", to.region, "Where an endpoint's name does not say it.")
        ->capture_default_str();
    verb->add_option("--control", to.control, "HOST:PORT for faults and figures over HTTP.");
    add_dsql_behaviour(*verb, to.behaviour);
}

void CommandLine::add_dsql_local(CLI::App& noun) {
    CLI::App* verb =
        add(noun,
            "local",
            "A cluster of your own: a private PostgreSQL, certificates and keys, until Ctrl-C.",
            [this](const Context& context) { return dsql_local(context, dsql_local_); });
    hints_[verb->add_option("--data", dsql_local_.data, "A folder that keeps the data.")].takes =
        Takes::folder;
    hints_[verb->add_option("--credentials",
                            dsql_local_.credentials,
                            "Keys of your own: lines ID:SECRET[:ARN]; or set "
                            "HOLDFAST_GATEWAY_KEYS. Without both, keys are made at the start.")]
        .takes = Takes::file;
    verb->add_option("--port", dsql_local_.port, "Of 127.0.0.1; 0 is any free one.")
        ->check(CLI::Range(0, port_max))
        ->capture_default_str();
    verb->add_option("--control", dsql_local_.control, "HOST:PORT for faults and figures.");
    add_dsql_behaviour(*verb, dsql_local_.behaviour);
}

void CommandLine::add_dsql_behaviour(CLI::App& verb, DsqlBehaviour& to) {
    verb.add_flag("--early-abort", to.early_abort, "Tell of a conflict at the statement.");
    verb.add_flag("--documented-for-update",
                  to.documented_for_update,
                  "Refuse FOR UPDATE without equality on the whole key, as the service's guide.");
    takes_choice(verb.add_option("--schema-conflicts",
                                 to.schema_conflicts,
                                 "Who hears of a changed schema (OC001): off, changed or any.")
                     ->check(CLI::IsMember({"off", "changed", "any"}))
                     ->capture_default_str(),
                 {"off", "changed", "any"});
    verb.add_option("--job-duration", to.job_duration_ms, "How long ASYNC jobs are at work, in ms.")
        ->check(CLI::Range(0, job_duration_ms_max))
        ->capture_default_str();
}

}  // namespace holdfast::app
