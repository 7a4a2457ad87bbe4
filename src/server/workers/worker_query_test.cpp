#include "workers/worker_query.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::server::workers {

namespace {

namespace enums = temporal::api::enums::v1;

// Two workers: ann runs on the queue "orders", bob shuts down on "payments" and says little.
class WorkerQueryTest : public testing::Test {
protected:
    WorkerQueryTest() {
        ann.set_worker_instance_key("ann");
        ann.set_worker_identity("1@host");
        ann.set_task_queue("orders");
        ann.set_status(enums::WORKER_STATUS_RUNNING);
        ann.set_sdk_name("temporal-go");
        ann.mutable_host_info()->set_host_name("host");
        ann.mutable_deployment_version()->set_deployment_name("shop");
        ann.mutable_deployment_version()->set_build_id("1.0");
        ann.mutable_start_time()->set_seconds(1'704'067'200);  // 2024-01-01T00:00:00Z
        bob.set_worker_instance_key("bob");
        bob.set_task_queue("payments");
        bob.set_status(enums::WORKER_STATUS_SHUTTING_DOWN);
    }

    [[nodiscard]] std::string found(const std::string& query) const {
        try {
            const WorkerQuery asked(query);
            return std::string(asked.matches(ann) ? "ann " : "") +
                   (asked.matches(bob) ? "bob" : "");
        } catch (const InvalidArgument& error) {
            return error.what();
        }
    }

    Heartbeat ann;
    Heartbeat bob;
};

TEST_F(WorkerQueryTest, WorkersAreFoundByWhatTheyReport) {
    HOLDFAST_CHECK("server Q52");
    EXPECT_EQ(found(""), "ann bob");
    EXPECT_EQ(found("TaskQueue='orders' AND Status='Running'"), "ann ");
    EXPECT_EQ(found("WorkerStatus = 'ShuttingDown'"), "bob");
    EXPECT_EQ(found("TaskQueue = 'orders' OR TaskQueue = \"payments\""), "ann bob");
    EXPECT_EQ(found("(TaskQueue='orders' OR TaskQueue='payments') AND HostName != 'host'"), "bob");
    EXPECT_EQ(found("SdkName STARTS_WITH 'temporal'"), "ann ");
    EXPECT_EQ(found("WorkerInstanceKey NOT STARTS_WITH 'a'"), "bob");
    EXPECT_EQ(found("WorkerIdentity IS NULL"), "bob");
    EXPECT_EQ(found("DeploymentName = 'shop' AND BuildId IS NOT NULL"), "ann ");
}

TEST_F(WorkerQueryTest, TimesAreCompared) {
    EXPECT_EQ(found("StartTime = '2024-01-01T01:00:00+01:00'"), "ann ");
    EXPECT_EQ(found("StartTime > '2023-12-31T23:59:59Z'"), "ann ");
    EXPECT_EQ(found("StartTime < '2024-01-01T00:00:00Z'"), "");
    EXPECT_EQ(found("StartTime BETWEEN '2024-01-01T00:00:00Z' AND '2024-01-02T00:00:00Z'"), "ann ");
    EXPECT_EQ(found("StartTime NOT BETWEEN '2023-01-01T00:00:00Z' AND '2023-01-02T00:00:00Z'"),
              "ann ");
    EXPECT_EQ(found("HeartbeatTime IS NULL"), "ann bob");
    EXPECT_EQ(found("StartTime <= '9999-12-31T00:00:00Z'"), "ann ");
}

TEST_F(WorkerQueryTest, AComparisonThatMakesNoSenseIsMetByNoWorker) {
    EXPECT_EQ(found("Colour = 'red'"), "");
    EXPECT_EQ(found("Colour != 'red'"), "");
    EXPECT_EQ(found("TaskQueue < 'z'"), "");
    EXPECT_EQ(found("StartTime > 'yesterday'"), "");
    EXPECT_EQ(found("TaskQueue = 'orders' OR Colour = 'red'"), "ann ");
    EXPECT_EQ(found("Colour = 'red' OR TaskQueue = 'orders'"), "");
}

TEST_F(WorkerQueryTest, WhatIsNotInTheLanguageIsRefused) {
    HOLDFAST_CHECK("server Q52");
    for (const char* query : {"TaskQueue",
                              "TaskQueue =",
                              "TaskQueue = orders",
                              "NOT TaskQueue = 'orders'",
                              "TaskQueue IN ('orders')",
                              "TaskQueue = 'orders' LIMIT 1",
                              "WHERE TaskQueue = 'orders'",
                              "SELECT * FROM workers",
                              "(TaskQueue = 'orders'",
                              "TaskQueue = 'orders' TaskQueue = 'payments'",
                              "TaskQueue IS NOT 'orders'",
                              "\xff"}) {
        EXPECT_TRUE(found(query).starts_with("malformed query: ")) << query << ": " << found(query);
    }
    EXPECT_EQ(found("TaskQueue = orders"),
              "malformed query: syntax error at position 18 near 'orders'");
    std::string nested(41, '(');
    nested += "Status = 'x'";
    nested.append(41, ')');
    EXPECT_TRUE(found(nested).starts_with("malformed query: more than 40"));
}

}  // namespace

}  // namespace holdfast::server::workers
