#include <holdfast/sql/value.hpp>

#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/hex.hpp>

namespace holdfast::sql {
namespace {

std::string_view type_name(const Cell& cell) {
    switch (cell.index()) {
        case 0:
            return "NULL";
        case 1:
            return "an integer";
        case 2:
            return "a real number";
        case 3:
            return "text";
        default:
            return "bytes";
    }
}

template <class T>
const T& cell_as(const Cell& cell, std::size_t column, std::string_view wanted) {
    if (const T* value = std::get_if<T>(&cell)) {
        return *value;
    }
    detail::cell_mismatch(cell, column, wanted);
}

}  // namespace

Param to_param(const Owned& value) noexcept {
    return std::visit([](const auto& v) { return Param(v); }, value);
}

std::string to_text(const Owned& value) {
    struct Visitor {
        std::string operator()(std::int64_t v) const { return std::to_string(v); }
        std::string operator()(const std::string& v) const { return v; }
        std::string operator()(const Uuid& v) const { return v.text(); }
        std::string operator()(const Bytes& v) const { return to_hex(v); }
    };
    return std::visit(Visitor{}, value);
}

std::string to_text(const Cell& cell) {
    struct Visitor {
        std::string operator()(std::monostate) const { return "NULL"; }
        std::string operator()(std::int64_t v) const { return std::to_string(v); }
        std::string operator()(double v) const { return fmt::format("{}", v); }
        std::string operator()(const std::string& v) const { return v; }
        std::string operator()(const Bytes& v) const {
            const auto uuid = Uuid::from_bytes(v);
            return uuid ? uuid->text() : to_hex(v);
        }
    };
    return std::visit(Visitor{}, cell);
}

const Cell& Row::cell(std::size_t column) const {
    if (column >= columns_) {
        throw Error(Code::internal,
                    Outcome::not_applied,
                    fmt::format("column {} was asked for, but the answer has {}; correct the "
                                "statement or the code that reads it",
                                column,
                                columns_));
    }
    return cells_[column];
}

Row Rows::operator[](std::size_t row) const {
    if (row >= rows_) {
        throw Error(Code::internal,
                    Outcome::not_applied,
                    fmt::format("row {} was asked for, but the answer has {}", row, rows_));
    }
    return {cells_.data() + row * columns_, columns_};
}

std::optional<Row> Rows::single() const {
    if (rows_ > 1) {
        throw Error(Code::internal,
                    Outcome::not_applied,
                    fmt::format("at most one row was expected, but the answer has {}", rows_));
    }
    if (rows_ == 0) {
        return std::nullopt;
    }
    return (*this)[0];
}

namespace detail {

void cell_mismatch(const Cell& cell, std::size_t column, std::string_view wanted) {
    throw Error(
        Code::internal,
        Outcome::not_applied,
        fmt::format("column {} holds {}, but {} was asked for; correct the statement or the "
                    "code that reads it",
                    column,
                    type_name(cell),
                    wanted));
}

std::int64_t cell_integer(const Cell& cell, std::size_t column) {
    return cell_as<std::int64_t>(cell, column, "an integer");
}

double cell_real(const Cell& cell, std::size_t column) {
    // SQLite gives back integers for reals without a fraction in columns of no type.
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) {
        return static_cast<double>(*whole);
    }
    return cell_as<double>(cell, column, "a real number");
}

const std::string& cell_text(const Cell& cell, std::size_t column) {
    return cell_as<std::string>(cell, column, "text");
}

const Bytes& cell_bytes(const Cell& cell, std::size_t column) {
    return cell_as<Bytes>(cell, column, "bytes");
}

Uuid cell_uuid(const Cell& cell, std::size_t column) {
    std::optional<Uuid> uuid;
    if (const auto* text = std::get_if<std::string>(&cell)) {
        uuid = Uuid::parse(*text);
    } else if (const auto* bytes = std::get_if<Bytes>(&cell)) {
        uuid = Uuid::from_bytes(*bytes);
    }
    if (!uuid) {
        cell_mismatch(cell, column, "a UUID");
    }
    return *uuid;
}

}  // namespace detail
}  // namespace holdfast::sql
