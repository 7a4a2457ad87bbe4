// Limits, catalogue changes, jobs, faults, and crowds.
#include <atomic>
#include <barrier>
#include <thread>

#include "gateway/test/gateway_fixture.hpp"

#include <holdfast/base/manual_clock.hpp>
#include <holdfast/base/random.hpp>

namespace holdfast::dsql::tests {

namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class GatewayTransactions : public GatewayStory {
protected:
    void SetUp() override {
        const Client maker = client();
        ASSERT_EQ(maker.exec("CREATE TABLE t (id integer PRIMARY KEY, v integer)").code, "");
        ASSERT_EQ(maker.exec("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)").code, "");
    }
};

// Scenario 16. The service has no locks, so a client that stalls stops no other.
TEST_F(GatewayTransactions, AStalledHolderStopsNobody) {
    const Client stalled = client();
    ASSERT_EQ(stalled.exec("BEGIN").tag, "BEGIN");
    ASSERT_EQ(stalled.exec("UPDATE t SET v = v + 1 WHERE id = 1").tag, "UPDATE 1");
    const Client other = client();
    int commits = 0;
    for (int i = 0; i < 200; ++i) {
        ASSERT_EQ(other.exec("BEGIN").tag, "BEGIN");
        ASSERT_EQ(other.exec("UPDATE t SET v = v + 1 WHERE id = 1").tag, "UPDATE 1");
        commits += other.exec("COMMIT").tag == "COMMIT" ? 1 : 0;
    }
    EXPECT_EQ(commits, 200);
    EXPECT_EQ(stalled.exec("COMMIT").code, "40001");
    EXPECT_EQ(other.exec("SELECT v FROM t WHERE id = 1").cell(), "210");
}

// It has lost already, and reads on: its reads are as little in the way as its writes.
TEST_F(GatewayTransactions, AStalledLoserIsNotInTheWayOfAChangedTable) {
    const Client maker = client();
    ASSERT_EQ(maker.exec("CREATE TABLE other (id integer PRIMARY KEY)").code, "");
    const Client stalled = client();
    ASSERT_EQ(stalled.exec("BEGIN").tag, "BEGIN");
    ASSERT_EQ(stalled.exec("UPDATE t SET v = v + 1 WHERE id = 1").tag, "UPDATE 1");
    ASSERT_EQ(client().exec("UPDATE t SET v = v + 1 WHERE id = 1").tag, "UPDATE 1");
    ASSERT_EQ(stalled.exec("SELECT count(*) FROM other").cell(), "0");
    EXPECT_EQ(maker.exec("ALTER TABLE other ADD COLUMN x integer").code, "");
    EXPECT_EQ(stalled.exec("COMMIT").code, "40001");
}

// Eight clients raise two of three rows each; those who lose begin again. What is committed adds
// up.
TEST_F(GatewayTransactions, ACrowdsSumIsExact) {
    constexpr int crowd = 8;
    constexpr int rounds = 30;
    std::atomic<int> commits = 0;
    std::atomic<int> conflicts = 0;
    std::atomic<int> other = 0;
    std::barrier start(crowd);
    std::vector<std::jthread> threads;
    threads.reserve(crowd);
    for (int i = 0; i < crowd; ++i) {
        threads.emplace_back([&, i] {
            const Client mine = client();
            Random random(static_cast<std::uint64_t>(i));
            start.arrive_and_wait();
            for (int done = 0; done < rounds && other == 0;) {
                const auto left_out = random.below(3);
                const Said began = mine.exec("BEGIN");
                std::string code = began.code;
                for (std::uint64_t k = 1; k <= 3 && code.empty(); ++k) {
                    // Each in an order of its own.
                    const std::uint64_t id = (k + static_cast<std::uint64_t>(i)) % 3;
                    if (id == left_out) {
                        continue;
                    }
                    const Said read =
                        mine.exec("SELECT v FROM t WHERE id = $1", {std::to_string(id + 1)});
                    code = read.code;
                    if (code.empty()) {
                        code = mine.exec("UPDATE t SET v = $1 WHERE id = $2",
                                         {std::to_string(std::stoi(read.cell()) + 1),
                                          std::to_string(id + 1)})
                                   .code;
                    }
                }
                const Said ended = mine.exec(code.empty() ? "COMMIT" : "ROLLBACK");
                code = code.empty() ? ended.code : code;
                if (code.empty()) {
                    ++commits;
                    ++done;
                } else if (code == "40001") {
                    ++conflicts;
                } else {
                    ++other;
                    ADD_FAILURE() << code << " " << ended.message;
                }
            }
        });
    }
    threads.clear();
    EXPECT_EQ(commits, crowd * rounds);
    EXPECT_GT(conflicts, 0);
    EXPECT_EQ(client().exec("SELECT sum(v) FROM t").cell(),
              std::to_string(60 + 2 * crowd * rounds));
}

// Two batches that run at once and lock two rows in opposite order: one of them gives way before
// the server below finds that they wait for each other.
TEST_F(GatewayTransactions, CrossedBatchesDoNotWaitForEachOther) {
    const std::vector<const char*> up{"BEGIN",
                                      "UPDATE t SET v = v + 1 WHERE id = 1",
                                      "SELECT pg_sleep(0.03)",
                                      "UPDATE t SET v = v + 1 WHERE id = 2",
                                      "COMMIT"};
    std::vector<const char*> down = up;
    std::swap(down[1], down[3]);
    constexpr int rounds = 5;
    std::atomic<int> commits = 0;
    std::barrier start(2);
    std::vector<std::jthread> threads;
    threads.reserve(2);
    for (const auto& batch : {up, down}) {
        threads.emplace_back([&, batch] {
            const Client mine = client();
            for (int i = 0; i < rounds; ++i) {
                start.arrive_and_wait();
                const auto outcomes = mine.pipeline(batch);
                commits += outcomes.back() == "COMMIT" ? 1 : 0;
                EXPECT_THAT(outcomes.back(), testing::AnyOf("COMMIT", "40001"));
                EXPECT_THAT(std::vector(outcomes.begin(), outcomes.end() - 1),
                            testing::ElementsAre("BEGIN", "UPDATE 1", "SELECT 1", "UPDATE 1"));
                EXPECT_EQ(mine.status(), 'I');
            }
        });
    }
    threads.clear();
    EXPECT_GE(commits, rounds) << "somebody always wins";
    EXPECT_EQ(client().exec("SELECT sum(v) FROM t").cell(), std::to_string(60 + 2 * commits));
    const Client outside(cluster.outside("postgres"));
    EXPECT_EQ(
        outside.exec("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
            .cell(),
        "0");
}

TEST_F(GatewayTransactions, TheRowLimitIsExact) {
    const Client c = client();
    const std::string rows = "INSERT INTO t SELECT n, 0 FROM generate_series(1001, ";
    EXPECT_EQ(c.exec(rows + "4000) n").tag, "INSERT 0 3000");
    ASSERT_EQ(c.exec("DELETE FROM t WHERE id > 1000").tag, "DELETE 3000");
    const Said over = c.exec(rows + "4001) n");
    EXPECT_EQ(over.code, "54000");
    EXPECT_EQ(over.message, "transaction row limit exceeded");
    EXPECT_EQ(c.exec("SELECT count(*) FROM t").cell(), "3");

    ASSERT_EQ(c.exec("BEGIN").code, "");
    EXPECT_EQ(c.exec(rows + "4000) n").tag, "INSERT 0 3000");
    EXPECT_EQ(c.exec("UPDATE t SET v = 1 WHERE id = 1").code, "54000");
    EXPECT_EQ(c.exec("SELECT 1").code, "25P02");
    EXPECT_EQ(c.exec("COMMIT").tag, "ROLLBACK");
    EXPECT_EQ(c.exec("SELECT count(*) FROM t").cell(), "3");
}

TEST_F(GatewayTransactions, RowsOfCascadesCount) {
    const Client c = client();
    ASSERT_EQ(c.exec("CREATE TABLE child (id integer PRIMARY KEY, tid integer REFERENCES t ON "
                     "DELETE CASCADE)")
                  .code,
              "");
    for (const char* range : {"1, 2999", "3000, 3000"}) {
        ASSERT_EQ(c.exec(std::string("INSERT INTO child SELECT n, 1 FROM generate_series(") +
                         range + ") n")
                      .code,
                  "");
    }
    EXPECT_EQ(c.exec("DELETE FROM t WHERE id = 1").code, "54000");
    ASSERT_EQ(c.exec("DELETE FROM child WHERE id = 3000").tag, "DELETE 1");
    EXPECT_EQ(c.exec("DELETE FROM t WHERE id = 1").tag, "DELETE 1");
}

TEST_F(GatewayTransactions, TheSizeLimitIsJudgedAtCommit) {
    const Client c = client();
    ASSERT_EQ(c.exec("CREATE TABLE wide (id integer PRIMARY KEY, b text)").code, "");
    const std::string half_a_mebibyte(std::size_t{512} << 10U, 'x');
    ASSERT_EQ(c.exec("BEGIN").code, "");
    for (int i = 0; i < 21; ++i) {
        ASSERT_EQ(
            c.exec("INSERT INTO wide VALUES ($1, $2)", {std::to_string(i), half_a_mebibyte}).code,
            "");
    }
    const Said ended = c.exec("COMMIT");
    EXPECT_EQ(ended.code, "54000");
    EXPECT_EQ(ended.message, "transaction size limit 10mb exceeded");
    EXPECT_EQ(ended.detail, "Current transaction size 11mb > 10mb");
    EXPECT_EQ(c.status(), 'I');
    EXPECT_EQ(c.exec("SELECT count(*) FROM wide").cell(), "0");
}

TEST_F(GatewayTransactions, AValueMayHaveAMebibyte) {
    const Client c = client();
    ASSERT_EQ(c.exec("CREATE TABLE wide (id integer PRIMARY KEY, a text, b bytea)").code, "");
    constexpr std::size_t mebibyte = std::size_t{1} << 20U;
    Random random(1);
    std::string noise;  // Does not become shorter when it is compressed.
    for (std::size_t i = 0; i < mebibyte; ++i) {
        noise += static_cast<char>(' ' + random.below(90));
    }
    const std::string monotone(2 * mebibyte, 'x');
    EXPECT_EQ(c.exec("INSERT INTO wide VALUES (1, $1, NULL)", {noise}).outcome(), "INSERT 0 1");
    EXPECT_EQ(c.exec("INSERT INTO wide VALUES (2, $1, NULL)", {monotone}).outcome(), "INSERT 0 1");
    EXPECT_EQ(c.exec("INSERT INTO wide VALUES (3, $1, NULL)", {noise + "x"}).outcome(),
              "54000 datatype limit greater than 1048576 bytes not supported for text");
    EXPECT_EQ(c.exec("INSERT INTO wide VALUES (3, NULL, $1)", {noise + "x"}).outcome(),
              "54000 datatype limit greater than 1048576 bytes not supported for bytea");
    EXPECT_EQ(c.exec("SELECT count(*) FROM wide").cell(), "2");
}

TEST_F(GatewayTransactions, AMessageOfMoreThanTenMebibytesEndsTheConnection) {
    const Client c = client();
    const Said said = c.exec("SELECT '" + std::string(std::size_t{11} << 20U, 'x') + "'");
    EXPECT_TRUE(said.code == "08P01" || said.code == "broken") << said.code << said.message;
    EXPECT_EQ(PQstatus(c.raw()), CONNECTION_BAD);
}

TEST(GatewayLimits, ATransactionMayBeFiveMinutesOld) {
    ManualClock clock(system_clock().wall_now());
    GatewayOptions options = test::gateway_options();
    options.clock = &clock;
    const Gateway gateway(options);
    const test::DsqlCluster cluster(gateway);
    const Client c(cluster.params());
    ASSERT_EQ(c.exec("BEGIN").code, "");
    clock.advance(300s);
    ASSERT_EQ(c.exec("SELECT 1").code, "");
    clock.advance(2s);
    const Said late = c.exec("SELECT 1");
    EXPECT_EQ(late.code, "54000");
    EXPECT_EQ(late.message, "transaction age limit of 300s exceeded");
    EXPECT_EQ(late.detail, "Current transaction age 302s exceeds 300s");
    EXPECT_EQ(c.exec("COMMIT").tag, "ROLLBACK");
    ASSERT_EQ(c.exec("BEGIN").code, "");
    clock.advance(302s);
    EXPECT_EQ(c.exec("COMMIT").code, "54000");
    EXPECT_EQ(c.status(), 'I');
}

TEST_F(GatewayTransactions, OneDdlStatementAndNothingBesideIt) {
    const Client c = client();
    ASSERT_EQ(c.exec("BEGIN").code, "");
    ASSERT_EQ(c.exec("CREATE TABLE a (id integer)").code, "");
    const Said second = c.exec("CREATE TABLE b (id integer)");
    EXPECT_EQ(second.code, "0A000");
    EXPECT_EQ(second.message, "multiple ddl statements not supported in a transaction");
    EXPECT_EQ(c.exec("COMMIT").tag, "ROLLBACK");

    ASSERT_EQ(c.exec("BEGIN").code, "");
    ASSERT_EQ(c.exec("INSERT INTO t VALUES (9, 9)").code, "");
    EXPECT_EQ(c.exec("CREATE TABLE a (id integer)").message,
              "ddl and dml are not supported in the same transaction");
    ASSERT_EQ(c.exec("ROLLBACK").code, "");

    // A script is one transaction too.
    EXPECT_EQ(c.exec("CREATE TABLE a (id integer); CREATE TABLE b (id integer)").code, "0A000");
    EXPECT_EQ(c.exec("CREATE TABLE a (id integer); INSERT INTO t VALUES (9, 9)").code, "0A000");
    EXPECT_EQ(c.exec("SELECT count(*) FROM t").cell(), "3");
    EXPECT_EQ(c.exec("SELECT to_regclass('a') IS NULL").cell(), "t");
}

TEST_F(GatewayTransactions, AScriptIsOneTransaction) {
    const Client c = client();
    EXPECT_EQ(c.exec("UPDATE t SET v = 1 WHERE id = 1; INSERT INTO t VALUES (2, 2)").code, "23505");
    EXPECT_EQ(c.exec("SELECT v FROM t WHERE id = 1").cell(), "10");
    EXPECT_EQ(c.exec("UPDATE t SET v = 1 WHERE id = 1; UPDATE t SET v = 2 WHERE id = 2").tag,
              "UPDATE 1");
    EXPECT_EQ(c.exec("SELECT sum(v) FROM t").cell(), "33");
    EXPECT_EQ(c.exec("BEGIN; UPDATE t SET v = 5 WHERE id = 1; COMMIT").tag, "COMMIT");
    EXPECT_EQ(c.status(), 'I');
}

// OC001: at the next statement that touches the table, once; at COMMIT if it came in between.
TEST_F(GatewayTransactions, AChangedSchemaIsToldOnce) {
    const Client reader = client();
    const Client maker = client();
    ASSERT_EQ(reader.exec("SELECT count(*) FROM t").cell(), "3");
    ASSERT_EQ(maker.exec("ALTER TABLE t ADD COLUMN x integer").code, "");
    const Said told = reader.exec("SELECT count(*) FROM t");
    EXPECT_EQ(told.code, "40001");
    EXPECT_EQ(told.message, "schema has been updated by another transaction (OC001)");
    EXPECT_EQ(reader.exec("SELECT count(*) FROM t").cell(), "3");
    EXPECT_EQ(maker.exec("SELECT count(*) FROM t").cell(), "3");

    ASSERT_EQ(maker.exec("CREATE TABLE unrelated (id integer)").code, "");
    EXPECT_EQ(reader.exec("SELECT count(*) FROM t").cell(), "3");

    ASSERT_EQ(reader.exec("BEGIN").code, "");
    ASSERT_EQ(reader.exec("UPDATE t SET v = 0 WHERE id = 1").code, "");
    ASSERT_EQ(maker.exec("ALTER TABLE t ADD COLUMN y integer").code, "");
    EXPECT_THAT(reader.exec("COMMIT").message, HasSubstr("OC001"));
    EXPECT_EQ(reader.status(), 'I');
    EXPECT_EQ(reader.exec("SELECT v FROM t WHERE id = 1").cell(), "10");

    ASSERT_EQ(maker.exec("ALTER TABLE t ADD COLUMN z integer").code, "");
    ASSERT_EQ(reader.exec("BEGIN").code, "");
    EXPECT_THAT(reader.exec("SELECT 1 FROM t").message, HasSubstr("OC001"));
    EXPECT_EQ(reader.exec("SELECT 1").code, "25P02");
    EXPECT_EQ(reader.exec("COMMIT").tag, "ROLLBACK");
}

TEST_F(GatewayTransactions, AnIndexIsAJob) {
    const Client c = client();
    const Said ordered = c.exec("CREATE INDEX ASYNC t_v ON t (v)");
    ASSERT_EQ(ordered.code, "") << ordered.message;
    EXPECT_EQ(ordered.tag, "CREATE INDEX");
    const std::string job = ordered.cell();
    EXPECT_THAT(job, testing::MatchesRegex("[a-z2-7]{26}"));
    EXPECT_EQ(c.exec("CALL sys.wait_for_job('" + job + "')").code, "");
    EXPECT_EQ(c.exec("SELECT status FROM sys.jobs WHERE job_id = '" + job + "'").cell(),
              "completed");
    EXPECT_EQ(c.exec("SELECT job_type || object_name FROM sys.jobs").cell(), "INDEX_BUILDt_v");
    EXPECT_EQ(c.exec("SELECT indisvalid FROM pg_index WHERE indexrelid = 't_v'::regclass").cell(),
              "t");
    // By the extended protocol the row has a description too, and inside of a transaction.
    ASSERT_EQ(c.exec("BEGIN").code, "");
    EXPECT_EQ(c.exec("CREATE INDEX ASYNC t_w ON t (v, id)", {}).cell().size(), 26U);
    EXPECT_EQ(c.exec("COMMIT").tag, "COMMIT");
    EXPECT_EQ(c.exec("SELECT count(*) FROM sys.jobs").cell(), "2");

    EXPECT_EQ(c.exec("CALL sys.wait_for_job('nonsense')").code, "22P02");
    EXPECT_EQ(c.exec("SELECT sys.wait_for_job('" + job + "')").code, "42809");
    EXPECT_EQ(c.exec("CREATE INDEX t_x ON t (v)").message,
              "unsupported mode. please use CREATE INDEX ASYNC.");
}

TEST_F(GatewayTransactions, AUniqueIndexOverDuplicatesIsLeftInvalid) {
    const Client c = client();
    ASSERT_EQ(c.exec("INSERT INTO t VALUES (4, 30)").code, "");
    const Said ordered = c.exec("CREATE UNIQUE INDEX ASYNC t_v ON t (v)");
    ASSERT_EQ(ordered.code, "") << ordered.message;
    ASSERT_EQ(c.exec("CALL sys.wait_for_job('" + ordered.cell() + "')").code, "");
    const Said job = c.exec("SELECT status, details FROM sys.jobs");
    EXPECT_EQ(job.rows.at(0).at(0), "failed");
    EXPECT_THAT(job.rows.at(0).at(1), HasSubstr("Found duplicate key"));
    EXPECT_EQ(c.exec("SELECT indisvalid FROM pg_index WHERE indexrelid = 't_v'::regclass").cell(),
              "f");
    ASSERT_EQ(c.exec("DROP INDEX t_v").code, "");
    ASSERT_EQ(c.exec("DELETE FROM t WHERE id = 4").code, "");
    ASSERT_EQ(c.exec("CREATE UNIQUE INDEX ASYNC t_v ON t (v)").code, "");
    EXPECT_EQ(c.exec("SELECT indisvalid FROM pg_index WHERE indexrelid = 't_v'::regclass").cell(),
              "t");
}

TEST(GatewayJobs, AreAtWorkForAWhile) {
    GatewayOptions options = test::gateway_options();
    options.job_duration = 3s;  // More than the next question takes on a busy machine.
    const Gateway gateway(options);
    const test::DsqlCluster cluster(gateway);
    const Client c(cluster.params());
    ASSERT_EQ(c.exec("CREATE TABLE t (id integer PRIMARY KEY, v integer)").code, "");
    const std::string job = c.exec("CREATE INDEX ASYNC ON t (v)").cell();
    EXPECT_EQ(c.exec("SELECT status FROM sys.jobs").cell(), "processing");
    ASSERT_EQ(c.exec("CALL sys.wait_for_job('" + job + "')").code, "");
    EXPECT_EQ(c.exec("SELECT status FROM sys.jobs").cell(), "completed");
}

TEST_F(GatewayTransactions, FaultsStrikeByRule) {
    Gateway& gateway = test::shared_gateway();
    const Client c = client();
    const auto arm = [&](FaultPoint point, GatewayFault fault, int nth = 1) {
        gateway.arm({.point = point, .fault = fault, .nth = nth, .cluster = cluster.id()});
    };
    const auto value = [&] { return client().exec("SELECT v FROM t WHERE id = 1").cell(); };

    arm(FaultPoint::commit, GatewayFault::data_conflict, 2);
    EXPECT_EQ(c.exec("UPDATE t SET v = 1 WHERE id = 1").code, "");
    EXPECT_THAT(c.exec("UPDATE t SET v = 2 WHERE id = 1").message, HasSubstr("OC000"));
    EXPECT_EQ(value(), "1");
    EXPECT_EQ(c.exec("UPDATE t SET v = 3 WHERE id = 1").code, "");

    arm(FaultPoint::statement, GatewayFault::schema_conflict);
    EXPECT_THAT(c.exec("UPDATE t SET v = 4 WHERE id = 1").message, HasSubstr("OC001"));
    EXPECT_EQ(value(), "3");

    arm(FaultPoint::commit, GatewayFault::unavailable);
    EXPECT_EQ(c.exec("UPDATE t SET v = 5 WHERE id = 1").message, "server unavailable");
    EXPECT_EQ(value(), "3");

    arm(FaultPoint::commit, GatewayFault::unavailable_after);
    EXPECT_EQ(c.exec("UPDATE t SET v = 6 WHERE id = 1").code, "XX000");
    EXPECT_EQ(value(), "6");

    arm(FaultPoint::commit, GatewayFault::hang_up_after);
    EXPECT_EQ(c.exec("UPDATE t SET v = 7 WHERE id = 1").code, "broken");
    EXPECT_EQ(value(), "7");

    arm(FaultPoint::commit, GatewayFault::hang_up);
    EXPECT_EQ(client().exec("UPDATE t SET v = 8 WHERE id = 1").code, "broken");
    EXPECT_EQ(value(), "7");

    arm(FaultPoint::connect, GatewayFault::too_many);
    EXPECT_THAT(Client(cluster.params()).response(), HasSubstr("too many open connections"));
    arm(FaultPoint::connect, GatewayFault::rate_exceeded);
    EXPECT_THAT(Client(cluster.params()).response(), HasSubstr("rate exceeded"));

    const Client ended = client();
    gateway.hang_up(cluster.id());
    EXPECT_EQ(ended.exec("SELECT 1").code, "broken");
}

TEST(GatewayEarlyAbort, TellsOfAConflictAtTheStatement) {
    GatewayOptions options = test::gateway_options();
    options.early_abort = true;
    const Gateway gateway(options);
    const test::DsqlCluster cluster(gateway);
    const Client a(cluster.params());
    const Client b(cluster.params());
    ASSERT_EQ(a.exec("CREATE TABLE t (id integer PRIMARY KEY, v integer)").code, "");
    ASSERT_EQ(a.exec("INSERT INTO t VALUES (1, 10)").code, "");
    ASSERT_EQ(b.exec("SELECT 1 FROM t").code, "40001");  // OC001, as the table is new to it.
    ASSERT_EQ(a.exec("BEGIN").code, "");
    ASSERT_EQ(b.exec("UPDATE t SET v = 77 WHERE id = 1").code, "");
    EXPECT_THAT(a.exec("UPDATE t SET v = 11 WHERE id = 1").message, HasSubstr("OC000"));
    EXPECT_EQ(a.exec("COMMIT").tag, "ROLLBACK");
}

// What would differ when run again cannot be moved aside; the other one loses instead.
TEST_F(GatewayTransactions, AVolatileWriterIsNotReplayed) {
    const Client a = client();
    const Client b = client();
    ASSERT_EQ(a.exec("BEGIN").code, "");
    ASSERT_EQ(a.exec("UPDATE t SET v = (random() * 1000)::integer + 1000 WHERE id = 1").code, "");
    const std::string own = a.exec("SELECT v FROM t WHERE id = 1").cell();
    ASSERT_EQ(b.exec("BEGIN").code, "");
    ASSERT_EQ(b.exec("UPDATE t SET v = 12 WHERE id = 1").tag, "UPDATE 1");
    EXPECT_EQ(b.exec("COMMIT").code, "40001");
    EXPECT_EQ(a.exec("COMMIT").tag, "COMMIT");
    EXPECT_EQ(b.exec("SELECT v FROM t WHERE id = 1").cell(), own);
}

}  // namespace

}  // namespace holdfast::dsql::tests
