// Names and values of a query, checked against the types of the namespace's attributes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "search_attributes/names.hpp"

namespace holdfast::server::visibility {

struct Attribute {
    std::string given;   // As the query has it.
    std::string stored;  // As the store has it.
    search_attributes::Type type{};
};

struct Literal {
    enum class Kind : std::uint8_t { text, number, boolean };
    Kind kind = Kind::text;
    std::string text;  // Without quotes; TRUE or FALSE.
};

inline constexpr std::string_view words_column_suffix = "_words";

// These throw InvalidArgument; their texts begin "invalid query: ".
[[noreturn]] void throw_invalid(std::string_view text);
[[noreturn]] void refuse_operation(std::string_view text);
[[noreturn]] void refuse_operator(const Attribute& attribute, std::string_view name);
[[noreturn]] void refuse_value(const Attribute& attribute, const Literal& literal);

[[nodiscard]] Attribute resolve_name(const search_attributes::Info& info, const std::string& name);

// A value as the store's filter writes it.
[[nodiscard]] std::string value_text(const Attribute& attribute, const Literal& literal);
// The words of a text, each as such a value.
[[nodiscard]] std::vector<std::string> words_in(std::string_view text);

}  // namespace holdfast::server::visibility
