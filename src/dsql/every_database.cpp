#include <holdfast/dsql/every_database.hpp>

#include <holdfast/dsql/source.hpp>

namespace holdfast::dsql {

sql::DatabaseOptions every_database(sql::DatabaseOptions options) {
    options.sources[std::string(url_scheme)] = dsql_source({.application = options.application,
                                                            .clock = options.clock,
                                                            .metrics = options.metrics,
                                                            .logger = options.logger});
    return options;
}

}  // namespace holdfast::dsql
