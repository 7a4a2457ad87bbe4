#include "metrics/server_metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <temporal/api/enums/v1/workflow.pb.h>

namespace holdfast::server {
namespace {

namespace enums = temporal::api::enums::v1;

TEST(ServerMetricsTest, RunsAreCountedByHowTheyEnd) {
    Metrics metrics;
    ServerMetrics server(
        metrics,
        [] { return ServerLevels{}; },
        [](const std::string& id) { return "name of " + id; });
    server.count_closed("1", enums::WORKFLOW_EXECUTION_STATUS_COMPLETED);
    server.count_closed("1", enums::WORKFLOW_EXECUTION_STATUS_COMPLETED);
    server.count_closed("1", enums::WORKFLOW_EXECUTION_STATUS_TIMED_OUT);
    EXPECT_EQ(metrics.value("workflow_success", {{"namespace", "name of 1"}}), 2);
    EXPECT_EQ(metrics.value("workflow_timeout", {{"namespace", "name of 1"}}), 1);
    EXPECT_EQ(metrics.value("workflow_failed", {{"namespace", "name of 1"}}), 0);
    for (int i = 0; i < 100; ++i) {
        server.count_closed(std::to_string(i), enums::WORKFLOW_EXECUTION_STATUS_FAILED);
    }
    EXPECT_GT(metrics.value("workflow_failed", {{"namespace", "_other_"}}), 50);
}

TEST(ServerMetricsTest, LevelsAreReadWhenTheMetricsAre) {
    Metrics metrics;
    ServerLevels levels{.run_commits = 3, .backlog = 7};
    const ServerMetrics server(
        metrics, [&] { return levels; }, [](const std::string& id) { return id; });
    (void)metrics.expose();
    EXPECT_EQ(metrics.value("holdfast_server_run_commits_total"), 3);
    EXPECT_EQ(metrics.value("approximate_backlog_count"), 7);
    levels = {.run_commits = 5};
    (void)metrics.expose();
    EXPECT_EQ(metrics.value("holdfast_server_run_commits_total"), 5);
    EXPECT_EQ(metrics.value("approximate_backlog_count"), 0);
}

}  // namespace
}  // namespace holdfast::server
