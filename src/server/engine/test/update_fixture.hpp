// A server whose clients ask for updates and whose worker answers them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/test/server_fixture.hpp"
#include "history/update/test/update_fixture.hpp"

namespace holdfast::server::engine::tests {

// NOLINTNEXTLINE(google-build-using-namespace): 30 names of it, in tests only.
using namespace temporal::api::enums::v1;
using history::tests::acceptance;
using history::tests::message_command;
using history::tests::rejection;
using history::tests::response;
using history::tests::update_named;
using history::tests::UpdateMessage;

class UpdateServerTest : public ServerTest {
protected:
    using Stage = UpdateWorkflowExecutionLifecycleStage;
    static constexpr Stage admitted = UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ADMITTED;
    static constexpr Stage accepted = UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED;
    static constexpr Stage completed = UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED;

    static api::UpdateWorkflowExecutionRequest update_request(const std::string& id,
                                                              Stage stage = completed) {
        api::UpdateWorkflowExecutionRequest request;
        request.set_namespace_("default");
        request.mutable_workflow_execution()->set_workflow_id("order");
        request.mutable_wait_policy()->set_lifecycle_stage(stage);
        *request.mutable_request() = update_named(id);
        return request;
    }

    Pending<api::UpdateWorkflowExecutionResponse> update(const std::string& id,
                                                         Stage stage = completed) {
        return begin<api::UpdateWorkflowExecutionResponse>("UpdateWorkflowExecution",
                                                           update_request(id, stage));
    }

    Pending<api::PollWorkflowExecutionUpdateResponse> poll_update(const std::string& id,
                                                                  Stage stage = completed) {
        api::PollWorkflowExecutionUpdateRequest request;
        request.set_namespace_("default");
        auto& reference = *request.mutable_update_ref();
        reference.mutable_workflow_execution()->set_workflow_id("order");
        reference.set_update_id(id);
        request.mutable_wait_policy()->set_lifecycle_stage(stage);
        return begin<api::PollWorkflowExecutionUpdateResponse>("PollWorkflowExecutionUpdate",
                                                               request);
    }

    static api::RespondWorkflowTaskCompletedRequest completion(
        const api::PollWorkflowTaskQueueResponse& task,
        std::vector<UpdateMessage> messages,
        std::vector<Command> commands = {}) {
        api::RespondWorkflowTaskCompletedRequest request;
        request.set_namespace_("default");
        request.set_identity("worker");
        request.set_task_token(task.task_token());
        for (UpdateMessage& message : messages) {
            *request.add_messages() = std::move(message);
        }
        for (Command& command : commands) {
            *request.add_commands() = std::move(command);
        }
        return request;
    }

    Pending<api::RespondWorkflowTaskCompletedResponse> answer(
        const api::RespondWorkflowTaskCompletedRequest& request) {
        return begin<api::RespondWorkflowTaskCompletedResponse>("RespondWorkflowTaskCompleted",
                                                                request);
    }
    Pending<api::RespondWorkflowTaskCompletedResponse> answer(
        const api::PollWorkflowTaskQueueResponse& task,
        std::vector<UpdateMessage> messages,
        std::vector<Command> commands = {}) {
        return answer(completion(task, std::move(messages), std::move(commands)));
    }

    // A run whose first workflow task is completed.
    void start_idle() {
        start("order");
        ASSERT_EQ(complete(poll().response(), {}).refusal(), nullptr);
    }

    // "u/request@2": messages of the task and the events before which they take effect.
    static std::string messages_of(const api::PollWorkflowTaskQueueResponse& task) {
        std::string text;
        for (const auto& message : task.messages()) {
            text +=
                (text.empty() ? "" : " ") + message.id() + "@" + std::to_string(message.event_id());
        }
        return text;
    }
};

}  // namespace holdfast::server::engine::tests
