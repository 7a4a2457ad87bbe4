// Literals of a filter, as values of what they are compared with.
#pragma once

#include "filter.hpp"
#include "filter_lexer.hpp"

namespace holdfast::store::filter {

// Requires: the token is a literal that a field of this type can be compared with. Else
// invalid_argument, with its place.
[[nodiscard]] Value value_of(const Lexer& lexer, const Token& token, Type type);
// The key of a value of a search attribute.
[[nodiscard]] Value key_of(const Lexer& lexer, const Token& token);

}  // namespace holdfast::store::filter
