// The options of an activity, as a command gives them or an operator changes them.
#pragma once

#include <optional>
#include <string>

#include "history/times.hpp"
#include <temporal/api/command/v1/message.pb.h>
#include <temporal/api/history/v1/message.pb.h>

namespace holdfast::server::history {

// What is wrong with the queue's name, the priority or the timeouts; nothing if all is well.
[[nodiscard]] std::optional<std::string> activity_options_problem(
    const temporal::api::command::v1::ScheduleActivityTaskCommandAttributes& attributes);
[[nodiscard]] std::optional<std::string> activity_options_problem(
    const temporal::api::history::v1::ActivityTaskScheduledEventAttributes& attributes);

// Every timeout is set, 0 where there is no limit, and none exceeds one that contains it. `run` is
// the timeout of the run, 0 if it has none.
void normalise_activity_timeouts(
    temporal::api::history::v1::ActivityTaskScheduledEventAttributes& scheduled, Span run);

}  // namespace holdfast::server::history
