// What a client sends in one flush goes down in one exchange, and it cannot tell.
#include "gateway/test/gateway_fixture.hpp"

#include <holdfast/dsql/gateway.hpp>

namespace holdfast::dsql::tests {

namespace {

using Outcomes = std::vector<std::string>;

GatewayOptions with_few_rows() {
    GatewayOptions options = test::gateway_options();
    options.limits.rows = 4;
    return options;
}

class GatewayBatches : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_EQ(c.exec("CREATE TABLE t (id integer PRIMARY KEY, v integer)").code, "");
        ASSERT_EQ(c.exec("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)").code, "");
        ASSERT_EQ(c.exec("CREATE TABLE notes (id integer PRIMARY KEY)").code, "");
        ASSERT_EQ(other.exec("SELECT 1 FROM t").code, "40001");  // OC001: the table is new to it.
    }

    // How many exchanges with the PostgreSQL below that took.
    std::int64_t exchanges(const std::vector<const char*>& statements) const {
        const std::int64_t before = gateway.stats().exchanges;
        for (const std::string& outcome : c.pipeline(statements)) {
            EXPECT_THAT(outcome, testing::MatchesRegex("[A-Z][A-Z 0-9]+")) << statements.back();
        }
        return gateway.stats().exchanges - before;
    }

    const Gateway gateway{with_few_rows()};
    const test::DsqlCluster cluster{gateway};
    const Client c{cluster.params()};
    const Client other{cluster.params()};
};

TEST_F(GatewayBatches, OneFlushIsOneExchange) {
    const char* lock = "SELECT v FROM t WHERE id = 1 FOR UPDATE";
    const char* update = "UPDATE t SET v = v + 1 WHERE id = 2";
    EXPECT_EQ(exchanges({"BEGIN"}), 1) << "its snapshot is taken at once";
    EXPECT_EQ(exchanges({"COMMIT"}), 1);
    EXPECT_EQ(exchanges({"BEGIN", update, "SELECT v FROM t", "COMMIT"}), 1);
    EXPECT_EQ(exchanges({update, update}), 1) << "a transaction up to the Sync";
    EXPECT_EQ(exchanges({"BEGIN", "SELECT v FROM t", "COMMIT"}), 1);
    // What makes a lock last is prepared once.
    EXPECT_EQ(exchanges({"BEGIN", lock, "COMMIT"}), 3);
    EXPECT_EQ(exchanges({"BEGIN", lock, update, "COMMIT"}), 1);
    // As our own driver sends them: what decides first, then what is written.
    EXPECT_EQ(exchanges({"BEGIN", lock}), 1);
    EXPECT_EQ(exchanges({update, "INSERT INTO t VALUES (4, 40)", "COMMIT"}), 1);
    EXPECT_EQ(other.exec("SELECT sum(v) FROM t").cell(), "105");
    // A statement at a time needs the touch and the COMMIT only once as well.
    EXPECT_EQ(exchanges({"BEGIN"}), 1);
    EXPECT_EQ(exchanges({lock}), 1);
    EXPECT_EQ(exchanges({"COMMIT"}), 1);
    c.exec("DEALLOCATE ALL");
    EXPECT_EQ(exchanges({"BEGIN", lock, "COMMIT"}), 3) << "it is gone, and is made again";
}

