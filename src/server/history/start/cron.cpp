#include "history/start/cron.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "history/start/time_zone.hpp"

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
constexpr int stretches_max = 64;  // Changes of the clock that a search passes: decades.

// A schedule and the zone that is named before it.
struct Zoned {
    std::string_view schedule;
    TimeZone zone;
};

// Nothing if the zone is not known.
std::optional<Zoned> zoned(std::string_view schedule) {
    std::string name = "UTC";
    for (const std::string_view prefix : {"CRON_TZ=", "TZ="}) {
        if (schedule.starts_with(prefix)) {
            const std::size_t end = std::min(schedule.find(' '), schedule.size());
            name = schedule.substr(prefix.size(), end - prefix.size());
            schedule.remove_prefix(end);
            break;
        }
    }
    schedule.remove_prefix(std::min(schedule.find_first_not_of(' '), schedule.size()));
    auto zone = TimeZone::named(name);
    return zone ? std::optional(Zoned{schedule, *std::move(zone)}) : std::nullopt;
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

// The fields are of local time. A slot in an hour that the clock leaves out does not come, and one
// in an hour that it shows twice comes twice.
Time next_of_fields(const Zoned& parts, Time base, Time now) {
    const Cron cron{parts.schedule};
    // The moment before `now`, so that a slot at `now` itself counts.
    const auto before = ceil<milliseconds>(now) - milliseconds{1};
    auto after = std::max(floor<milliseconds>(base), before);
    Time slot;
    for (int stretches = 0; stretches < stretches_max; ++stretches) {
        const TimeZone::Stretch local = parts.zone.at(after + milliseconds{1});
        slot = cron.next(after + local.offset, after + local.offset) - local.offset;
        if (!local.end || slot < *local.end) {
            break;
        }
        after = floor<milliseconds>(*local.end) - milliseconds{1};
    }
    return slot;
}

}  // namespace

bool valid_cron(const std::string& schedule) {
    const auto parts = zoned(schedule);
    if (!parts) {
        return false;
    }
    try {
        static_cast<void>(Cron{parts->schedule});
        return true;
    } catch (const InvalidArgument&) {
        return false;
    }
}

Span cron_backoff(const std::string& schedule, Time base, Time now) {
    const Zoned parts = zoned(schedule).value();
    const Time slot = parts.schedule.starts_with(every_prefix)
                          ? next_of_interval(parts.schedule.substr(every_prefix.size()), base, now)
                          : next_of_fields(parts, base, now);
    return ceil<seconds>(slot - now);
}

void wait_for_slot(Started& started, Time now) {
    if (started.cron_schedule().empty()) {
        return;
    }
    started.set_initiator(temporal::api::enums::v1::CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE);
    *started.mutable_first_workflow_task_backoff() =
        to_duration(cron_backoff(started.cron_schedule(), now, now));
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
