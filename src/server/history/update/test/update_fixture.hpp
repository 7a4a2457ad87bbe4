// What clients and workers say of updates.
#pragma once

#include <string>

#include <temporal/api/command/v1/message.pb.h>
#include <temporal/api/protocol/v1/message.pb.h>
#include <temporal/api/update/v1/message.pb.h>

namespace holdfast::server::history::tests {

using UpdateMessage = temporal::api::protocol::v1::Message;

[[nodiscard]] inline temporal::api::update::v1::Request update_named(const std::string& id) {
    temporal::api::update::v1::Request request;
    request.mutable_meta()->set_update_id(id);
    request.mutable_meta()->set_identity("client");
    request.mutable_input()->set_name("add");
    return request;
}

template <class Body>
[[nodiscard]] UpdateMessage message_of(const std::string& id,
                                       const std::string& kind,
                                       const Body& body) {
    UpdateMessage message;
    message.set_id(id + "/" + kind);
    message.set_protocol_instance_id(id);
    message.mutable_body()->PackFrom(body);
    return message;
}

// "u/accept". With `request` it brings back an update that the server has lost.
[[nodiscard]] inline UpdateMessage acceptance(const std::string& id, bool request = false) {
    temporal::api::update::v1::Acceptance body;
    body.set_accepted_request_message_id(id + "/request");
    if (request) {
        *body.mutable_accepted_request() = update_named(id);
    }
    return message_of(id, "accept", body);
}

// "u/reject".
[[nodiscard]] inline UpdateMessage rejection(const std::string& id) {
    temporal::api::update::v1::Rejection body;
    body.set_rejected_request_message_id(id + "/request");
    body.mutable_failure()->set_message("negative");
    return message_of(id, "reject", body);
}

// "u/complete", with "5".
[[nodiscard]] inline UpdateMessage response(const std::string& id) {
    temporal::api::update::v1::Response body;
    body.mutable_meta()->set_update_id(id);
    body.mutable_outcome()->mutable_success()->add_payloads()->set_data("5");
    return message_of(id, "complete", body);
}

// The place of a message among the commands.
[[nodiscard]] inline temporal::api::command::v1::Command message_command(const std::string& id) {
    temporal::api::command::v1::Command command;
    command.set_command_type(temporal::api::enums::v1::COMMAND_TYPE_PROTOCOL_MESSAGE);
    command.mutable_protocol_message_command_attributes()->set_message_id(id);
    return command;
}

}  // namespace holdfast::server::history::tests
