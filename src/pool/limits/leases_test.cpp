#include <holdfast/pool/leases.hpp>

#include <algorithm>
#include <deque>

#include <gtest/gtest.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::pool {
namespace {

using namespace std::chrono_literals;

// The store: a counter and leases that change together, and tokens that make a repeat harmless.
struct FakeLeaseStore {
    LeaseAnswer acquire(const AcquireLease& what, std::int64_t limit) {
        if (!tokens.insert(what.token).second) {
            return LeaseAnswer::done;
        }
        if (active >= limit) {
            tokens.erase(what.token);
            return LeaseAnswer::full;
        }
        ++active;
        leases.insert(what.lease);
        return LeaseAnswer::done;
    }
    LeaseAnswer release(const LeaseId& lease) {
        active -= static_cast<std::int64_t>(leases.erase(lease));
        return LeaseAnswer::done;
    }

    std::int64_t active = 0;
    std::set<LeaseId> leases;
    std::set<std::string> tokens;
};

class LeaseStory : public testing::Test {
protected:
    enum class Mood { well, conflict, lost_answers, lost_then_throttled, throttled, away };

    void tell(const LeaseEvent& event) {
        std::deque<LeaseEvent> events{event};
        while (!events.empty()) {
            LeaseActions out;
            leases.step(now, events.front(), out);
            events.pop_front();
            for (const LeaseAction& action : out) {
                if (const auto* granted = std::get_if<LeaseGranted>(&action)) {
                    held.push_back(granted->lease);
                } else if (const auto* denied = std::get_if<LeaseDenied>(&action)) {
                    denials.push_back(denied->why);
                } else {
                    events.push_back(answer(action));
                }
            }
        }
    }

    LeaseEvent answer(const LeaseAction& action) {
        ++calls;
        const bool throttled = mood == Mood::throttled || mood == Mood::lost_then_throttled;
        const bool arrives =
            mood != Mood::conflict && mood != Mood::throttled && mood != Mood::away;
        const bool heard = mood == Mood::well;
        const LeaseAnswer unheard = mood == Mood::conflict ? LeaseAnswer::conflict
                                    : throttled            ? LeaseAnswer::throttled
                                                           : LeaseAnswer::unanswered;
        if (const auto* acquire = std::get_if<AcquireLease>(&action)) {
            const auto said = arrives ? store.acquire(*acquire, config.limit) : unheard;
            return LeaseAcquired{.lease = acquire->lease, .answer = heard ? said : unheard};
        }
        if (const auto* release = std::get_if<ReleaseLease>(&action)) {
            const auto said = arrives ? store.release(release->lease) : unheard;
            return LeaseReleased{.lease = release->lease, .answer = heard ? said : unheard};
        }
        return HeartAnswered{.done = mood != Mood::away && mood != Mood::throttled,
                             .throttled = mood == Mood::throttled};
    }

    void want(std::chrono::nanoseconds patience = 10s) {
        tell(WantLease{.wish = LeaseWish{++wishes}, .deadline = now + patience});
    }

    void live_until(Steady until) {
        while (leases.next_wake() <= until) {
            now = std::max(now, leases.next_wake());
            tell(LeasesTick{});
        }
        now = until;
        tell(LeasesTick{});
    }

    Steady now{1h};
    LeasesConfig config{.limit = 5, .local_cap = 3};
    FakeLeaseStore store;
    Mood mood = Mood::well;
    Leases leases{config, FleetLimits{}, 1};
    std::vector<LeaseId> held;
    std::vector<LeaseDenial> denials;
    int calls = 0;
    std::uint64_t wishes = 0;
};

TEST_F(LeaseStory, AnIdIs128RandomBitsInHexadecimal) {
    HOLDFAST_CHECK("connections lease.id");
    HOLDFAST_CHECK("connections lease.id_unique");
    HOLDFAST_CHECK("connections lease.id_hex");
    HOLDFAST_CHECK("connections slot.owner");
    std::set<LeaseId> ids;
    for (int i = 0; i < 100; ++i) {
        const LeaseId id = new_lease_id();
        EXPECT_EQ(id.size(), 32U);
        EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos);
        ids.insert(id);
    }
    EXPECT_EQ(ids.size(), 100U);
}

