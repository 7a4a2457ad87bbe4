// Command line of `holdfast dsql local` and `holdfast dsql gateway`.
#include "cli/command_line.hpp"

namespace holdfast::app {
namespace {

constexpr int job_duration_ms_max = 3'600'000;
constexpr int port_max = 65535;

}  // namespace

void CommandLine::add_dsql_gateway(CLI::App& noun) {
    CLI::App* verb =
        add(noun,
            "gateway",
            "Run a gateway that makes a PostgreSQL behave like a cluster: TLS, tokens, refusals, "
            "conflicts.",
            [this](const Context& context) { return dsql_gateway(context, dsql_gateway_); });
    DsqlGatewayRequest& to = dsql_gateway_;
    verb->add_option("--listen", to.listen, "HOST:PORT to listen on; port 0 picks a free one")
        ->capture_default_str();
    verb->add_option("--upstream",
                     to.upstream,
                     "PostgreSQL server, 15 or newer: postgres://SUPERUSER@HOST[/NAME]")
        ->required();
    hints_[verb->add_option(
                   "--certificate", to.certificate, "Certificate with its chain, as a PEM file")
               ->required()]
        .takes = Takes::file;
    hints_[verb->add_option("--key", to.key, "Private key of the certificate, as a PEM file")
               ->required()]
        .takes = Takes::file;
    hints_[verb->add_option("--credentials",
                            to.credentials,
                            "File of the keys that may sign tokens, in lines ID:SECRET[:ARN]; "
                            "default is HOLDFAST_GATEWAY_KEYS")]
        .takes = Takes::file;
    verb->add_option(
            "--region", to.region, "AWS region for endpoints whose name does not contain it")
        ->capture_default_str();
    verb->add_option(
        "--control", to.control, "HOST:PORT of the control port: faults and statistics over HTTP");
    add_dsql_behaviour(*verb, to.behaviour);
}

void CommandLine::add_dsql_local(CLI::App& noun) {
    CLI::App* verb =
        add(noun,
            "local",
            "Run a local cluster until Ctrl-C: a private PostgreSQL, the gateway, certificates and "
            "keys.",
            [this](const Context& context) { return dsql_local(context, dsql_local_); });
    hints_[verb->add_option(
               "--data",
               dsql_local_.data,
               "Folder that keeps the data; without it the data is removed at the end")]
        .takes = Takes::folder;
    hints_[verb->add_option("--credentials",
                            dsql_local_.credentials,
                            "File of keys, in lines ID:SECRET[:ARN]; default is "
                            "HOLDFAST_GATEWAY_KEYS, and without both a new key at every start")]
        .takes = Takes::file;
    verb->add_option("--port", dsql_local_.port, "Port on 127.0.0.1; 0 picks a free one")
        ->check(CLI::Range(0, port_max))
        ->capture_default_str();
    verb->add_option("--control",
                     dsql_local_.control,
                     "HOST:PORT of the control port: faults and statistics over HTTP");
    add_dsql_behaviour(*verb, dsql_local_.behaviour);
}

void CommandLine::add_dsql_behaviour(CLI::App& verb, DsqlBehaviour& to) {
    verb.add_flag(
        "--early-abort", to.early_abort, "Conflict errors at the statement instead of at COMMIT");
    verb.add_flag("--documented-for-update",
                  to.documented_for_update,
                  "FOR UPDATE only with equality on the whole key, as in the DSQL guide");
    takes_choice(
        verb.add_option("--schema-conflicts",
                        to.schema_conflicts,
                        "Sessions that get OC001 after a schema change: off, changed or any")
            ->check(CLI::IsMember({"off", "changed", "any"}))
            ->capture_default_str(),
        {"off", "changed", "any"});
    verb.add_option("--job-duration", to.job_duration_ms, "Duration of ASYNC jobs, in ms")
        ->check(CLI::Range(0, job_duration_ms_max))
        ->capture_default_str();
}

}  // namespace holdfast::app
