#include "history/start/options.hpp"

#include <utility>

namespace holdfast::server::history {

namespace {

using temporal::api::common::v1::Priority;
using temporal::api::history::v1::HistoryEvent;

Priority changed(Priority priority, const OptionsChange& change) {
    if (change.whole) {
        return change.priority;
    }
    if (change.priority_key) {
        priority.set_priority_key(change.priority.priority_key());
    }
    if (change.fairness_key) {
        priority.set_fairness_key(change.priority.fairness_key());
    }
    if (change.fairness_weight) {
        priority.set_fairness_weight(change.priority.fairness_weight());
    }
    return priority;
}

}  // namespace

std::optional<Refusal> change_options(Transition& transition,
                                      const OptionsChange& change,
                                      const std::string& identity) {
    if (!transition.open()) {
        return already_completed();
    }
    const Priority before = transition.run().priority();
    const Priority after = changed(before, change);
    if (before.SerializeAsString() == after.SerializeAsString()) {
        return std::nullopt;
    }
    HistoryEvent event =
        transition.event(temporal::api::enums::v1::EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED);
    event.set_worker_may_ignore(true);
    auto& attributes = *event.mutable_workflow_execution_options_updated_event_attributes();
    attributes.set_unset_versioning_override(true);
    attributes.set_identity(identity);
    *attributes.mutable_priority() = after;
    transition.add(std::move(event));
    return std::nullopt;
}

}  // namespace holdfast::server::history
