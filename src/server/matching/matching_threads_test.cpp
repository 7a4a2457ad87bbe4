#include <atomic>
#include <future>
#include <set>
#include <string>
#include <vector>

#include "executor/alarm_clock.hpp"
#include "matching/test/matching_fixture.hpp"
#include <gtest/gtest.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::matching::tests {
namespace {

class MatchingThreadsTest : public MatchingTest {
protected:
    // Delivers, and brings the tasks of callers that left to the next poll.
    void deliver_or_add_again() {
        starter.serve([this](const QueueKey& queue, QueuedTask started, Reservation poller) {
            if (poller.over() || !deliver(std::move(poller), started)) {
                matching.add(queue, std::move(started));
            }
        });
    }

    template <class Work>
    static std::future<void> begin(Work work) {
        return std::async(std::launch::async, std::move(work));
    }
};

// Ann's and Bob's workers come and go while tasks are added and reserved. Each task must reach one
// worker that is there to get it.
TEST_F(MatchingThreadsTest, EveryTaskIsDeliveredOnceHoweverPollsComeAndGo) {
    constexpr int each = 300;
    deliver_or_add_again();
    std::vector<std::vector<PollCall>> stayed(2);
    std::vector<std::future<void>> threads;
    for (auto& mine : stayed) {
        threads.push_back(begin([this, &mine] {
            for (int i = 0; i < each; ++i) {
                mine.push_back(poll());
                const PollCall leaving = poll();
                leaving.cancel();
                if (leaving.result() != "cancelled") {
                    mine.push_back(leaving);  // It got a task before.
                }
            }
        }));
    }
    threads.push_back(begin([this] {
        for (int i = 0; i < each; ++i) {
            add("added-" + std::to_string(i));
        }
    }));
    threads.push_back(begin([this] {
        for (int i = 0; i < each; ++i) {
            const std::string name = "reserved-" + std::to_string(i);
            if (!start_in_commit(name)) {
                add(name);
            }
        }
    }));
    for (auto& thread : threads) {
        thread.get();
    }
    std::multiset<std::string> delivered;
    for (const auto& mine : stayed) {
        for (const std::string& result : results(mine)) {
            if (result != "waiting") {
                delivered.insert(result);
            }
        }
    }
    EXPECT_EQ(backlog(), 0U);
    EXPECT_EQ(std::set<std::string>(delivered.begin(), delivered.end()).size(), delivered.size());
    EXPECT_EQ(delivered.size(), std::size_t{2} * each);
}

TEST_F(MatchingThreadsTest, AStopAnswersEveryPollThatCameOrComes) {
    std::vector<std::vector<PollCall>> calls(2);
    std::vector<std::future<void>> threads;
    for (auto& mine : calls) {
        threads.push_back(begin([this, &mine] {
            for (int i = 0; i < 200; ++i) {
                mine.push_back(poll());
            }
        }));
    }
    threads.push_back(begin([this] {
        for (int i = 0; i < 50; ++i) {
            add("order");
        }
    }));
    matching.stop();
    for (auto& thread : threads) {
        thread.get();
    }
    for (const auto& mine : calls) {
        for (const std::string& result : results(mine)) {
            EXPECT_NE(result, "waiting");
        }
    }
}

// Also when a poll passes the list of ended workers at the moment at which its worker ends.
TEST_F(MatchingThreadsTest, NoPollOfAWorkerThatEndedGoesOnWaiting) {
    std::vector<PollCall> calls;
    auto worker_polls = begin([&] {
        for (int i = 0; i < 300; ++i) {
            calls.push_back(poll(orders, worker("ann", "key-1")));
        }
    });
    matching.end_polls("key-1", std::vector{orders});
    worker_polls.get();
    for (const std::string& result : results(calls)) {
        EXPECT_EQ(result, "empty");
    }
    EXPECT_TRUE(matching.view(orders).pollers.empty());
}

// With a thread that rings alarms: polls end while tasks come for them.
TEST_F(MatchingThreadsTest, PollsEndWithATaskOrEmptyAndNoTaskIsLost) {
    AlarmClock alarm_clock(clock);
    Matching timed(clock, alarm_clock);
    timed.connect(starter);
    std::vector<PollCall> calls;
    auto polls = begin([&] {
        for (int i = 0; i < 200; ++i) {
            const std::chrono::system_clock::time_point now = clock.wall_now();
            calls.emplace_back(now + 1s + std::chrono::milliseconds{i % 5});
            timed.poll(calls.back().poll(orders, worker("ann")));
            clock.advance(1ms);
        }
    });
    auto tasks = begin([&] {
        for (int i = 0; i < 200; ++i) {
            timed.add(orders, task("order-" + std::to_string(i)));
        }
    });
    polls.get();
    tasks.get();
    timed.stop();
    std::size_t delivered = 0;
    for (const std::string& result : results(calls)) {
        EXPECT_NE(result, "waiting");
        delivered += result == "empty" ? 0 : 1;
    }
    EXPECT_EQ(delivered + timed.view(orders).backlog, 200U);
}

}  // namespace
}  // namespace holdfast::server::matching::tests
