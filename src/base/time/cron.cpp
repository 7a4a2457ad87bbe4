#include <holdfast/base/cron.hpp>

#include <algorithm>
#include <charconv>
#include <span>
#include <string>
#include <vector>

#include <fmt/core.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/units.hpp>

namespace holdfast {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::sys_days;
using std::chrono::year_month_day;

constexpr std::size_t text_bytes_max = 256;
constexpr milliseconds interval_min{1'000};
constexpr milliseconds interval_max = hours{24 * 366 * 10};
// The 29th of February is at most eight years away; every other day comes sooner.
constexpr days horizon{366 * 9};

constexpr std::array<std::string_view, 12> month_names{
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> day_names{
    "sun", "mon", "tue", "wed", "thu", "fri", "sat"};

struct CronField {
    std::string_view what;
    int low;
    int high;
    std::span<const std::string_view> names{};  // From `low` on.
};
constexpr CronField minute_field{"minute", 0, 59};
constexpr CronField hour_field{"hour", 0, 23};
constexpr CronField day_field{"day of the month", 1, 31};
constexpr CronField month_field{"month", 1, 12, month_names};
constexpr CronField weekday_field{"day of the week", 0, 7, day_names};

struct Nickname {
    std::string_view name;
    std::string_view fields;
};
constexpr std::array<Nickname, 7> nicknames{Nickname{"@hourly", "0 * * * *"},
                                            Nickname{"@daily", "0 0 * * *"},
                                            Nickname{"@midnight", "0 0 * * *"},
                                            Nickname{"@weekly", "0 0 * * 0"},
                                            Nickname{"@monthly", "0 0 1 * *"},
                                            Nickname{"@yearly", "0 0 1 1 *"},
                                            Nickname{"@annually", "0 0 1 1 *"}};

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
    std::vector<std::string_view> parts;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
        parts.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

[[noreturn]] void refuse(const CronField& field, std::string_view text) {
    throw InvalidArgument(
        fmt::format("'{}' is not a {} of a schedule; write numbers from {} to {}, ranges a-b, "
                    "steps */n or lists "
                    "of them",
                    text,
                    field.what,
                    field.low,
                    field.high));
}

int number(const CronField& field, std::string_view text) {
    for (std::size_t i = 0; i < field.names.size(); ++i) {
        const auto same = [](char x, char y) { return (x | 0x20) == y; };
        if (std::ranges::equal(text, field.names[i], same)) {
            return field.low + static_cast<int>(i);
        }
    }
    int value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc{} || end != text.data() + text.size()) {
        refuse(field, text);
    }
    return value;
}

// One member of a list: *, ?, a, a-b, each perhaps with /n.
template <class Values>
void add(const CronField& field, std::string_view item, Values& values) {
    const std::size_t slash = item.find('/');
    const std::string_view range = item.substr(0, slash);
    const bool stepped = slash != std::string_view::npos;
    int first = field.low;
    int last = field.high;
    if (range != "*" && range != "?") {
        const std::size_t dash = range.find('-');
        first = number(field, range.substr(0, dash));
        if (dash != std::string_view::npos) {
            last = number(field, range.substr(dash + 1));
        } else if (!stepped) {
            last = first;
        }
    }
    const int step =
        stepped ? number(CronField{field.what, 1, field.high}, item.substr(slash + 1)) : 1;
    if (first < field.low || last > field.high || first > last || step < 1 || step > field.high) {
        refuse(field, item);
    }
    for (int value = first; value <= last; value += step) {
        values.set(static_cast<std::size_t>(value));
    }
}

template <class Values>
void parse(const CronField& field, std::string_view text, Values& values) {
    for (const std::string_view item : split(text, ",")) {
        add(field, item, values);
    }
}

milliseconds interval(std::string_view text) {
    const auto every = std::chrono::floor<milliseconds>(parse_duration(text));
    if (every < interval_min || every > interval_max) {
        throw InvalidArgument(
            fmt::format("'@every {}' is not an interval of a schedule; use 1 s to 10 years", text));
    }
    return every;
}

}  // namespace

Cron::Cron(std::string_view text) {
    constexpr std::string_view every = "@every ";
    if (text.size() > text_bytes_max) {
        throw InvalidArgument(fmt::format(
            "a schedule has {} bytes; give it at most {}", text.size(), text_bytes_max));
    }
    if (text.starts_with(every)) {
        every_ = interval(text.substr(every.size()));
        return;
    }
    const auto nickname =
        std::ranges::find_if(nicknames, [&](const Nickname& one) { return one.name == text; });
    parse_fields(nickname != nicknames.end() ? nickname->fields : text);
    if (!next_minute(Moment{})) {
        throw InvalidArgument(fmt::format("the schedule '{}' never comes; correct its days", text));
    }
}

void Cron::parse_fields(std::string_view text) {
    std::vector<std::string_view> fields = split(text, " \t");
    std::erase(fields, std::string_view{});
    if (fields.size() != 5) {
        throw InvalidArgument(fmt::format(
            "the schedule '{}' has {} fields, not the 5 of minute, hour, day, month, weekday; or "
            "write @hourly, @daily, @weekly, @monthly, @yearly, @every 90m",
            text,
            fields.size()));
    }
    parse(minute_field, fields[0], minutes_);
    parse(hour_field, fields[1], hours_);
    parse(day_field, fields[2], days_);
    parse(month_field, fields[3], months_);
    parse(weekday_field, fields[4], weekdays_);
    any_day_ = fields[2].find_first_of("*?") == 0;
    any_weekday_ = fields[4].find_first_of("*?") == 0;
    if (weekdays_.test(7)) {
        weekdays_.set(0);
    }
}

bool Cron::is_day(year_month_day date) const {
    if (!months_.test(unsigned{date.month()})) {
        return false;
    }
    const bool day = days_.test(unsigned{date.day()});
    const bool weekday = weekdays_.test(std::chrono::weekday{sys_days{date}}.c_encoding());
    return any_day_ || any_weekday_ ? day && weekday : day || weekday;
}

std::optional<Cron::Moment> Cron::next_minute(Moment now) const {
    const auto first = std::chrono::floor<minutes>(now) + minutes{1};
    const sys_days today = std::chrono::floor<days>(first);
    for (sys_days date = today; date <= today + horizon; date += days{1}) {
        if (!is_day(year_month_day{date})) {
            continue;
        }
        const minutes from = date == today ? first - date : minutes{0};
        for (minutes at = from; at < hours{24}; at += minutes{1}) {
            if (hours_.test(static_cast<std::size_t>(at / hours{1})) &&
                minutes_.test(static_cast<std::size_t>((at % hours{1}).count()))) {
                return Moment{date} + at;
            }
        }
    }
    return std::nullopt;
}

Cron::Moment Cron::next(Moment begun, Moment now) const {
    if (every_) {
        const auto passed = std::max(now - begun, milliseconds{0}) / *every_;
        return begun + (passed + 1) * *every_;
    }
    const std::optional<Moment> found = next_minute(now);
    HOLDFAST_ASSERT(found);
    return *found;
}

}  // namespace holdfast
