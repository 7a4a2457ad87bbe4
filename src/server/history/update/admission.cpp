// What a client asks of a run.
#include <algorithm>
#include <utility>

#include "history/update/update.hpp"
#include "history/workflow_task.hpp"

namespace holdfast::server::history {

namespace {

// From this attempt on a client is told that the workflow does not answer.
constexpr std::int32_t failing_attempt = 3;

// Updates that are neither completed nor rejected, and the bytes of those that are not accepted.
struct InFlight {
    std::size_t updates = 0;
    std::size_t bytes = 0;
};

InFlight in_flight(const state::Run& run) {
    InFlight sum;
    for (const auto& [id, update] : run.pending_updates()) {
        ++sum.updates;
        sum.bytes += update.request().ByteSizeLong();
    }
    for (const auto& [id, update] : run.updates()) {
        if (update.accepted_event_id() != 0 && update.completed_event_id() == 0) {
            ++sum.updates;
        }
    }
    return sum;
}

// An update that is over, or whose run is, can be asked about for as long as the run is kept.
bool answered(UpdateStage stage) {
    return stage == UpdateStage::accepted || stage == UpdateStage::completed;
}

std::optional<Refusal> refused_by_state(const Transition& transition) {
    const state::Run& run = transition.run();
    if (run.has_workflow_task() && run.workflow_task().attempt() >= failing_attempt) {
        return Refusal{Refused::not_ready,
                       "Unable to perform workflow execution update due to Workflow Task in failed "
                       "state."};
    }
    if (run.close_attempted() && transition.workflow_task_started()) {
        return Refusal{Refused::busy,
                       "workflow operation can not be applied because workflow is closing"};
    }
    return std::nullopt;
}

std::optional<Refusal> refused_by_limits(const Transition& transition, std::size_t bytes) {
    const Limits& limits = transition.limits();
    const InFlight now = in_flight(transition.run());
    if (now.updates >= limits.updates_in_flight_max ||
        now.bytes + bytes >= limits.updates_in_flight_bytes_max) {
        return Refusal{Refused::concurrent_limit,
                       "limit on number of concurrent in-flight updates has been reached"};
    }
    if (updates_of(transition.run()) >= limits.updates_max) {
        return Refusal{Refused::failed_precondition,
                       "limit on the total number of distinct updates in this workflow has been "
                       "reached"};
    }
    return std::nullopt;
}

}  // namespace

std::size_t updates_of(const state::Run& run) {
    const auto& pending = run.pending_updates();
    return run.updates().size() + static_cast<std::size_t>(std::count_if(
                                      pending.begin(), pending.end(), [&](const auto& update) {
                                          return !run.updates().contains(update.first);
                                      }));
}

std::optional<Refusal> ask_update(Transition& transition,
                                  const temporal::api::update::v1::Request& request) {
    const UpdateStage stage = update_stage(transition.run(), request.meta().update_id());
    if (!transition.open()) {
        return answered(stage) ? std::nullopt : std::optional(already_completed());
    }
    if (auto refusal = refused_by_state(transition)) {
        return refusal;
    }
    if (stage != UpdateStage::unknown) {
        return std::nullopt;
    }
    if (auto refusal = refused_by_limits(transition, request.ByteSizeLong())) {
        return refusal;
    }
    transition.touch(note::UpdatePending{request});
    if (transition.run().has_workflow_task() || transition.woken()) {
        return std::nullopt;  // It goes with that one, or with the next.
    }
    schedule_speculative_task(transition);
    return std::nullopt;
}

bool update_wants_task(const state::Run& run) {
    const auto& pending = run.pending_updates();
    return run.phase() != state::PHASE_COMPLETED && !run.has_workflow_task() &&
           std::any_of(pending.begin(), pending.end(), [](const auto& update) {
               return !update.second.sent();
           });
}

std::vector<const state::PendingUpdate*> sent_updates(const state::Run& run) {
    std::vector<const state::PendingUpdate*> sent;
    for (const auto& [id, update] : run.pending_updates()) {
        if (update.sent()) {
            sent.push_back(&update);
        }
    }
    std::sort(sent.begin(), sent.end(), [](const auto* one, const auto* other) {
        return one->sequence() < other->sequence();
    });
    return sent;
}

Refusal aborted_by_close(const state::Run& run) {
    if (!run.new_execution_run_id().empty()) {  // The same request reaches the run that follows.
        return {Refused::busy, "workflow operation can not be applied because workflow is closing"};
    }
    return {Refused::not_found, "workflow update was aborted by closing workflow"};
}

Refusal update_lost() {
    return {Refused::unavailable, "workflow update was aborted"};
}

}  // namespace holdfast::server::history
