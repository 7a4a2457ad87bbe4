// The way to the database breaks, or the database meets conflicts, at the worst moments.
#include "test/lock_fixture.hpp"

#include <holdfast/base/metrics.hpp>
#include <holdfast/lock/semaphore.hpp>
#include <holdfast/lock/with_lock.hpp>
#include <holdfast/testing/fault_proxy.hpp>

namespace holdfast::lock::tests {
namespace {

using test::Fault;
using test::Side;

// Locks by way of the proxy, on one connection; others look directly.
class LockFaults : public testing::Test {
protected:
    LockFaults() {
        // Warm: the connection is open, and the statements are prepared.
        const auto grant = std::get<Grant>(locks.acquire("warm", 10s));
        EXPECT_TRUE(locks.extend(grant.lock_id, 10s).ok);
        EXPECT_TRUE(locks.release(grant.lock_id).ok);
    }
    void expect_unavailable(const std::function<void()>& call) {
        const auto error = lock_error_of(call);
        ASSERT_TRUE(error);
        EXPECT_EQ(error->lock_code(), LockCode::service_unavailable) << error->what();
        EXPECT_TRUE(error->retryable());
        EXPECT_TRUE(error->cause());
    }
    bool struck() { return proxy.wait_struck(Deadline::after(0s)); }
    void wait_until_free(const std::string& key) {
        const Deadline deadline = Deadline::after(20s);
        while (observer.is_locked(key) && !deadline.passed()) {
        }
    }

    LockDatabase direct{Setting{test::Backend::postgres}};
    Locks observer{direct};
    test::FaultProxy proxy{test::shared_postgres()};
    sql::Database through{proxy.address().url(direct.outside.name()) + "&pool=1",
                          direct.outside.options()};
    Locks locks{through};
};

// The lock is taken, and its taker does not hear of it. It asks again with the same id.
TEST_F(LockFaults, AnAcquisitionWhoseAnswerIsLostIsAdopted) {
    HOLDFAST_CHECK("locks N6");
    for (const Fault fault : {Fault::lose_answer, Fault::cut_after}) {
        proxy.arm({.from = Side::client, .type = 'S'}, fault);
        const auto grant = std::get<Grant>(locks.acquire("k", 10s));
        EXPECT_TRUE(struck()) << "or nothing was tested";
        EXPECT_TRUE(is_busy(observer.acquire("k", 10s))) << "there is no second holder";
        EXPECT_EQ(observer.find_raw("k").value().lock_id, grant.lock_id);
        EXPECT_EQ(direct.number("SELECT count(*) FROM holdfast_locks"), 1);
        EXPECT_TRUE(locks.release(grant.lock_id).ok);
    }
}

TEST_F(LockFaults, ACutAtAnyMessageOfAnAcquisitionMakesNoSecondHolder) {
    HOLDFAST_CHECK("locks N6");
    int hits = 0;
    for (const Side side : {Side::client, Side::server}) {
        for (int nth = 1;; ++nth) {
            const std::string key = (side == Side::client ? "c" : "s") + std::to_string(nth);
            EXPECT_FALSE(locks.is_locked("warm"));
            proxy.arm({.from = side, .nth = nth}, Fault::cut);
            const auto grant = std::get<Grant>(locks.acquire(key, 10s));
            const bool hit = struck();
            proxy.disarm();
            EXPECT_EQ(observer.find_raw(key).value().lock_id, grant.lock_id);
            EXPECT_EQ(observer.find(key).value().fence, grant.fence) << "the newest is ours";
            if (!hit) {
                break;
            }
            ++hits;
        }
    }
    EXPECT_GT(hits, 3) << "or nothing was tested";
}

// Lost twice: no caller has the id that may hold the lock. It must not stay until its lease is
// over.
TEST_F(LockFaults, WhatIsLostTwiceIsGivenBackInTheBackground) {
    HOLDFAST_CHECK("locks N6");
    proxy.arm({.from = Side::client, .type = 'S'}, Fault::lose_answer);
    proxy.refuse(true);  // The second try needs a new connection, and is refused.
    const auto error = lock_error_of([&] { (void)locks.acquire("k", 60s); });
    EXPECT_TRUE(struck()) << "or nothing was tested";
    ASSERT_TRUE(error);
    EXPECT_TRUE(error->indeterminate());
    EXPECT_TRUE(error->retryable());
    EXPECT_EQ(error->context().key, "k");
    proxy.refuse(false);
    wait_until_free("k");
    EXPECT_TRUE(is_granted(observer.acquire("k", 10s))) << "long before its end";
}

// What cannot be given back must not keep its process alive, nor busy: the lease may be a long one.
TEST_F(LockFaults, WhatCannotBeGivenBackDoesNotHoldUpTheEnd) {
    auto ending = std::make_unique<Locks>(through);
    proxy.arm({.from = Side::client, .type = 'S'}, Fault::lose_answer);
    proxy.refuse(true);
    const auto error = lock_error_of([&] { (void)ending->acquire("k", 1h); });
    EXPECT_TRUE(struck()) << "or nothing was tested";
    ASSERT_TRUE(error);
    EXPECT_TRUE(error->indeterminate());
    const auto began = std::chrono::steady_clock::now();
    ending.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - began, 60s) << "or it has waited for the lease";
    EXPECT_TRUE(observer.is_locked("k"));
}

// The same for a waiter: all of its attempts use one id, which is forgotten when it gives up.
TEST_F(LockFaults, WhatAWaiterMayHaveTakenIsGivenBackInTheBackground) {
    HOLDFAST_CHECK("locks N6");
    proxy.arm({.from = Side::client, .type = 'S'}, Fault::lose_answer);
    proxy.refuse(true);
    const auto error = lock_error_of(
        [&] { (void)acquire_waiting(locks, "k", 60s, {.max_retries = 0, .timeout = 20s}); });
    EXPECT_TRUE(struck()) << "or nothing was tested";
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::acquisition_timeout);
    EXPECT_TRUE(observer.is_locked("k")) << "or nothing was tested";
    proxy.refuse(false);
    wait_until_free("k");
    EXPECT_TRUE(is_granted(observer.acquire("k", 10s))) << "long before its end";
}

