// The tables of the demo.
#pragma once

#include <holdfast/sql/schema.hpp>

namespace holdfast::app {

[[nodiscard]] sql::SchemaPart demo_schema_part();

}  // namespace holdfast::app
