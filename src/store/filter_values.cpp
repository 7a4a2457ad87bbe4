#include "filter_values.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "search_attributes.hpp"
#include <fmt/core.h>

#include <holdfast/base/units.hpp>

namespace holdfast::store::filter {
namespace {

using namespace std::chrono_literals;

// By number, from 1.
constexpr std::array<std::string_view, 8> statuses{"Running",
                                                   "Completed",
                                                   "Failed",
                                                   "Canceled",
                                                   "Terminated",
                                                   "ContinuedAsNew",
                                                   "TimedOut",
                                                   "Paused"};

template <class T>
std::optional<T> read_number(std::string_view text) {
    if (text.starts_with('+')) {
        text.remove_prefix(1);
    }
    T value{};
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    return error == std::errc{} && stop == end ? std::optional(value) : std::nullopt;
}

std::int64_t integer_of(const Lexer& lexer, const Token& token, std::string_view expected) {
    const auto value =
        token.kind == Token::Kind::number ? read_number<std::int64_t>(token.meaning) : std::nullopt;
    if (!value) {
        lexer.refuse(token, expected);
    }
    return *value;
}

std::int64_t status_of(const Lexer& lexer, const Token& token) {
    constexpr std::string_view expected = "a status such as 'Running' or 'TimedOut'";
    if (token.kind == Token::Kind::text) {
        const auto* const known = std::find(statuses.begin(), statuses.end(), token.meaning);
        if (known == statuses.end()) {
            lexer.refuse(token, expected);
        }
        return known - statuses.begin() + 1;
    }
    const std::int64_t number = integer_of(lexer, token, expected);
    if (number < 1 || number > std::ssize(statuses)) {
        lexer.refuse(token, expected);
    }
    return number;
}

// Minutes of the "+02:00" at the end, which is cut off; UTC has none.
std::chrono::minutes take_offset(std::string& text) {
    constexpr std::size_t length = 6;
    if (text.size() < length) {
        return 0min;
    }
    const std::string_view offset = std::string_view(text).substr(text.size() - length);
    const auto hours = read_number<unsigned>(offset.substr(1, 2));
    const auto minutes = read_number<unsigned>(offset.substr(4, 2));
    if ((offset[0] != '+' && offset[0] != '-') || offset[3] != ':' || !hours || *hours > 23 ||
        !minutes || *minutes > 59) {
        return 0min;
    }
    const std::chrono::minutes east = std::chrono::hours{*hours} + std::chrono::minutes{*minutes};
    const bool is_east = offset[0] == '+';
    text.replace(text.size() - length, length, "Z");
    return is_east ? east : -east;
}

sql::Timestamp time_of(const Lexer& lexer, const Token& token) {
    if (token.kind != Token::Kind::text) {
        const std::chrono::nanoseconds since_1970{
            integer_of(lexer, token, "a time such as '2026-01-02T03:04:05Z'")};
        return sql::Timestamp{std::chrono::floor<std::chrono::microseconds>(since_1970)};
    }
    try {
        std::string text = token.meaning;
        const std::chrono::minutes east = take_offset(text);
        // What is said of times that no run can have is said of the first and the last.
        return std::clamp(parse_moment(text) - east, earliest, latest);
    } catch (const Error& error) {
        lexer.refuse(token.begin, error.what());
    }
}

// hh:mm:ss, if it is one.
std::optional<std::chrono::nanoseconds> clock_duration(std::string_view text) {
    constexpr unsigned hours_max = 1'000'000;
    if (text.size() < 7 || text[text.size() - 3] != ':' || text[text.size() - 6] != ':') {
        return std::nullopt;
    }
    const auto hours = read_number<unsigned>(text.substr(0, text.size() - 6));
    const auto minutes = read_number<unsigned>(text.substr(text.size() - 5, 2));
    const auto seconds = read_number<unsigned>(text.substr(text.size() - 2));
    if (!hours || *hours > hours_max || !minutes || *minutes > 59 || !seconds || *seconds > 59) {
        return std::nullopt;
    }
    return std::chrono::hours{*hours} + std::chrono::minutes{*minutes} +
           std::chrono::seconds{*seconds};
}

std::int64_t duration_of(const Lexer& lexer, const Token& token) {
    const auto in_us = [](std::chrono::nanoseconds duration) {
        return std::int64_t{std::chrono::floor<std::chrono::microseconds>(duration).count()};
    };
    if (token.kind != Token::Kind::text) {
        return in_us(std::chrono::nanoseconds{
            integer_of(lexer, token, "a duration such as '1h30m', or a number of nanoseconds")});
    }
    try {
        const auto clock = clock_duration(token.meaning);
        return in_us(clock ? *clock : parse_duration(token.meaning));
    } catch (const Error& error) {
        lexer.refuse(token.begin, error.what());
    }
}

Uuid id_of(const Lexer& lexer, const Token& token) {
    const auto id = token.kind == Token::Kind::text ? Uuid::parse(token.meaning) : std::nullopt;
    if (!id) {
        lexer.refuse(token, "the id of a run, a UUID in quotes");
    }
    return *id;
}

}  // namespace

Value value_of(const Lexer& lexer, const Token& token, Type type) {
    switch (type) {
        case Type::id:
            return id_of(lexer, token);
        case Type::time:
            return time_of(lexer, token);
        case Type::status:
            return status_of(lexer, token);
        case Type::number:
            return integer_of(lexer, token, "a whole number");
        case Type::duration:
            return duration_of(lexer, token);
        case Type::text:
            break;
    }
    if (token.kind != Token::Kind::text) {
        lexer.refuse(token, "a text in quotes");
    }
    return token.meaning;
}

Value key_of(const Lexer& lexer, const Token& token) {
    if (token.kind == Token::Kind::text) {
        return search_key(std::string_view(token.meaning));
    }
    if (token.is("TRUE") || token.is("FALSE")) {
        return search_key(token.is("TRUE"));
    }
    if (token.kind != Token::Kind::number) {
        lexer.refuse(token, "a text in quotes, a number, true or false");
    }
    if (const auto integer = read_number<std::int64_t>(token.meaning)) {
        return search_key(*integer);
    }
    const auto real = read_number<double>(token.meaning);
    if (!real || !std::isfinite(*real)) {
        lexer.refuse(token, "a number that is not as large or as small as that");
    }
    return search_key(*real);
}

}  // namespace holdfast::store::filter