TEST_F(GatewayBatches, AnErrorInTheMiddleSkipsTheRest) {
    EXPECT_EQ(c.pipeline({"BEGIN",
                          "INSERT INTO t VALUES (4, 40)",
                          "INSERT INTO t VALUES (1, 10)",
                          "UPDATE t SET v = 0 WHERE id = 1",
                          "COMMIT"}),
              (Outcomes{"BEGIN", "INSERT 0 1", "23505", "skipped", "skipped"}));
    EXPECT_EQ(c.status(), 'E');
    EXPECT_EQ(c.exec("COMMIT").tag, "ROLLBACK");
    EXPECT_EQ(c.pipeline({"BEGIN", "UPDATE t SET v = 0 WHERE id = 1", "TRUNCATE t", "COMMIT"}),
              (Outcomes{"BEGIN", "UPDATE 1", "0A000", "skipped"}));
    EXPECT_EQ(c.exec("COMMIT").tag, "ROLLBACK");
    EXPECT_EQ(c.pipeline({"UPDATE t SET v = 0 WHERE id = 1", "SELECT 1 / 0", "SELECT 1"}),
              (Outcomes{"UPDATE 1", "22012", "skipped"}));
    EXPECT_EQ(c.status(), 'I');
    EXPECT_EQ(c.pipeline({"BEGIN", "UPDATE t SET v = 0 WHERE id = 1", "ROLLBACK", "SELECT 1"}),
              (Outcomes{"BEGIN", "UPDATE 1", "ROLLBACK", "SELECT 1"}));
    EXPECT_EQ(other.exec("SELECT sum(v) FROM t").cell(), "60");
}

// What makes a lock last is prepared before the lock itself has run.
TEST_F(GatewayBatches, AWrongLockingStatementIsToldAsWhatItIs) {
    const char* wrong = "SELECT nothing FROM t WHERE id = 1 FOR UPDATE";
    EXPECT_EQ(c.pipeline({"BEGIN", "UPDATE t SET v = 0 WHERE id = 1", wrong, "COMMIT"}),
              (Outcomes{"BEGIN", "UPDATE 1", "42703", "skipped"}));
    EXPECT_EQ(c.status(), 'E');
    EXPECT_EQ(c.exec("COMMIT").tag, "ROLLBACK");
    EXPECT_EQ(c.exec(wrong, {}).code, "42703");
    EXPECT_EQ(c.status(), 'I');
    EXPECT_EQ(c.exec("SELECT v FROM t WHERE id = $1 FOR UPDATE", {"1"}).cell(), "10");
}

// A server that is answering, or waits for a lock, does not read meanwhile.
TEST_F(GatewayBatches, ALongBatchIsSentWhileTheServerIsBusy) {
    ASSERT_EQ(other.exec("CREATE TABLE long (id integer PRIMARY KEY, v text)").code, "");
    const std::string value(1'000'000, 'x');
    const char* argument = value.c_str();
    const auto send_long = [&](int id) {
        const std::string sql = "INSERT INTO long VALUES (" + std::to_string(id) + ", $1)";
        PQsendQueryParams(c.raw(), sql.c_str(), 1, nullptr, &argument, nullptr, nullptr, 0);
    };
    const auto send = [&](const char* sql) {
        PQsendQueryParams(c.raw(), sql, 0, nullptr, nullptr, nullptr, nullptr, 0);
    };
    ASSERT_EQ(c.exec("SELECT 1 FROM long").code, "40001");  // OC001: the table is new to it.

    PQenterPipelineMode(c.raw());
    send("BEGIN");
    send("SELECT repeat('x', 20000000)");
    send_long(1);
    send("COMMIT");
    PQpipelineSync(c.raw());
    EXPECT_EQ(c.rest_of_pipeline(), (Outcomes{"BEGIN", "SELECT 1", "INSERT 0 1", "COMMIT"}));

    ASSERT_EQ(other.exec("BEGIN").code, "");
    ASSERT_EQ(other.exec("UPDATE t SET v = 11 WHERE id = 1").code, "");
    PQenterPipelineMode(c.raw());
    send("BEGIN");
    send("UPDATE t SET v = 12 WHERE id = 1");
    send_long(2);
    send("COMMIT");
    PQpipelineSync(c.raw());
    EXPECT_EQ(c.rest_of_pipeline(), (Outcomes{"BEGIN", "UPDATE 1", "INSERT 0 1", "COMMIT"}));
    EXPECT_EQ(other.exec("COMMIT").code, "40001");
}

