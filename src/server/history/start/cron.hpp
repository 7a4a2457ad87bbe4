// Cron schedules of runs: when the next run of a chain begins.
#pragma once

#include <optional>
#include <string>

#include "history/start.hpp"
#include "history/transition.hpp"
#include <temporal/api/common/v1/message.pb.h>
#include <temporal/api/failure/v1/message.pb.h>

namespace holdfast::server::history {

// Whether the schedule parses: five fields, @daily and its like, or @every with an interval. A time
// zone may stand before it: "CRON_TZ=Europe/Berlin 0 9 * * *", or TZ=. Without one it is in UTC.
[[nodiscard]] bool valid_cron(const std::string& schedule);

// From `now` until the first slot after `base` that is not before `now`, in whole seconds, rounded
// up. Slots in between are left out. Requires: the schedule is valid.
[[nodiscard]] Span cron_backoff(const std::string& schedule, Time base, Time now);

// The first run of a chain with a schedule waits for its slot.
void wait_for_slot(Started& started, Time now);

// How the closing run ended, for the run that its schedule asks for next.
struct CronEnd {
    const temporal::api::common::v1::Payloads* result = nullptr;  // Null: the earlier one is kept.
    const temporal::api::failure::v1::Failure* failure = nullptr;
};

// Nothing without a schedule, or if its next slot is after the end of the execution.
[[nodiscard]] std::optional<Continuation> cron_run(Transition& transition, const CronEnd& end);

}  // namespace holdfast::server::history
