// Settings of the database, of the tables' names and of the limits, and what comes of them.
#include <atomic>

#include "test/lock_fixture.hpp"

#include <holdfast/base/log_capture.hpp>

namespace holdfast::lock::tests {
namespace {

// ---- What the database is set to
// -----------------------------------------------------------------

class LockServer : public testing::Test {
protected:
    // For every connection that is opened from now on.
    void set(const std::string& name, const std::string& value) {
        db.outside.execute("ALTER DATABASE " + db.outside.name() + " SET " + name + " = '" + value +
                           "'");
    }
    LockDatabase db{Setting{test::Backend::postgres}};
};

class LockIsolation : public LockServer, public testing::WithParamInterface<const char*> {};

// Where others' changes show as conflicts, an answer is still an answer.
TEST_P(LockIsolation, IsNoMatterForAnswers) {
    HOLDFAST_CHECK("locks N7");
    set("default_transaction_isolation", GetParam());
    const auto strict = db.open();
    Locks locks(*strict, {}, {.tolerance = 0ms});
    std::atomic<std::uint64_t> last = 0;
    std::atomic<int> inside = 0;
    all_at_once(8, [&](int) {
        for (int i = 0; i < 10; ++i) {
            const Acquired answer = locks.acquire("k", 60s, {.deadline = Deadline::after(60s)});
            if (const auto* grant = std::get_if<Grant>(&answer)) {
                EXPECT_EQ(++inside, 1);
                EXPECT_GT(value_of(grant->fence), last.exchange(value_of(grant->fence)));
                --inside;
                EXPECT_TRUE(locks.extend(grant->lock_id, 60s).ok);
                EXPECT_TRUE(locks.release(grant->lock_id).ok);
            }
        }
    });
    EXPECT_GT(last, 0U);
    EXPECT_FALSE(locks.is_locked("k"));
}

INSTANTIATE_TEST_SUITE_P(Every,
                         LockIsolation,
                         testing::Values("repeatable read", "serializable"),
                         [](const auto& level) {
                             return std::string(level.param).substr(0, 6) == "repeat" ? "repeatable"
                                                                                      : level.param;
                         });

TEST_F(LockServer, ThatForgetsCommitsIsRefusedUnlessThatIsAccepted) {
    HOLDFAST_CHECK("locks N8");
    set("synchronous_commit", "off");
    const auto forgetful = db.open();
    const auto error = lock_error_of([&] { Locks{*forgetful}; });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::invalid_argument);
    EXPECT_NE(std::string_view(error->what()).find("synchronous_commit"), std::string_view::npos);

    CapturingLogger log;
    Locks accepted(*forgetful, {.accept_lost_commits = true, .logger = &log});
    EXPECT_TRUE(is_granted(accepted.acquire("k", 10s)));
    EXPECT_EQ(log.count("may lose commits"), 1U);
}

// The commits stay, and the table does not: a crash empties it.
TEST_F(LockServer, WithCountersThatACrashEmptiesIsRefusedUnlessThatIsAccepted) {
    HOLDFAST_CHECK("locks N8");
    db.outside.execute("ALTER TABLE holdfast_fences SET UNLOGGED");
    const auto error = lock_error_of([&] { Locks{db}; });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::invalid_argument);
    EXPECT_NE(std::string_view(error->what()).find("SET LOGGED"), std::string_view::npos);

    CapturingLogger log;
    Locks accepted(db, {.accept_lost_commits = true, .logger = &log});
    EXPECT_TRUE(is_granted(accepted.acquire("k", 10s)));
    EXPECT_EQ(log.count("may lose commits"), 1U);
    db.outside.execute("ALTER TABLE holdfast_fences SET LOGGED");
    EXPECT_TRUE(is_granted(Locks{db}.acquire("j", 10s)));
}