// Where a table has another one's name, what is known of the other one says nothing about it.
TEST_F(GatewayBatches, ALimitHoldsWhereverTheTableIs) {
    for (const char* sql : {"CREATE SCHEMA s",
                            "CREATE TABLE s.t (id integer, v integer)",
                            "INSERT INTO s.t SELECT 1, n FROM generate_series(1, 3) n",
                            "INSERT INTO s.t SELECT 1, n FROM generate_series(1, 3) n",
                            "SET search_path TO s"}) {
        ASSERT_EQ(c.exec(sql).code, "") << sql;
    }
    const char* all = "UPDATE t SET v = 0 WHERE id = 1";
    EXPECT_EQ(c.pipeline({"BEGIN", all}), (Outcomes{"BEGIN", "54000"}));
    EXPECT_EQ(c.exec("COMMIT").tag, "ROLLBACK");
    EXPECT_EQ(c.pipeline({"BEGIN", all, "COMMIT"}), (Outcomes{"BEGIN", "54000", "skipped"}));
    EXPECT_EQ(c.exec("COMMIT").tag, "ROLLBACK");
    EXPECT_EQ(c.exec(all).code, "54000");
}

// Else it would be lost when its transaction is moved aside, and its rows would not be counted.
TEST_F(GatewayBatches, AQueryThatCallsWhatWritesIsAWrite) {
    for (const char* sql :
         {"CREATE FUNCTION raise(k integer) RETURNS integer LANGUAGE sql AS"
          " 'UPDATE t SET v = v + 1 WHERE id = k RETURNING v'",
          "CREATE FUNCTION raise_twice(k integer) RETURNS integer LANGUAGE sql AS"
          " 'SELECT raise(k); SELECT raise(k)'",
          "CREATE FUNCTION wipe() RETURNS void LANGUAGE sql AS 'UPDATE t SET v = 0'"}) {
        ASSERT_EQ(c.exec(sql).code, "") << sql;
    }
    ASSERT_EQ(c.exec("BEGIN").code, "");
    ASSERT_EQ(c.exec("SELECT raise_twice(1)").cell(), "12");
    ASSERT_EQ(other.exec("UPDATE t SET v = 13 WHERE id = 1").code, "");
    EXPECT_EQ(c.exec("COMMIT").code, "40001");
    ASSERT_EQ(c.exec("BEGIN").code, "");
    ASSERT_EQ(c.exec("SELECT raise(1)").cell(), "14");
    ASSERT_EQ(other.exec("UPDATE t SET v = 21 WHERE id = 2").code, "");
    EXPECT_EQ(c.exec("COMMIT").tag, "COMMIT");
    EXPECT_EQ(c.pipeline({"BEGIN", "SELECT wipe()", "SELECT wipe()", "COMMIT"}),
              (Outcomes{"BEGIN", "SELECT 1", "54000", "skipped"}));
    EXPECT_EQ(c.exec("COMMIT").tag, "ROLLBACK");
    EXPECT_EQ(other.exec("SELECT string_agg(v::text, ',' ORDER BY id) FROM t").cell(), "14,21,30");
}

// The client was told that the statement behind the error does not exist, so its name is free.
TEST_F(GatewayBatches, AStatementIsKnownOnlyIfItWasPrepared) {
    const auto prepare = [&](const char* name, const char* sql) {
        PQsendPrepare(c.raw(), name, sql, 0, nullptr);
    };
    PQenterPipelineMode(c.raw());
    prepare("first", "SELECT 'first'");
    prepare("wrong", "SELECT nothing FROM nowhere");
    prepare("second", "SELECT 'skipped'");
    PQpipelineSync(c.raw());
    for (int ends = 0; ends < 4; ++ends) {
        while (PGresult* result = PQgetResult(c.raw())) {
            const bool synced = PQresultStatus(result) == PGRES_PIPELINE_SYNC;
            PQclear(result);
            if (synced) {
                break;
            }
        }
    }
    ASSERT_EQ(PQexitPipelineMode(c.raw()), 1);
    const auto run = [&](const char* name) {
        return Client::said(PQexecPrepared(c.raw(), name, 0, nullptr, nullptr, nullptr, 0));
    };
    EXPECT_EQ(run("first").cell(), "first");
    EXPECT_EQ(run("wrong").code, "26000");
    EXPECT_EQ(run("second").code, "26000");
    ASSERT_EQ(Client::said(PQprepare(c.raw(), "second", "SELECT 'second'", 0, nullptr)).code, "");
    EXPECT_EQ(run("second").cell(), "second");
}

