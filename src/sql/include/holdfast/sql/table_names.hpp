// Names that a deployment chooses.
//
// Most tables have the name that their statements say. Where a deployment may choose another, the
// statement says {table.x} instead, and {index.x.y} for an index of it. A TableNames value fills
// these holes, always quoted, so a name can neither change a statement's meaning nor its case.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::sql {

[[nodiscard]] constexpr bool is_table_hole(std::string_view hole) noexcept {
    return hole.starts_with("table.") || hole.starts_with("index.");
}

// 48 bytes leave room for the names of indexes under PostgreSQL's 63.
inline constexpr std::size_t table_name_bytes_max = 48;

// Throws invalid_argument unless it is made of lower-case letters, digits and underscores, does not
// begin with a digit, has 1 to 48 bytes, and is not a reserved word. `what` names it in the
// message.
void check_table_name(std::string_view what, std::string_view name);

// A value: copies are equal and cheap to tell apart.
class TableNames {
public:
    // `tables` pairs each hole's x with its name; `schema` is empty for the connection's own.
    // Requires: names and schema as by check_table_name, except that a name may end in a suffix of
    // 10 bytes more; names differ. Else invalid_argument.
    TableNames(std::string schema, std::vector<std::pair<std::string, std::string>> tables);

    // What stands for "table.x" or "index.x.y"; empty if x is not among them.
    [[nodiscard]] std::string fill(std::string_view hole) const;

    // Different for every value that was constructed, the same for its copies.
    [[nodiscard]] std::uint64_t id() const noexcept { return id_; }

private:
    std::string schema_;
    std::vector<std::pair<std::string, std::string>> tables_;
    std::uint64_t id_;
};

}  // namespace holdfast::sql
