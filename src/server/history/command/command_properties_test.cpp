#include "history/test/run_fixture.hpp"
#include <gmock/gmock.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::history::tests {

namespace {

using temporal::api::common::v1::Payload;
using testing::ElementsAre;
using testing::IsEmpty;

Payload json(const std::string& data) {
    Payload payload;
    (*payload.mutable_metadata())["encoding"] = "json/plain";
    payload.set_data(data);
    return payload;
}

Command upsert_command(const std::string& name, const std::string& data) {
    Command command;
    command.set_command_type(COMMAND_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES);
    (*command.mutable_upsert_workflow_search_attributes_command_attributes()
          ->mutable_search_attributes()
          ->mutable_indexed_fields())[name] = json(data);
    return command;
}

Command memo_command(const std::string& name, const std::string& data) {
    Command command;
    command.set_command_type(COMMAND_TYPE_MODIFY_WORKFLOW_PROPERTIES);
    (*command.mutable_modify_workflow_properties_command_attributes()
          ->mutable_upserted_memo()
          ->mutable_fields())[name] = json(data);
    return command;
}

// A namespace that knows one search attribute, Amount, and marks it as an Int.
class PropertiesTest : public RunFixture {
protected:
    PropertiesTest() {
        scene.check_attributes = [](auto& fields) -> std::optional<std::string> {
            for (auto& [name, payload] : fields) {
                if (name != "Amount") {
                    return "no mapping defined for search attribute " + name;
                }
                (*payload.mutable_metadata())["type"] = "Int";
            }
            return std::nullopt;
        };
        start();
        poll();
    }

    // The cause of event 4.
    [[nodiscard]] WorkflowTaskFailedCause cause() const {
        return event(4).workflow_task_failed_event_attributes().cause();
    }
};

TEST_F(PropertiesTest, AnUpsertIsCheckedAndTyped) {
    ASSERT_TRUE(complete({upsert_command("Amount", "7")}));
    const auto& upserted = event(5).upsert_workflow_search_attributes_event_attributes();
    EXPECT_EQ(upserted.search_attributes().indexed_fields().at("Amount").metadata().at("type"),
              "Int");
    EXPECT_EQ(run().search_attributes().at("Amount").data(), "7");
}

TEST_F(PropertiesTest, AnUnknownAttributeFailsTheWorkflowTask) {
    EXPECT_FALSE(complete({start_timer_command("t", 1s), upsert_command("Colour", "\"red\"")}));
    EXPECT_EQ(refusal->message,
              "BadSearchAttributes: no mapping defined for search attribute Colour");
    EXPECT_EQ(cause(), WORKFLOW_TASK_FAILED_CAUSE_BAD_SEARCH_ATTRIBUTES);
    EXPECT_TRUE(run().timers().empty());
}

TEST_F(PropertiesTest, ThoseOfAChildAreCheckedAndTyped) {
    Command command = start_child_command("child");
    auto& fields = *command.mutable_start_child_workflow_execution_command_attributes()
                        ->mutable_search_attributes()
                        ->mutable_indexed_fields();
    fields["Amount"] = json("7");
    ASSERT_TRUE(complete({command}, true));
    const auto& initiated = event(5).start_child_workflow_execution_initiated_event_attributes();
    EXPECT_EQ(initiated.search_attributes().indexed_fields().at("Amount").metadata().at("type"),
              "Int");
    poll();
    fields["Colour"] = json("\"red\"");
    EXPECT_FALSE(complete({command}));
    EXPECT_TRUE(refusal->message.starts_with("BadSearchAttributes")) << refusal->message;
}

TEST_F(PropertiesTest, SoAreThoseOfTheRunThatFollows) {
    Command command = continue_as_new_command();
    auto& fields = *command.mutable_continue_as_new_workflow_execution_command_attributes()
                        ->mutable_search_attributes()
                        ->mutable_indexed_fields();
    fields["Colour"] = json("\"red\"");
    EXPECT_FALSE(complete({command}));
    EXPECT_EQ(cause(), WORKFLOW_TASK_FAILED_CAUSE_BAD_SEARCH_ATTRIBUTES);
    fields.clear();
    fields["Amount"] = json("7");
    advance(0s);
    poll();
    ASSERT_TRUE(complete({command})) << refusal->message;
    ASSERT_TRUE(last.next);
    const auto& next = last.next->started.search_attributes().indexed_fields();
    EXPECT_EQ(next.at("Amount").metadata().at("type"), "Int");
}

TEST_F(PropertiesTest, ANullRemovesAnAttribute) {
    HOLDFAST_CHECK("server H106");
    complete({upsert_command("Amount", "7")}, true);
    poll();
    ASSERT_TRUE(complete({upsert_command("Amount", "null")}));
    EXPECT_FALSE(run().search_attributes().contains("Amount"));
}

TEST_F(PropertiesTest, AMemoIsMergedAndANullRemovesAKey) {
    HOLDFAST_CHECK("server H107");
    complete({memo_command("a", "1"), memo_command("b", "2")}, true);
    poll();
    ASSERT_TRUE(complete({memo_command("a", "null"), memo_command("c", "3")}));
    EXPECT_EQ(run().memo().size(), 2U);
    EXPECT_EQ(run().memo().at("b").data(), "2");
    EXPECT_EQ(run().memo().at("c").data(), "3");
}

TEST_F(PropertiesTest, AMemoThatGrowsTooLargeEndsTheRun) {
    limits.blob_bytes_max = 1000;
    ASSERT_TRUE(complete({memo_command("a", std::string(700, '1'))}, true));
    poll();
    EXPECT_FALSE(complete({memo_command("b", std::string(700, '2'))}));
    EXPECT_EQ(run().status(), WORKFLOW_EXECUTION_STATUS_TERMINATED);
}

TEST_F(PropertiesTest, TheMemoOfAChildHasABound) {
    limits.blob_bytes_max = 1000;
    Command command = start_child_command("child");
    (*command.mutable_start_child_workflow_execution_command_attributes()
          ->mutable_memo()
          ->mutable_fields())["a"] = json(std::string(1000, '1'));
    EXPECT_FALSE(complete({command}));
    EXPECT_EQ(refusal->message,
              "BadStartChildExecutionAttributes: StartChildWorkflowExecutionCommandAttributes.Memo "
              "exceeds size limit.");
}

TEST_F(PropertiesTest, AttributesThatGrowTooLargeEndTheRun) {
    for (int i = 0; i < 10; ++i) {
        scene.check_attributes = {};
        const bool fits =
            complete({upsert_command(std::to_string(i), std::string(5000, '1'))}, true);
        if (i < 8) {
            ASSERT_TRUE(fits);
            poll();
        } else {
            EXPECT_FALSE(fits);
            break;
        }
    }
    EXPECT_EQ(run().status(), WORKFLOW_EXECUTION_STATUS_TERMINATED);
}

Command eager_command(const std::string& id) {
    Command command = schedule_activity_command(id);
    command.mutable_schedule_activity_task_command_attributes()->set_request_eager_execution(true);
    return command;
}

class EagerActivityTest : public RunFixture {
protected:
    EagerActivityTest() {
        scene.news = &news;
        start();
        poll();
    }

