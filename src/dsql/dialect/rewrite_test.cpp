// What is made from a statement, on a real PostgreSQL: it is understood without being told the type
// of any parameter, it counts what the statement changes, and a touch changes nothing.
#include <memory>
#include <string>

#include "dialect/test/statement_rules_fixture.hpp"
#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <holdfast/testing/postgres.hpp>

namespace holdfast::dsql {
namespace {

class Rewrites : public testing::Test {
protected:
    struct Close {
        void operator()(PGconn* connection) const { PQfinish(connection); }
        void operator()(PGresult* result) const { PQclear(result); }
    };
    using Result = std::unique_ptr<PGresult, Close>;

    void SetUp() override {
        connection_.reset(PQconnectdb(test::shared_postgres().conninfo().c_str()));
        ASSERT_EQ(PQstatus(connection_.get()), CONNECTION_OK) << PQerrorMessage(connection_.get());
        // In a transaction that never ends well: other tests share the server.
        run("BEGIN");
        run("CREATE TEMP TABLE accounts (id bigint PRIMARY KEY, owner text, cents bigint, photo "
            "bytea, "
            "doc jsonb)");
        run("CREATE TEMP TABLE nodes (tree uuid, node bigint, data bytea, PRIMARY KEY (tree, "
            "node))");
        run("INSERT INTO accounts SELECT n, 'ann', n * 10 FROM generate_series(1, 5) n");
        run("INSERT INTO nodes SELECT gen_random_uuid(), 1 + n % 2 FROM generate_series(1, 6) n");
    }

    Result run(const std::string& sql) {
        Result result(PQexec(connection_.get(), sql.c_str()));
        const ExecStatusType status = PQresultStatus(result.get());
        EXPECT_TRUE(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
            << sql << "\n"
            << PQerrorMessage(connection_.get());
        return result;
    }

    void understands(const std::string& sql) {
        const Result prepared(PQprepare(connection_.get(), "", sql.c_str(), 0, nullptr));
        EXPECT_EQ(PQresultStatus(prepared.get()), PGRES_COMMAND_OK)
            << sql << "\n"
            << PQerrorMessage(connection_.get());
    }

    std::unique_ptr<PGconn, Close> connection_;
};

TEST_F(Rewrites, AreUnderstoodWithTheirParameters) {
    for (const std::string_view sql :
         {"UPDATE accounts SET cents = $1, owner = $2, photo = $3, doc = $4 WHERE id = $5",
          "UPDATE accounts SET cents = cents + $1, owner = upper($2)",
          "UPDATE accounts a SET cents = $1 FROM nodes n WHERE a.id = n.node AND n.tree = $2",
          "DELETE FROM accounts a USING nodes n WHERE a.id = n.node AND a.cents > $1",
          "SELECT * FROM accounts WHERE id = $1 FOR UPDATE",
          "SELECT * FROM nodes n WHERE n.tree = $1 AND node = $2 FOR KEY SHARE OF n"}) {
        const CheckedStatement checked = check_one(sql);
        ASSERT_NE(checked.rewrite, "") << sql;
        understands(checked.rewrite);
        for (const RowLock& lock : checked.row_locks) {
            ASSERT_NE(lock.touch, "") << sql;
            understands(lock.touch);
        }
    }
    const CheckedStatement limited = check_one(
        "SELECT * FROM nodes n WHERE tree = $1 ORDER BY node LIMIT $2 OFFSET $3 FOR UPDATE");
    understands(limited.row_locks.at(0).touch);
}

TEST_F(Rewrites, CountWhatTheStatementChanges) {
    for (const std::string sql :
         {"UPDATE accounts SET cents = 0 WHERE id > 2",
          "UPDATE accounts a SET cents = 1 FROM nodes n WHERE a.id = n.node",  // Each meets three.
          "DELETE FROM accounts USING nodes WHERE id = node",
          "DELETE FROM accounts"}) {
        const Result counted = run(check_one(sql).rewrite);
        EXPECT_STREQ(PQgetvalue(counted.get(), 0, 0), PQcmdTuples(run(sql).get())) << sql;
    }
}

TEST_F(Rewrites, ATouchMeetsTheSameRowsAndChangesNothing) {
    const std::string look = "SELECT string_agg(a::text, ',' ORDER BY id) FROM accounts a";
    const std::string before = PQgetvalue(run(look).get(), 0, 0);
    for (const std::string sql : {"SELECT * FROM accounts WHERE id = 3 FOR UPDATE",
                                  "SELECT * FROM accounts ORDER BY id DESC LIMIT 2 FOR UPDATE",
                                  "SELECT * FROM accounts a FOR UPDATE OF a LIMIT 4"}) {
        const CheckedStatement checked = check_one(sql);
        const int rows = PQntuples(run(sql).get());
        EXPECT_EQ(std::to_string(rows), PQcmdTuples(run(checked.row_locks.at(0).touch).get()))
            << sql;
        EXPECT_EQ(PQntuples(run(checked.rewrite).get()), rows) << sql;
    }
    EXPECT_EQ(PQgetvalue(run(look).get(), 0, 0), before);
}

}  // namespace
}  // namespace holdfast::dsql
