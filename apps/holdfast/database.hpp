// The database that the command line and the configuration name.
#pragma once

#include <string>

#include "command.hpp"

#include <holdfast/sql/database.hpp>

namespace holdfast::app {

// The URL of --db, HOLDFAST_DB or the configuration file. Empty if there is none.
[[nodiscard]] const std::string& database_url(const Context& context);

// The same for commands that need one; invalid_argument if there is none.
[[nodiscard]] const std::string& required_database_url(const Context& context);

// Retry policy, alerts, metrics and logger, as configured.
[[nodiscard]] sql::DatabaseOptions database_options(const Context& context,
                                                    Stay stay = Stay::brief);

}  // namespace holdfast::app
