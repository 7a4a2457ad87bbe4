// Values of search attributes: as clients send them and runs keep them, by alias; and as lists
// find them, by column.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "history/payloads.hpp"
#include "search_attributes/names.hpp"

#include <holdfast/sql/value.hpp>
#include <holdfast/store/visibility.hpp>

namespace holdfast::server::search_attributes {

using history::PayloadMap;

// A time of RFC 3339 with any offset; nothing if it is none.
[[nodiscard]] std::optional<sql::Timestamp> parse_datetime(std::string_view text);

// Checks the attributes of a request, and gives each the type of the registry. Returns what is
// wrong, as clients read it; then nothing is changed. A null value, which removes an attribute, is
// of any type.
[[nodiscard]] std::optional<std::string> complete(const Info& info,
                                                  const std::string& namespace_name,
                                                  PayloadMap& fields);

// A text as JSON.
[[nodiscard]] std::string json_text(std::string_view text);

// Of the words of a Text attribute, beside its column.
inline constexpr std::string_view words_suffix = "_words";
// In lower case, without repeats. What is neither a letter nor a digit of ASCII, nor beyond ASCII,
// stands between words.
[[nodiscard]] std::vector<std::string> words_of(std::string_view text);

// What visibility keeps of the attributes of a run: columns instead of aliases. A Text has its
// words beside it. What the namespace does not know is left out, and so are values above
// store::attribute_values_max.
[[nodiscard]] store::SearchAttributes to_stored(const Info& info, const PayloadMap& fields);
// The other way round, for lists: aliases, with types. Columns without an alias are left out.
void show(const Info& info, const store::SearchAttributes& stored, PayloadMap& fields);

}  // namespace holdfast::server::search_attributes
