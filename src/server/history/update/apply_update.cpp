#include "history/update/apply_update.hpp"

#include <algorithm>

#include "history/limits.hpp"

namespace holdfast::server::history {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 50 names of it.
using temporal::api::history::v1::HistoryEvent;

state::PendingUpdate& add_pending(state::Run& run,
                                  const temporal::api::update::v1::Request& request) {
    std::int64_t last = 0;
    for (const auto& [id, update] : run.pending_updates()) {
        last = std::max(last, update.sequence());
    }
    state::PendingUpdate& pending = (*run.mutable_pending_updates())[request.meta().update_id()];
    *pending.mutable_request() = request;
    pending.set_sequence(last + 1);
    return pending;
}

void admitted(state::Run& run, const HistoryEvent& event) {
    const auto& request = event.workflow_execution_update_admitted_event_attributes().request();
    (*run.mutable_updates())[request.meta().update_id()].set_admitted_event_id(event.event_id());
    add_pending(run, request).set_admitted_event_id(event.event_id());
}

void accepted(state::Run& run, const HistoryEvent& event) {
    const std::string& id =
        event.workflow_execution_update_accepted_event_attributes().protocol_instance_id();
    (*run.mutable_updates())[id].set_accepted_event_id(event.event_id());
    run.mutable_pending_updates()->erase(id);
}

void completed(state::Run& run, const HistoryEvent& event) {
    state::Update& update = (*run.mutable_updates())
        [event.workflow_execution_update_completed_event_attributes().meta().update_id()];
    update.set_completed_event_id(event.event_id());
    update.set_completed_batch_event_id(run.last_first_event_id());
}

}  // namespace

bool apply_update(state::Run& run, const HistoryEvent& event) {
    switch (event.event_type()) {
        case EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED:
            admitted(run, event);
            return true;
        case EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
            accepted(run, event);
            return true;
        case EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED:
            completed(run, event);
            return true;
        default:
            return false;
    }
}

void apply_update(state::Run& run, const note::UpdatePending& note) {
    add_pending(run, note.request);
}

void apply_update(state::Run& run, const note::UpdatesSent& /*note*/) {
    for (auto& [id, update] : *run.mutable_pending_updates()) {
        update.set_sent(true);
    }
}

void apply_update(state::Run& run, const note::UpdateForgotten& note) {
    run.mutable_pending_updates()->erase(note.update_id);
}

}  // namespace holdfast::server::history
