#include <holdfast/sim/sweep.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "scenario/fields.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/units.hpp>
#include <holdfast/pool/config.hpp>

namespace holdfast::sim {
namespace {

// All digits of a number, before and behind the point: what fits whatever they are.
constexpr std::size_t digits_max = 18;

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc{} && end == text.data() + text.size();
    return whole ? std::optional(value) : std::nullopt;
}

// -0.25 is -25 with two digits behind the point. Binary fractions would make 0.1 and 0.2 something
// else than 0.3.
struct Decimal {
    std::int64_t value = 0;
    std::size_t digits = 0;
};

std::optional<Decimal> parse_decimal(std::string_view text) {
    const auto dot = std::min(text.find('.'), text.size());
    const std::string_view behind = text.substr(std::min(dot + 1, text.size()));
    const std::string all = std::string(text.substr(0, dot)) + std::string(behind);
    const auto value = parse_number<std::int64_t>(all);
    const bool wrong = behind.empty() != (dot == text.size()) || dot == 0 ||
                       behind.starts_with('-') || text.starts_with("-.");
    if (!value || wrong || all.size() > digits_max) {
        return std::nullopt;
    }
    return Decimal{*value, behind.size()};
}

std::string decimal_text(std::int64_t value, std::size_t digits) {
    std::string text = fmt::format("{:0{}}", value < 0 ? -value : value, digits + 1);
    if (digits > 0) {
        text.insert(text.size() - digits, 1, '.');
        text.erase(text.find_last_not_of('0') + 1);
        text.erase(text.find_last_not_of('.') + 1);
    }
    return (value < 0 ? "-" : "") + text;
}

// Numbers, or durations, on one scale: whole units of 10^-digits, or of a nanosecond.
struct Scale {
    std::vector<std::int64_t> values{};
    bool durations = false;
    std::size_t digits = 0;

    [[nodiscard]] std::string text(std::int64_t value) const {
        if (!durations) {
            return decimal_text(value, digits);
        }
        return value < 0 ? "-" + format_duration(Time{-value}) : format_duration(Time{value});
    }
};

std::optional<Scale> parse_decimals(const std::vector<std::string_view>& texts) {
    Scale scale;
    std::vector<Decimal> all;
    for (const std::string_view text : texts) {
        const auto found = parse_decimal(text);
        if (!found) {
            return std::nullopt;
        }
        all.push_back(*found);
        scale.digits = std::max(scale.digits, found->digits);
    }
    constexpr std::int64_t most = 1'000'000'000'000'000'000;
    for (Decimal& one : all) {
        for (; one.digits < scale.digits; ++one.digits) {
            if (one.value > most / 10 || one.value < -most / 10) {
                return std::nullopt;
            }
            one.value *= 10;
        }
        scale.values.push_back(one.value);
    }
    return scale;
}

// `whole` is what was written, for the message.
Scale parse_scale(std::string_view whole, const std::vector<std::string_view>& texts) {
    if (auto decimals = parse_decimals(texts)) {
        return *decimals;
    }
    Scale scale{.values = {}, .durations = true};
    std::string_view bare;
    for (const std::string_view text : texts) {
        if (const auto plain = parse_decimal(text)) {
            bare = plain->value == 0 ? bare : text;
            scale.values.push_back(0);
            continue;
        }
        try {
            scale.values.push_back(parse_signed_duration(text).count());
        } catch (const InvalidArgument&) {
            throw InvalidArgument(fmt::format(
                "'{}': '{}' is neither a number nor a duration, as in 0.5 or 30s", whole, text));
        }
    }
    if (!bare.empty()) {
        throw InvalidArgument(fmt::format(
            "'{}': {} has no unit; write numbers only, or durations only", whole, bare));
    }
    return scale;
}

// "A..B/STEP", or "A..B" of whole numbers; nothing if it does not look like that.
std::optional<std::vector<std::string>> parse_range(std::string_view text) {
    const auto dots = text.find("..");
    if (dots == std::string_view::npos) {
        return std::nullopt;
    }
    const auto refuse = [&](const std::string& why) {
        return InvalidArgument(fmt::format("'{}': {}", text, why));
    };
    const auto slash = std::min(text.find('/', dots), text.size());
    const bool stepped = slash < text.size();
    const Scale scale = parse_scale(text,
                                    {text.substr(0, dots),
                                     text.substr(dots + 2, slash - dots - 2),
                                     stepped ? text.substr(slash + 1) : "0"});
    if (!stepped && (scale.durations || scale.digits > 0)) {
        throw refuse("say in which steps, as in 0s..10m/30s or 0.1..0.9/0.2");
    }
    const std::int64_t first = scale.values[0];
    const std::int64_t last = scale.values[1];
    const std::int64_t by = stepped ? scale.values[2] : 1;
    if (by <= 0) {
        throw refuse("the step must be more than 0");
    }
    if (last < first) {
        throw refuse("the first value is the largest; write the smaller one first");
    }
    const auto from = static_cast<std::uint64_t>(first);  // Differences may be too large for signs.
    const auto each = static_cast<std::uint64_t>(by);
    const std::uint64_t steps = (static_cast<std::uint64_t>(last) - from) / each;
    if (steps >= points_max) {
        throw refuse(fmt::format("more than {} values; take larger steps", points_max));
    }
    std::vector<std::string> values;
    for (std::uint64_t i = 0; i <= steps; ++i) {
        values.push_back(scale.text(static_cast<std::int64_t>(from + i * each)));
    }
    return values;
}

}  // namespace

