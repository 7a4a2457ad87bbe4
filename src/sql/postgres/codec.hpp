// C++ values to PostgreSQL's wire format and back.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "postgres/libpq.hpp"

#include <holdfast/sql/statement.hpp>
#include <holdfast/sql/value.hpp>

namespace holdfast::sql::postgres {

// The arguments of one statement, in the form libpq takes. Reused from statement to statement, so
// that binding allocates only while it grows.
class Bound {
public:
    // Refuses what is not text, see require_text().
    void bind(std::span<const Param> args, const Rendered& statement);

    [[nodiscard]] int count() const noexcept { return static_cast<int>(values_.size()); }
    [[nodiscard]] const char* const* values() const noexcept { return values_.data(); }
    [[nodiscard]] const int* lengths() const noexcept { return lengths_.data(); }
    [[nodiscard]] const int* formats() const noexcept { return formats_.data(); }

private:
    void append(const Param& param);
    void append_number(std::uint64_t value);

    std::string buffer_;
    std::vector<std::size_t> offsets_;
    std::vector<const char*> values_;
    std::vector<int> lengths_;
    std::vector<int> formats_;
};

// The types that are told to the server when a statement is prepared. Text and JSON are left to it:
// it knows the column. NULL without a type is left to it, too.
[[nodiscard]] std::vector<Oid> types_of(std::span<const Param> args);

// All rows of a binary result. A type that cannot be read is Code::internal; cast it in the
// statement.
[[nodiscard]] Rows decode_rows(const PGresult* result);

// Rows changed, by the command's tag; 0 for a SELECT.
[[nodiscard]] std::int64_t rows_changed(PGresult* result);

}  // namespace holdfast::sql::postgres