TEST_F(LeaseStory, TheLimitIsTheFleetsAndItsEndIsSaidAtOnce) {
    for (int i = 0; i < 7; ++i) {
        want();
    }
    EXPECT_EQ(held.size(), 5U);
    EXPECT_EQ(denials, (std::vector{LeaseDenial::full, LeaseDenial::full}));
    tell(GiveLeaseBack{held.back()});
    EXPECT_EQ(store.active, 4);
    want();
    EXPECT_EQ(held.size(), 6U);
}

TEST_F(LeaseStory, AConflictAtTheCounterIsRetriedAndNoDenial) {
    HOLDFAST_CHECK("connections +lease.conflict");
    mood = Mood::conflict;
    want();
    live_until(now + 200ms);
    EXPECT_TRUE(denials.empty());
    EXPECT_GE(calls, 5);
    mood = Mood::well;
    live_until(now + 50ms);
    EXPECT_EQ(held.size(), 1U);
    EXPECT_EQ(store.active, 1);
}

TEST_F(LeaseStory, AnAcquisitionWhoseAnswerWasLostCountsOnce) {
    mood = Mood::lost_answers;
    want();
    EXPECT_EQ(store.active, 1);
    mood = Mood::well;
    live_until(now + 1s);
    EXPECT_EQ(held.size(), 1U);
    EXPECT_EQ(store.active, 1) << "the same token twice is one acquisition";
}

TEST_F(LeaseStory, AReleaseIsRepeatedUntilItIsHeardAndCountsOnce) {
    HOLDFAST_CHECK("connections +lease.release_twice");
    want();
    want();
    mood = Mood::lost_answers;
    tell(GiveLeaseBack{held[0]});
    live_until(now + 5s);
    EXPECT_EQ(store.active, 1);
    EXPECT_EQ(leases.releasing(), 1);
    EXPECT_GE(leases.release_retries(), 3U);
    mood = Mood::well;
    live_until(now + 10s);
    EXPECT_EQ(leases.releasing(), 0);
    EXPECT_EQ(store.active, 1) << "the other one is still held";
}

TEST_F(LeaseStory, WhoStopsWaitingLeavesNothingBehind) {
    mood = Mood::lost_answers;
    want();
    tell(LeaveLease{LeaseWish{1}});
    mood = Mood::well;
    live_until(now + 1s);
    EXPECT_EQ(store.active, 0);
    EXPECT_TRUE(held.empty());
    mood = Mood::conflict;
    want(100ms);
    live_until(now + 1s);
    EXPECT_EQ(denials, std::vector{LeaseDenial::timeout});
    EXPECT_EQ(store.active, 0);
}

// A call has several tries: the first may be applied without an answer, and the last be refused.
TEST_F(LeaseStory, WhatIsRefusedInTheEndMayHaveBeenAcquiredBefore) {
    mood = Mood::lost_then_throttled;
    want(100ms);
    EXPECT_EQ(store.tokens.size(), 1U) << "the store has done it";
    live_until(now + 200ms);
    EXPECT_EQ(denials, std::vector{LeaseDenial::timeout});
    mood = Mood::well;
    live_until(now + 10s);
    EXPECT_EQ(store.active, 0) << "nobody holds it";
    EXPECT_EQ(leases.releasing(), 0);
}

TEST_F(LeaseStory, WithoutTheStoreTheLocalCapIsInForceUntilItAnswers) {
    mood = Mood::away;
    want(1min);
    live_until(now + 30s);
    EXPECT_TRUE(leases.degraded());
    EXPECT_EQ(denials, std::vector{LeaseDenial::unanswered});
    for (int i = 0; i < 5; ++i) {
        want();
    }
    EXPECT_EQ(held.size(), 3U);
    EXPECT_EQ(leases.excess(), 0);
    mood = Mood::well;
    live_until(now + 10s);
    EXPECT_FALSE(leases.degraded());
    EXPECT_EQ(leases.excess(), 3) << "they give way to connections with leases";
    tell(GiveLeaseBack{held[0]});
    EXPECT_EQ(store.active, 0) << "the store never knew of it";
}

// Others have their leases meanwhile: a local cap on top would be too many.
TEST_F(LeaseStory, AStoreThatIsAskedTooMuchIsNoReasonForTheLocalCap) {
    mood = Mood::throttled;
    want(1min);
    live_until(now + 30s);
    EXPECT_FALSE(leases.degraded());
    EXPECT_TRUE(denials.empty()) << "it still waits";
    mood = Mood::well;
    live_until(now + 10s);
    EXPECT_EQ(held.size(), 1U);
    EXPECT_EQ(store.active, 1);
}

