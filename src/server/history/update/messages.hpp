// The messages of workers about updates, which come with the completion of a workflow task.
//
// A command says at which place among the commands its message is carried out; messages that no
// command names follow after all commands.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "history/command/command.hpp"
#include <google/protobuf/repeated_ptr_field.h>
#include <temporal/api/protocol/v1/message.pb.h>

namespace holdfast::server::history {

using Messages = google::protobuf::RepeatedPtrField<temporal::api::protocol::v1::Message>;

// Of one completion; each message is taken once. Requires: the messages outlive this object.
class MessageInbox {
public:
    explicit MessageInbox(const Messages& messages) : messages_(messages) {}

    // Null if it is not there, or was taken before.
    [[nodiscard]] const temporal::api::protocol::v1::Message* take(const std::string& id);
    // Those that were not taken, in their order.
    [[nodiscard]] std::vector<const temporal::api::protocol::v1::Message*> take_rest();

private:
    const Messages& messages_;
    std::set<const temporal::api::protocol::v1::Message*> taken_;
};

// Every message rejects an update: the workflow has not changed.
[[nodiscard]] bool only_rejections(const Messages& messages);

// PROTOCOL_MESSAGE.
[[nodiscard]] CommandResult run_message_command(Completing& completing,
                                                const temporal::api::command::v1::Command& command);
// The messages that no command named. Nothing once the run is closed.
[[nodiscard]] CommandResult run_rest_of_messages(Completing& completing);

// A worker that neither accepted nor rejected an update which it was sent does not know of updates.
void reject_unanswered(Transition& transition);

// The server has failed the workflow task over a completion that is not acceptable.
void abort_updates(Transition& transition);

}  // namespace holdfast::server::history
