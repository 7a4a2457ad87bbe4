// Limiter and slots against the emulator of DynamoDB, in one process.
#include <algorithm>
#include <atomic>
#include <future>
#include <optional>
#include <thread>

#include "auth/test/token_cache_fixture.hpp"
#include "fleet/fleet_part.hpp"
#include "fleet/limiter.hpp"
#include "fleet/slot_keeper.hpp"
#include "fleet/test/dynamodb_fixture.hpp"
#include <gtest/gtest.h>

#include <holdfast/base/log_capture.hpp>
#include <holdfast/dsql/source.hpp>
#include <holdfast/pool/pool.hpp>
#include <holdfast/sql/url.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::dsql {
namespace {

using namespace std::chrono_literals;
using pool::PermitAlgorithm;
using tests::DynamoStory;

class FleetStory : public DynamoStory {
protected:
    [[nodiscard]] std::shared_ptr<DynamoClient> shared_client() const {
        return std::make_shared<DynamoClient>(options(faults->url()));
    }

    [[nodiscard]] LimiterOptions limiter(PermitAlgorithm algorithm) const {
        return {.store = std::make_shared<PermitStore>(shared_client(), table, endpoint),
                .fleet = {.algorithm = algorithm, .per_second = 50, .burst = 5},
                .fleet_size = 5};
    }

    [[nodiscard]] SlotKeeperOptions keeper(const std::string& service) const {
        SlotKeeperOptions options{.client = shared_client(),
                                  .table = table,
                                  .endpoint = endpoint,
                                  .member = this_process(service),
                                  .blocks = {.size = 5, .count = 4}};
        options.limits.store_retry = 50ms;
        options.limits.block_short_first = 50ms;
        options.limits.block_short_most = 100ms;
        return options;
    }

    [[nodiscard]] dynamo::Item block(int number) {
        return client->get(table, block_key(endpoint, number), soon(), {}).value_or(dynamo::Item{});
    }

    [[nodiscard]] std::vector<dynamo::Item> owned() {
        std::vector<dynamo::Item> found;
        for (int i = 0; i < blocks_max; ++i) {
            const dynamo::Item item = block(i);
            if (!dynamo::text(item, "owner_id").value_or("").empty()) {
                found.push_back(item);
            }
        }
        return found;
    }

