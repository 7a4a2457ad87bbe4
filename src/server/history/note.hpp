// Notes: changes of a run's state that no event tells.
//
// A state changes by events and by notes, and each has one function that applies it. So a state
// that is rebuilt from events is made by the code that made it first, and what is missing then is
// what notes set (projection.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "history/times.hpp"
#include <server/history/state.pb.h>
#include <temporal/api/common/v1/message.pb.h>
#include <temporal/api/enums/v1/event_type.pb.h>
#include <temporal/api/failure/v1/message.pb.h>

namespace holdfast::server::history::note {

// A workflow task is pending without event 5: its attempt is above 1.
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

// A close command met events that the worker has not seen.
struct CloseAttempted {
    bool value = false;
};

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
                          note::RequestId,
                          note::ExternalRequest,
                          note::CloseAttempted>;

}  // namespace holdfast::server::history
