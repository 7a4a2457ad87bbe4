// From a filter to the query that answers it.
//
// A search walks along an index if there is one, from the newest run to the oldest, and compares
// row by row whatever else is asked for. Which index that is, the database sees: conditions are
// plain comparisons of columns. Only for search attributes, which are rows of a table of their own,
// the query says where to begin: at the first attribute that must equal one value, if no id of a
// workflow or run leaves fewer rows.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "visibility/filter.hpp"

#include <holdfast/sql/statement.hpp>
#include <holdfast/store/visibility.hpp>

namespace holdfast::store {

// Requires: the filter, and the place, outlive this object.
class VisibilityQuery {
public:
    VisibilityQuery(NamespaceId ns, const filter::Filter& filter);
    VisibilityQuery(const VisibilityQuery&) = delete;
    VisibilityQuery& operator=(const VisibilityQuery&) = delete;

    // After the columns of a run come those that it is sorted by, as many as the order has.
    // Requires: `after` is a place in this order. Else invalid_argument.
    [[nodiscard]] sql::BuiltQuery page(const std::optional<VisibilityPlace>& after,
                                       std::int64_t rows) &&;
    // Status and number of runs.
    [[nodiscard]] sql::BuiltQuery counts() &&;
    // Keys of the texts of an attribute, NULL for runs without one, and number of runs.
    // Requires: `attribute` outlives this object.
    [[nodiscard]] sql::BuiltQuery counts_by(const std::string& attribute) &&;

private:
    void begin(const filter::Node& where);
    [[nodiscard]] std::string from_and_where(std::string_view joined = "") const;

    [[nodiscard]] std::string text_of(const filter::Node& node);
    [[nodiscard]] std::string text_of(const filter::Condition& condition);
    [[nodiscard]] std::string field_test(const filter::Condition& condition);
    [[nodiscard]] std::string indexed_test(const filter::Condition& condition);
    [[nodiscard]] std::string attribute_test(const filter::Condition& condition);
    // Compares a column that is not NULL; NULL meets neither this nor the opposite.
    [[nodiscard]] std::string compared(const std::string& column,
                                       const filter::Condition& condition,
                                       bool negated);
    [[nodiscard]] std::string has_attribute(const std::string& name, const std::string& and_also);
    struct SortColumn {
        std::string text;
        bool descending;
    };
    [[nodiscard]] std::string comes_after(const VisibilityPlace& place,
                                          const std::vector<SortColumn>& columns);

    [[nodiscard]] std::string column(std::string_view name) const;
    [[nodiscard]] std::string sort_key(const filter::Order& order);
    // The number of a new parameter, "$7". What is lent must outlive this object.
    [[nodiscard]] std::string parameter(const sql::Param& value);
    [[nodiscard]] std::string parameter(const filter::Value& value);
    [[nodiscard]] std::string own(std::string text);

    const filter::Filter& filter_;
    const filter::Condition* first_ = nullptr;  // The attribute where the search begins.
    std::string where_;
    std::vector<sql::Param> args_;
    std::deque<std::string> texts_;  // Which the parameters lend.
};

}  // namespace holdfast::store
