// What workers and clients do with an activity, whether they name it by a token or by its id.
#pragma once

#include <functional>
#include <string>

#include "engine/turn.hpp"
#include "frontend/validate.hpp"
#include "history/activity.hpp"

namespace holdfast::server::frontend {

// Finds the attempt that is meant, in the run as it is then.
using FindAttempt = std::function<history::Or<history::Attempt>(history::Transition&)>;

struct ActivityChange {
    engine::Turn& turn;
    const std::string& run_id;  // Empty: the current run.
    const std::string& identity;
    const history::Limits& limits;
    FindAttempt find;
};

using Payloads = temporal::api::common::v1::Payloads;
using Failure = temporal::api::failure::v1::Failure;
using Failures = google::protobuf::RepeatedPtrField<Failure>;

// A result that is too large fails the activity instead; so do details below.
[[nodiscard]] Problem complete_activity(const ActivityChange& change, const Payloads* result);

[[nodiscard]] Problem cancel_activity(const ActivityChange& change, const Payloads* details);

struct ActivityFailure {
    const Failure& failure;
    const Payloads* last_heartbeat_details = nullptr;
};

// What was too large to keep is named in `replaced`.
[[nodiscard]] Problem fail_activity(const ActivityChange& change,
                                    const ActivityFailure& failed,
                                    Failures& replaced);

[[nodiscard]] Problem heartbeat_activity(const ActivityChange& change,
                                         const Payloads& details,
                                         history::HeartbeatReply& reply);

// Both kinds of reply name these fields alike.
template <class Response>
void fill_heartbeat(const history::HeartbeatReply& reply, Response& response) {
    response.set_cancel_requested(reply.cancel_requested);
    response.set_activity_paused(reply.paused);
    response.set_activity_reset(reply.reset);
}

}  // namespace holdfast::server::frontend
