#include "visibility/search_attributes.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "codec.hpp"
#include "transaction.hpp"
#include "visibility/filter_values.hpp"
#include <fmt/core.h>

namespace holdfast::store {
namespace {

using nlohmann::json;

constexpr std::uint64_t sign_bit = std::uint64_t{1} << 63U;
constexpr double int64_end = 9223372036854775808.0;  // The first number above all of them.

// The bits of a number, so that a greater number has greater bits.
std::string in_order(double number) {
    const auto bits = std::bit_cast<std::uint64_t>(number);
    return fmt::format("n{:016x}", (bits & sign_bit) != 0 ? ~bits : bits | sign_bit);
}

bool is_scalar(const json& value) {
    return value.is_string() || value.is_number() || value.is_boolean();
}

// None: it is kept, but no search finds it.
std::vector<std::string> keys_of(const json& value) {
    if (value.is_string()) {
        const auto& text = value.get_ref<const std::string&>();
        if (text.size() > searched_value_bytes_max || text.find('\0') != std::string::npos) {
            return {};
        }
        std::vector<std::string> keys{search_key(std::string_view(text))};
        if (const auto moment = filter::moment_of(text)) {
            keys.push_back(search_key(*moment));
        }
        return keys;
    }
    if (value.is_boolean()) {
        return {search_key(value.get<bool>())};
    }
    if (value.is_number_float() ||
        (value.is_number_unsigned() && (value.get<std::uint64_t>() & sign_bit) != 0)) {
        return {search_key(value.get<double>())};
    }
    return {search_key(value.get<std::int64_t>())};
}

json parse_value(const std::string& name, const sql::Json& value) {
    require_name("a search attribute's name", name, attribute_name_bytes_max);
    if (!is_attribute_name(name)) {
        throw InvalidArgument(
            fmt::format("the search attribute \"{}\" needs a name of letters, digits and _", name));
    }
    if (const filter::Field* const field = filter::find_field(name);
        field != nullptr && field->prefix.empty()) {
        throw InvalidArgument(
            fmt::format("the search attribute \"{}\" could not be searched by, because {} is a "
                        "property of every run; give it another name",
                        name,
                        field->name));
    }
    json parsed = json::parse(value.text, nullptr, false);
    if (!is_scalar(parsed) &&
        !(parsed.is_array() && std::all_of(parsed.begin(), parsed.end(), is_scalar))) {
        throw InvalidArgument(
            fmt::format("the search attribute \"{}\" must be a JSON text, number or boolean, or a "
                        "list of them",
                        name));
    }
    return parsed;
}

}  // namespace

bool is_attribute_name(std::string_view name) noexcept {
    const auto is_letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    const auto is_part = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
    return !name.empty() && name.size() <= attribute_name_bytes_max && is_letter(name.front()) &&
           std::all_of(name.begin(), name.end(), is_part);
}

std::string search_key(std::string_view text) {
    return fmt::format("t{}", text);
}

// Integers that one double stands for are told apart by what follows it.
std::string search_key(std::int64_t number) {
    return fmt::format("{}{:016x}",
                       in_order(static_cast<double>(number)),
                       static_cast<std::uint64_t>(number) ^ sign_bit);
}

std::string search_key(double number) {
    if (number >= int64_end) {
        return in_order(number) + "~";  // After all integers.
    }
    if (number >= -int64_end && std::trunc(number) == number) {
        return search_key(static_cast<std::int64_t>(number));
    }
    return in_order(number);
}

std::string search_key(bool truth) {
    return truth ? "b1" : "b0";
}

std::string search_key(sql::Timestamp moment) {
    const std::int64_t us = moment.time_since_epoch().count();
    return fmt::format("d{:016x}", static_cast<std::uint64_t>(us) ^ sign_bit);
}

CheckedAttributes check_attributes(const SearchAttributes& given) {
    CheckedAttributes made;
    std::size_t values = 0;
    for (const auto& [name, value] : given) {
        json parsed = parse_value(name, value);
        const json list = parsed.is_array() ? parsed : json::array({parsed});
        values += list.size();
        for (const json& one : list) {
            for (std::string& key : keys_of(one)) {
                made.searched.emplace(name, std::move(key));
            }
        }
        made.all[name] = std::move(parsed);
    }
    if (values > attribute_values_max) {
        throw InvalidArgument(fmt::format(
            "a run with {} values of search attributes; give it {}", values, attribute_values_max));
    }
    return made;
}

SearchAttributes read_attributes(const std::optional<sql::Json>& stored, const RunId& run) {
    SearchAttributes read;
    if (stored) {
        const json parsed = json::parse(stored->text, nullptr, false);
        if (!parsed.is_object()) {
            throw_damaged(fmt::format("search attributes of run {}", run.text()), "no object");
        }
        for (const auto& [name, value] : parsed.items()) {
            read.emplace(name, sql::Json{value.dump()});
        }
    }
    return read;
}

}  // namespace holdfast::store
