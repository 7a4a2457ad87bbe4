// What goes into a statement and what comes out of it.
//
// A parameter is bound by its C++ type; a cell is read by the type the caller asks for. The same
// types mean the same thing on every database: a UUID is 16 bytes, a timestamp is microseconds
// since 1970 in UTC, JSON is text.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/uuid.hpp>

namespace holdfast::sql {

using Bytes = std::vector<std::byte>;
using Timestamp = Wall;

// JSON as text. The database checks it where the column's type is JSON; this floor does not parse
// it.
struct Json {
    std::string text;
    friend bool operator==(const Json&, const Json&) = default;
};

struct Null {};
inline constexpr Null null{};

enum class Kind : std::uint8_t { int64, real, boolean, text, bytes, uuid, timestamp, json };

// One bound argument. Text, bytes and JSON are lent: they must live until the call returns.
// An empty optional binds NULL of the optional's type, so that the database need not guess.
class Param {
public:
    // NOLINTBEGIN(google-explicit-constructor): binding is meant to be implicit.
    template <std::integral T>
        requires(!std::same_as<T, bool> && (std::is_signed_v<T> || sizeof(T) < 8))
    Param(T value) noexcept : kind_(Kind::int64), number_(static_cast<std::int64_t>(value)) {}
    template <std::same_as<bool> T>
    Param(T value) noexcept : kind_(Kind::boolean), number_(value ? 1 : 0) {}
    Param(double value) noexcept : kind_(Kind::real), real_(value) {}
    Param(std::string_view value) noexcept : kind_(Kind::text), view_(value) {}
    Param(const std::string& value) noexcept : Param(std::string_view(value)) {}
    Param(const char* value) noexcept : Param(std::string_view(value)) {}
    Param(std::span<const std::byte> value) noexcept
        : kind_(Kind::bytes), view_(reinterpret_cast<const char*>(value.data()), value.size()) {}
    Param(const Bytes& value) noexcept : Param(std::span<const std::byte>(value)) {}
    Param(const Uuid& value) noexcept : kind_(Kind::uuid), uuid_(value) {}
    Param(Timestamp value) noexcept
        : kind_(Kind::timestamp), number_(value.time_since_epoch().count()) {}
    Param(const Json& value) noexcept : kind_(Kind::json), view_(value.text) {}
    Param(Null) noexcept : kind_(Kind::text), null_(true) {}
    template <class T>
    Param(const std::optional<T>& value) noexcept : Param(value ? Param(*value) : Param(T{})) {
        null_ = !value.has_value();
    }
    // NOLINTEND(google-explicit-constructor)

    [[nodiscard]] Kind kind() const noexcept { return kind_; }
    [[nodiscard]] bool is_null() const noexcept { return null_; }
    // int64, boolean (0 or 1), timestamp (microseconds).
    [[nodiscard]] std::int64_t number() const noexcept { return number_; }
    [[nodiscard]] double real() const noexcept { return real_; }
    // text, bytes, json.
    [[nodiscard]] std::string_view view() const noexcept { return view_; }
    [[nodiscard]] const Uuid& uuid() const noexcept { return uuid_; }

private:
    Kind kind_;
    bool null_ = false;
    std::int64_t number_ = 0;
    double real_ = 0;
    std::string_view view_;
    Uuid uuid_;
};

// An argument that owns its memory, for what outlives a call: the key and token of a guard.
using Owned = std::variant<std::int64_t, std::string, Uuid, Bytes>;
[[nodiscard]] Param to_param(const Owned& value) noexcept;
[[nodiscard]] std::string to_text(const Owned& value);

// What a database hands back: NULL, an integer (also booleans and timestamps), a real number,
// text (also JSON), or bytes (also UUIDs).
using Cell = std::variant<std::monostate, std::int64_t, double, std::string, Bytes>;
[[nodiscard]] std::string to_text(const Cell& cell);

// Reads a cell as T: int64_t and narrower integers, bool, double, string, Bytes, Uuid, Timestamp,
// Json, or optional of one of them. NULL without optional, a wrong type or a number out of range is
// Code::internal: statement and code disagree.
template <class T>
[[nodiscard]] T read_cell(const Cell& cell, std::size_t column);

// One row of an answer; lent by its Rows.
class Row {
public:
    Row(const Cell* cells, std::size_t columns) noexcept : cells_(cells), columns_(columns) {}