TEST_F(LeaseStory, AHeartThatIsNotHeardMakesOurLeasesWorthless) {
    for (int i = 0; i < 5; ++i) {
        want();
    }
    const Steady began = now;
    mood = Mood::away;
    live_until(began + 2min);
    EXPECT_EQ(leases.excess(), 0);
    live_until(began + 2min + 30s);
    EXPECT_EQ(leases.excess(), 2) << "the local cap allows three";
    store.leases.clear();  // They are reaped,
    store.active = 0;
    mood = Mood::well;
    live_until(now + 10s);
    EXPECT_EQ(leases.excess(), 5) << "and the heart alone does not bring them back";
    want();
    ASSERT_EQ(held.size(), 6U);
    tell(GiveLeaseBack{held[5]});  // The wrong one was closed: another takes its lease on.
    EXPECT_EQ(leases.excess(), 4);
    EXPECT_EQ(store.active, 1);
    for (std::size_t i = 0; i < 5; ++i) {
        tell(GiveLeaseBack{held[i]});
    }
    EXPECT_EQ(leases.excess(), 0);
    EXPECT_EQ(leases.used(), 0);
    EXPECT_EQ(store.active, 0);
}

// One that has taken on the lease of another is lost with it; it must not be missed twice.
TEST_F(LeaseStory, AHeartThatFailsAgainLosesEachConnectionOnce) {
    const auto fail_and_recover = [this] {
        mood = Mood::away;
        live_until(now + 3min);
        mood = Mood::well;
        live_until(now + 10s);
    };
    want();
    want();
    fail_and_recover();
    want();
    ASSERT_EQ(held.size(), 3U);
    tell(GiveLeaseBack{held[2]});  // One of the others takes its lease on.
    fail_and_recover();
    EXPECT_EQ(leases.excess(), 2);
    tell(GiveLeaseBack{held[0]});
    EXPECT_EQ(leases.excess(), 1);
    tell(GiveLeaseBack{held[1]});
    EXPECT_EQ(leases.excess(), 0) << "nothing is held, so nothing must go";
    EXPECT_EQ(store.active, 0);

    want();
    ASSERT_EQ(held.size(), 4U);
    tell(GiveLeaseBack{held[3]});
    EXPECT_EQ(store.active, 0) << "and the next lease comes back as any other";
}

TEST_F(LeaseStory, ALimitOfNoneIsRefused) {
    EXPECT_EQ(test::code_of([] { Leases({.limit = 0}, FleetLimits{}, 1); }),
              Code::invalid_argument);
}

TEST_F(LeaseStory, WhatADeadOwnerHeldIsFoundExactly) {
    HOLDFAST_CHECK("connections +lease.crash");
    const Wall noon{std::chrono::hours{500'000}};
    const std::vector<OwnerSeen> owners{{.owner = "ann", .alive_until = noon + 1min},
                                        {.owner = "bob", .alive_until = noon - 31s},
                                        {.owner = "cid", .alive_until = noon - 29s}};
    const std::vector<LeaseSeen> all{{.lease = "1", .owner = "ann"},
                                     {.lease = "2", .owner = "bob"},
                                     {.lease = "3", .owner = "cid"},
                                     {.lease = "4", .owner = "bob"},
                                     {.lease = "5", .owner = "nobody"}};
    EXPECT_EQ(leases_to_reap(owners, all, noon, FleetLimits{}),
              (std::vector<LeaseId>{"2", "4", "5"}));
}

// In a fleet where some count as they always did, without a heartbeat.
TEST_F(LeaseStory, WhatNamesNoOwnerIsDeadWhenNoConnectionCanBeThatOld) {
    const Wall noon{std::chrono::hours{500'000}};
    const std::vector<LeaseSeen> all{{.lease = "1", .owner = "", .created = noon},
                                     {.lease = "2", .owner = "", .created = noon - 65min},
                                     {.lease = "3", .owner = "", .created = noon - 66min},
                                     {.lease = "4", .owner = ""}};
    EXPECT_EQ(leases_to_reap({}, all, noon, FleetLimits{}), (std::vector<LeaseId>{"3", "4"}));
}

}  // namespace
}  // namespace holdfast::pool
