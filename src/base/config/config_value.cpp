#include "config/config_value.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/redact.hpp>
#include <holdfast/base/units.hpp>

namespace holdfast {
namespace {

// As YAML and as the environments of other programs write them.
constexpr std::array<std::string_view, 8> words_for_true{
    "true", "yes", "on", "1", "t", "T", "TRUE", "True"};
constexpr std::array<std::string_view, 8> words_for_false{
    "false", "no", "off", "0", "f", "F", "FALSE", "False"};

[[noreturn]] void refuse(std::string_view text, const std::string& expected) {
    throw InvalidArgument(fmt::format("'{}' is not {}", text, expected));
}

template <typename T>
T parse_number(std::string_view text, const std::string& expected) {
    T number{};
    const char* const end = text.data() + text.size();
    const auto [after, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || after != end) {
        refuse(text, expected);
    }
    return number;
}

template <typename T>
T within(T value, const auto& kind, std::string_view text, const std::string& expected) {
    // Written so that NaN is out of bounds too.
    if (!(value >= kind.min && value <= kind.max)) {
        refuse(text, expected);
    }
    return value;
}

bool among(const auto& words, std::string_view text) {
    return std::find(words.begin(), words.end(), text) != words.end();
}

// "from 1 to 5", "of at least 1", "of at most 5", or nothing for bounds out of reach.
template <typename T>
std::string bounds(T min, T max, T lowest, T highest, const auto& print) {
    if (min == lowest && max == highest) {
        return "";
    }
    if (max == highest) {
        return " of at least " + print(min);
    }
    if (min == lowest) {
        return " of at most " + print(max);
    }
    return " from " + print(min) + " to " + print(max);
}

struct Expectation {
    std::string operator()(const IntegerKind& kind) const {
        const IntegerKind any;
        const auto print = [](std::int64_t n) { return fmt::format("{}", n); };
        return "an integer" + bounds(kind.min, kind.max, any.min, any.max, print);
    }
    std::string operator()(const NumberKind& kind) const {
        const NumberKind any;
        const auto print = [](double n) { return fmt::format("{}", n); };
        return "a number" + bounds(kind.min, kind.max, any.min, any.max, print);
    }
    std::string operator()(const BoolKind&) const { return "true or false"; }
    std::string operator()(const DurationKind& kind) const {
        const DurationKind any;
        return "a duration" + bounds(kind.min, kind.max, any.min, any.max, format_duration);
    }
    std::string operator()(const SizeKind& kind) const {
        const SizeKind any;
        return "a size" + bounds(kind.min, kind.max, any.min, any.max, format_size);
    }
    std::string operator()(const TextKind&) const { return "a text"; }
    std::string operator()(const ChoiceKind& kind) const {
        return fmt::format("one of {}", fmt::join(kind.choices, ", "));
    }
};

struct Parse {
    std::string_view text;
    std::string expected;

    ConfigValue operator()(const IntegerKind& kind) const {
        return within(parse_number<std::int64_t>(text, expected), kind, text, expected);
    }
    ConfigValue operator()(const NumberKind& kind) const {
        return within(parse_number<double>(text, expected), kind, text, expected);
    }
    ConfigValue operator()(const BoolKind&) const {
        if (among(words_for_true, text)) {
            return true;
        }
        if (among(words_for_false, text)) {
            return false;
        }
        refuse(text, expected);
    }
    ConfigValue operator()(const DurationKind& kind) const {
        return within(parse_duration(text), kind, text, expected);
    }
    ConfigValue operator()(const SizeKind& kind) const {
        return within(parse_size(text), kind, text, expected);
    }
    ConfigValue operator()(const TextKind&) const { return std::string(text); }
    ConfigValue operator()(const ChoiceKind& kind) const {
        if (!among(kind.choices, text)) {
            refuse(text, expected);
        }
        return std::string(text);
    }
};

struct Show {
    std::string operator()(std::int64_t number) const { return fmt::format("{}", number); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    std::string operator()(bool truth) const { return truth ? "true" : "false"; }
    std::string operator()(std::chrono::nanoseconds d) const { return format_duration(d); }
    std::string operator()(std::uint64_t bytes) const { return format_size(bytes); }
    std::string operator()(const std::string& text) const { return text; }
};

}  // namespace

ConfigValue parse_value(const SettingKind& kind, std::string_view text) {
    return std::visit(Parse{text, expectation(kind)}, kind);
}

std::string expectation(const SettingKind& kind) {
    return std::visit(Expectation{}, kind);
}

std::string show_value(const ConfigValue& value, Secrecy secrecy) {
    std::string shown = std::visit(Show{}, value);
    if (shown.empty()) {
        return shown;
    }  // An empty value is not a secret.
    switch (secrecy) {
        case Secrecy::open:
            return shown;
        case Secrecy::url_password:
            return without_password(shown);
        case Secrecy::secret:
            return std::string(redacted);
    }
    return std::string(redacted);
}

}  // namespace holdfast
