#include <utility>

#include "history/command/command.hpp"
#include "history/payloads.hpp"

namespace holdfast::server::history {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 50 names of it.
using temporal::api::command::v1::Command;
using temporal::api::history::v1::HistoryEvent;

// Of all search attributes of a run: names and values.
constexpr std::size_t attribute_bytes_max = 40'960;

std::size_t bytes_of(const PayloadMap& map) {
    std::size_t bytes = 0;
    for (const auto& [key, payload] : map) {
        bytes += key.size() + payload.data().size();
    }
    return bytes;
}

// What the map is when `added` is merged into it.
PayloadMap merged(PayloadMap map, const PayloadMap& added) {
    merge(map, added);
    return map;
}

CommandResult bad_search_attributes(std::string text, bool terminate = false) {
    return CommandFailure{
        WORKFLOW_TASK_FAILED_CAUSE_BAD_SEARCH_ATTRIBUTES, std::move(text), terminate};
}

CommandResult check_attributes(const Completing& completing, PayloadMap& attributes) {
    if (!completing.check_attributes) {
        return std::nullopt;
    }
    auto problem = completing.check_attributes(attributes);
    return problem ? bad_search_attributes(*std::move(problem)) : std::nullopt;
}

}  // namespace

CommandResult check_properties(const Completing& completing,
                               const CommandFailure& too_large,
                               const temporal::api::common::v1::Memo& memo,
                               temporal::api::common::v1::SearchAttributes& attributes) {
    if (auto failure = check_attributes(completing, *attributes.mutable_indexed_fields())) {
        return failure;
    }
    if (memo.ByteSizeLong() > completing.transition.limits().blob_bytes_max) {
        return too_large;
    }
    return std::nullopt;
}

CommandResult upsert_search_attributes(Completing& completing, const Command& command) {
    auto given = command.upsert_workflow_search_attributes_command_attributes().search_attributes();
    PayloadMap& fields = *given.mutable_indexed_fields();
    if (fields.empty()) {
        return bad_search_attributes(
            "IndexedFields is not set on UpsertWorkflowSearchAttributesCommand.");
    }
    if (auto failure = check_attributes(completing, fields)) {
        return failure;
    }
    Transition& transition = completing.transition;
    if (bytes_of(merged(transition.run().search_attributes(), fields)) > attribute_bytes_max) {
        return bad_search_attributes(
            "UpsertWorkflowSearchAttributesCommandAttributes exceeds size limit.", true);
    }
    HistoryEvent event =
        command_event(completing, EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES, command);
    auto& upsert = *event.mutable_upsert_workflow_search_attributes_event_attributes();
    *upsert.mutable_search_attributes() = std::move(given);
    upsert.set_workflow_task_completed_event_id(completing.completed_event_id);
    transition.add(std::move(event));
    return std::nullopt;
}

CommandResult modify_properties(Completing& completing, const Command& command) {
    constexpr auto cause = WORKFLOW_TASK_FAILED_CAUSE_BAD_MODIFY_WORKFLOW_PROPERTIES_ATTRIBUTES;
    const auto& attributes = command.modify_workflow_properties_command_attributes();
    const PayloadMap& fields = attributes.upserted_memo().fields();
    if (fields.empty()) {
        return CommandFailure{cause, "UpsertedMemo is not set on ModifyWorkflowPropertiesCommand."};
    }
    Transition& transition = completing.transition;
    temporal::api::common::v1::Memo whole;
    *whole.mutable_fields() = merged(transition.run().memo(), fields);
    if (attributes.ByteSizeLong() > transition.limits().blob_bytes_max ||
        whole.ByteSizeLong() > transition.limits().blob_bytes_max) {
        return CommandFailure{
            cause, "ModifyWorkflowPropertiesCommandAttributes exceeds size limit.", true};
    }
    HistoryEvent event =
        command_event(completing, EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED, command);
    auto& modified = *event.mutable_workflow_properties_modified_event_attributes();
    *modified.mutable_upserted_memo() = attributes.upserted_memo();
    modified.set_workflow_task_completed_event_id(completing.completed_event_id);
    transition.add(std::move(event));
    return std::nullopt;
}

}  // namespace holdfast::server::history
