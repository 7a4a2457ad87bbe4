#include "scenario/fields.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "fleet/latency.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/units.hpp>

namespace holdfast::sim {
namespace {

const Node nothing{};
constexpr std::string_view digits = "0123456789";

std::string shown(Time value) {
    return value < Time{0} ? "-" + format_duration(-value) : format_duration(value);
}
template <class Number>
std::string shown(Number value) {
    return fmt::format("{}", value);
}

// 1.5s is 1s and half of 1s. Text that is not a fraction is left to the parser of whole numbers,
// which reports its errors.
Time parse_fractions(std::string_view text) {
    std::string whole;
    std::vector<std::pair<double, std::string>> parts;
    for (std::string_view rest = text; !rest.empty();) {
        const auto dot = std::min(rest.find('.'), rest.size());
        const auto end = std::min(rest.find_first_not_of(digits, dot + 1), rest.size());
        const auto next = std::min(rest.find_first_of(digits, end), rest.size());
        const std::string unit(rest.substr(end, next - end));
        if (dot == rest.size()) {
            whole += rest;
            break;
        }
        if (end == dot + 1 || unit.empty()) {
            return parse_duration(text);
        }
        double share = 0;
        (void)std::from_chars(rest.data() + dot, rest.data() + end, share);
        parts.emplace_back(share, "1" + unit);
        whole += dot == 0 ? "0" : rest.substr(0, dot);
        whole += unit;
        rest.remove_prefix(next);
    }
    Time total{};
    try {
        total = parse_duration(whole);  // Each unit at most once: so the fractions are few.
    } catch (const InvalidArgument&) {
        return parse_duration(text);
    }
    for (const auto& [share, unit] : parts) {
        const Time part{std::llround(share * static_cast<double>(parse_duration(unit).count()))};
        if (total > Time::max() - part) {
            return parse_duration(text);
        }
        total += part;
    }
    return total;
}

}  // namespace

Fields::Fields(const Node& map, std::string path, const ReadingRules& rules)
    : map_(map), path_(std::move(path)), rules_(rules) {
    if (map.kind != Node::Kind::map && map.kind != Node::Kind::null) {
        throw InvalidArgument(fmt::format(
            "{}: {} must hold keys, each with a value", map.place, path_.empty() ? "this" : path_));
    }
}

std::string Fields::path_of(std::string_view key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

const std::string& Fields::place_of(std::string_view key) const {
    const Node* node = map_.find(key);
    return node == nullptr ? map_.place : node->place;
}

void Fields::refuse(std::string_view key, const std::string& why) const {
    throw InvalidArgument(fmt::format("{}: {}: {}", place_of(key), path_of(key), why));
}

void Fields::require(bool fine, std::string_view key, const std::string& why) const {
    if (!fine) {
        refuse(key, why);
    }
}

void Fields::warn(std::string_view key, const std::string& why) const {
    if (rules_.warnings == nullptr) {
        return;
    }
    const std::string place = place_of(key) + ": ";
    const bool told = std::ranges::any_of(*rules_.warnings, [&](const std::string& warning) {
        return warning.starts_with(place) && warning.ends_with(why);
    });
    if (!told) {
        rules_.warnings->push_back(fmt::format("{}{}: {}", place, path_of(key), why));
    }
}

void Fields::note(std::string_view key, const std::string& kind, std::string fallback) const {
    if (rules_.keys != nullptr) {
        rules_.keys->push_back({path_of(key), kind, std::move(fallback)});
    }
}

const Node* Fields::scalar(std::string_view key) {
    asked_.emplace(key);
    const Node* node = map_.find(key);
    if (node != nullptr && node->kind != Node::Kind::scalar) {
        refuse(key, "expected one value");
    }
    return node;
}

const Node& Fields::below(std::string_view key) {
    asked_.emplace(key);
    const Node* node = map_.find(key);
    return node == nullptr ? nothing : *node;
}

template <class Value>
void Fields::accept(std::string_view key, Value value, Value& to) {
    if (rules_.zero_is_unset && value == Value{} && to != Value{}) {
        warn(key,
             fmt::format("0 means 'not set' in this profile; {} is in force, and a negative value "
                         "switches it off",
                         shown(to)));
        return;
    }
    to = value;
}

template <class Number>
void Fields::read_number(std::string_view key, Number& to, const char* kind) {
    note(key, kind, shown(to));
    const Node* node = scalar(key);
    if (node == nullptr) {
        return;
    }
    Number value{};
    const std::string& text = node->scalar;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc::result_out_of_range) {
        refuse(key, fmt::format("'{}' is too large or too small", text));
    }
    const bool is_one = error == std::errc{} && end == text.data() + text.size() &&
                        std::isfinite(static_cast<double>(value));  // "nan" and "inf" are read.
    if (!is_one) {
        refuse(key, fmt::format("'{}' is not a {}", text, kind));
    }
    accept(key, value, to);
}

void Fields::read(std::string_view key, int& to) {
    read_number(key, to, "whole number");
}

void Fields::read(std::string_view key, std::uint64_t& to) {
    read_number(key, to, "whole number from 0 on");
}

void Fields::read(std::string_view key, double& to) {
    read_number(key, to, "number");
}

void Fields::read(std::string_view key, std::string& to, const std::string& kind) {
    note(key, kind, to);
    if (const Node* node = scalar(key)) {
        to = node->scalar;
    }
}

void Fields::read(std::string_view key, bool& to) {
    note(key, "true or false", to ? "true" : "false");
    const Node* node = scalar(key);
    if (node == nullptr) {
        return;
    }
    const std::string& text = node->scalar;
    require(text == "true" || text == "false",
            key,
            fmt::format("'{}' is neither true nor false", text));
    to = text == "true";
}

void Fields::read(std::string_view key, Time& to) {
    note(key, "duration", to == Time::max() ? "" : shown(to));
    const Node* node = scalar(key);
    if (node == nullptr) {
        return;
    }
    const std::string& text = node->scalar;
    Time::rep bare = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bare);
    if (rules_.bare_durations && error == std::errc{} && end == text.data() + text.size()) {
        return accept_duration(key, Time{bare}, to);
    }
    Time value{};
    try {
        value = parse_signed_duration(text);
    } catch (const InvalidArgument& bad) {
        refuse(key, bad.what());
    }
    require(rules_.zero_is_unset || value >= Time{0}, key, "a duration is not negative");
    accept_duration(key, value, to);
}

void Fields::accept_duration(std::string_view key, Time value, Time& to) {
    if (value > time_max || value < -time_max) {
        refuse(key, fmt::format("give at most {}", format_duration(time_max)));
    }
    accept(key, value, to);
}

void Fields::dead(std::string_view key, std::string_view why) {
    asked_.emplace(key);
    if (!has(key)) {
        return;
    }
    if (rules_.refuse_unknown) {
        refuse(key, std::string(why));
    }
    warn(key, std::string(why));
}

void Fields::finish() {
    for (const auto& [key, node] : map_.fields) {
        if (asked_.contains(key)) {
            continue;
        }
        if (rules_.refuse_unknown) {
            refuse(key, "unknown key; `holdfast poolsim schema` lists all");
        }
        warn(key, "unknown key; it is ignored");
    }
}

Time parse_signed_duration(std::string_view text) {
    const bool negative = text.starts_with('-');
    const std::string_view size = negative ? text.substr(1) : text;
    const Time value =
        size.find('.') == std::string_view::npos ? parse_duration(size) : parse_fractions(size);
    return negative ? -value : value;
}

}  // namespace holdfast::sim
