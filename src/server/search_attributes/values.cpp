#include "search_attributes/values.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/json_text.hpp>
#include <holdfast/base/units.hpp>
#include <holdfast/base/utf8.hpp>

namespace holdfast::server::search_attributes {

namespace {

namespace enums = temporal::api::enums::v1;
using temporal::api::common::v1::Payload;

constexpr std::size_t keys_max = 100;
constexpr std::size_t value_bytes_max = 2048;
constexpr std::size_t total_bytes_max = 40'960;
constexpr std::size_t words_max = 250;  // Of one text.
constexpr std::size_t shown_bytes_max = 100;

// The literals of a JSON scalar, or of the elements of a list.
struct Literals {
    bool is_list = false;
    std::vector<std::string_view> values;
};

std::optional<Literals> parse(std::string_view data) {
    const std::string_view text = json::trim(data);
    if (!is_utf8(text)) {
        return std::nullopt;
    }
    json::Scanner scanner(text);
    Literals parsed{.is_list = text.starts_with('['), .values = {}};
    if (parsed.is_list) {
        const bool whole = scanner.array([&](std::string_view element) -> const char* {
            parsed.values.push_back(json::trim(element));
            return nullptr;
        });
        return whole && scanner.at_end() ? std::optional(std::move(parsed)) : std::nullopt;
    }
    if (!scanner.value() || !scanner.at_end()) {
        return std::nullopt;
    }
    parsed.values.push_back(text);
    return parsed;
}

bool is_string(std::string_view literal) {
    return literal.starts_with('"');
}

std::string text_of(std::string_view literal) {
    std::string text;
    json::append_unescaped(text, literal);
    return text;
}

bool is_number(std::string_view literal) {
    return !literal.empty() && (literal[0] == '-' || (literal[0] >= '0' && literal[0] <= '9'));
}

bool is_integer(std::string_view literal) {
    std::int64_t value = 0;
    const auto [stop, error] =
        std::from_chars(literal.data(), literal.data() + literal.size(), value);
    return error == std::errc{} && stop == literal.data() + literal.size();
}

bool fits(Type type, std::string_view literal) {
    switch (type) {
        case enums::INDEXED_VALUE_TYPE_INT:
            return is_integer(literal);
        case enums::INDEXED_VALUE_TYPE_DOUBLE:
            return is_number(literal);
        case enums::INDEXED_VALUE_TYPE_BOOL:
            return literal == "true" || literal == "false";
        case enums::INDEXED_VALUE_TYPE_DATETIME:
            return is_string(literal) && parse_datetime(text_of(literal)).has_value();
        case enums::INDEXED_VALUE_TYPE_TEXT:
        case enums::INDEXED_VALUE_TYPE_KEYWORD:
        case enums::INDEXED_VALUE_TYPE_KEYWORD_LIST:
            return is_string(literal);
        default:
            return false;
    }
}

std::string encoding_of(const Payload& payload) {
    const auto found = payload.metadata().find("encoding");
    return found == payload.metadata().end() ? std::string{} : found->second;
}

bool valid(Type type, const Payload& payload) {
    if (history::is_null(payload)) {
        return true;
    }
    if (encoding_of(payload) != "json/plain") {
        return false;
    }
    const std::optional<Literals> parsed = parse(payload.data());
    return parsed && std::ranges::all_of(parsed->values, [&](std::string_view literal) {
               return fits(type, literal);
           });
}

// Under which visibility keeps it; nothing if clients cannot set it.
std::optional<std::string> settable_column(const Info& info, const std::string& name) {
    if (std::optional<std::string> column = column_of(info, name)) {
        return column;
    }
    const Known* const known = find_known(name);
    return known != nullptr && known->origin == Origin::settable ? std::optional(name)
                                                                 : std::nullopt;
}

std::string not_settable(const std::string& namespace_name, const std::string& name) {
    return find_known(name) != nullptr
               ? fmt::format("{} attribute can't be set in SearchAttributes", name)
               : fmt::format("Namespace {} has no mapping defined for search attribute {}",
                             namespace_name,
                             name);
}

std::optional<std::string> check_value(const std::string& name, Type type, const Payload& payload) {
    if (!valid(type, payload)) {
        std::string shown = valid_utf8(payload.data().substr(0, shown_bytes_max));
        return fmt::format(
            "invalid value for search attribute {} of type {}: {}", name, short_name(type), shown);
    }
    if (payload.data().size() > value_bytes_max) {
        return fmt::format("search attribute {} value size {} exceeds size limit {}",
                           name,
                           payload.data().size(),
                           value_bytes_max);
    }
    return std::nullopt;
}

void set_type(Payload& payload, Type type) {
    (*payload.mutable_metadata())["type"] = short_name(type);
}

bool is_word_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           static_cast<unsigned char>(c) >= 0x80U;
}

std::string list_of(const std::vector<std::string>& words) {
    std::string list = "[";
    for (const std::string& word : words) {
        list += list.size() > 1 ? "," : "";
        json::append_string(list, word);
    }
    return list + "]";
}

std::vector<std::string> words_of_all(const Literals& texts) {
    std::string all;
    for (const std::string_view literal : texts.values) {
        all += text_of(literal) + " ";
    }
    return words_of(all);
}

// Lists are kept of what may have several values, and of what has several.
std::string stored_text(const Literals& parsed, Type type) {
    const bool several = parsed.values.size() > 1 || type == enums::INDEXED_VALUE_TYPE_KEYWORD_LIST;
    return several ? fmt::format("[{}]", fmt::join(parsed.values, ","))
                   : std::string(parsed.values.front());
}

}  // namespace

