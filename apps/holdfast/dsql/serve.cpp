#include "dsql/serve.hpp"

namespace holdfast::app {

dsql::GatewayOptions gateway_options(const Context& context, const DsqlBehaviour& behaviour) {
    dsql::GatewayOptions options;
    options.early_abort = behaviour.early_abort;
    options.documented_for_update = behaviour.documented_for_update;
    options.schema_conflicts = behaviour.schema_conflicts == "off" ? dsql::SchemaConflicts::off
                               : behaviour.schema_conflicts == "any"
                                   ? dsql::SchemaConflicts::any_table
                                   : dsql::SchemaConflicts::changed_tables;
    options.job_duration = std::chrono::milliseconds{behaviour.job_duration_ms};
    options.logger = &context.logger;
    return options;
}

std::unique_ptr<dsql::GatewayControl> serve_control(dsql::Gateway& gateway,
                                                    const std::string& address) {
    return address.empty()
               ? nullptr
               : std::make_unique<dsql::GatewayControl>(gateway, HttpAddress::parse(address));
}

}  // namespace holdfast::app
