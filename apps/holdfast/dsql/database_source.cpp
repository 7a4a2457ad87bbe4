#include "dsql/database_source.hpp"

#include <string>
#include <utility>

#include "database.hpp"

#include <holdfast/dsql/fleet.hpp>
#include <holdfast/dsql/source.hpp>
#include <holdfast/sql/database.hpp>

namespace holdfast::app {

void add_dsql_source(const Context& context, Stay stay, sql::DatabaseOptions& options) {
    // Fleet settings are checked only for dsql:// databases, which use them.
    const bool dsql = database_url(context).starts_with("dsql:");
    dsql::FleetConfig fleet = dsql ? dsql::fleet_config(context.config) : dsql::FleetConfig{};
    if (dsql) {
        for (const dsql::Overruled& setting : dsql::overruled(context.config)) {
            context.logger.warn("config.rejected", {{"name", setting.key}, {"why", setting.why}});
        }
    }
    if (stay == Stay::brief) {
        fleet = dsql::for_one_command(std::move(fleet));
    }
    options.sources[std::string(dsql::url_scheme)] =
        dsql::dsql_source({.application = options.application,
                           .fleet = std::move(fleet),
                           .metrics = &context.metrics,
                           .logger = &context.logger});
}

}  // namespace holdfast::app
