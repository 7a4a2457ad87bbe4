// The life of an activity: started by a poll, kept alive by heartbeats, ended by its worker or by a
// timeout, tried again in between.
//
// An attempt leaves no event. Event 11 is written with the one that ends the activity, and tells of
// the last attempt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "history/refusal.hpp"
#include "history/transition.hpp"
#include <temporal/api/common/v1/message.pb.h>
#include <temporal/api/enums/v1/workflow.pb.h>
#include <temporal/api/failure/v1/message.pb.h>

namespace holdfast::server::history {

// One attempt, as its worker names it. Without a number it is whatever attempt is under way.
struct Attempt {
    std::int64_t scheduled_event_id = 0;
    std::optional<std::int32_t> number;
    // Of the worker that ends it.
    std::optional<temporal::api::common::v1::WorkerVersionStamp> worker_version{};
};

// Gives the activity to a worker. Refused if it is not waiting any more, is another attempt, or
// another poll has it; the queue then drops its task.
[[nodiscard]] std::optional<Refusal> start_activity(Transition& transition,
                                                    std::int64_t scheduled_event_id,
                                                    std::int32_t stamp,
                                                    const std::string& identity,
                                                    const std::string& request_id);

[[nodiscard]] std::optional<Refusal> complete_activity(
    Transition& transition,
    const Attempt& attempt,
    const std::string& identity,
    const temporal::api::common::v1::Payloads* result);

// The activity is tried again if its policy says so.
[[nodiscard]] std::optional<Refusal> fail_activity(
    Transition& transition,
    const Attempt& attempt,
    const std::string& identity,
    const temporal::api::failure::v1::Failure& failure);

// Refused unless the workflow asked for it.
[[nodiscard]] std::optional<Refusal> cancel_activity(
    Transition& transition,
    const Attempt& attempt,
    const std::string& identity,
    const temporal::api::common::v1::Payloads* details);

struct HeartbeatReply {
    bool cancel_requested = false;
    bool paused = false;
    bool reset = false;
};

[[nodiscard]] Or<HeartbeatReply> heartbeat_activity(
    Transition& transition,
    const Attempt& attempt,
    const temporal::api::common::v1::Payloads& details);

// Ends an activity that no worker has: the workflow does not want it any more.
void cancel_unstarted_activity(Transition& transition,
                               std::int64_t scheduled_event_id,
                               const std::string& identity);

// The pending activity with this id, or nothing.
[[nodiscard]] const state::Activity* find_activity(const state::Run& run,
                                                   const std::string& activity_id);

struct ActivityDeadline {
    Time at;
    std::int64_t scheduled_event_id = 0;
    temporal::api::enums::v1::TimeoutType timeout_type{};

    friend auto operator<=>(const ActivityDeadline&, const ActivityDeadline&) = default;
};

// The deadlines of all pending activities, in the order in which they are served. One that is
// paused has none.
[[nodiscard]] std::vector<ActivityDeadline> activity_deadlines(const state::Run& run);

// False once the activity has ended, or goes on in a way that moved the deadline.
[[nodiscard]] bool still_stands(const state::Run& run, const ActivityDeadline& deadline);

// Requires: the deadline still stands.
void time_out_activity(Transition& transition, const ActivityDeadline& deadline);

}  // namespace holdfast::server::history