// A standby, or a server that is set so: another may take over.
TEST_F(LockServer, ThatTakesNoWritesIsUnavailable) {
    set("default_transaction_read_only", "on");
    const auto standby = db.open();
    Locks locks(*standby);
    const auto error = lock_error_of([&] { (void)locks.acquire("k", 10s); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->context().sqlstate, "25006");
    EXPECT_EQ(error->lock_code(), LockCode::service_unavailable);
    EXPECT_TRUE(error->retryable());
    EXPECT_FALSE(error->indeterminate());
    EXPECT_FALSE(locks.is_locked("k")) << "looking is allowed";
}

// A file forgets what it was told not to wait for.
TEST(LockFile, ThatForgetsCommitsIsRefusedUnlessThatIsAccepted) {
    HOLDFAST_CHECK("locks N8");
    LockDatabase db{Setting{test::Backend::sqlite}};
    for (const std::string how : {"normal", "off"}) {
        sql::Database forgetful("sqlite:" + db.outside.name() + "?synchronous=" + how,
                                db.outside.options());
        const auto error = lock_error_of([&] { Locks{forgetful}; });
        ASSERT_TRUE(error);
        EXPECT_EQ(error->lock_code(), LockCode::invalid_argument);
        EXPECT_NE(std::string_view(error->what()).find("synchronous"), std::string_view::npos);

        CapturingLogger log;
        Locks accepted(forgetful, {.accept_lost_commits = true, .logger = &log});
        EXPECT_TRUE(is_granted(accepted.acquire(how, 10s)));
        EXPECT_EQ(log.count("may lose commits"), 1U);
    }
}

// With a file that is a matter of rights, which no waiting cures.
TEST(LockFile, ThatMayNotBeWrittenIsARefusal) {
    LockDatabase db{Setting{test::Backend::sqlite}};
    Locks owner(db);
    const auto held = std::get<Grant>(owner.acquire("held", 60s));
    sql::Database reading("sqlite:" + db.outside.name() + "?readonly=1", db.outside.options());
    Locks locks(reading);
    EXPECT_TRUE(locks.is_locked("held")) << "looking is allowed";
    for (const std::function<void()>& call :
         std::vector<std::function<void()>>{[&] { (void)locks.acquire("k", 10s); },
                                            [&] { (void)locks.release(held.lock_id); },
                                            [&] { (void)locks.extend(held.lock_id, 10s); }}) {
        const auto error = lock_error_of(call);
        ASSERT_TRUE(error);
        EXPECT_EQ(error->lock_code(), LockCode::auth_failed) << error->what();
        EXPECT_FALSE(error->retryable());
        EXPECT_FALSE(error->indeterminate());
    }
    EXPECT_TRUE(owner.is_locked("held"));
}

// ---- The end of a counter
// ------------------------------------------------------------------------

class LockLimits : public LockStory {};

TEST_P(LockLimits, TheLastFenceIsIssuedAndThenNoMore) {
    HOLDFAST_CHECK("locks N9");
    CapturingLogger log;
    Locks watched(db, {.logger = &log});
    EXPECT_TRUE(watched.release(std::get<Grant>(watched.acquire("k", 10s)).lock_id).ok);
    EXPECT_EQ(log.count("approaches its maximum"), 0U);
    db.tamper("UPDATE holdfast_fences SET fence = 899999999999999");
    const auto last = std::get<Grant>(watched.acquire("k", 10s));
    EXPECT_EQ(to_string(last.fence), "900000000000000");
    EXPECT_EQ(log.count("approaches its maximum"), 1U);
    EXPECT_TRUE(watched.release(last.lock_id).ok);
    for (int i = 0; i < 2; ++i) {
        const auto error = lock_error_of([&] { (void)watched.acquire("k", 1s); });
        ASSERT_TRUE(error);
        EXPECT_EQ(error->lock_code(), LockCode::internal);
        EXPECT_NE(std::string_view(error->what()).find("overflow"), std::string_view::npos);
        EXPECT_EQ(error->context().key, "k");
    }
    const std::vector<std::string> both{"a", "k"};
    EXPECT_EQ(lock_code_of([&] { (void)watched.acquire_all(both, 1s); }), LockCode::internal);
    EXPECT_FALSE(watched.is_locked("k"));
    EXPECT_FALSE(watched.is_locked("a"));
    EXPECT_EQ(db.number("SELECT fence FROM holdfast_fences WHERE fence_key = 'fence:k'"),
              900'000'000'000'000);
}

TEST_P(LockLimits, OptionsThatMakeNoSenseAreRefused) {
    const auto refused = [&](LocksOptions options) {
        EXPECT_EQ(test::code_of([&] { Locks{db, std::move(options)}; }), Code::invalid_argument);
    };
    refused({.call_timeout = 0ms});
    refused({.ttl_limit = 0ms});
    refused({.ttl_limit = ttl_max + 1ms});
    Locks strict(db, {.ttl_limit = 10s});
    EXPECT_TRUE(is_granted(strict.acquire("k", 10s)));
    EXPECT_EQ(lock_code_of([&] { (void)strict.acquire("j", 10'001ms); }),
              LockCode::invalid_argument);
    EXPECT_EQ(
        lock_code_of([&] { (void)strict.acquire("j", 1s, {.meta = std::string(5'000, 'x')}); }),
        LockCode::invalid_argument);
}

// ---- Names
// ---------------------------------------------------------------------------------------

TEST_P(LockLimits, NamesOfTablesAreCheckedBeforeAnythingIsAsked) {
    HOLDFAST_CHECK("locks N10");
    HOLDFAST_CHECK("locks U-B 23");
    for (const std::string bad : {"",
                                  "Locks",
                                  "select",
                                  "my-locks",
                                  "my locks",
                                  "my\"locks",
                                  "public.locks",
                                  "1locks",
                                  "locks; DROP TABLE x",
                                  "a_name_of_49_bytes_is_one_more_than_a_name_may_ha"}) {
        for (const Names& names : {Names{.locks = bad}, Names{.fences = bad}}) {
            EXPECT_EQ(test::code_of([&] { Schema{names}; }), Code::invalid_argument) << bad;
            EXPECT_EQ(test::code_of([&] { Locks(db, {.names = names}); }), Code::invalid_argument)
                << bad;
        }
    }
    EXPECT_EQ(test::code_of([&] { Schema(Names{.locks = "same", .fences = "same"}); }),
              Code::invalid_argument);
    EXPECT_EQ(test::code_of([&] { Schema(Names{.schema = "no good"}); }), Code::invalid_argument);
}

class LockTables : public testing::TestWithParam<test::Backend> {
protected:
    std::int64_t tables_like(const std::string& name) const {
        return db.number(GetParam() == test::Backend::sqlite
                             ? "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name "
                               "LIKE '" +
                                   name + "%'"
                             : "SELECT count(*) FROM pg_tables WHERE tablename LIKE '" + name +
                                   "%'");
    }
    test::Database db{GetParam()};
};

TEST_P(LockTables, ChosenNamesAreUsedEverywhere) {
    HOLDFAST_CHECK("locks U-B 21");
    const Names names{.locks = "team_locks", .fences = "team_counters"};
    sql::schema_apply(db, Schema(names).part(), {});
    EXPECT_EQ(tables_like("team_locks"), 4) << "locks, waiters, permits, resources";
    EXPECT_EQ(tables_like("team_counters"), 1);
    EXPECT_EQ(tables_like("holdfast_locks"), 0);
    Locks locks(db, {.names = names});
    const auto grant = std::get<Grant>(locks.acquire("k", 10s));
    EXPECT_TRUE(locks.is_locked("k"));
    EXPECT_TRUE(locks.find("k"));
    EXPECT_TRUE(locks.find_by_id(grant.lock_id));
    EXPECT_TRUE(locks.extend(grant.lock_id, 10s).ok);
    EXPECT_EQ(locks.list().size(), 1U);
    {
        const LockId bob = LockId::fresh();
        const auto ticket = locks.line_up("k", bob, Deadline::after(10s));
        EXPECT_TRUE(ticket->join());
    }
    EXPECT_TRUE(locks.release(grant.lock_id).ok);
    EXPECT_EQ(locks.purge(), 0);
    EXPECT_EQ(db.number("SELECT fence FROM team_counters"), 1);
}

TEST_P(LockTables, TheDefaultNamesAreOurs) {
    HOLDFAST_CHECK("locks U-B 22");
    sql::schema_apply(db, schema_part(), {});
    EXPECT_EQ(tables_like("holdfast_locks"), 4);
    EXPECT_EQ(tables_like("holdfast_fences"), 1);
}

TEST_P(LockTables, TwoInstancesWithNamesOfTheirOwnDoNotMeet) {
    HOLDFAST_CHECK("locks U-B 24");
    const Names others{.locks = "other_locks", .fences = "other_fences"};
    sql::schema_apply(db, schema_part(), {});
    sql::schema_apply(db, Schema(others).part(), {});
    Locks here(db);
    Locks there(db, {.names = others});
    const auto ann = std::get<Grant>(here.acquire("k", 10s));
    const auto bob = std::get<Grant>(there.acquire("k", 10s));
    EXPECT_EQ(ann.fence, bob.fence);
    EXPECT_FALSE(there.release(ann.lock_id).ok);
    EXPECT_TRUE(here.release(ann.lock_id).ok);
    EXPECT_TRUE(there.is_locked("k"));
}

// Ten processes start at once, and each would create the tables.
TEST_P(LockTables, TenWhoCreateThemAtOnceAllSucceed) {
    HOLDFAST_CHECK("locks N11");
    all_at_once(10, [&](int) {
        sql::Database own(db.url(), db.options());
        EXPECT_EQ(sql::schema_apply(own, schema_part(), {}).version, 1);
    });
    Locks locks(db);
    EXPECT_TRUE(is_granted(locks.acquire("k", 10s)));
}

// What the stories stand on: every database is empty, its own, and gone with its test.
TEST_P(LockTables, EveryStoryHasADatabaseOfItsOwn) {
    HOLDFAST_CHECK("locks U-B 25");
    EXPECT_EQ(tables_like("holdfast_"), 0);
    sql::schema_apply(db, schema_part(), {});
    test::Database second(GetParam());
    EXPECT_NE(second.url(), db.url());
    EXPECT_THROW(second.execute("SELECT 1 FROM holdfast_locks"), std::exception);
    sql::schema_apply(second, schema_part(), {});
    Locks here(db);
    Locks there(second);
    EXPECT_TRUE(is_granted(here.acquire("k", 10s)));
    EXPECT_TRUE(is_granted(there.acquire("k", 10s)));
}

INSTANTIATE_TEST_SUITE_P(Every, LockLimits, every_setting(), setting_name);
INSTANTIATE_TEST_SUITE_P(Every, LockTables, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::lock::tests
