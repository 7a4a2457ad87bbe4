// Literals of a filter, as values of what they are compared with.
#pragma once

#include "visibility/filter.hpp"
#include "visibility/filter_lexer.hpp"

#include <holdfast/store/error.hpp>

namespace holdfast::store::filter {

// Requires: the token is a literal that a field of this type can be compared with. Else
// invalid_argument, with its place.
[[nodiscard]] Value value_of(const Lexer& lexer, const Token& token, Type type);
// As filters say it, 'TimedOut'; the number of one that they do not know.
[[nodiscard]] std::string name_of(RunStatus status);
// The key of a value of a search attribute.
[[nodiscard]] Value key_of(const Lexer& lexer, const Token& token);
// The key of a text as a text, also if it is a time.
[[nodiscard]] Value text_key(const Token& token);

// The moment that a text of RFC 3339 names, with "Z" or an offset; empty if it is none. Those that
// no run can have are the first and the last.
[[nodiscard]] std::optional<sql::Timestamp> moment_of(std::string_view text);

// ---- Ids are compared as texts of 36 characters, in lower case ----------------------------------

// Makes the condition, which compares an id with a text, one that compares ids.
void compare_ids(Condition& condition, std::string_view text);
// The first and the last id that lies between the texts; two that have none between them if there
// is none.
[[nodiscard]] std::vector<Value> ids_between(std::string_view first, std::string_view last);
[[nodiscard]] std::vector<Value> ids_with_prefix(std::string_view prefix);

}  // namespace holdfast::store::filter
