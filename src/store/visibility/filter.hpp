// Temporal's list filter: the query language for runs.
//
//   WorkflowType = 'order' AND (ExecutionStatus IN ('Failed', 'TimedOut') OR level > 3)
//   ORDER BY StartTime DESC
//
// Parsing is pure: a text becomes a tree whose values have the types of what they are compared
// with, or is refused with the place of the mistake. The tree has no NOT. Where the text has one,
// AND and OR have changed places below it and conditions are negated, so that a condition is met
// or not met, and one about something that a run does not have is not met either way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <holdfast/base/uuid.hpp>
#include <holdfast/sql/value.hpp>

namespace holdfast::store::filter {

// What a text may have at most, however hostile. Databases bound how deep an expression may be.
inline constexpr std::size_t bytes_max = 16'384;
inline constexpr std::size_t depth_max = 50;  // Of parentheses.
inline constexpr std::size_t conditions_max = 200;
inline constexpr std::size_t values_max = 128;  // Of one list.
inline constexpr std::size_t orders_max = 4;

enum class Type : std::uint8_t { text, id, time, status, number, duration };

// A system attribute is a column of its own.
struct Field {
    std::string_view name;
    Type type;
    std::string_view column;
    bool nullable;              // A run may be without.
    std::string_view prefix{};  // Of what the column holds, and people leave out.
    // Columns that an index has in place of this one: its digest, and how it begins. May be empty.
    std::string_view digest{};
    std::string_view beginning{};
};
[[nodiscard]] std::span<const Field> fields() noexcept;
// By its name, or by "Temporal" and its name.
[[nodiscard]] const Field* find_field(std::string_view name) noexcept;  // Null: there is none.

// What a field is compared with. A status is its number, a duration counts microseconds, a search
// attribute is compared by its key. Numbers that are not whole are compared with those that are.
using Value = std::variant<std::string, std::int64_t, double, Uuid, sql::Timestamp>;

enum class Test : std::uint8_t {
    one_of,
    less,
    less_or_equal,
    greater,
    greater_or_equal,
    between,
    starts_with,
    null,
};

struct Condition {
    const Field* field = nullptr;  // Null: a search attribute.
    std::string attribute{};
    Test test = Test::one_of;
    bool negated = false;
    std::vector<Value> values{};  // Of a list there may be none left: nothing is one of them.
};

struct Node {
    enum class Kind : std::uint8_t { condition, all, any };
    Kind kind = Kind::condition;
    Condition condition{};
    std::vector<Node> parts{};  // None of them is of the same kind.
};

struct Order {
    const Field* field = nullptr;
    bool descending = false;
};

// What runs are counted by: their status, or a search attribute.
inline constexpr std::string_view division = "TemporalNamespaceDivision";
enum class Groups : std::uint8_t { none, by_status, by_division };

struct Filter {
    std::optional<Node> where{};  // Empty: all runs.
    Groups groups = Groups::none;
    std::vector<Order> order{};  // Never empty; the ids of runs decide last.
};

// Requires: `text` is a filter, or empty. Else invalid_argument, with the place of the mistake.
[[nodiscard]] Filter parse(std::string_view text);

}  // namespace holdfast::store::filter
