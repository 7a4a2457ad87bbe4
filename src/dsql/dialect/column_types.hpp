// How Aurora DSQL treats a type name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace holdfast::dsql {

struct ColumnType {
    std::string display;  // As PostgreSQL displays it, with [] for an array: "integer[]".
    bool serial = false;  // serial, bigserial, smallserial: not types, and unknown here.
    bool array = false;
    bool in_column = true;  // May be stored. An unknown name is taken for a domain.
    bool in_query = true;   // May be the type of a cast.
    bool in_key = true;     // May be part of a primary key or an index.
    std::optional<std::int64_t> length;
};

// Requires: the fields of a TypeName node.
[[nodiscard]] ColumnType column_type(const nlohmann::json& type_name);

// Whether a type may be part of a key, by its displayed name.
[[nodiscard]] bool type_in_key(std::string_view display);

}  // namespace holdfast::dsql
