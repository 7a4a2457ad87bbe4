#include "demo/schema_part.hpp"

#include <span>

namespace holdfast::demo {
std::span<const sql::MigrationFile> schema_files();  // Made from schema/*.sql.
}

namespace holdfast::app {

sql::SchemaPart demo_schema_part() {
    return {.name = "demo", .files = demo::schema_files(), .oldest = 1};
}

}  // namespace holdfast::app