std::vector<std::uint64_t> parse_seeds(std::string_view text) {
    const auto dots = text.find("..");
    const auto first = parse_number<std::uint64_t>(text.substr(0, dots));
    const auto last =
        dots == std::string_view::npos ? first : parse_number<std::uint64_t>(text.substr(dots + 2));
    if (!first || !last || *last < *first || *last - *first >= runs_max) {
        throw InvalidArgument(
            fmt::format("--seeds: '{}' is not a seed or a range of at most {}; write 7 or 1..200",
                        text,
                        runs_max));
    }
    std::vector<std::uint64_t> seeds;
    for (std::uint64_t seed = *first; seeds.size() <= *last - *first; ++seed) {
        seeds.push_back(seed);
    }
    return seeds;
}

Axis parse_axis(std::string_view text) {
    const auto equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) {
        throw InvalidArgument(
            fmt::format("'{}' is not a sweep; write KEY=1,5,9 or KEY=1..9/2", text));
    }
    Axis axis{.key = std::string(text.substr(0, equals)), .values = {}};
    std::string_view rest = text.substr(equals + 1);
    try {
        if (auto range = parse_range(rest)) {
            axis.values = std::move(*range);
            return axis;
        }
    } catch (const InvalidArgument& bad) {
        throw InvalidArgument(fmt::format("--sweep {}: {}", axis.key, bad.what()));
    }
    while (true) {
        const auto comma = rest.find(',');
        axis.values.emplace_back(rest.substr(0, comma));
        if (comma == std::string_view::npos) {
            return axis;
        }
        rest.remove_prefix(comma + 1);
    }
}

std::vector<std::vector<Override>> combinations(std::span<const Axis> axes) {
    std::vector<std::vector<Override>> all{{}};
    for (const Axis& axis : axes) {
        std::vector<std::vector<Override>> longer;
        if (std::ranges::count(axes, axis.key, &Axis::key) > 1) {
            throw InvalidArgument(fmt::format("--sweep {}: swept twice; keep one", axis.key));
        }
        if (all.size() * axis.values.size() > points_max) {
            throw InvalidArgument(fmt::format(
                "--sweep {}: more than {} points; take larger steps", axis.key, points_max));
        }
        for (const auto& so_far : all) {
            for (const std::string& value : axis.values) {
                longer.push_back(so_far);
                longer.back().push_back({axis.key, value, "--sweep"});
            }
        }
        all = std::move(longer);
    }
    return all;
}

std::string Bounds::text(std::int64_t value) const {
    return unit == Time{0} ? decimal_text(value, static_cast<std::size_t>(digits))
                           : format_duration(value * unit);
}

Bounds parse_bounds(std::string_view text) {
    const auto refuse = [&] {
        return InvalidArgument(fmt::format(
            "'{}' has no bounds; write KEY=LOW..HIGH, as in defaults.targetReady=10..500", text));
    };
    const auto equals = text.find('=');
    if (equals == std::string_view::npos && !text.empty()) {
        return {.key = std::string(text), .low = 1, .high = pool::target_max, .open = true};
    }
    const auto dots = text.find("..", std::min(equals, text.size()));
    if (equals == std::string_view::npos || equals == 0 || dots == std::string_view::npos) {
        throw refuse();
    }
    Bounds bounds{.key = std::string(text.substr(0, equals))};
    const Scale scale =
        parse_scale(text.substr(equals + 1),
                    {text.substr(equals + 1, dots - equals - 1), text.substr(dots + 2)});
    std::int64_t unit = 1;
    if (scale.durations) {
        constexpr std::array<std::int64_t, 4> units{1'000'000'000, 1'000'000, 1'000, 1};
        unit = *std::ranges::find_if(units, [&](std::int64_t one) {
            return scale.values[0] % one == 0 && scale.values[1] % one == 0;
        });
        bounds.unit = Time{unit};
    }
    bounds.digits = static_cast<int>(scale.digits);
    bounds.low = scale.values[0] / unit;
    bounds.high = scale.values[1] / unit;
    if (bounds.low < 0 || bounds.high < bounds.low) {
        throw refuse();
    }
    return bounds;
}

Bounds narrowed(Bounds bounds, const std::function<bool(std::int64_t)>& passes) {
    bool passed = false;
    for (std::int64_t value = bounds.low; value <= bounds.high; value *= 2) {
        if (passes(value)) {
            passed = true;
            bounds.low = value;
        } else if (passed) {
            bounds.high = value - 1;
        }
    }
    bounds.high = passed ? bounds.high : bounds.low - 1;
    return bounds;
}

std::int64_t largest_passing(std::int64_t low,
                             std::int64_t high,
                             const std::function<bool(std::int64_t)>& passes) {
    std::int64_t known = low - 1;  // The largest that is known to pass.
    while (known < high) {
        const std::int64_t middle = known + (high - known + 1) / 2;
        if (passes(middle)) {
            known = middle;
        } else {
            high = middle - 1;
        }
    }
    return known;
}

}  // namespace holdfast::sim
