// The load of the benchmark against a server in this process: every scenario ends, and what a
// workflow costs is counted. Nothing here says how fast anything is.
#include "load.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/log.hpp>
#include <holdfast/server/server.hpp>
#include <holdfast/sql/database.hpp>

namespace holdfast::server_bench {
namespace {

class LoadTest : public testing::Test {
protected:
    static double figure(const std::vector<bench::Count>& figures, const std::string& name) {
        for (const bench::Count& one : figures) {
            if (one.name == name) {
                return one.value;
            }
        }
        ADD_FAILURE() << "there is no figure " << name;
        return 0;
    }
    static const Plan& plan(std::string_view name) {
        return *std::ranges::find(plans(), name, &Plan::name);
    }

    // Commits of runs that one workflow takes, while polls wait for every task.
    std::uint64_t commits_of(std::string_view name) {
        std::uint64_t before = 0;
        options.warm = [&] { before = server.counts().run_commits; };
        const bench::Work work = run_plan(link, plan(name), options, std::chrono::nanoseconds{1});
        EXPECT_EQ(work.operations, 1);
        return server.counts().run_commits - before;
    }

    std::unique_ptr<Logger> log = make_logger({.level = Level::error});
    sql::Database db{"sqlite::memory:", {}};
    server::Server server{db, *log, {.port = 0}};
    Link link{fmt::format("127.0.0.1:{}", server.port())};
    LoadOptions options{.in_flight = 4};
};

TEST_F(LoadTest, AChainOfNActivitiesCosts2NPlus2Commits) {
    EXPECT_EQ(commits_of("hello"), 2U);
    EXPECT_EQ(commits_of("chain1"), 4U);
    EXPECT_EQ(commits_of("chain5"), 12U);
}

TEST_F(LoadTest, EveryScenarioEnds) {
    for (const Plan& one : plans()) {
        if (one.kind == PlanKind::update && !has_updates(link, "default", {})) {
            continue;
        }
        const bench::Work work = run_plan(link, one, options, std::chrono::milliseconds{20});
        EXPECT_GE(work.operations, options.in_flight) << one.name;
        EXPECT_GT(figure(work.figures, "p50_us"), 0) << one.name;
        EXPECT_GE(figure(work.figures, "p99_us"), figure(work.figures, "p50_us")) << one.name;
    }
}

TEST_F(LoadTest, ABacklogWaitsForItsWorkerAndIsDrained) {
    options.resident_bytes = [] { return 5e6; };
    const bench::Work work = run_backlog(link, options, 30);
    EXPECT_EQ(work.operations, 30);
    EXPECT_GT(figure(work.figures, "starts_per_s"), 0);
    EXPECT_EQ(figure(work.figures, "waiting_resident_mb"), 5);
}

TEST_F(LoadTest, OpenWorkflowsAreEndedInTheEnd) {
    double resident = 1e6;
    options.resident_bytes = [&] { return resident *= 2; };
    options.cpu_seconds = [] { return 7.0; };
    const std::uint64_t before = server.counts().run_commits;
    const bench::Work work = run_open(link, options, 20);
    EXPECT_EQ(work.operations, 20);
    EXPECT_EQ(figure(work.figures, "open_resident_mb"), 4);
    EXPECT_EQ(figure(work.figures, "bytes_per_open"), 2e6 / 20);
    EXPECT_EQ(figure(work.figures, "open_cpu_percent"), 0);
    // Started, begun, signalled, ended.
    EXPECT_GE(server.counts().run_commits - before, 4U * 20);
}

TEST_F(LoadTest, AMissingNamespaceIsRegistered) {
    require_namespace(link, "elsewhere", {});
    require_namespace(link, "elsewhere", {});
    options.name_space = "elsewhere";
    EXPECT_EQ(run_plan(link, plan("hello"), options, std::chrono::nanoseconds{1}).operations, 1);
}

TEST_F(LoadTest, AnInterruptEndsTheLoad) {
    std::stop_source source;
    source.request_stop();
    options.stop = source.get_token();
    try {
        (void)run_plan(link, plan("chain5"), options, std::chrono::hours{1});
        FAIL() << "it went on";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::cancelled);
    }
}

}  // namespace
}  // namespace holdfast::server_bench
