#include "namespaces/deletion.hpp"

#include <utility>

#include "engine/test/server_fixture.hpp"
#include "frontend/namespace/namespace_service.hpp"
#include <temporal/api/operatorservice/v1/request_response.pb.h>

#include <holdfast/store/visibility.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::server::engine::tests {
namespace {

namespace operators = temporal::api::operatorservice::v1;

// A namespace "shop" beside "default", and operators that delete it.
class NamespaceDeletionTest : public ServerTest {
protected:
    NamespaceDeletionTest() {
        namespaces::stored::Info info;
        info.set_state(temporal::api::enums::v1::NAMESPACE_STATE_REGISTERED);
        info.mutable_retention()->set_seconds(86400);
        shop = process->namespaces.create("shop", info)->id;
    }

    void start_in(const std::string& ns, const std::string& workflow_id) {
        api::StartWorkflowExecutionRequest request;
        request.set_namespace_(ns);
        request.set_workflow_id(workflow_id);
        request.mutable_workflow_type()->set_name("Order");
        request.mutable_task_queue()->set_name("queue");
        const auto started =
            begin<api::StartWorkflowExecutionResponse>("StartWorkflowExecution", request);
        EXPECT_EQ(started.refusal(), nullptr);
    }
    // Runs the first workflow task of the namespace that waits.
    void work_in(const std::string& ns, std::vector<Command> commands) {
        api::PollWorkflowTaskQueueRequest asked;
        asked.set_namespace_(ns);
        asked.mutable_task_queue()->set_name("queue");
        const auto task =
            begin<api::PollWorkflowTaskQueueResponse>("PollWorkflowTaskQueue", asked).response();
        api::RespondWorkflowTaskCompletedRequest request;
        request.set_namespace_(ns);
        request.set_task_token(task.task_token());
        for (Command& command : commands) {
            *request.add_commands() = std::move(command);
        }
        const auto completed = begin<api::RespondWorkflowTaskCompletedResponse>(
            "RespondWorkflowTaskCompleted", request);
        EXPECT_EQ(completed.refusal(), nullptr);
    }
    static Command child_command(const std::string& workflow_id) {
        Command command;
        command.set_command_type(
            temporal::api::enums::v1::COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION);
        auto& attributes = *command.mutable_start_child_workflow_execution_command_attributes();
        attributes.set_workflow_id(workflow_id);
        attributes.mutable_workflow_type()->set_name("Child");
        attributes.mutable_task_queue()->set_name("children");
        return command;
    }
    // One run that is closed, one with an activity and a timer, one with a child, and some that
    // nothing has looked at.
    void fill(int waiting = 3) {
        start_in("shop", "closed");
        work_in("shop", {complete_command()});
        start_in("shop", "busy");
        work_in("shop", {activity_command("a"), timer_command("t", 3600s)});
        start_in("shop", "parent");
        work_in("shop", {child_command("child")});
        for (int i = 0; i < waiting; ++i) {
            start_in("shop", "waiting-" + std::to_string(i));
        }
    }

    // Of the process that runs now.
    operators::DeleteNamespaceResponse remove(const std::string& ns, std::chrono::seconds delay) {
        rpc::Dispatch table{log};
        frontend::add_namespace_service(
            table,
            {.db = *db,
             .namespaces = process->namespaces,
             .executor = process->executor,
             .clock = clock,
             .begin_deletion = [this](const std::string& id) { process->deletion.begin(id); }});
        table.open();
        operators::DeleteNamespaceRequest request;
        request.set_namespace_(ns);
        request.mutable_namespace_delete_delay()->set_seconds(delay.count());
        operators::DeleteNamespaceResponse response;
        auto call = std::make_shared<rpc::Call>(
            rpc::CallInfo{
                .method = "/temporal.api.operatorservice.v1.OperatorService/DeleteNamespace",
                .deadline = {},
                .caller = {}},
            [&](rpc::Answer answer) {
                const auto* bytes = std::get_if<std::string>(&answer);
                EXPECT_TRUE(bytes != nullptr && response.ParseFromString(*bytes));
            });
        table.run(call, request.SerializeAsString());
        EXPECT_TRUE(process->executor.run_one()) << "the call itself";
        return response;
    }

    // Moves the clock in steps in which alarms ring and jobs run.
    void let_pass(std::chrono::seconds span) {
        for (auto left = span; left > 0s; left -= 1s) {
            advance(1s);
        }
    }
    std::int64_t runs_left() {
        const store::Visibility runs(*db);
        return runs.count({*Uuid::parse(shop)}, "");
    }
    std::int64_t rows_left(const std::string& table) {
        return db.number("SELECT count(*) FROM " + table);
    }

    std::string shop;
};

TEST_P(NamespaceDeletionTest, TheNameIsFreeAtOnceAndAllRunsGo) {
    HOLDFAST_CHECK("server Q220");
    HOLDFAST_CHECK("server F136");
    fill();
    start("of another namespace");
    EXPECT_EQ(runs_left(), 7);
    EXPECT_EQ(remove("shop", 0s).deleted_namespace(), "shop-deleted-" + shop.substr(0, 5));
    EXPECT_EQ(process->namespaces.find("shop"), nullptr);
    ASSERT_NE(process->namespaces.find_id(shop), nullptr);
    process->executor.run_all();
    let_pass(60s);
    EXPECT_EQ(runs_left(), 0);
    EXPECT_EQ(rows_left("current_executions"), 1);
    EXPECT_EQ(rows_left("executions"), 1) << "that of the other namespace";
    EXPECT_EQ(process->namespaces.find_id(shop), nullptr);
    EXPECT_EQ(process->matching.view({shop, "queue"}).backlog, 0U);
    EXPECT_EQ(history("of another namespace"), "1 Started, 2 WorkflowTaskScheduled");
}

// The process is killed after each of its steps.
TEST_P(NamespaceDeletionTest, TheNextProcessGoesOn) {
    fill();
    remove("shop", 0s);
    for (int steps = 1; runs_left() > 0; ++steps) {
        ASSERT_LT(steps, 60);
        for (int i = 0; i < steps; ++i) {
            if (!process->executor.run_one()) {
                process->alarms.advance(1s);
            }
        }
        process.reset();
        process = std::make_unique<Process>(db, clock, log, limits);
    }
    process->executor.run_all();
    let_pass(60s);
    EXPECT_EQ(process->namespaces.find_id(shop), nullptr);
    EXPECT_EQ(rows_left("executions"), 0);
}

TEST_P(NamespaceDeletionTest, TheRecordStaysForAsLongAsWasAsked) {
    fill(0);
    remove("shop", 300s);
    process->executor.run_all();
    let_pass(60s);
    EXPECT_EQ(runs_left(), 0);
    EXPECT_NE(process->namespaces.find_id(shop), nullptr);
    restart();
    let_pass(270s);
    EXPECT_EQ(process->namespaces.find_id(shop), nullptr);
}

// A poll of the namespace waits when it goes.
TEST_P(NamespaceDeletionTest, APollThatWaitsIsAnsweredEmpty) {
    api::PollWorkflowTaskQueueRequest request;
    request.set_namespace_("shop");
    request.mutable_task_queue()->set_name("queue");
    const auto waiting =
        begin<api::PollWorkflowTaskQueueResponse>("PollWorkflowTaskQueue", request);
    EXPECT_TRUE(waiting.waits());
    remove("shop", 0s);
    process->executor.run_all();
    let_pass(30s);
    EXPECT_EQ(waiting.response().task_token(), "");
}

INSTANTIATE_TEST_SUITE_P(Every, NamespaceDeletionTest, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::server::engine::tests
