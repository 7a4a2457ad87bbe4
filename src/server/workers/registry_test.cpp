#include "workers/registry.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <holdfast/base/manual_clock.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::server::workers {

namespace {

class WorkerRegistryTest : public testing::Test {
protected:
    void report(const std::string& key, const std::string& note = {}) {
        Heartbeat heartbeat;
        heartbeat.set_worker_instance_key(key);
        heartbeat.set_worker_identity(note);
        registry.record("shop", std::move(heartbeat));
    }
    std::vector<std::string> keys(const std::string& ns = "shop", const std::string& after = {}) {
        std::vector<std::string> all;
        for (const HeartbeatPtr& worker : registry.list(ns, after)) {
            all.push_back(worker->worker_instance_key());
        }
        return all;
    }
    using Keys = std::vector<std::string>;

    ManualClock clock;
    Registry registry{clock, {.workers_max = 3, .bytes_max = 1000}};
};

TEST_F(WorkerRegistryTest, TheLastReportOfAWorkerReplacesTheOneBefore) {
    report("b", "first");
    report("a");
    report("b", "second");
    EXPECT_EQ(keys(), (Keys{"a", "b"}));
    EXPECT_EQ(registry.find("shop", "b")->worker_identity(), "second");
    EXPECT_EQ(keys("shop", "a"), Keys{"b"});
    EXPECT_EQ(keys("elsewhere"), Keys{});
    EXPECT_EQ(registry.find("elsewhere", "b"), nullptr);
}

TEST_F(WorkerRegistryTest, AWorkerThatIsSilentForFiveMinutesIsForgotten) {
    report("a");
    clock.advance(std::chrono::minutes{4});
    report("b");
    clock.advance(std::chrono::seconds{59});
    EXPECT_EQ(keys(), (Keys{"a", "b"}));
    clock.advance(std::chrono::seconds{1});
    EXPECT_EQ(keys(), Keys{"b"});
}

TEST_F(WorkerRegistryTest, AboveTheLimitTheWorkersThatAreSilentForLongestGo) {
    for (const char* key : {"a", "b", "c", "a", "d"}) {
        report(key);
    }
    EXPECT_EQ(keys(), (Keys{"a", "c", "d"}));
    report("e", std::string(900, 'x'));
    EXPECT_EQ(keys(), (Keys{"a", "d", "e"}));
    report("f", std::string(300, 'x'));
    EXPECT_EQ(keys(), Keys{"f"});
    report("f", std::string(2000, 'x'));
    EXPECT_EQ(keys(), Keys{}) << "larger than all that may be kept";
}

TEST_F(WorkerRegistryTest, AWorkerWithoutAKeyIsNotKept) {
    report("");
    EXPECT_EQ(keys(), Keys{});
}

}  // namespace

}  // namespace holdfast::server::workers
