// Every supported kind of database, for programs that take any URL.
//
//   sql::Database db(url, dsql::every_database());
//   return flow::command_line(registry, argc, argv, dsql::every_database());
#pragma once

#include <holdfast/sql/database.hpp>

namespace holdfast::dsql {

// `options` with a source for dsql:// URLs, beside sqlite: and postgres://, which need none. It
// takes the AWS credentials and the region from where the AWS SDKs look, and a fleet's defaults;
// dsql_source() has more options.
[[nodiscard]] sql::DatabaseOptions every_database(sql::DatabaseOptions options = {});

}  // namespace holdfast::dsql