// Both can be repeated without harm. The repeat of an extension gives the true answer. If the
// repeat of a release finds no lock, it is unknown which call removed it.
TEST_F(LockFaults, AnExtensionOrAReleaseWhoseAnswerIsLostIsAskedForAgain) {
    const auto grant = std::get<Grant>(locks.acquire("k", 10s));
    proxy.arm({.from = Side::client, .type = 'S'}, Fault::lose_answer);
    EXPECT_TRUE(locks.extend(grant.lock_id, 20s).ok);
    EXPECT_TRUE(struck());

    proxy.arm({.from = Side::client, .type = 'B'}, Fault::cut);
    EXPECT_TRUE(locks.release(grant.lock_id).ok) << "the first has not arrived";
    EXPECT_TRUE(struck());

    const auto again = std::get<Grant>(locks.acquire("k", 10s));
    proxy.arm({.from = Side::client, .type = 'S'}, Fault::lose_answer);
    const Released release = locks.release(again.lock_id);
    EXPECT_TRUE(struck());
    EXPECT_FALSE(release.ok);
    EXPECT_TRUE(release.indeterminate);
    EXPECT_FALSE(observer.is_locked("k")) << "the lost one has done it";
}

// A permit is taken by several round trips. The last of them commits.
TEST_F(LockFaults, APermitWhoseAnswerIsLostIsAdopted) {
    HOLDFAST_CHECK("locks N6");
    Semaphore one(locks, "k", 1);
    for (const Fault fault : {Fault::lose_answer, Fault::cut}) {
        proxy.arm({.from = Side::client, .containing = "COMMIT"}, fault);
        auto permit = std::get<Permit>(one.acquire(10s));
        EXPECT_TRUE(struck()) << "or nothing was tested";
        EXPECT_EQ(direct.number("SELECT count(*) FROM holdfast_locks_permits"), 1);
        EXPECT_EQ(direct.number("SELECT fence FROM holdfast_locks_permits"),
                  static_cast<std::int64_t>(value_of(permit.fence)));
        EXPECT_TRUE(std::holds_alternative<Busy>(one.acquire(10s)));
        proxy.arm({.from = Side::client, .type = 'S'}, Fault::lose_answer);
        EXPECT_TRUE(one.extend(permit, 20s));
        EXPECT_TRUE(struck());
        proxy.arm({.from = Side::client, .type = 'B'}, Fault::cut);
        EXPECT_TRUE(one.release(permit)) << "the first has not arrived";
        EXPECT_TRUE(struck());
    }
}

