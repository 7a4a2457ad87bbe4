#include "visibility/filter_values.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "times.hpp"
#include "visibility/search_attributes.hpp"
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
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    const auto [stop, error] = std::from_chars(begin, end, value);
    return error == std::errc{} && stop == end ? std::optional(value) : std::nullopt;
}

// Without a sign.
std::optional<unsigned> read_digits(std::string_view text) {
    return text.starts_with('+') ? std::nullopt : read_number<unsigned>(text);
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
    const auto hours = read_digits(offset.substr(1, 2));
    const auto minutes = read_digits(offset.substr(4, 2));
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
    const auto moment = moment_of(token.meaning);
    if (!moment) {
        lexer.refuse(token, "a time such as '2026-01-02T03:04:05Z' or '2026-01-02T03:04:05+02:00'");
    }
    return *moment;
}

Value number_of(const Lexer& lexer, const Token& token) {
    if (token.kind == Token::Kind::number) {
        if (const auto whole = read_number<std::int64_t>(token.meaning)) {
            return *whole;
        }
        if (const auto real = read_number<double>(token.meaning); real && std::isfinite(*real)) {
            return *real;
        }
    }
    lexer.refuse(token, "a number");
}

// hh:mm:ss, if it is one.
std::optional<std::chrono::nanoseconds> clock_duration(std::string_view text) {
    constexpr unsigned hours_max = 1'000'000;
    if (text.size() < 7 || text[text.size() - 3] != ':' || text[text.size() - 6] != ':') {
        return std::nullopt;
    }
    const auto hours = read_digits(text.substr(0, text.size() - 6));
    const auto minutes = read_digits(text.substr(text.size() - 5, 2));
    const auto seconds = read_digits(text.substr(text.size() - 2));
    if (!hours || *hours > hours_max || !minutes || *minutes > 59 || !seconds || *seconds > 59) {
        return std::nullopt;
    }
    return std::chrono::hours{*hours} + std::chrono::minutes{*minutes} +
           std::chrono::seconds{*seconds};
}