TEST_F(GatewayBatches, ALimitInTheMiddleSkipsTheRest) {
    const char* two = "INSERT INTO t VALUES (8, 0), (9, 0)";
    const char* one = "UPDATE t SET v = 0 WHERE id = 1";
    const char* all = "UPDATE t SET v = 0";
    EXPECT_EQ(c.pipeline({"BEGIN", two, one, "DELETE FROM t WHERE id = 8", one, "COMMIT"}),
              (Outcomes{"BEGIN", "INSERT 0 2", "UPDATE 1", "DELETE 1", "54000", "skipped"}));
    EXPECT_EQ(c.status(), 'E');
    EXPECT_EQ(c.exec("COMMIT").tag, "ROLLBACK");
    EXPECT_EQ(c.pipeline({"BEGIN", two, all, "COMMIT"}),
              (Outcomes{"BEGIN", "INSERT 0 2", "54000", "skipped"}));
    EXPECT_EQ(c.exec("COMMIT").tag, "ROLLBACK");
    EXPECT_EQ(c.pipeline({two, all, one}), (Outcomes{"INSERT 0 2", "54000", "skipped"}));
    EXPECT_EQ(other.exec("SELECT sum(v) FROM t").cell(), "60");
    // What might have been too much and was not.
    const char* nothing = "UPDATE t SET v = 0 WHERE id = 77";
    EXPECT_EQ(
        c.pipeline({"BEGIN", all, nothing, nothing, nothing, one, "COMMIT"}),
        (Outcomes{"BEGIN", "UPDATE 3", "UPDATE 0", "UPDATE 0", "UPDATE 0", "UPDATE 1", "COMMIT"}));
}

// A loser goes on as if nothing had happened, and hears of it at COMMIT.
TEST_F(GatewayBatches, AConflictInTheMiddleIsToldAtTheEnd) {
    ASSERT_EQ(c.exec("BEGIN").code, "");
    ASSERT_EQ(other.exec("UPDATE t SET v = 11 WHERE id = 1").code, "");
    EXPECT_EQ(c.pipeline({"INSERT INTO notes VALUES (1)",
                          "UPDATE t SET v = 12 WHERE id = 1",
                          "SELECT 1",
                          "COMMIT",
                          "SELECT 1"}),
              (Outcomes{"INSERT 0 1", "UPDATE 1", "SELECT 1", "40001", "skipped"}));
    EXPECT_EQ(c.status(), 'I');

    ASSERT_EQ(c.exec("BEGIN").code, "");
    ASSERT_EQ(other.exec("UPDATE t SET v = 13 WHERE id = 1").code, "");
    EXPECT_EQ(c.pipeline({"SELECT v FROM t WHERE id = 1 FOR UPDATE", "COMMIT"}),
              (Outcomes{"SELECT 1", "40001"}));
    EXPECT_EQ(other.exec("SELECT sum(v) FROM t").cell(), "63");
    EXPECT_EQ(other.exec("SELECT count(*) FROM t, notes").cell(), "0");
}

