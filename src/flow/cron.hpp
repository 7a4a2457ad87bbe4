// When something runs again: "*/5 9-17 * * MON-FRI", "@daily", "@every 90m". Always in UTC.
//
// Five fields: minute, hour, day of the month, month, day of the week (0 or 7 is Sunday; months and
// days may be named by three letters). A field is a list of numbers, ranges a-b and steps */n,
// a-b/n or a/n. If both days are restricted, either of them is enough, as cron has always done it.
#pragma once

#include <array>
#include <bitset>
#include <chrono>
#include <optional>
#include <string_view>

#include <holdfast/flow_engine/ids.hpp>

namespace holdfast::flow {

class Cron {
public:
    // Throws InvalidArgument for what cannot be understood, and for what never comes, such as the
    // 30th of February.
    explicit Cron(std::string_view text);

    // The first moment after `now`. An interval is counted from `begun`, when it last ran: what was
    // missed meanwhile is left out, and the beat is kept.
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
    bool any_day_ = true;  // The field begins with *.
    bool any_weekday_ = true;
};

}  // namespace holdfast::flow
