// Notes: changes of a run's state that no event tells.
//
// A state changes by events and by notes, and each has one function that applies it. So a state
// that is rebuilt from events is made by the code that made it first, and what is missing then is
// what notes set (projection.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "history/times.hpp"
#include <server/history/state.pb.h>
#include <temporal/api/common/v1/message.pb.h>
#include <temporal/api/enums/v1/event_type.pb.h>
#include <temporal/api/failure/v1/message.pb.h>
#include <temporal/api/history/v1/message.pb.h>
#include <temporal/api/update/v1/message.pb.h>

namespace holdfast::server::history::note {

// A workflow task is pending without event 5: its attempt is above 1, or it is speculative.
struct TransientScheduled {
    state::WorkflowTask task;
};

// Started without event 6, so far.
struct TransientStarted {
    state::WorkflowTask task;
};

// Ended without an event.
struct TransientEnded {};

// What event 5 does not tell of the task it scheduled.
struct HeartbeatSince {
    Time original_scheduled_time;
};

struct Attempt {
    std::int32_t attempt = 1;
    std::int32_t since_last_success = 0;
};

// An empty name: no queue of one worker any more.
struct Sticky {
    std::string queue;
    Span schedule_to_start_timeout{};
};

struct ActivityStarted {
    std::int64_t scheduled_event_id = 0;
    std::string identity;
    std::string request_id;
    Time at;
};

struct ActivityHeartbeat {
    std::int64_t scheduled_event_id = 0;
    temporal::api::common::v1::Payloads details;
    Time at;
};

// The attempt failed; the next one is due at `next`.
struct ActivityRetried {
    std::int64_t scheduled_event_id = 0;
    temporal::api::failure::v1::Failure failure;
    Time at;
    Time next;
};

// The backoff is over: the next attempt is on its queue.
struct ActivityDispatched {
    std::int64_t scheduled_event_id = 0;
};

struct ActivityPaused {
    std::int64_t scheduled_event_id = 0;
    state::ActivityPause pause;
};

struct ActivityUnpaused {
    std::int64_t scheduled_event_id = 0;
};

struct ActivityReset {
    std::int64_t scheduled_event_id = 0;
    bool attempts = false;   // They are counted from 1 again.
    bool failure = false;    // The last one is forgotten.
    bool heartbeat = false;  // Its details are forgotten, at the end of the attempt that is `told`.
    bool told = false;       // The attempt under way learns of it.
};

// The attempt that waits is due at `next`, and is not on its queue if it `waits`. What was on a
// queue before is void.
struct ActivityRescheduled {
    std::int64_t scheduled_event_id = 0;
    Time next;
    bool waits = false;
};

// Nothing: the options of event 10.
struct ActivityOptions {
    std::int64_t scheduled_event_id = 0;
    std::optional<temporal::api::history::v1::ActivityTaskScheduledEventAttributes> scheduled;
};

// What a repeated request is known by, and the event it made.
struct RequestId {
    std::string request_id;
    temporal::api::enums::v1::EventType event_type{};
    std::int64_t event_id = 0;
};

// What another run knows a signal or a cancel of this run by.
struct ExternalRequest {
    std::int64_t initiated_event_id = 0;
    std::string request_id;
};

// The run is over and another one follows: its own reset points last as long as its history.
struct ResetPointsExpire {
    Time at;
};

// A close command met events that the worker has not seen.
struct CloseAttempted {
    bool value = false;
};

// A client asks for an update.
struct UpdatePending {
    temporal::api::update::v1::Request request;
};

// A worker has all pending updates with its workflow task.
struct UpdatesSent {};

// It is rejected or aborted, which leaves no trace.
struct UpdateForgotten {
    std::string update_id;
};

// A reset made this run of another one, and its time begins now.
struct Restarted {
    std::string base_run_id;
    std::int64_t last_event_id = 0;  // Of those that both have.
    Time at;
};

// The activity has not been begun, as far as the history tells, and its time begins now.
struct ActivityBegunAnew {
    std::int64_t scheduled_event_id = 0;
    Time at;
};

// A reset made another run of this one.
struct WasReset {
    std::string run_id;
};

// The run is closed, or about to be, because a reset puts another one in its place.
struct ClosedByReset {};

}  // namespace holdfast::server::history::note

namespace holdfast::server::history {

using Note = std::variant<note::TransientScheduled,
                          note::TransientStarted,
                          note::TransientEnded,
                          note::HeartbeatSince,
                          note::Attempt,
                          note::Sticky,
                          note::ActivityStarted,
                          note::ActivityHeartbeat,
                          note::ActivityRetried,
                          note::ActivityDispatched,
                          note::ActivityPaused,
                          note::ActivityUnpaused,
                          note::ActivityReset,
                          note::ActivityRescheduled,
                          note::ActivityOptions,
                          note::RequestId,
                          note::ExternalRequest,
                          note::ResetPointsExpire,
                          note::CloseAttempted,
                          note::UpdatePending,
                          note::UpdatesSent,
                          note::UpdateForgotten,
                          note::Restarted,
                          note::ActivityBegunAnew,
                          note::WasReset,
                          note::ClosedByReset>;

}  // namespace holdfast::server::history
