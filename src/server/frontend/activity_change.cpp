#include "frontend/activity_change.hpp"

#include <utility>

#include "frontend/oversize.hpp"
#include "frontend/refusals.hpp"

namespace holdfast::server::frontend {

namespace {

using history::Attempt;
using history::Transition;
using Refused = std::optional<history::Refusal>;

// `act(transition, attempt)` in the run, if the attempt is found.
template <class Act>
Problem act_on_attempt(const ActivityChange& change, const Act& act) {
    const Refused refusal = change.turn.change(change.run_id, [&](Transition& transition) {
        const history::Or<Attempt> found = change.find(transition);
        if (const auto* not_found = std::get_if<history::Refusal>(&found)) {
            return Refused(*not_found);
        }
        return act(transition, std::get<Attempt>(found));
    });
    return refusal ? Problem(wire_refusal(*refusal)) : std::nullopt;
}

Problem fail_by_server(const ActivityChange& change, const std::string& message) {
    const Failure failure = server_failure(message);
    return act_on_attempt(change, [&](Transition& transition, const Attempt& attempt) {
        return history::fail_activity(transition, attempt, change.identity, failure);
    });
}

}  // namespace

Problem complete_activity(const ActivityChange& change, const Payloads* result) {
    if (result != nullptr && too_large(*result, change.limits)) {
        return fail_by_server(change, "Complete result exceeds size limit.");
    }
    return act_on_attempt(change, [&](Transition& transition, const Attempt& attempt) {
        return history::complete_activity(transition, attempt, change.identity, result);
    });
}

Problem cancel_activity(const ActivityChange& change, const Payloads* details) {
    if (details != nullptr && too_large(*details, change.limits)) {
        return fail_by_server(change, "Cancel details exceed size limit.");
    }
    return act_on_attempt(change, [&](Transition& transition, const Attempt& attempt) {
        return history::cancel_activity(transition, attempt, change.identity, details);
    });
}

Problem fail_activity(const ActivityChange& change,
                      const ActivityFailure& failed,
                      Failures& replaced) {
    const Payloads* details = failed.last_heartbeat_details;
    if (details != nullptr && too_large(*details, change.limits)) {
        details = nullptr;
        *replaced.Add() = server_failure("Heartbeat details exceed size limit.");
    }
    Failure failure = failed.failure;
    if (failure.ByteSizeLong() > change.limits.blob_bytes_max) {
        failure = replacement_of(failed.failure);
        *replaced.Add() = failure;
    }
    return act_on_attempt(change, [&](Transition& transition, const Attempt& attempt) {
        if (details != nullptr) {
            const auto beat = history::heartbeat_activity(transition, attempt, *details);
            if (const auto* refusal = std::get_if<history::Refusal>(&beat)) {
                return Refused(*refusal);
            }
        }
        return history::fail_activity(transition, attempt, change.identity, failure);
    });
}

Problem heartbeat_activity(const ActivityChange& change,
                           const Payloads& details,
                           history::HeartbeatReply& reply) {
    if (too_large(details, change.limits)) {
        reply.cancel_requested = true;
        return fail_by_server(change, "Heartbeat details exceed size limit.");
    }
    return act_on_attempt(change, [&](Transition& transition, const Attempt& attempt) {
        const auto beat = history::heartbeat_activity(transition, attempt, details);
        if (const auto* refusal = std::get_if<history::Refusal>(&beat)) {
            return Refused(*refusal);
        }
        reply = std::get<history::HeartbeatReply>(beat);
        return Refused();
    });
}

}  // namespace holdfast::server::frontend
