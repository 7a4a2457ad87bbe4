#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "matching/fair_level.hpp"
#include "matching/test/matching_fixture.hpp"
#include <gtest/gtest.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::matching::tests {
namespace {

class FairnessTest : public MatchingTest {
protected:
    void add_for(const std::string& key, int count, double weight = 1) {
        for (int i = 0; i < count; ++i) {
            QueuedTask made = task(key);
            made.fairness_key = key;
            made.fairness_weight = weight;
            matching.add(orders, std::move(made));
        }
    }
    // The keys of the next tasks, in order.
    std::string next(int polls) {
        std::string keys;
        for (int i = 0; i < polls; ++i) {
            keys += poll().result();
        }
        return keys;
    }
    static std::ptrdiff_t count(const std::string& keys, char key) {
        return std::ranges::count(keys, key);
    }
};

TEST_F(FairnessTest, AKeyWithManyTasksDoesNotHoldUpAnother) {
    HOLDFAST_CHECK("server Q32");
    add_for("a", 100);
    add_for("b", 1);
    EXPECT_NE(next(3).find('b'), std::string::npos);
    EXPECT_EQ(next(3), "aaa");
}

TEST_F(FairnessTest, AKeyOfTwiceTheWeightGetsTwiceAsMuch) {
    HOLDFAST_CHECK("server Q33");
    add_for("a", 100, 2);
    add_for("b", 100, 1);
    const std::string keys = next(60);
    EXPECT_NEAR(static_cast<double>(count(keys, 'a')), 40, 1);
    EXPECT_NEAR(static_cast<double>(count(keys, 'b')), 20, 1);
}

TEST_F(FairnessTest, AConfiguredWeightRulesForTheTasksThatCome) {
    matching.set_weights(orders, {{"b", 9}});
    add_for("a", 100, 1);
    add_for("b", 100, 1);
    EXPECT_NEAR(static_cast<double>(count(next(50), 'b')), 45, 1);
}

TEST_F(FairnessTest, AWeightThatIsNoneCountsAsOne) {
    add_for("a", 20, 0);
    add_for("b", 20, -1);
    add_for("c", 20, std::numeric_limits<double>::quiet_NaN());
    const std::string keys = next(30);
    EXPECT_NEAR(static_cast<double>(count(keys, 'a')), 10, 1);
    EXPECT_NEAR(static_cast<double>(count(keys, 'b')), 10, 1);
}

TEST_F(FairnessTest, AKeyThatCameLateDoesNotCatchUp) {
    add_for("a", 40);
    EXPECT_EQ(next(20), std::string(20, 'a'));
    add_for("b", 20);
    EXPECT_NEAR(static_cast<double>(count(next(20), 'b')), 10, 1)
        << "it shares from now on, and is not owed the time before";
}

TEST_F(FairnessTest, PrioritiesGoBeforeFairness) {
    add_for("a", 2);
    add("high", 1);
    EXPECT_EQ(next(3), "highaa");
}

TEST_F(FairnessTest, KeysWithoutTasksAreForgotten) {
    FairLevel level;
    for (int i = 0; i < 1000; ++i) {
        QueuedTask made;
        made.fairness_key = std::to_string(i);
        level.add(std::move(made), 1);
        static_cast<void>(level.take());
    }
    EXPECT_LE(level.keys(), 2U);
}

class ScalingTest : public MatchingTest {
protected:
    // What the reply says: "+1", "-1", or nothing.
    template <class Response = temporal::api::workflowservice::v1::PollWorkflowTaskQueueResponse>
    static std::string said(const PollCall& call) {
        const auto response = call.response<Response>();
        const int change = response.poller_scaling_decision().poll_request_delta_suggestion();
        return !response.has_poller_scaling_decision() ? "" : change > 0 ? "+1" : "-1";
    }
    using OfActivity = temporal::api::workflowservice::v1::PollActivityTaskQueueResponse;
};

TEST_F(ScalingTest, AWorkerIsToldToPollLessOrMore) {
    HOLDFAST_CHECK("server Q41");
    const PollCall idle = poll();
    alarms.advance(1s);
    EXPECT_TRUE(start_in_commit("order-1"));
    EXPECT_EQ(said(idle), "-1") << "it waited for a second";

    const PollCall empty = poll();
    alarms.advance(70s);
    EXPECT_EQ(empty.result(), "empty");
    EXPECT_EQ(said(empty), "");

    add("order-2");
    add("order-3");
    alarms.advance(201ms);
    EXPECT_EQ(said(poll()), "+1") << "another task has waited for long";
    EXPECT_EQ(said(poll()), "") << "none waits any more";
}

TEST_F(ScalingTest, TasksThatComeFasterThanTheyGoWantMorePolls) {
    for (int i = 0; i < 10; ++i) {
        add("order");
    }
    EXPECT_EQ(said(poll()), "+1");
}

TEST_F(ScalingTest, MorePollsAreAskedForTenTimesASecond) {
    for (int i = 0; i < 100; ++i) {
        add("order");
    }
    alarms.advance(1s);
    int more = 0;
    for (int i = 0; i < 50; ++i) {
        more += said(poll()) == "+1" ? 1 : 0;
    }
    EXPECT_EQ(more, 11) << "the tokens of one second, and one more";
}

TEST_F(ScalingTest, AQueueThatItsRateHoldsBackWantsNoMorePolls) {
    add_tasks(payments, 20);
    alarms.advance(1s);
    std::vector<PollCall> calls;
    for (int i = 0; i < 10; ++i) {
        calls.push_back(poll(payments, worker_at(1)));
    }
    EXPECT_TRUE(matching.view(payments).rate_limited);
    alarms.advance(1s);
    EXPECT_EQ(calls[2].result(), "3");
    EXPECT_EQ(said<OfActivity>(calls[2]), "");
    alarms.advance(120s);
    EXPECT_FALSE(matching.view(payments).rate_limited);
}

}  // namespace
}  // namespace holdfast::server::matching::tests
