#include <holdfast/flow_engine/payload.hpp>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <system_error>

#include "stored/payload_json.hpp"
#include <fmt/format.h>

#include <holdfast/base/error.hpp>

namespace holdfast::flow {
namespace {

// Long enough for every number that makes sense; the rest of a longer one is left out.
constexpr std::size_t quoted_number_max = 40;

// Says what was found by its sort. Strings and objects are not quoted: they may be secrets.
[[noreturn]] void refuse(std::string_view expected, std::string_view json) {
    json::Scanner scanner(json);
    if (!scanner.value() || !scanner.at_end()) {
        throw InvalidArgument(fmt::format("expected {}, found text that is not JSON (byte {}: {})",
                                          expected,
                                          scanner.at(),
                                          scanner.fault() ? scanner.fault() : "more follows"));
    }
    std::string found(json::describe(json));
    if (found == "a number") {
        found = fmt::format("the number {}", json::trim(json).substr(0, quoted_number_max));
    }
    throw InvalidArgument(fmt::format("expected {}, found {}", expected, found));
}

// By the grammar, which is stricter than from_chars ("01", "1.", "inf").
template <class Number>
std::optional<Number> number_in(std::string_view json) {
    const std::string_view text = json::trim(json);
    json::Scanner scanner(text);
    if (!scanner.value() || !scanner.at_end()) {
        return std::nullopt;
    }
    Number number{};
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    const auto [stop, error] = std::from_chars(begin, end, number);
    return error == std::errc{} && stop == end ? std::optional(number) : std::nullopt;
}

}  // namespace

std::string Codec<Unit>::encode(const Unit&) {
    return "null";
}

Unit Codec<Unit>::decode(std::string_view json) {
    if (json::trim(json) != "null") {
        refuse("null", json);
    }
    return {};
}

std::string Codec<Payload>::encode(const Payload& value) {
    json::Scanner scanner(value.json, payload_depth_max);
    if (!scanner.value() || !scanner.at_end()) {
        throw InvalidArgument(fmt::format("a payload is not JSON (byte {}: {})",
                                          scanner.at(),
                                          scanner.fault() ? scanner.fault() : "more follows"));
    }
    return value.json;
}

std::string Codec<bool>::encode(bool value) {
    return value ? "true" : "false";
}

bool Codec<bool>::decode(std::string_view json) {
    const std::string_view text = json::trim(json);
    if (text != "true" && text != "false") {
        refuse("a boolean", json);
    }
    return text == "true";
}

std::string Codec<double>::encode(double value) {
    if (!std::isfinite(value)) {
        throw InvalidArgument("JSON has no infinity and no NaN; send a null or a word instead");
    }
    std::array<char, 32> digits{};  // The shortest text of a double has 24 at most.
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    return {digits.data(), end};
}

double Codec<double>::decode(std::string_view json) {
    const auto value = number_in<double>(json);
    if (!value) {
        refuse("a number that a double can hold", json);
    }
    return *value;
}

float Codec<float>::decode(std::string_view json) {
    const double value = Codec<double>::decode(json);
    if (std::abs(value) > static_cast<double>(std::numeric_limits<float>::max())) {
        refuse("a float", json);
    }
    return static_cast<float>(value);
}

std::string Codec<std::string>::encode(const std::string& value) {
    std::string json;
    json.reserve(value.size() + 2);
    json::append_string(json, value);
    return json;
}

std::string Codec<std::string>::decode(std::string_view json) {
    const std::string_view literal = json::trim(json);
    json::Scanner scanner(literal);
    if (!literal.starts_with('"') || !scanner.value() || !scanner.at_end()) {
        refuse("a string", json);
    }
    std::string value;
    json::append_unescaped(value, literal);
    return value;
}

namespace detail {

bool is_null(std::string_view json) noexcept {
    return json::trim(json) == "null";
}

std::string encode_integer(std::int64_t value) {
    return std::to_string(value);
}
std::string encode_integer(std::uint64_t value) {
    return std::to_string(value);
}

std::int64_t decode_integer(std::string_view json, std::int64_t least, std::int64_t most) {
    const auto value = number_in<std::int64_t>(json);
    if (!value || *value < least || *value > most) {
        refuse(fmt::format("an integer from {} to {}", least, most), json);
    }
    return *value;
}

std::uint64_t decode_natural(std::string_view json, std::uint64_t most) {
    const auto value = number_in<std::uint64_t>(json);
    if (!value || *value > most) {
        refuse(fmt::format("an integer from 0 to {}", most), json);
    }
    return *value;
}

}  // namespace detail

}  // namespace holdfast::flow