TEST_F(LockFaults, APermitThatIsLostTwiceIsGivenBackInTheBackground) {
    HOLDFAST_CHECK("locks N6");
    Semaphore one(locks, "k", 1);
    proxy.arm({.from = Side::client, .containing = "COMMIT"}, Fault::lose_answer);
    proxy.refuse(true);
    const auto error = lock_error_of([&] { (void)one.acquire(60s); });
    EXPECT_TRUE(struck()) << "or nothing was tested";
    ASSERT_TRUE(error);
    EXPECT_TRUE(error->indeterminate());
    EXPECT_EQ(direct.number("SELECT count(*) FROM holdfast_locks_permits"), 1);
    proxy.refuse(false);
    const Deadline deadline = Deadline::after(20s);
    while (direct.number("SELECT count(*) FROM holdfast_locks_permits") > 0 && !deadline.passed()) {
    }
    EXPECT_TRUE(std::holds_alternative<Permit>(one.acquire(10s))) << "long before its end";
}

// What became of the first call stays unknown, whatever the second says.
TEST_F(LockFaults, AReleaseThatIsLostTwiceIsIndeterminate) {
    Metrics metrics;
    Locks watched(through, {.metrics = &metrics});
    const auto grant = std::get<Grant>(watched.acquire("k", 60s));
    const auto live = [&] {
        (void)metrics.expose();  // Reading brings it up to date.
        return metrics.value("holdfast_lock_live", {{"db", through.name()}});
    };
    const auto other = std::get<Grant>(watched.acquire("other", 60s));
    EXPECT_EQ(live(), 2);
    EXPECT_TRUE(watched.release(other.lock_id).ok);
    EXPECT_EQ(live(), 1);
    proxy.arm({.from = Side::client, .type = 'S'}, Fault::lose_answer);
    proxy.refuse(true);
    const auto error = lock_error_of([&] { (void)watched.release(grant.lock_id); });
    EXPECT_TRUE(struck());
    ASSERT_TRUE(error);
    EXPECT_TRUE(error->indeterminate());
    const auto calls = [&](std::string_view result) {
        return metrics.value("holdfast_lock_calls_total",
                             {{"db", through.name()}, {"result", result}});
    };
    EXPECT_EQ(calls("release_failed"), 1);
    EXPECT_EQ(calls("repeated"), 1);
    EXPECT_EQ(calls("released"), 1) << "another one, before";
    EXPECT_FALSE(observer.is_locked("k")) << "the lost one has done it";
    EXPECT_EQ(live(), 1) << "which nobody knows here";
}

TEST_F(LockFaults, AServerThatIsAwayIsUnavailableForEveryCall) {
    HOLDFAST_CHECK("locks U-B 4");
    HOLDFAST_CHECK("locks U-B 9");
    HOLDFAST_CHECK("locks U-B 15");
    HOLDFAST_CHECK("locks U-B 20");
    const LockId id = LockId::fresh();
    const CallOptions brief{.deadline = Deadline::after(20s)};
    proxy.refuse(true);
    proxy.cut_all();
    expect_unavailable([&] { (void)locks.acquire("k", 1s, {.deadline = brief.deadline}); });
    expect_unavailable([&] { (void)locks.release(id, brief); });
    expect_unavailable([&] { (void)locks.extend(id, 1s, brief); });
    expect_unavailable([&] { (void)locks.is_locked("k", brief); });
    expect_unavailable([&] { (void)locks.find("k", brief); });
}

