#include "history/start/time_zone.hpp"

#include <algorithm>
#include <string_view>

#include <absl/time/time.h>

namespace holdfast::server::history {

struct TimeZone::Tables {
    absl::TimeZone zone;
};

namespace {

// The tables are files: a name must not lead elsewhere. "Fixed/" names no place.
bool is_name(std::string_view name) {
    const bool letters = std::ranges::all_of(name, [](char letter) {
        return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
               (letter >= '0' && letter <= '9') || letter == '/' || letter == '_' ||
               letter == '-' || letter == '+';
    });
    return letters && !name.empty() && name.front() != '/' && !name.starts_with("Fixed/") &&
           name != "localtime";
}

absl::Time absolute(Time time) {
    return absl::FromChrono(time);
}

}  // namespace

std::optional<TimeZone> TimeZone::named(const std::string& name) {
    auto tables = std::make_shared<Tables>();
    if (!is_name(name) || !absl::LoadTimeZone(name, &tables->zone)) {
        return std::nullopt;
    }
    return TimeZone(std::move(tables));
}

TimeZone::Stretch TimeZone::at(Time time) const {
    const absl::TimeZone& zone = tables_->zone;
    Stretch stretch{.offset = std::chrono::seconds{zone.At(absolute(time)).offset},
                    .end = std::nullopt};
    absl::TimeZone::CivilTransition change;
    if (zone.NextTransition(absolute(time), &change)) {
        const absl::TimeZone::TimeInfo begin = zone.At(change.to);
        const bool unique = begin.kind == absl::TimeZone::TimeInfo::UNIQUE;
        stretch.end = std::chrono::time_point_cast<Span>(
            absl::ToChronoTime(unique ? begin.pre : begin.trans));
    }
    return stretch;
}

}  // namespace holdfast::server::history
