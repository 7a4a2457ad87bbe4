#include "history/update/messages.hpp"

#include <algorithm>
#include <utility>

#include "history/update/update.hpp"
#include <fmt/format.h>

namespace holdfast::server::history {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 50 names of it.
using temporal::api::protocol::v1::Message;
using UpdateAcceptance = temporal::api::update::v1::Acceptance;
using UpdateRejection = temporal::api::update::v1::Rejection;
using UpdateResponse = temporal::api::update::v1::Response;

constexpr auto bad_message = WORKFLOW_TASK_FAILED_CAUSE_BAD_UPDATE_WORKFLOW_EXECUTION_MESSAGE;

std::optional<std::string> accept(Transition& transition, const Message& message) {
    UpdateAcceptance acceptance;
    if (!message.body().UnpackTo(&acceptance)) {
        return fmt::format("the body of message {} cannot be decoded", message.id());
    }
    if (acceptance.accepted_request_message_id().empty()) {
        return "accepted_request_message_id is not set";
    }
    const std::string& id = message.protocol_instance_id();
    const auto pending = transition.run().pending_updates().find(id);
    const bool known = pending != transition.run().pending_updates().end();
    return accept_update(transition, id, acceptance, known ? &pending->second.request() : nullptr);
}

std::optional<std::string> reject(Transition& transition, const Message& message) {
    UpdateRejection rejection;
    if (!message.body().UnpackTo(&rejection)) {
        return fmt::format("the body of message {} cannot be decoded", message.id());
    }
    if (!rejection.has_failure()) {
        return "failure is not set";
    }
    const std::string& id = message.protocol_instance_id();
    const UpdateStage stage = update_stage(transition.run(), id);
    if (stage == UpdateStage::accepted || stage == UpdateStage::completed) {
        return fmt::format("invalid state transition attempted: rejection of update '{}'", id);
    }
    if (stage == UpdateStage::unknown && !rejection.has_rejected_request()) {
        return fmt::format("update '{}' wasn't found", id);
    }
    transition.end_update({.update_id = id, .how = rejection.failure()});
    return std::nullopt;
}

std::optional<std::string> respond(Transition& transition, const Message& message) {
    UpdateResponse response;
    if (!message.body().UnpackTo(&response)) {
        return fmt::format("the body of message {} cannot be decoded", message.id());
    }
    if (response.outcome().value_case() == temporal::api::update::v1::Outcome::VALUE_NOT_SET) {
        return "outcome is not set";
    }
    return complete_update(transition, message.protocol_instance_id(), response);
}

std::optional<std::string> run_body(Transition& transition, const Message& message) {
    if (message.id().empty()) {
        return "the id of a message is not set";
    }
    if (message.protocol_instance_id().empty()) {
        return fmt::format("protocol_instance_id of message {} is not set", message.id());
    }
    if (!message.has_body()) {
        return fmt::format("the body of message {} is not set", message.id());
    }
    if (message.body().Is<UpdateAcceptance>()) {
        return accept(transition, message);
    }
    if (message.body().Is<UpdateRejection>()) {
        return reject(transition, message);
    }
    if (message.body().Is<UpdateResponse>()) {
        return respond(transition, message);
    }
    return fmt::format(
        "message {} has a body of unknown type {}", message.id(), message.body().type_url());
}

CommandResult run_message(Completing& completing, const Message& message) {
    if (message.body().value().size() > completing.transition.limits().blob_bytes_max) {
        return CommandFailure{
            bad_message, fmt::format("message {} exceeds size limit", message.id()), true};
    }
    if (auto problem = run_body(completing.transition, message)) {
        return CommandFailure{bad_message, *std::move(problem)};
    }
    return std::nullopt;
}

temporal::api::failure::v1::Failure unprocessed() {
    temporal::api::failure::v1::Failure failure;
    failure.set_message(
        "Workflow Update is rejected because it wasn't processed by worker. Probably, Workflow "
        "Update is not supported by the worker.");
    failure.set_source("Server");
    failure.mutable_application_failure_info()->set_type("UnprocessedUpdate");
    failure.mutable_application_failure_info()->set_non_retryable(true);
    return failure;
}

}  // namespace

const Message* MessageInbox::take(const std::string& id) {
    for (const Message& message : messages_) {
        if (message.id() == id && taken_.insert(&message).second) {
            return &message;
        }
    }
    return nullptr;
}

std::vector<const Message*> MessageInbox::take_rest() {
    std::vector<const Message*> rest;
    for (const Message& message : messages_) {
        if (taken_.insert(&message).second) {
            rest.push_back(&message);
        }
    }
    return rest;
}

bool only_rejections(const Messages& messages) {
    return std::all_of(messages.begin(), messages.end(), [](const Message& message) {
        return message.body().Is<UpdateRejection>();
    });
}

CommandResult run_message_command(Completing& completing,
                                  const temporal::api::command::v1::Command& command) {
    const std::string& id = command.protocol_message_command_attributes().message_id();
    const Message* message =
        completing.messages != nullptr ? completing.messages->take(id) : nullptr;
    if (message == nullptr) {
        return CommandFailure{
            bad_message, fmt::format("ProtocolMessageCommand referenced absent message ID {}", id)};
    }
    return run_message(completing, *message);
}

CommandResult run_rest_of_messages(Completing& completing) {
    for (const Message* message : completing.messages->take_rest()) {
        if (!completing.transition.open()) {
            return std::nullopt;
        }
        if (auto failure = run_message(completing, *message)) {
            return failure;
        }
    }
    return std::nullopt;
}

void reject_unanswered(Transition& transition) {
    std::vector<std::string> ids;
    for (const state::PendingUpdate* update : sent_updates(transition.run())) {
        ids.push_back(update->request().meta().update_id());
    }
    for (std::string& id : ids) {
        transition.end_update({.update_id = std::move(id), .how = unprocessed()});
    }
}

void abort_updates(Transition& transition) {
    std::vector<UpdateEnd> ends;
    for (const auto& [id, update] : transition.run().pending_updates()) {
        ends.push_back({.update_id = id,
                        .how = update.sent()
                                   ? Refusal{Refused::not_ready,
                                             "Unable to perform workflow execution update due to "
                                             "unexpected workflow task failure."}
                                   : update_lost()});
    }
    std::ranges::sort(ends, {}, &UpdateEnd::update_id);
    for (UpdateEnd& end : ends) {
        transition.end_update(std::move(end));
    }
}

}  // namespace holdfast::server::history