// Its writes were undone to let a rival pass, which has committed since.
TEST_F(GatewayBatches, WhoWasMovedAsideAndHasLostIsToldAtTheEnd) {
    ASSERT_EQ(c.pipeline({"BEGIN", "UPDATE t SET v = 11 WHERE id = 1"}),
              (Outcomes{"BEGIN", "UPDATE 1"}));
    ASSERT_EQ(other.exec("UPDATE t SET v = 12 WHERE id = 1").code, "");
    EXPECT_EQ(c.pipeline({"INSERT INTO notes VALUES (1)", "COMMIT"}),
              (Outcomes{"INSERT 0 1", "40001"}));
    EXPECT_EQ(c.status(), 'I');
    // And who was moved aside for nothing is none the worse.
    ASSERT_EQ(c.pipeline({"BEGIN", "UPDATE t SET v = 11 WHERE id = 1"}),
              (Outcomes{"BEGIN", "UPDATE 1"}));
    ASSERT_EQ(other.exec("BEGIN").code, "");
    ASSERT_EQ(other.exec("UPDATE t SET v = 13 WHERE id = 1").tag, "UPDATE 1");
    ASSERT_EQ(other.exec("ROLLBACK").code, "");
    EXPECT_EQ(c.pipeline({"UPDATE t SET v = v + 1 WHERE id = 1", "COMMIT"}),
              (Outcomes{"UPDATE 1", "COMMIT"}));
    EXPECT_EQ(other.exec("SELECT v FROM t WHERE id = 1").cell(), "12");
}

TEST_F(GatewayBatches, AChangedSchemaIsToldAtTheStatement) {
    ASSERT_EQ(other.exec("ALTER TABLE t ADD COLUMN x integer").code, "");
    const char* one = "UPDATE t SET v = 0 WHERE id = 1";
    EXPECT_EQ(c.pipeline({"BEGIN", "SELECT 1", one, "COMMIT"}),
              (Outcomes{"BEGIN", "SELECT 1", "40001", "skipped"}));
    EXPECT_EQ(c.exec("COMMIT").tag, "ROLLBACK");
    EXPECT_EQ(c.pipeline({"BEGIN", "SELECT 1", one, "COMMIT"}),
              (Outcomes{"BEGIN", "SELECT 1", "UPDATE 1", "COMMIT"}));
    EXPECT_EQ(c.pipeline({"BEGIN", one, "CREATE TABLE u (id integer)", "COMMIT"}),
              (Outcomes{"BEGIN", "UPDATE 1", "0A000", "skipped"}));
    EXPECT_EQ(c.exec("COMMIT").tag, "ROLLBACK");
    EXPECT_EQ(c.pipeline({"BEGIN", "CREATE TABLE u (id integer)", "COMMIT", "SELECT * FROM u"}),
              (Outcomes{"BEGIN", "CREATE TABLE", "COMMIT", "SELECT 0"}));
}

// No more of it is kept than is needed to tell that it is too much.
TEST(GatewayCopy, OfMoreThanATransactionMayHaveFailsByItself) {
    GatewayOptions options = test::gateway_options();
    options.limits.bytes = std::int64_t{1} << 20U;
    const Gateway gateway{options};
    const test::DsqlCluster cluster{gateway};
    const Client c{cluster.params()};
    ASSERT_EQ(c.exec("CREATE TABLE t (v text)").code, "");
    const auto copy = [&](int rows) {
        PQclear(PQexec(c.raw(), "COPY t FROM STDIN"));
        std::string row(100'000, 'x');
        row.back() = '\n';
        for (int i = 0; i < rows; ++i) {
            PQputCopyData(c.raw(), row.data(), static_cast<int>(row.size()));
        }
        PQputCopyEnd(c.raw(), nullptr);
        const Said said = Client::said(PQgetResult(c.raw()));
        while (PGresult* more = PQgetResult(c.raw())) {
            PQclear(more);
        }
        return said.outcome();
    };
    EXPECT_EQ(copy(50), "54000 transaction size limit 1mb exceeded");
    EXPECT_EQ(copy(15), "54000 transaction size limit 1mb exceeded");
    EXPECT_EQ(copy(5), "COPY 5");
    EXPECT_EQ(c.exec("SELECT count(*) FROM t").cell(), "5");
}

}  // namespace

}  // namespace holdfast::dsql::tests
