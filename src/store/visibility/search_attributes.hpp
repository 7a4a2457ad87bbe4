// Search attributes: what they may be, and how they are compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include <holdfast/store/visibility.hpp>

namespace holdfast::store {

// A name and a value are in the key of an index, with room to spare on every database.
inline constexpr std::size_t attribute_name_bytes_max = 128;

[[nodiscard]] bool is_attribute_name(std::string_view name) noexcept;

// A value as a text that is compared byte by byte: first its kind, which is one letter, then what
// keeps the order within the kind. Equal numbers have equal keys, however they were written.
[[nodiscard]] std::string search_key(std::string_view text);
[[nodiscard]] std::string search_key(std::int64_t number);
[[nodiscard]] std::string search_key(double number);  // Requires: it is finite.
[[nodiscard]] std::string search_key(bool truth);
[[nodiscard]] std::string search_key(sql::Timestamp moment);

struct CheckedAttributes {
    nlohmann::json all = nlohmann::json::object();
    // Name and key of each value. A text that is a moment has two: times are compared as such, and
    // a prefix is one of the text.
    std::set<std::pair<std::string, std::string>> searched{};
};

// Refuses what cannot be meant: invalid_argument.
[[nodiscard]] CheckedAttributes check_attributes(const SearchAttributes& given);
[[nodiscard]] SearchAttributes read_attributes(const std::optional<sql::Json>& stored,
                                               const RunId& run);

}  // namespace holdfast::store
