#include <holdfast/base/units.hpp>

#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <span>

#include <fmt/core.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/error.hpp>

namespace holdfast {
namespace {

struct Unit {
    std::string_view name;
    std::uint64_t scale;
};

// Largest first.
constexpr std::array<Unit, 7> duration_units{{{"d", 86'400'000'000'000},
                                              {"h", 3'600'000'000'000},
                                              {"m", 60'000'000'000},
                                              {"s", 1'000'000'000},
                                              {"ms", 1'000'000},
                                              {"us", 1'000},
                                              {"ns", 1}}};
constexpr std::array<Unit, 10> size_units{{{"TiB", std::uint64_t{1} << 40U},
                                           {"TB", 1'000'000'000'000},
                                           {"GiB", std::uint64_t{1} << 30U},
                                           {"GB", 1'000'000'000},
                                           {"MiB", std::uint64_t{1} << 20U},
                                           {"MB", 1'000'000},
                                           {"KiB", std::uint64_t{1} << 10U},
                                           {"kB", 1'000},
                                           {"KB", 1'000},
                                           {"B", 1}}};

constexpr std::string_view digits = "0123456789";
constexpr std::uint64_t ns_max = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t bytes_max = std::numeric_limits<std::uint64_t>::max();

[[noreturn]] void refuse_duration(std::string_view text, std::string_view why) {
    throw InvalidArgument(
        fmt::format("'{}' is not a duration: {}; write for example 250ms, 5s or 1m30s", text, why));
}

[[noreturn]] void refuse_size(std::string_view text, std::string_view why) {
    throw InvalidArgument(
        fmt::format("'{}' is not a size: {}; write for example 512, 64KiB or 10MB", text, why));
}

struct Quantity {
    std::uint64_t number = 0;
    std::string_view unit;
};

enum class Fault { none, no_number, too_large };

// Takes one number and the letters after it from the front of `rest`.
Fault take_quantity(std::string_view& rest, Quantity& quantity) noexcept {
    const auto [after, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), quantity.number);
    if (error == std::errc::result_out_of_range) {
        return Fault::too_large;
    }
    if (error != std::errc{}) {
        return Fault::no_number;
    }
    rest.remove_prefix(static_cast<std::size_t>(after - rest.data()));
    quantity.unit = rest.substr(0, rest.find_first_of(digits));
    rest.remove_prefix(quantity.unit.size());
    return Fault::none;
}

const Unit* find_unit(std::span<const Unit> units, std::string_view name) noexcept {
    for (const Unit& unit : units) {
        if (unit.name == name) {
            return &unit;
        }
    }
    return nullptr;
}

// Each takes what it reads off the front of `text`.
bool take(std::string_view& text, std::string_view expected) {
    if (!text.starts_with(expected)) {
        return false;
    }
    text.remove_prefix(expected.size());
    return true;
}

std::optional<unsigned> take_digits(std::string_view& text, std::size_t count) {
    const std::string_view number = text.substr(0, count);
    if (number.size() != count || number.find_first_not_of(digits) != std::string_view::npos) {
        return std::nullopt;
    }
    unsigned value = 0;
    std::from_chars(number.data(), number.data() + count, value);
    text.remove_prefix(count);
    return value;
}

std::optional<std::chrono::year_month_day> date_of(std::string_view& text) {
    const auto year = take_digits(text, 4);
    const auto month = year && take(text, "-") ? take_digits(text, 2) : std::nullopt;
    const auto day = month && take(text, "-") ? take_digits(text, 2) : std::nullopt;
    if (!day || *year == 0) {
        return std::nullopt;
    }
    const std::chrono::year_month_day date{std::chrono::year{static_cast<int>(*year)},
                                           std::chrono::month{*month},
                                           std::chrono::day{*day}};
    return date.ok() ? std::optional(date) : std::nullopt;
}

std::optional<std::chrono::microseconds> time_of_day(std::string_view& text) {
    const auto hour = take_digits(text, 2);
    const auto minute = hour && take(text, ":") ? take_digits(text, 2) : std::nullopt;
    const auto second = minute && take(text, ":") ? take_digits(text, 2) : std::nullopt;
    if (!second || *hour > 23 || *minute > 59 || *second > 59) {
        return std::nullopt;
    }
    std::chrono::microseconds fraction{0};
    if (take(text, ".")) {
        std::chrono::microseconds unit = std::chrono::milliseconds{100};
        auto digit = take_digits(text, 1);
        if (!digit) {
            return std::nullopt;
        }
        for (; digit; digit = take_digits(text, 1), unit /= 10) {
            fraction += *digit * unit;
        }
    }
    return std::chrono::hours{*hour} + std::chrono::minutes{*minute} +
           std::chrono::seconds{*second} + fraction;
}

}  // namespace

std::chrono::nanoseconds parse_duration(std::string_view text) {
    if (text == "0") {
        return std::chrono::nanoseconds{0};
    }
    if (text.empty()) {
        refuse_duration(text, "it is empty");
    }
    constexpr std::string_view too_large = "it is longer than 292 years";
    std::uint64_t total = 0;
    std::span<const Unit> allowed = duration_units;
    for (std::string_view rest = text; !rest.empty();) {
        Quantity quantity;
        switch (take_quantity(rest, quantity)) {
            case Fault::none:
                break;
            case Fault::no_number:
                refuse_duration(text, "a whole number is missing before a unit");
            case Fault::too_large:
                refuse_duration(text, too_large);
        }
        if (quantity.unit.empty()) {
            refuse_duration(text, "a number has no unit");
        }
        if (find_unit(duration_units, quantity.unit) == nullptr) {
            refuse_duration(text, fmt::format("there is no unit '{}'", quantity.unit));
        }
        const Unit* unit = find_unit(allowed, quantity.unit);
        if (unit == nullptr) {
            refuse_duration(text, fmt::format("'{}' stands after a smaller unit", quantity.unit));
        }
        allowed = allowed.subspan(static_cast<std::size_t>(unit - allowed.data()) + 1);
        if (quantity.number > (ns_max - total) / unit->scale) {
            refuse_duration(text, too_large);
        }
        total += quantity.number * unit->scale;
    }
    return std::chrono::nanoseconds{static_cast<std::int64_t>(total)};
}

std::string format_duration(std::chrono::nanoseconds duration) {
    HOLDFAST_ASSERT(duration.count() >= 0);
    auto left = static_cast<std::uint64_t>(duration.count());
    if (left == 0) {
        return "0s";
    }
    std::string text;
    for (const Unit& unit : duration_units) {
        if (left >= unit.scale) {
            text += fmt::format("{}{}", left / unit.scale, unit.name);
        }
        left %= unit.scale;
    }
    return text;
}

std::uint64_t parse_size(std::string_view text) {
    constexpr std::string_view too_large = "it does not fit 64 bits";
    std::string_view rest = text;
    Quantity quantity;
    switch (take_quantity(rest, quantity)) {
        case Fault::none:
            break;
        case Fault::no_number:
            refuse_size(text, "it does not begin with a whole number");
        case Fault::too_large:
            refuse_size(text, too_large);
    }
    if (!rest.empty()) {
        refuse_size(text, "there is more after the unit");
    }
    const Unit* unit = find_unit(size_units, quantity.unit.empty() ? "B" : quantity.unit);
    if (unit == nullptr) {
        refuse_size(text, fmt::format("there is no unit '{}'", quantity.unit));
    }
    if (quantity.number > bytes_max / unit->scale) {
        refuse_size(text, too_large);
    }
    return quantity.number * unit->scale;
}

std::string format_size(std::uint64_t bytes) {
    for (const Unit& unit : size_units) {
        const bool plain = bytes == 0 || unit.scale == 1;
        if (!plain && bytes % unit.scale == 0) {
            return fmt::format("{}{}", bytes / unit.scale, unit.name);
        }
    }
    return fmt::format("{}", bytes);
}

Wall parse_moment(std::string_view text) {
    std::string_view rest = text;
    const auto date = date_of(rest);
    const auto time = date && take(rest, "T") ? time_of_day(rest) : std::nullopt;
    if (!time || (rest != "Z" && rest != "+00:00")) {
        throw InvalidArgument(fmt::format(
            "'{}' is not a moment; write it in UTC, for example 2026-01-02T03:04:05Z", text));
    }
    return std::chrono::sys_days{*date} + *time;
}

}  // namespace holdfast
