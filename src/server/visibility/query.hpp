// The query language for runs, as clients write it, turned into the filter that the store takes.
//
//   `Order Id` = "o-7" AND (ExecutionStatus IN ('Failed', 'TimedOut') OR CloseTime >
//   '2026-01-02T…')
//
// Names are resolved: aliases of the namespace to columns, and Temporal before or off the names of
// the server. Values are checked against the types of the registry. A run of a division, such as a
// schedule, is found only by a query that names TemporalNamespaceDivision.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "search_attributes/names.hpp"

#include <holdfast/sql/value.hpp>

namespace holdfast::server::visibility {

enum class Purpose : std::uint8_t { list, count };

struct QueryContext {
    const search_attributes::Info& info;
    Purpose purpose = Purpose::list;
};

struct StoreFilter {
    std::string text;
    bool grouped = false;
    bool by_status = false;  // Else by division.
};

// "Running": the short name of a status by its number.
[[nodiscard]] std::string_view status_name(int status);

// A moment as a value of a query, with its quotes.
[[nodiscard]] std::string moment_text(sql::Timestamp moment);

// Throws InvalidArgument with a text that begins "invalid query: ".
[[nodiscard]] StoreFilter translate(std::string_view query, const QueryContext& context);

}  // namespace holdfast::server::visibility
