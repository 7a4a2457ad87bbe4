// Leases of single connections against the emulator of DynamoDB.
#include "fleet/lease_keeper.hpp"

#include <future>

#include "fleet/fleet_part.hpp"
#include "fleet/test/dynamodb_fixture.hpp"
#include <gtest/gtest.h>

#include <holdfast/base/metrics.hpp>
#include <holdfast/dsql/leases.hpp>
#include <holdfast/pool/pool.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::dsql {
namespace {

using namespace std::chrono_literals;
using tests::DynamoStory;

class LeaseKeeperStory : public DynamoStory {
protected:
    [[nodiscard]] std::shared_ptr<DynamoClient> shared_client() const {
        return std::make_shared<DynamoClient>(options(faults->url()));
    }

    [[nodiscard]] LeaseKeeperOptions keeper(const std::string& service) {
        LeaseKeeperOptions options{.client = shared_client(),
                                   .table = table,
                                   .endpoint = endpoint,
                                   .member = this_process(service),
                                   .leases = {.limit = 4},
                                   .metrics = &metrics};
        options.limits.conflict_nap = 1ms;
        options.limits.release_retry_first = 1ms;
        return options;
    }

    [[nodiscard]] LeaseStore store(const FleetMember& member, pool::FleetLimits limits = {}) const {
        return {shared_client(), table, endpoint, member, limits};
    }

    [[nodiscard]] std::int64_t active() {
        const auto count = store(this_process("test")).count(soon(), {});
        return count ? count->active : 0;
    }
    [[nodiscard]] LeasesFound found() { return store(this_process("test")).find(soon(), {}); }

    // Whether an owner whose heart was heard, or would have been, holds `n` leases now.
    void hold(LeaseStore& as, int n) {
        as.beat(soon(), {});
        for (int i = 0; i < n; ++i) {
            const pool::AcquireLease lease{.lease = pool::new_lease_id(),
                                           .token = pool::new_lease_id()};
            ASSERT_EQ(as.acquire(lease, 100, as.wall_now(), soon(), {}), pool::LeaseAnswer::done);
        }
    }

