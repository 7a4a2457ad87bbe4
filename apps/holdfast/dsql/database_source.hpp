// Clusters among the databases that a command opens.
#pragma once

#include "command.hpp"

namespace holdfast::app {

// Adds the source of dsql:// databases, as configured.
void add_dsql_source(const Context& context, Stay stay, sql::DatabaseOptions& options);

}  // namespace holdfast::app
