// holdfast schema: the tables, and their versions.
#pragma once

#include <string>

#include "command.hpp"

namespace holdfast::app {

struct SchemaRequest {
    std::string part;     // Empty: all.
    std::string dialect;  // For dump: "sqlite", "postgres" or "dsql".
};

// Brings the parts to the newest version. Creates an SQLite file that is not there.
int schema_apply(const Context& context, const SchemaRequest& request);
// Says what is there and what this binary knows.
int schema_status(const Context& context, const SchemaRequest& request);
// Prints the statements, ready to be run by hand.
int schema_dump(const Context& context, const SchemaRequest& request);

}  // namespace holdfast::app