    Metrics metrics;
    pool::OpenPhases phases;
    const std::string endpoint = "abc.dsql.us-east-1.on.aws";
};

TEST_F(LeaseKeeperStory, TheFleetHasItsLimitAndNothingIsLeftAtTheEnd) {
    HOLDFAST_CHECK("connections +lease.conflict");
    HOLDFAST_CHECK("connections fill.lease_error");
    LeaseKeeper ann(keeper("ann"));
    LeaseKeeper bob(keeper("bob"));
    // All at once: transactions meet at the counter, and none is denied for that.
    std::vector<std::future<pool::LeaseId>> wishes;
    for (LeaseKeeper* keeper : {&ann, &bob, &ann, &bob}) {
        wishes.push_back(
            std::async(std::launch::async, [keeper] { return keeper->acquire(soon(), {}); }));
    }
    std::vector<pool::LeaseId> held;
    held.reserve(wishes.size());
    for (auto& wish : wishes) {
        held.push_back(wish.get());
    }
    EXPECT_EQ(active(), 4);
    try {
        (void)ann.acquire(soon(), {});
        FAIL() << "the fleet has no more";
    } catch (const pool::OpenError& error) {
        EXPECT_EQ(error.failure(), pool::FailureClass::full);
        EXPECT_NE(std::string(error.what()).find("all 4"), std::string::npos) << error.what();
    }
    EXPECT_EQ(
        metrics.value("dsql_conn_lease_denied_total", {{"service", "ann"}, {"reason", "full"}}), 1);
    EXPECT_EQ(found().leases.size(), 4U);
    EXPECT_EQ(found().owners.size(), 2U);
    ann.release(held[0]);
    ann.release(held[2]);
    ann.stop();
    bob.release(held[1]);
    bob.release(held[3]);
    bob.stop();
    EXPECT_EQ(active(), 0);
    EXPECT_TRUE(found().leases.empty());
    EXPECT_TRUE(found().owners.empty());
}

// A denial is the counter's own condition, told as the reason of a cancelled transaction. Neither
// the words of a message nor another failure is one: a process that took it for one would stop
// opening connections that it may have.
TEST_F(LeaseKeeperStory, OnlyTheConditionOfTheCounterIsADenial) {
    HOLDFAST_CHECK("connections lease.denied_nil");
    HOLDFAST_CHECK("connections lease.denied_canceled");
    HOLDFAST_CHECK("connections lease.denied_wrapped");
    HOLDFAST_CHECK("connections lease.denied_text_only");
    HOLDFAST_CHECK("connections lease.denied_conditional");
    HOLDFAST_CHECK("connections lease.denied_other");
    LeaseStore ann = store(this_process("ann"));
    const auto answer = [&] {
        const pool::AcquireLease lease{.lease = pool::new_lease_id(),
                                       .token = pool::new_lease_id()};
        return ann.acquire(lease, 100, ann.wall_now(), soon(), {});
    };
    EXPECT_EQ(answer(), pool::LeaseAnswer::done) << "no failure at all";
    const std::string full = R"("CancellationReasons":[{"Code":"ConditionalCheckFailed"},)"
                             R"({"Code":"None"}]})";
    faults->say(400, R"({"__type":"TransactionCanceledException",)" + full);
    EXPECT_EQ(answer(), pool::LeaseAnswer::full);
    faults->say(
        400,
        R"({"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException",)" + full);
    EXPECT_EQ(answer(), pool::LeaseAnswer::full) << "by its full name";
    faults->say(400,
                R"({"__type":"ValidationException",)"
                R"("message":"TransactionCanceledException [ConditionalCheckFailed, None]"})");
    EXPECT_EQ(answer(), pool::LeaseAnswer::unanswered) << "nothing but words";
    faults->say(400, R"({"__type":"ConditionalCheckFailedException","message":"no"})");
    EXPECT_EQ(answer(), pool::LeaseAnswer::unanswered) << "of a write that was not ours";
    faults->next(Fault::failed, 3);  // As often as it is tried.
    EXPECT_EQ(answer(), pool::LeaseAnswer::unanswered);
    EXPECT_EQ(active(), 1);
}

TEST_F(LeaseKeeperStory, AKeeperNeedsAClientATableAndAnEndpoint) {
    HOLDFAST_CHECK("connections lease.null_client");
    HOLDFAST_CHECK("connections lease.empty_table");
    HOLDFAST_CHECK("connections lease.empty_endpoint");
    const auto refusal = [&](auto without) {
        LeaseKeeperOptions options = keeper("ann");
        without(options);
        try {
            const LeaseKeeper refused(options);
        } catch (const InvalidArgument& error) {
            return std::string(error.what());
        }
        return std::string("accepted");
    };
    EXPECT_EQ(refusal([](auto&) {}), "accepted");
    EXPECT_NE(refusal([](auto& o) { o.client = nullptr; }).find("client"), std::string::npos);
    EXPECT_NE(refusal([](auto& o) { o.table = ""; }).find("table"), std::string::npos);
    EXPECT_NE(refusal([](auto& o) { o.endpoint = ""; }).find("endpoint"), std::string::npos);
}

TEST_F(LeaseKeeperStory, LostAnswersCountOnce) {
    HOLDFAST_CHECK("connections +lease.release_twice");
    LeaseKeeper ann(keeper("ann"));
    const pool::LeaseId first = ann.acquire(soon(), {});
    faults->next(Fault::lost_answer, 4);  // One more than the client tries by itself.
    const pool::LeaseId second = ann.acquire(soon(), {});
    EXPECT_EQ(active(), 2);
    faults->next(Fault::lost_answer, 4);
    ann.release(second);
    faults->next(Fault::throttled, 3);
    ann.release(first);
    ann.stop();
    EXPECT_EQ(active(), 0);
    EXPECT_TRUE(found().leases.empty());
}

TEST_F(LeaseKeeperStory, WhatTheDeadHeldIsFreedAndTheCounterMadeTrue) {
    HOLDFAST_CHECK("connections +lease.crash");
    pool::FleetLimits limits;
    LeaseStore living = store(this_process("living"));
    hold(living, 2);
    limits.owner_lease = -1min;  // Its heart was heard, long ago.
    LeaseStore dead = store(this_process("dead"), limits);
    hold(dead, 3);
    EXPECT_EQ(active(), 5);
    const ReapReport first = reap_leases(living, {}, true, soon(), {});
    EXPECT_EQ(first.dead_owners, 1);
    EXPECT_EQ(first.freed, 3);
    EXPECT_EQ(first.drift, 0);
    EXPECT_EQ(active(), 2);

    // The counter was overwritten by hand, as has happened.
    const auto seen = living.count(soon(), {});
    ASSERT_TRUE(living.correct(seen, 9, soon(), {}));
    EXPECT_FALSE(living.correct(seen, 1, soon(), {})) << "it is not as it was seen";
    EXPECT_EQ(reap_leases(living, {}, false, soon(), {}).drift, std::nullopt);
    EXPECT_EQ(reap_leases(living, {}, true, soon(), {}).drift, -7);
    EXPECT_EQ(active(), 2);
}

// A fleet in which some processes write leases as it was always done: without an owner, and with a
// time to live after which the table forgets them though their connection lives.
TEST_F(LeaseKeeperStory, WhatOthersCountWithoutOwnersIsLeftToThem) {
    LeaseStore ours = store(this_process("ours"));
    hold(ours, 1);
    const auto write = [&](const char* id, std::chrono::minutes age) {
        const auto created = std::chrono::floor<std::chrono::milliseconds>(ours.wall_now() - age);
        (void)client->write({.kind = dynamo::Write::Kind::put,
                             .table = table,
                             .pk = "dsqllease#" + endpoint + "#" + id,
                             .item = {{"service_name", "old"},
                                      {"created_ms", created.time_since_epoch().count()},
                                      {"ttl_epoch", 1}}},
                            soon(),
                            {});
    };
    write("living", 12min);
    write("dead", 70min);
    const auto seen = ours.count(soon(), {});
    ASSERT_TRUE(ours.correct(seen, 4, soon(), {}));  // One of theirs is forgotten already.
    const ReapReport done = reap_leases(ours, {}, true, soon(), {});
    EXPECT_EQ(done.freed, 1) << "no connection is older than an hour";
    EXPECT_EQ(done.drift, std::nullopt);
    EXPECT_EQ(active(), 3) << "what is counted and not found may be theirs";
    const auto left = found().leases;
    ASSERT_EQ(left.size(), 2U);
    EXPECT_TRUE(left[0].lease == "living" || left[1].lease == "living");
}

TEST_F(LeaseKeeperStory, OneProcessLooksAfterTheDead) {
    const FleetMember ann = this_process("ann");
    EXPECT_TRUE(store(ann).lock_reaper(soon(), {}));
    EXPECT_FALSE(store(this_process("bob")).lock_reaper(soon(), {}));
    EXPECT_TRUE(store(ann).lock_reaper(soon(), {})) << "and goes on";
}

// There is nothing to set it by, so it cannot be unset, zero or negative.
TEST_F(LeaseKeeperStory, AnOwnerLivesForThreeMinutesFromEachHeartbeat) {
    HOLDFAST_CHECK("connections lease.ttl_default");
    LeaseStore ann = store(this_process("ann"));
    const Wall before = ann.wall_now();
    ann.beat(soon(), {});
    const Wall after = ann.wall_now();
    const LeasesFound seen = found();
    ASSERT_EQ(seen.owners.size(), 1U);
    EXPECT_GE(seen.owners[0].seen.alive_until, before + 3min - 1ms);
    EXPECT_LE(seen.owners[0].seen.alive_until, after + 3min + 1ms);
}

TEST_F(LeaseKeeperStory, PeopleSeeWhoHoldsHowMany) {
    HOLDFAST_CHECK("connections lease.fields");
    HOLDFAST_CHECK("connections lease.empty_service");
    EXPECT_EQ(this_process("").service, "unknown");
    LeaseStore living = store(this_process("living"));
    hold(living, 2);
    pool::FleetLimits limits;
    limits.owner_lease = -1min;
    LeaseStore dead = store(this_process("dead"), limits);
    hold(dead, 1);
    const DynamoOptions usual = options(emulator->url());
    LeaseAdmin admin({.region = usual.region,
                      .dynamodb_endpoint = usual.endpoint,
                      .credentials = usual.credentials});
    LeasesSeen seen = admin.show_leases(table, endpoint, soon(), {});
    EXPECT_EQ(seen.counted, 3);
    ASSERT_EQ(seen.owners.size(), 2U);
    EXPECT_EQ(seen.owners[0].service, "dead");
    EXPECT_TRUE(seen.owners[0].dead);
    EXPECT_EQ(seen.owners[0].leases, 1);
    EXPECT_EQ(seen.owners[1].service, "living");
    EXPECT_FALSE(seen.owners[1].dead);
    EXPECT_EQ(seen.owners[1].leases, 2);
    const LeasesReaped reaped = admin.reap_leases(table, endpoint, soon(), {});
    EXPECT_EQ(reaped.freed, 1);
    EXPECT_EQ(reaped.drift, 0);
    seen = admin.show_leases(table, endpoint, soon(), {});
    EXPECT_EQ(seen.counted, 2);
}

TEST_F(LeaseKeeperStory, AnOpeningThatGetsNoPermitGivesItsLeaseBack) {
    HOLDFAST_CHECK("connections fill.lease_back_limiter");
    FleetConfig config{.rate = 1, .burst = 1, .lease_table = table};
    config.lease_mode = LeaseMode::counter;
    config.leases = {.limit = 4};
    config.dynamodb_endpoint = faults->url();
    FleetPart part(
        config, endpoint, "us-east-1", options(faults->url()).credentials, nullptr, nullptr);
    std::vector<Right> granted{part.admit(soon(), {}, phases)};
    ASSERT_TRUE(std::holds_alternative<pool::LeaseId>(granted[0]));
    // On a busy machine a second passes between two openings, or a lease takes long.
    std::optional<Code> failure;
    while (failure != Code::unavailable || phases.last() != pool::OpenPhase::permit) {
        ASSERT_LT(granted.size(), 4U);
        failure = holdfast::test::code_of(
            [&] { granted.push_back(part.admit(Deadline::after(500ms), {}, phases)); });
    }
    for (const Right& right : granted) {
        part.gone(right);
    }
    part.leases()->stop();
    EXPECT_EQ(active(), 0);
}

}  // namespace
}  // namespace holdfast::dsql