    CompletionNews news;
};

TEST_F(EagerActivityTest, TheWorkerHasTheActivityWithItsCompletion) {
    HOLDFAST_CHECK("server H143");
    ASSERT_TRUE(complete({eager_command("a"), schedule_activity_command("b")}));
    EXPECT_THAT(news.eager, ElementsAre(5));
    EXPECT_THAT(made(), ElementsAre(Task::Kind::activity));
    EXPECT_EQ(last.tasks.front().event_id, 6) << "only the other one goes to the queue";
    EXPECT_TRUE(run().activities().at(5).started());
    EXPECT_EQ(run().activities().at(5).identity(), "worker");
    ASSERT_TRUE(complete_activity(5, 1));
    EXPECT_EQ(event(7).activity_task_started_event_attributes().identity(), "worker");
}

TEST_F(EagerActivityTest, AClosingCompletionHasNone) {
    HOLDFAST_CHECK("server H144");
    ASSERT_TRUE(complete({eager_command("a"), complete_command()}));
    EXPECT_THAT(news.eager, IsEmpty());
}

TEST_F(EagerActivityTest, WhatTheCompletionCancelsIsNotStarted) {
    ASSERT_TRUE(complete({eager_command("a"), cancel_activity_command(5)}));
    EXPECT_THAT(news.eager, IsEmpty());
    EXPECT_NE(history().find("ActivityTaskCanceled"), std::string::npos);
}

TEST_F(EagerActivityTest, AFailedCompletionStartsNothing) {
    EXPECT_FALSE(complete({eager_command("a"), cancel_timer_command("none")}));
    EXPECT_THAT(news.eager, IsEmpty());
    EXPECT_TRUE(run().activities().empty());
}

TEST_F(EagerActivityTest, AnEagerAttemptThatIsNotAnsweredIsTriedAgainThroughTheQueue) {
    complete({eager_command("a")});
    advance(10s);
    EXPECT_EQ(run().activities().at(5).attempt(), 2);
    advance(1s);
    EXPECT_THAT(made(), ElementsAre(Task::Kind::activity));
}

}  // namespace

}  // namespace holdfast::server::history::tests