// From where the server stands: the claims are made, and the client that would commit them has
// stopped.
TEST_F(LockFaults, AClientThatStopsInsideAGroupDoesNotKeepTheKeysForEver) {
    HOLDFAST_CHECK("locks N16");
    Locks stopping(through, {}, {.idle_max = 300ms});
    const std::vector<std::string> keys{"a", "b"};
    proxy.arm({.from = Side::client, .containing = "COMMIT"}, Fault::stall);
    auto stopped = std::async(std::launch::async, [&] {
        return lock_error_of(
            [&] { (void)stopping.acquire_all(keys, 60s, {.deadline = Deadline::after(60s)}); });
    });
    ASSERT_TRUE(proxy.wait_struck(Deadline::after(20s)));
    for (const std::string& key : keys) {
        EXPECT_TRUE(is_granted(observer.acquire(key, 60s, {.deadline = Deadline::after(60s)})));
    }
    proxy.release();
    const auto error = stopped.get();
    ASSERT_TRUE(error) << "it must not believe that it has them";
    EXPECT_EQ(error->lock_code(), LockCode::service_unavailable) << error->what();
    EXPECT_TRUE(error->retryable());
    EXPECT_EQ(direct.number("SELECT count(*) FROM holdfast_locks"), 2);
}

TEST_F(LockFaults, MissingTablesAreNamedWithTheCure) {
    direct.outside.execute("DROP TABLE holdfast_locks");
    const auto error = lock_error_of([&] { (void)locks.acquire("k", 1s); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::invalid_argument);
    EXPECT_NE(std::string_view(error->what()).find("schema apply"), std::string_view::npos);
}

// ---- On every database
// ---------------------------------------------------------------------------

class LockAway : public LockStory {
protected:
    static void expect_unavailable(const std::function<void()>& call) {
        const auto error = lock_error_of(call);
        ASSERT_TRUE(error);
        EXPECT_EQ(error->lock_code(), LockCode::service_unavailable) << error->what();
        EXPECT_TRUE(error->retryable()) << error->what();
        EXPECT_FALSE(error->indeterminate()) << error->what();
        EXPECT_TRUE(error->cause());
    }
};

TEST_P(LockAway, AClosedDatabaseIsUnavailableForEveryCall) {
    HOLDFAST_CHECK("locks U-B 4");
    HOLDFAST_CHECK("locks U-B 9");
    HOLDFAST_CHECK("locks U-B 15");
    HOLDFAST_CHECK("locks U-B 20");
    const Grant held = take("held", 60s);
    db->stop(Deadline::after(20s));
    expect_unavailable([&] { (void)locks.acquire("k", 10s); });
    expect_unavailable([&] { (void)locks.release(held.lock_id); });
    expect_unavailable([&] { (void)locks.extend(held.lock_id, 10s); });
    expect_unavailable([&] { (void)locks.is_locked("k"); });
    expect_unavailable([&] { (void)locks.find("k"); });
    expect_unavailable([&] { (void)locks.find_by_id(held.lock_id); });
}

INSTANTIATE_TEST_SUITE_P(Every, LockAway, every_setting(), setting_name);

// What a server that is away is to a client, a file that another process keeps is here: for those
// who want to write. Readers are not in its way.
TEST(LockFileKept, ByAnotherProcessIsUnavailableForWriters) {
    HOLDFAST_CHECK("locks U-B 4");
    HOLDFAST_CHECK("locks U-B 9");
    HOLDFAST_CHECK("locks U-B 15");
    LockDatabase db{Setting{test::Backend::sqlite}};
    Locks locks(db);
    const auto held = std::get<Grant>(locks.acquire("held", 60s));
    static constexpr sql::Statement touch{"test.touch", "UPDATE holdfast_fences SET fence = fence"};
    OpenTransaction other(db.open(1), touch);
    const auto soon = [] { return Deadline::after(100ms); };
    for (const std::function<void()>& call : std::vector<std::function<void()>>{
             [&] { (void)locks.acquire("k", 10s, {.deadline = soon()}); },
             [&] { (void)locks.release(held.lock_id, {.deadline = soon()}); },
             [&] { (void)locks.extend(held.lock_id, 10s, {.deadline = soon()}); }}) {
        const auto error = lock_error_of(call);
        ASSERT_TRUE(error);
        EXPECT_EQ(error->lock_code(), LockCode::service_unavailable) << error->what();
        EXPECT_TRUE(error->retryable());
        EXPECT_FALSE(error->indeterminate());
    }
    EXPECT_TRUE(locks.is_locked("held"));
    other.let_go();
    EXPECT_TRUE(locks.release(held.lock_id).ok);
}

// ---- Conflicts
// -----------------------------------------------------------------------------------

class LockConflicts : public LockStory {
protected:
    LockConflicts() {
        db.outside.execute(
            "CREATE SEQUENCE met; CREATE TABLE plan (times bigint); INSERT INTO plan VALUES (0);"
            "CREATE FUNCTION meet() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " IF nextval('met') <= (SELECT times FROM plan) THEN"
            "  RAISE EXCEPTION 'a conflict on purpose' USING ERRCODE = '40001'; END IF;"
            " RETURN NULL; END $$;"
            "CREATE CONSTRAINT TRIGGER meet AFTER INSERT OR UPDATE OR DELETE ON holdfast_locks"
            " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION meet()");
    }
    // From here on, the next commits of a change to a lock are refused, so many times.
    void meet(int times) {
        db.outside.execute("ALTER SEQUENCE met RESTART; UPDATE plan SET times = " +
                           std::to_string(times));
    }
    std::int64_t met() const { return db.number("SELECT last_value FROM met"); }
};

TEST_P(LockConflicts, EveryOperationSurvivesAsManyAsItMayTry) {
    HOLDFAST_CHECK("locks N17");
    const int times = GetParam().backend == test::Backend::dsql ? 10 : 5;
    meet(times);
    const Grant ann = take("k", 60s);
    EXPECT_EQ(met(), times + 1);
    EXPECT_EQ(value_of(ann.fence), 1U) << "what was rolled back has burned nothing";
    meet(times);
    EXPECT_TRUE(locks.extend(ann.lock_id, 60s).ok);
    EXPECT_EQ(met(), times + 1);
    meet(times);
    EXPECT_TRUE(locks.release(ann.lock_id).ok);
    EXPECT_EQ(met(), times + 1);
    meet(times);
    EXPECT_TRUE(is_granted(locks.acquire("k", 60s)));
    meet(times);
    EXPECT_TRUE(locks.force_release("k", Fence{2}));
    EXPECT_EQ(met(), times + 1);
}

TEST_P(LockConflicts, OneTooManyIsUnavailableAndNothingHasHappened) {
    HOLDFAST_CHECK("locks N17");
    meet(1'000);
    const auto error = lock_error_of([&] { (void)locks.acquire("k", 60s); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::service_unavailable);
    EXPECT_TRUE(error->retryable());
    EXPECT_FALSE(error->indeterminate());
    EXPECT_EQ(error->context().sqlstate, "40001");
    meet(0);
    EXPECT_FALSE(locks.is_locked("k"));
    EXPECT_EQ(value_of(take("k").fence), 1U);
}

INSTANTIATE_TEST_SUITE_P(Every,
                         LockConflicts,
                         testing::Values(Setting{test::Backend::postgres},
                                         Setting{test::Backend::dsql}),
                         setting_name);

}  // namespace
}  // namespace holdfast::lock::tests
