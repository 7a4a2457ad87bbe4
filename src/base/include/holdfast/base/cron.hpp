// Schedules as cron has them: "*/5 9-17 * * MON-FRI", "@daily", "@every 90m". Always in UTC.
//
// Five fields: minute, hour, day of the month, month, day of the week (0 or 7 is Sunday; months and
// days may be named by three letters). A field is a list of numbers, ranges a-b and steps */n,
// a-b/n or a/n; ? means *. If both days are restricted, a date that fits
// either of them counts, as in every cron.
#pragma once

#include <array>
#include <bitset>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>

namespace holdfast {

class Cron {
public:
    using Moment = std::chrono::sys_time<std::chrono::milliseconds>;

    // Throws InvalidArgument if `text` is not a schedule, or if it never comes, as the 30th of
    // February.
    explicit Cron(std::string_view text);

    // The first moment after `now`. An interval is counted from `begun`, the last run; runs that
    // were missed since are left out.
    [[nodiscard]] Moment next(Moment begun, Moment now) const;

private:
    static constexpr std::size_t values_max = 60;
    using Values = std::bitset<values_max>;

    void parse_fields(std::string_view text);
    [[nodiscard]] std::optional<Moment> next_minute(Moment now) const;
    [[nodiscard]] bool is_day(std::chrono::year_month_day date) const;

    std::optional<std::chrono::milliseconds> every_;
    Values minutes_;
    Values hours_;
    Values days_;
    Values months_;
    Values weekdays_;
    bool any_day_ = true;  // The field begins with * or ?.
    bool any_weekday_ = true;
};

}  // namespace holdfast