std::optional<sql::Timestamp> parse_datetime(std::string_view text) {
    constexpr std::size_t offset_bytes = 6;  // +02:00
    std::string in_utc(text);
    std::chrono::minutes east{0};
    if (in_utc.size() > offset_bytes && in_utc[in_utc.size() - 3] == ':' &&
        (in_utc[in_utc.size() - offset_bytes] == '+' ||
         in_utc[in_utc.size() - offset_bytes] == '-')) {
        const std::string_view offset = text.substr(text.size() - offset_bytes);
        unsigned hours = 0;
        unsigned minutes = 0;
        const char* const begin = offset.data();
        const bool read = std::from_chars(begin + 1, begin + 3, hours).ptr == begin + 3 &&
                          std::from_chars(begin + 4, begin + 6, minutes).ptr == begin + 6;
        if (!read || hours > 23 || minutes > 59) {
            return std::nullopt;
        }
        east = std::chrono::hours{hours} + std::chrono::minutes{minutes};
        east = offset.front() == '-' ? -east : east;
        in_utc.replace(in_utc.size() - offset_bytes, offset_bytes, "Z");
    }
    if (in_utc.size() < std::string_view("2026-01-02T03:04:05Z").size() || in_utc[10] != 'T') {
        return std::nullopt;
    }
    try {
        return parse_moment(in_utc) - east;
    } catch (const Error&) {
        return std::nullopt;
    }
}

std::optional<std::string> complete(const Info& info,
                                    const std::string& namespace_name,
                                    PayloadMap& fields) {
    if (fields.size() > keys_max) {
        return fmt::format(
            "number of search attributes {} exceeds limit {}", fields.size(), keys_max);
    }
    PayloadMap made = fields;
    std::size_t total = 0;
    for (auto& [name, payload] : made) {
        const std::optional<std::string> column = settable_column(info, name);
        if (!column) {
            return not_settable(namespace_name, name);
        }
        const Type type = stored_type(*column).value_or(Type{});
        if (std::optional<std::string> wrong = check_value(name, type, payload)) {
            return wrong;
        }
        total += name.size() + payload.data().size();
        set_type(payload, type);
    }
    if (total > total_bytes_max) {
        return fmt::format(
            "total size of search attributes {} exceeds size limit {}", total, total_bytes_max);
    }
    fields = std::move(made);
    return std::nullopt;
}

std::string json_text(std::string_view text) {
    std::string made;
    json::append_string(made, valid_utf8(text));
    return made;
}

std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    std::string word;
    const auto end = [&] {
        if (!word.empty() && words.size() < words_max &&
            std::ranges::find(words, word) == words.end()) {
            words.push_back(word);
        }
        word.clear();
    };
    for (const char c : text) {
        if (is_word_byte(c)) {
            word += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        } else {
            end();
        }
    }
    end();
    return words;
}

store::SearchAttributes to_stored(const Info& info, const PayloadMap& fields) {
    store::SearchAttributes stored;
    std::size_t left = store::attribute_values_max;
    for (const auto& [name, payload] : fields) {
        const std::string column = column_of(info, name).value_or(name);
        const std::optional<Type> type = stored_type(column);
        std::optional<Literals> parsed = type && valid(*type, payload) && !history::is_null(payload)
                                             ? parse(payload.data())
                                             : std::nullopt;
        if (!parsed || parsed->values.empty() || left == 0) {
            continue;
        }
        parsed->values.resize(std::min(parsed->values.size(), left));
        left -= parsed->values.size();
        stored[column] = sql::Json{stored_text(*parsed, *type)};
        if (*type == enums::INDEXED_VALUE_TYPE_TEXT) {
            std::vector<std::string> words = words_of_all(*parsed);
            words.resize(std::min(words.size(), left));
            left -= words.size();
            if (!words.empty()) {
                stored[column + std::string(words_suffix)] = sql::Json{list_of(words)};
            }
        }
    }
    return stored;
}

void show(const Info& info, const store::SearchAttributes& stored, PayloadMap& fields) {
    for (const auto& [column, value] : stored) {
        const std::optional<Type> type = stored_type(column);
        const std::optional<std::string> name =
            find_known(column) != nullptr ? std::optional(column) : alias_of(info, column);
        if (type && name) {
            Payload& payload = fields[*name];
            (*payload.mutable_metadata())["encoding"] = "json/plain";
            set_type(payload, *type);
            payload.set_data(value.text);
        }
    }
}

}  // namespace holdfast::server::search_attributes
