#include "history/start/cron.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <holdfast/base/cron.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/units.hpp>

namespace holdfast::server::history {

namespace {

using std::chrono::ceil;
using std::chrono::floor;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view every_prefix = "@every ";

// The schedule without the zone before it. Nothing if it is another zone than UTC.
std::optional<std::string_view> without_zone(std::string_view schedule) {
    for (const std::string_view prefix : {"CRON_TZ=", "TZ="}) {
        if (schedule.starts_with(prefix)) {
            const std::size_t end = schedule.find(' ');
            const std::string_view zone = schedule.substr(
                prefix.size(), end == std::string_view::npos ? end : end - prefix.size());
            if (end == std::string_view::npos || (zone != "UTC" && zone != "Etc/UTC")) {
                return std::nullopt;
            }
            schedule.remove_prefix(end + 1);
            break;
        }
    }
    schedule.remove_prefix(std::min(schedule.find_first_not_of(' '), schedule.size()));
    return schedule;
}

// Slots of an interval are whole seconds, so that the runs of a chain keep their distance.
Time next_of_interval(std::string_view interval, Time base, Time now) {
    const auto every = floor<seconds>(parse_duration(interval));
    const auto begun = floor<seconds>(base);
    const auto first = begun + every;
    if (first >= now) {
        return first;
    }
    const auto missed = (ceil<seconds>(now) - first + every - seconds{1}) / every;
    return first + missed * every;
}

Time next_of_fields(std::string_view fields, Time base, Time now) {
    // The moment before `now`, so that a slot at `now` itself counts.
    const auto before = ceil<milliseconds>(now) - milliseconds{1};
    const auto after = std::max(floor<milliseconds>(base), before);
    return Cron{fields}.next(after, after);
}

}  // namespace

bool valid_cron(const std::string& schedule) {
    const auto text = without_zone(schedule);
    if (!text) {
        return false;
    }
    try {
        static_cast<void>(Cron{*text});
        return true;
    } catch (const InvalidArgument&) {
        return false;
    }
}

Span cron_backoff(const std::string& schedule, Time base, Time now) {
    const std::string_view text = without_zone(schedule).value();
    const Time slot = text.starts_with(every_prefix)
                          ? next_of_interval(text.substr(every_prefix.size()), base, now)
                          : next_of_fields(text, base, now);
    return ceil<seconds>(slot - now);
}

std::optional<Continuation> cron_run(Transition& transition, const CronEnd& end) {
    const state::Run& run = transition.run();
    const Started& started = run.started();
    if (started.cron_schedule().empty()) {
        return std::nullopt;
    }
    const Span backoff =
        cron_backoff(started.cron_schedule(), time_of(run.execution_time()), transition.now());
    if (started.has_workflow_execution_expiration_time() &&
        transition.now() + backoff > time_of(started.workflow_execution_expiration_time())) {
        return std::nullopt;
    }
    Continuation next = continuation(
        transition, temporal::api::enums::v1::CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE, backoff);
    next.started.set_attempt(1);
    if (end.result != nullptr && end.result->payloads().empty()) {
        next.started.clear_last_completion_result();
    } else if (end.result != nullptr) {
        *next.started.mutable_last_completion_result() = *end.result;
    }
    if (end.failure != nullptr) {
        *next.started.mutable_continued_failure() = *end.failure;
    }
    return next;
}

}  // namespace holdfast::server::history