    [[nodiscard]] std::size_t columns() const noexcept { return columns_; }
    [[nodiscard]] const Cell& cell(std::size_t column) const;
    template <class T>
    [[nodiscard]] T get(std::size_t column) const {
        return read_cell<T>(cell(column), column);
    }
    // auto [id, name] = row.as<std::int64_t, std::string>();
    template <class... T>
    [[nodiscard]] std::tuple<T...> as() const {
        return as_tuple<T...>(std::index_sequence_for<T...>{});
    }

private:
    template <class... T, std::size_t... I>
    [[nodiscard]] std::tuple<T...> as_tuple(std::index_sequence<I...>) const {
        return std::tuple<T...>{get<T>(I)...};
    }

    const Cell* cells_;
    std::size_t columns_;
};

// All rows of an answer, in memory.
class Rows {
public:
    Rows() = default;
    Rows(std::vector<Cell> cells, std::size_t columns, std::size_t rows) noexcept
        : cells_(std::move(cells)), columns_(columns), rows_(rows) {}

    [[nodiscard]] std::size_t size() const noexcept { return rows_; }
    [[nodiscard]] bool empty() const noexcept { return rows_ == 0; }
    [[nodiscard]] Row operator[](std::size_t row) const;
    // The only row, or none. More than one is Code::internal.
    [[nodiscard]] std::optional<Row> single() const;

    class Iterator {
    public:
        Iterator(const Rows* rows, std::size_t row) noexcept : rows_(rows), row_(row) {}
        Row operator*() const { return (*rows_)[row_]; }
        Iterator& operator++() noexcept {
            ++row_;
            return *this;
        }
        friend bool operator==(const Iterator&, const Iterator&) = default;

    private:
        const Rows* rows_;
        std::size_t row_;
    };
    [[nodiscard]] Iterator begin() const noexcept { return {this, 0}; }
    [[nodiscard]] Iterator end() const noexcept { return {this, rows_}; }

private:
    std::vector<Cell> cells_;
    std::size_t columns_ = 0;
    std::size_t rows_ = 0;
};

// --- reading, by type -------------------------------------------------------------------------

namespace detail {

[[noreturn]] void cell_mismatch(const Cell& cell, std::size_t column, std::string_view wanted);
[[nodiscard]] std::int64_t cell_integer(const Cell& cell, std::size_t column);
[[nodiscard]] double cell_real(const Cell& cell, std::size_t column);
[[nodiscard]] const std::string& cell_text(const Cell& cell, std::size_t column);
[[nodiscard]] const Bytes& cell_bytes(const Cell& cell, std::size_t column);
[[nodiscard]] Uuid cell_uuid(const Cell& cell, std::size_t column);

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class>
inline constexpr bool always_false = false;

}  // namespace detail

template <class T>
T read_cell(const Cell& cell, std::size_t column) {
    if constexpr (detail::is_optional<T>) {
        if (std::holds_alternative<std::monostate>(cell)) {
            return std::nullopt;
        }
        return read_cell<typename T::value_type>(cell, column);
    } else if constexpr (std::same_as<T, bool>) {
        return detail::cell_integer(cell, column) != 0;
    } else if constexpr (std::integral<T>) {
        const std::int64_t value = detail::cell_integer(cell, column);
        if (!std::in_range<T>(value)) {
            detail::cell_mismatch(cell, column, "a smaller integer");
        }
        return static_cast<T>(value);
    } else if constexpr (std::same_as<T, double>) {
        return detail::cell_real(cell, column);
    } else if constexpr (std::same_as<T, std::string>) {
        return detail::cell_text(cell, column);
    } else if constexpr (std::same_as<T, Bytes>) {
        return detail::cell_bytes(cell, column);
    } else if constexpr (std::same_as<T, Uuid>) {
        return detail::cell_uuid(cell, column);
    } else if constexpr (std::same_as<T, Timestamp>) {
        return Timestamp{std::chrono::microseconds{detail::cell_integer(cell, column)}};
    } else if constexpr (std::same_as<T, Json>) {
        return Json{detail::cell_text(cell, column)};
    } else {
        static_assert(detail::always_false<T>, "no such SQL type");
    }
}

}  // namespace holdfast::sql