struct Unit {
    std::string_view name;
    std::int64_t ns;
};
constexpr std::array<Unit, 9> duration_units{{{"ns", 1},
                                              {"us", 1'000},
                                              {"\u00B5s", 1'000},  // Micro, and the letter mu.
                                              {"\u03BCs", 1'000},
                                              {"ms", 1'000'000},
                                              {"s", 1'000'000'000},
                                              {"m", 60'000'000'000},
                                              {"h", 3'600'000'000'000},
                                              {"d", 86'400'000'000'000}}};

// Takes one number with its unit off the front, as nanoseconds; what is too large is the largest.
std::optional<std::int64_t> take_quantity(std::string_view& text) {
    constexpr std::string_view digits = "0123456789";
    constexpr std::int64_t longest = std::numeric_limits<std::int64_t>::max();
    const auto take = [&](std::size_t length) {
        const std::string_view taken = text.substr(0, length);
        text.remove_prefix(taken.size());
        return taken;
    };
    const std::string_view whole = take(text.find_first_not_of(digits));
    std::string_view fraction;
    if (text.starts_with('.')) {
        text.remove_prefix(1);
        fraction = take(text.find_first_not_of(digits));
    }
    const std::string_view name = take(text.find_first_of("0123456789."));
    const auto* const unit = std::find_if(duration_units.begin(),
                                          duration_units.end(),
                                          [&](const Unit& known) { return known.name == name; });
    if (unit == duration_units.end() || (whole.empty() && fraction.empty())) {
        return std::nullopt;
    }
    const auto number =
        whole.empty() ? std::optional<std::int64_t>(0) : read_number<std::int64_t>(whole);
    if (!number || *number >= longest / unit->ns) {
        return longest;
    }
    std::int64_t ns = *number * unit->ns;
    for (std::int64_t place = unit->ns; const char digit : fraction) {
        place /= 10;
        ns += (digit - '0') * place;
    }
    return ns;
}

// As Temporal takes them: numbers with units, 1h30m, 1.5h, -2d, if it is such a text.
std::optional<std::chrono::nanoseconds> unit_duration(std::string_view text) {
    constexpr std::int64_t longest = std::numeric_limits<std::int64_t>::max();
    const bool negative = text.starts_with('-');
    if (negative || text.starts_with('+')) {
        text.remove_prefix(1);
    }
    if (text.empty()) {
        return std::nullopt;
    }
    std::int64_t total = 0;
    while (!text.empty()) {
        const auto quantity = take_quantity(text);
        if (!quantity) {
            return std::nullopt;
        }
        total = *quantity > longest - total ? longest : total + *quantity;
    }
    return std::chrono::nanoseconds{negative ? -total : total};
}

std::int64_t duration_of(const Lexer& lexer, const Token& token) {
    constexpr std::string_view expected =
        "a duration such as '1h30m' or '01:30:00', or a number of nanoseconds";
    const auto in_us = [](std::chrono::nanoseconds duration) {
        return std::int64_t{std::chrono::floor<std::chrono::microseconds>(duration).count()};
    };
    if (token.kind != Token::Kind::text) {
        return in_us(std::chrono::nanoseconds{integer_of(lexer, token, expected)});
    }
    if (const auto ns = read_number<std::int64_t>(token.meaning)) {
        return in_us(std::chrono::nanoseconds{*ns});
    }
    const auto clock = clock_duration(token.meaning);
    const auto duration = clock ? clock : unit_duration(token.meaning);
    if (!duration) {
        lexer.refuse(token, expected);
    }
    return in_us(*duration);
}

// The last id of which the text comes before this one, or is the same if `or_same`. Empty: none.
std::optional<Uuid> last_id_before(std::string_view text, bool or_same) {
    const auto is_before = [&](const Uuid& id) {
        const std::string own = id.text();
        return own < text || (or_same && own == text);
    };
    Uuid last{};
    if (!is_before(last)) {
        return std::nullopt;
    }
    // Texts have the order of the bytes: the bits are found one after another.
    for (std::byte& byte : last.bytes) {
        for (std::byte bit{0x80}; bit != std::byte{}; bit >>= 1U) {
            byte |= bit;
            if (!is_before(last)) {
                byte &= ~bit;
            }
        }
    }
    return last;
}

// Empty: it was the last of all.
std::optional<Uuid> next_id(Uuid id) {
    for (auto byte = id.bytes.rbegin(); byte != id.bytes.rend(); ++byte) {
        *byte = std::byte{static_cast<unsigned char>(std::to_integer<unsigned>(*byte) + 1U)};
        if (*byte != std::byte{}) {
            return id;
        }
    }
    return std::nullopt;
}

}  // namespace

std::optional<sql::Timestamp> moment_of(std::string_view text) {
    constexpr std::size_t shortest = std::string_view("2026-01-02T03:04:05Z").size();
    if (text.size() < shortest || text[10] != 'T') {
        return std::nullopt;
    }
    try {
        std::string in_utc(text);
        const std::chrono::minutes east = take_offset(in_utc);
        return std::clamp(parse_moment(in_utc) - east, earliest, latest);
    } catch (const Error&) {
        return std::nullopt;
    }
}

void compare_ids(Condition& condition, std::string_view text) {
    const auto bound_by = [&](Test test, bool or_same, Test without, Uuid value) {
        const auto last = last_id_before(text, or_same);
        condition.test = last ? test : without;
        condition.values = {last.value_or(value)};
    };
    const Uuid first_of_all{};
    switch (condition.test) {
        case Test::less:
        case Test::less_or_equal:
            bound_by(Test::less_or_equal,
                     condition.test == Test::less_or_equal,
                     Test::less,
                     first_of_all);
            return;
        case Test::greater:
        case Test::greater_or_equal:
            bound_by(Test::greater,
                     condition.test == Test::greater,
                     Test::greater_or_equal,
                     first_of_all);
            return;
        default:
            if (const auto id = Uuid::parse(text)) {
                condition.values.emplace_back(*id);
            }
    }
}

std::vector<Value> ids_between(std::string_view first, std::string_view last) {
    const auto before = last_id_before(first, false);
    const std::optional<Uuid> from = before ? next_id(*before) : Uuid{};
    const auto to = last_id_before(last, true);
    if (from && to) {
        return {*from, *to};
    }
    Uuid last_of_all;
    last_of_all.bytes.fill(std::byte{0xff});
    return {last_of_all, Uuid{}};
}

std::vector<Value> ids_with_prefix(std::string_view prefix) {
    return ids_between(prefix, fmt::format("{}~", prefix));  // After all that an id is made of.
}

Value value_of(const Lexer& lexer, const Token& token, Type type) {
    switch (type) {
        case Type::time:
            return time_of(lexer, token);
        case Type::status:
            return status_of(lexer, token);
        case Type::number:
            return number_of(lexer, token);
        case Type::duration:
            return duration_of(lexer, token);
        case Type::text:
        case Type::id:
            break;
    }
    if (token.kind != Token::Kind::text) {
        lexer.refuse(token, "a text in quotes");
    }
    return token.meaning;
}

std::string name_of(RunStatus status) {
    const auto number = static_cast<std::int64_t>(status);
    const bool known = number >= 1 && number <= std::ssize(statuses);
    return known ? std::string(statuses[static_cast<std::size_t>(number - 1)])
                 : fmt::format("{}", number);
}

Value text_key(const Token& token) {
    return search_key(std::string_view(token.meaning));
}

Value key_of(const Lexer& lexer, const Token& token) {
    if (token.kind == Token::Kind::text) {
        const auto moment = moment_of(token.meaning);
        return moment ? search_key(*moment) : text_key(token);
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