    pool::OpenPhases phases;
    static constexpr int blocks_max = 12;  // In any test.
    const std::string endpoint = "abc.dsql.us-east-1.on.aws";
};

TEST_F(FleetStory, EveryAlgorithmGivesPermitsAtItsRate) {
    for (const auto algorithm : {PermitAlgorithm::bucket, PermitAlgorithm::reserve}) {
        SCOPED_TRACE(to_string(algorithm));
        Limiter limit(limiter(algorithm));
        const Steady began = std::chrono::steady_clock::now();
        for (int i = 0; i < 5 + 20; ++i) {
            limit.acquire(soon(), {});
        }
        EXPECT_GE(std::chrono::steady_clock::now() - began, 400ms - 20ms);
        EXPECT_FALSE(limit.degraded());
    }
    LimiterOptions settings = limiter(PermitAlgorithm::counter);
    settings.fleet.per_second = 10;
    Limiter limit(settings);
    const Steady began = std::chrono::steady_clock::now();
    for (int i = 0; i < 21; ++i) {  // In this second, the next, and the one after.
        limit.acquire(soon(), {});
    }
    EXPECT_GE(std::chrono::steady_clock::now() - began, 1s);
}

TEST_F(FleetStory, ALimiterWithoutItsStoreUsesItsShareAndComesBack) {
    HOLDFAST_CHECK("connections +dist.breaker");
    CapturingLogger log;
    Metrics metrics;
    LimiterOptions settings = limiter(PermitAlgorithm::reserve);
    settings.metrics = &metrics;
    settings.logger = &log;
    settings.limits.breaker_probe = 50ms;
    settings.limits.trouble_nap = 1ms;
    Limiter limit(settings);
    limit.acquire(soon(), {});
    faults->next(Fault::failed, 9);  // Three calls, each with two retries.
    limit.acquire(soon(), {});
    EXPECT_TRUE(limit.degraded());
    EXPECT_EQ(metrics.value("dsql_rate_limiter_breaker_open"), 1);
    EXPECT_EQ(metrics.value("dsql_rate_limiter_acquires_total", {{"mode", "share"}}), 1);
    while (limit.degraded()) {  // The share is ten a second; a probe closes the breaker.
        limit.acquire(soon(), {});
    }
    EXPECT_EQ(metrics.value("dsql_rate_limiter_breaker_open"), 0);
}

// The table gives permits to others meanwhile: a share on top would be too many.
TEST_F(FleetStory, ALimiterWhoseStoreIsAskedTooMuchWaitsForIt) {
    HOLDFAST_CHECK("connections +dist.throttle");
    Metrics metrics;
    LimiterOptions settings = limiter(PermitAlgorithm::counter);
    settings.metrics = &metrics;
    settings.limits.trouble_nap = 1ms;
    Limiter limit(settings);
    faults->next(Fault::throttled, 15);  // Five calls, each with two retries.
    limit.acquire(soon(), {});
    EXPECT_FALSE(limit.degraded());
    EXPECT_EQ(metrics.value("dsql_rate_limiter_acquires_total", {{"mode", "share"}}), 0);
    EXPECT_EQ(metrics.value("dsql_rate_limiter_acquires_total", {{"mode", "fleet"}}), 1);
    EXPECT_GE(faults->requests(), 16);
}

TEST_F(FleetStory, PermitsThatComeTooLateAreRefusedAndTheWaitCanBeStopped) {
    LimiterOptions settings = limiter(PermitAlgorithm::reserve);
    settings.fleet = {.per_second = 1, .burst = 1};
    Limiter limit(settings);
    limit.acquire(soon(), {});
    // The next permit is a second away; a machine that is busy for so long tries again.
    std::optional<pool::FailureClass> refused;
    for (int tries = 0; tries < 20 && !refused; ++tries) {
        try {
            limit.acquire(Deadline::after(100ms), {});
        } catch (const pool::OpenError& error) {
            refused = error.failure();
        }
    }
    EXPECT_EQ(refused, pool::FailureClass::rate_limited);
    std::stop_source stop;
    auto waiting = std::async(std::launch::async, [&] {
        return holdfast::test::code_of([&] { limit.acquire(soon(), stop.get_token()); });
    });
    stop.request_stop();
    EXPECT_EQ(waiting.get(), Code::cancelled);
}

TEST(Limiter, AloneItHasItsOwnBucketAndSlowsDownWhenTold) {
    HOLDFAST_CHECK("connections +err.53400");
    Limiter limit({.local_per_second = 1000, .local_burst = 1});
    limit.acquire(Deadline::after(10s), {});
    for (int i = 0; i < 3; ++i) {
        limit.acquire(Deadline::after(10s), {});
    }
    limit.refused();
    const Steady began = std::chrono::steady_clock::now();
    for (int i = 0; i < 20; ++i) {
        limit.acquire(Deadline::after(10s), {});
    }
    EXPECT_GE(std::chrono::steady_clock::now() - began, 38ms) << "500 a second from now on";
}

// --- Slots ---

TEST_F(FleetStory, ProcessesShareTheLimitInBlocks) {
    HOLDFAST_CHECK("connections slot.key");
    HOLDFAST_CHECK("connections +slot.race");
    HOLDFAST_CHECK("connections +slot.shutdown");
    EXPECT_EQ(block_key("e", 0), "connslots#e#block-0");
    EXPECT_EQ(block_key("e", 99), "connslots#e#block-99");
    SlotKeeper ann(keeper("ann"));
    SlotKeeper bob(keeper("bob"));
    const auto as_ann = ann.join(10, [](int) {});
    const auto as_bob = bob.join(10, [](int) {});
    std::vector<pool::SlotId> anns;
    std::vector<pool::SlotId> bobs;
    for (int i = 0; i < 10; ++i) {
        anns.push_back(ann.acquire(soon(), {}));
        bobs.push_back(bob.acquire(soon(), {}));
    }
    EXPECT_EQ(owned().size(), 4U);
    EXPECT_EQ(dynamo::text(owned().at(0), "owner_host"), this_process("").host);
    try {
        (void)ann.acquire(Deadline::after(100ms), {});
        FAIL() << "the fleet has no more";
    } catch (const pool::OpenError& error) {
        EXPECT_EQ(error.failure(), pool::FailureClass::full);
        EXPECT_NE(std::string(error.what()).find("all 10"), std::string::npos) << error.what();
    }
    for (const pool::SlotId slot : bobs) {
        bob.release(slot);
    }
    bob.leave(as_bob);
    bob.stop();
    for (const dynamo::Item& item : owned()) {
        EXPECT_EQ(dynamo::text(item, "service_name"), "ann") << "what Bob had is free at once";
    }
    const pool::SlotId more = ann.acquire(soon(), {});
    ann.release(more);
    for (const pool::SlotId slot : anns) {
        ann.release(slot);
    }
    ann.leave(as_ann);
    ann.stop();
    EXPECT_TRUE(owned().empty());
}

// Each answer may take a second, and a process may own a hundred blocks: one after the other they
// would run out before their turn.
TEST_F(FleetStory, BlocksAreRenewedSideBySide) {
    SlotKeeperOptions settings = keeper("ann");
    settings.blocks = {.size = 1, .count = 12, .ttl = 60s, .renew_every = 50ms};
    settings.calls_max = 6;
    SlotKeeper ann(settings);
    const auto as_ann = ann.join(12, [](int) {});
    std::vector<pool::SlotId> slots;
    for (int i = 0; i < 12; ++i) {
        slots.push_back(ann.acquire(soon(), {}));
    }
    EXPECT_TRUE(faults->gather(6));
    for (const pool::SlotId slot : slots) {
        ann.release(slot);
    }
    ann.leave(as_ann);
    ann.stop();
    EXPECT_TRUE(owned().empty());
}

TEST_F(FleetStory, ABlockThatWasTakenAgainIsNotGivenBackByALateReturn) {
    const pool::SlotBlocksConfig blocks{.size = 5, .count = 1};
    const auto again = std::make_shared<DynamoClient>(options(faults->url()));
    BlockStore store(again, table, endpoint, this_process("ann"), blocks, {});
    const auto first = std::get<pool::BlockTaken>(store.take(0, soon(), {}));
    const auto second = std::get<pool::BlockTaken>(store.take(0, soon(), {}));
    EXPECT_EQ(second.epoch, first.epoch + 1);
    store.give_back({.block = 0, .epoch = first.epoch}, soon(), {});
    EXPECT_EQ(owned().size(), 1U) << "what was sent before we took it again";
    store.give_back({.block = 0, .epoch = second.epoch}, soon(), {});
    EXPECT_TRUE(owned().empty());
}

TEST_F(FleetStory, WhoLosesABlockIsToldHowManyMustGo) {
    HOLDFAST_CHECK("connections +slot.lost");
    SlotKeeperOptions settings = keeper("ann");
    settings.blocks = {.size = 5, .count = 1, .ttl = 3s, .renew_every = 50ms};
    settings.limits.block_safety_min = 100ms;
    std::promise<int> told;
    std::atomic<bool> once = false;
    {
        SlotKeeper ann(settings);
        const auto as_ann = ann.join(5, [&](int excess) {
            if (!once.exchange(true)) {
                told.set_value(excess);
            }
        });
        std::vector<pool::SlotId> slots;
        for (int i = 0; i < 3; ++i) {
            slots.push_back(ann.acquire(soon(), {}));
        }
        ASSERT_TRUE(client
                        ->write({.table = table,
                                 .pk = block_key(endpoint, 0),
                                 .update = "SET owner_id = :other, ttl_epoch = :far",
                                 .values = {{":other", "bob"}, {":far", 4'000'000'000}}},
                                soon(),
                                {})
                        .applied);
        EXPECT_EQ(told.get_future().get(), 3);
        for (const pool::SlotId slot : slots) {
            ann.release(slot);
        }
        ann.leave(as_ann);
    }
    EXPECT_EQ(dynamo::text(block(0), "owner_id"), "bob") << "what is not ours is not given back";
}

TEST_F(FleetStory, AnOpeningThatGetsNoPermitGivesItsSlotBack) {
    HOLDFAST_CHECK("connections fill.lease_back_limiter");
    FleetConfig config{.rate = 1, .burst = 1, .lease_table = table};
    config.dynamodb_endpoint = faults->url();
    FleetPart part(
        config, endpoint, "us-east-1", options(faults->url()).credentials, nullptr, nullptr);
    std::vector<Right> granted{part.admit(soon(), {}, phases)};
    ASSERT_TRUE(std::holds_alternative<pool::SlotId>(granted[0]));
    std::optional<Code> failure;  // On a busy machine a second passes between two openings.
    while (failure != Code::unavailable || phases.last() != pool::OpenPhase::permit) {
        ASSERT_LT(granted.size(), 20U);
        failure = holdfast::test::code_of(
            [&] { granted.push_back(part.admit(Deadline::after(50ms), {}, phases)); });
    }
    EXPECT_EQ(part.slots()->view().used, static_cast<int>(granted.size()));
    for (const Right& right : granted) {
        part.gone(right);
    }
    EXPECT_EQ(part.slots()->view().used, 0);
}

// The process ends while one of its openings has a slot and stands in line for a permit.
TEST_F(FleetStory, WhoIsStoppedInLineForAPermitLeavesNoSlotBehind) {
    FleetConfig config{.rate = 1, .burst = 1, .lease_table = table};
    config.dynamodb_endpoint = faults->url();
    {
        FleetPart part(
            config, endpoint, "us-east-1", options(faults->url()).credentials, nullptr, nullptr);
        const Right first = part.admit(soon(), {}, phases);
        std::stop_source stop;
        std::vector<std::future<std::optional<Code>>> waiting;
        for (int i = 0; i < 3; ++i) {
            waiting.push_back(std::async(std::launch::async, [&] {
                pool::OpenPhases own;
                return holdfast::test::code_of([&] {  // The last one's turn is in three seconds.
                    for (;;) {
                        part.gone(part.admit(soon(), stop.get_token(), own));
                    }
                });
            }));
        }
        while (part.slots()->view().used < 4) {  // All have a slot, and wait for the rest.
            std::this_thread::yield();
        }
        const Steady began = std::chrono::steady_clock::now();
        stop.request_stop();
        for (auto& one : waiting) {
            EXPECT_EQ(one.get(), Code::cancelled);
        }
        EXPECT_LT(std::chrono::steady_clock::now() - began, 1s);
        EXPECT_EQ(part.slots()->view().used, 1);
        part.gone(first);
    }
    EXPECT_TRUE(owned().empty());
}

TEST_F(FleetStory, AFailureAtAnyStageGivesTheSlotBackOnce) {
    HOLDFAST_CHECK("connections +open.slot_returned");
    HOLDFAST_CHECK("connections fill.lease_back_token");
    HOLDFAST_CHECK("connections fill.lease_back_open");
    const auto provider = std::make_shared<tests::TestProvider>();
    Metrics metrics;
    SourceOptions options{.credentials = provider, .metrics = &metrics};
    options.fleet.lease_table = table;
    options.fleet.service = "ann";
    options.fleet.dynamodb_endpoint = faults->url();
    const auto factory = dsql_source(options);
    const auto used = [&] {
        return metrics.value("dsql_slot_blocks_slots_used", {{"service", "ann"}});
    };
    const auto source = factory(sql::parse_url("dsql://" + endpoint));
    const sql::ConnectParams open = source->prepare(soon(), {}, phases);
    EXPECT_FALSE(source->opened(open, nullptr));
    const sql::ConnectParams broken = source->prepare(soon(), {}, phases);
    EXPECT_EQ(used(), 2);
    const sql::ConnectionLost lost(Outcome::not_applied, "reset");
    EXPECT_FALSE(source->opened(broken, &lost));
    EXPECT_EQ(used(), 1) << "the connection did not come about";

    provider->fail = true;  // There is a slot, but no token for this user.
    const auto other = factory(sql::parse_url("dsql://app@" + endpoint));
    EXPECT_EQ(holdfast::test::code_of([&] { (void)other->prepare(soon(), {}, phases); }),
              Code::unavailable);
    EXPECT_EQ(used(), 1);
    provider->fail = false;
    source->closed();
    EXPECT_EQ(used(), 0);
}

// REGION may be that of the process. Token and tables follow the cluster, both by one value.
TEST_F(FleetStory, TheTablesAreInTheRegionOfTheCluster) {
    SourceOptions options{.credentials = std::make_shared<tests::TestProvider>()};
    options.fleet.region = "eu-west-1";
    options.fleet.rate_table = table;
    options.fleet.dynamodb_endpoint = faults->url();
    const auto factory = dsql_source(options);
    const auto by_name = factory(sql::parse_url("dsql://" + endpoint))->prepare(soon(), {}, phases);
    EXPECT_NE(by_name.at("password").find("%2Fus-east-1%2Fdsql"), std::string::npos);
    EXPECT_NE(faults->signature().find("/us-east-1/dynamodb/"), std::string::npos);
    const auto usual =
        factory(sql::parse_url("dsql://orders.example.com"))->prepare(soon(), {}, phases);
    EXPECT_NE(usual.at("password").find("%2Feu-west-1%2Fdsql"), std::string::npos);
    EXPECT_NE(faults->signature().find("/eu-west-1/dynamodb/"), std::string::npos);
}

TEST_F(FleetStory, WithoutTheStoreTheLocalCapIsInForce) {
    SlotKeeperOptions settings = keeper("ann");
    settings.blocks.local_cap = 2;
    faults->next(Fault::failed, 6);
    SlotKeeper ann(settings);
    const auto as_ann = ann.join(3, [](int) {});
    std::vector<pool::SlotId> slots;
    for (int i = 0; i < 3; ++i) {
        slots.push_back(ann.acquire(soon(), {}));  // The third one waits for the store.
    }
    EXPECT_FALSE(ann.view().degraded);
    EXPECT_EQ(ann.view().capacity, 5);
    for (const pool::SlotId slot : slots) {
        ann.release(slot);
    }
    ann.leave(as_ann);
}

// Others have their blocks meanwhile: a local cap on top would be too many.
TEST_F(FleetStory, AStoreThatIsAskedTooMuchIsWaitedFor) {
    SlotKeeperOptions settings = keeper("ann");
    settings.blocks.local_cap = 2;
    faults->next(Fault::throttled, 6);
    SlotKeeper ann(settings);
    const auto as_ann = ann.join(3, [](int) {});
    const pool::SlotId slot = ann.acquire(soon(), {});
    EXPECT_EQ(ann.view().blocks, 1) << "it is a slot of the fleet";
    EXPECT_FALSE(ann.view().degraded);
    ann.release(slot);
    ann.leave(as_ann);
}

// The process stops before it has heard that the block is its own.
TEST_F(FleetStory, ABlockWhoseAnswerWasLostIsNotLeftBehind) {
    HOLDFAST_CHECK("connections +slot.shutdown");
    CapturingLogger log;
    SlotKeeperOptions settings = keeper("ann");
    settings.logger = &log;
    settings.limits.store_retry = 1min;
    faults->next(Fault::lost_answer, 3);  // As often as the client tries.
    SlotKeeper ann(settings);
    const auto as_ann = ann.join(1, [](int) {});
    ASSERT_TRUE(log.wait_for("slots.unanswered", soon()));
    EXPECT_EQ(owned().size(), 1U);
    ann.leave(as_ann);
    ann.stop();
    EXPECT_TRUE(owned().empty());
}

// One process is one owner, however many pools it has and however often they begin anew.
TEST_F(FleetStory, PoolsOfOneProcessAreOneOwner) {
    HOLDFAST_CHECK("connections +slot.same_owner");
    SourceOptions options{.credentials = std::make_shared<tests::TestProvider>()};
    options.fleet.lease_table = table;
    options.fleet.dynamodb_endpoint = faults->url();
    options.fleet.blocks = {.size = 1, .count = 4};
    options.fleet.rate = 1000;
    const auto factory = dsql_source(options);
    const auto orders = factory(sql::parse_url("dsql://" + endpoint + "?pool=2"));
    (void)orders->prepare(soon(), {}, phases);
    const auto owner = dynamo::text(owned().at(0), "owner_id");
    for (int i = 0; i < 2; ++i) {
        const auto stock = factory(sql::parse_url("dsql://stock@" + endpoint + "?pool=2"));
        (void)stock->prepare(soon(), {}, phases);
        EXPECT_GE(owned().size(), 2U);
        for (const dynamo::Item& item : owned()) {
            EXPECT_EQ(dynamo::text(item, "owner_id"), owner);
        }
        stock->closed();
    }
    orders->closed();
}

}  // namespace
}  // namespace holdfast::dsql
