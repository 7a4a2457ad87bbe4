// The scenarios of docs/dsql-gateway.md, by their numbers there: what two or three clients do in
// which order, and what each of them is told.
#include <map>
#include <ostream>

#include "gateway/test/gateway_fixture.hpp"

namespace holdfast::dsql::tests {

namespace {

// Client, statement, and what comes of it: a tag, a value as "= 11", or an SQLSTATE.
struct Line {
    char client;
    std::string sql;
    std::string outcome;
};

struct Scenario {
    std::string name;
    std::vector<Line> lines;
    std::string left;  // What is in t afterwards: "1:11 2:20 3:30"
};

std::ostream& operator<<(std::ostream& out, const Scenario& scenario) {
    return out << scenario.name;
}

const std::string conflict = "40001";

std::vector<Scenario> scenarios() {
    return {
        {"S1_UpdateUpdate_SecondUpdaterCommitsFirst",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "UPDATE t SET v = 11 WHERE id = 1", "UPDATE 1"},
          {'b', "UPDATE t SET v = 12 WHERE id = 1", "UPDATE 1"},
          {'b', "COMMIT", "COMMIT"},
          {'a', "COMMIT", conflict}},
         "1:12 2:20 3:30"},
        {"S2_UpdateUpdate_FirstUpdaterCommitsFirst",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "UPDATE t SET v = 11 WHERE id = 1", "UPDATE 1"},
          {'b', "UPDATE t SET v = 12 WHERE id = 1", "UPDATE 1"},
          {'a', "COMMIT", "COMMIT"},
          {'b', "COMMIT", conflict}},
         "1:11 2:20 3:30"},
        {"S3_TheOtherRollsBack_OwnWritesAreReadable",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "UPDATE t SET v = 11 WHERE id = 1", "UPDATE 1"},
          {'b', "UPDATE t SET v = 12 WHERE id = 1", "UPDATE 1"},
          {'a', "SELECT v FROM t WHERE id = 1", "= 11"},
          {'b', "SELECT v FROM t WHERE id = 1", "= 12"},
          {'b', "ROLLBACK", "ROLLBACK"},
          {'a', "COMMIT", "COMMIT"}},
         "1:11 2:20 3:30"},
        {"S4_InsertInsert_OneKey",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "INSERT INTO t VALUES (9, 1)", "INSERT 0 1"},
          {'b', "INSERT INTO t VALUES (9, 2)", "INSERT 0 1"},
          {'b', "COMMIT", "COMMIT"},
          {'a', "COMMIT", conflict}},
         "1:10 2:20 3:30 9:2"},
        {"S4b_InsertInsert_OneKey_FirstCommitsFirst",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "INSERT INTO t VALUES (9, 1)", "INSERT 0 1"},
          {'b', "INSERT INTO t VALUES (9, 2)", "INSERT 0 1"},
          {'a', "COMMIT", "COMMIT"},
          {'b', "COMMIT", conflict}},
         "1:10 2:20 3:30 9:1"},
        {"S5_InsertAfterTheOthersCommit_KeyNotInTheSnapshot",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "INSERT INTO t VALUES (9, 1)", "INSERT 0 1"},
          {'a', "COMMIT", "COMMIT"},
          {'b', "INSERT INTO t VALUES (9, 2)", "INSERT 0 1"},
          {'b', "COMMIT", conflict}},
         "1:10 2:20 3:30 9:1"},
        {"S5b_InsertOfAKeyInTheSnapshot_IsADuplicate",
         {{'a', "BEGIN", "BEGIN"},
          {'a', "INSERT INTO t VALUES (1, 1)", "23505"},
          {'a', "SELECT 1", "25P02"},
          {'a', "COMMIT", "ROLLBACK"}},
         "1:10 2:20 3:30"},
        {"S5c_InsertOfAKeyOfOnesOwn_IsADuplicate",
         {{'a', "BEGIN", "BEGIN"},
          {'a', "INSERT INTO t VALUES (9, 1)", "INSERT 0 1"},
          {'a', "INSERT INTO t VALUES (9, 2)", "23505"},
          {'a', "ROLLBACK", "ROLLBACK"}},
         "1:10 2:20 3:30"},
        {"S6_OnConflictDoNothing_KeyNotInTheSnapshot",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "INSERT INTO t VALUES (9, 1)", "INSERT 0 1"},
          {'a', "COMMIT", "COMMIT"},
          {'b', "INSERT INTO t VALUES (9, 2) ON CONFLICT DO NOTHING", conflict},
          {'b', "COMMIT", "ROLLBACK"}},
         "1:10 2:20 3:30 9:1"},
        {"S7_ForUpdateUpdate_WriterCommitsLast",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "SELECT v FROM t WHERE id = 1 FOR UPDATE", "= 10"},
          {'b', "UPDATE t SET v = 12 WHERE id = 1", "UPDATE 1"},
          {'a', "COMMIT", "COMMIT"},
          {'b', "COMMIT", conflict}},
         "1:10 2:20 3:30"},
        {"S8_ForUpdateUpdate_ReaderCommitsLast",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "SELECT v FROM t WHERE id = 1 FOR UPDATE", "= 10"},
          {'b', "UPDATE t SET v = 12 WHERE id = 1", "UPDATE 1"},
          {'b', "COMMIT", "COMMIT"},
          {'a', "COMMIT", conflict}},
         "1:12 2:20 3:30"},
        {"S9_WriteSkew_GuardedByForUpdate",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "SELECT v FROM t WHERE id = 2 FOR UPDATE", "= 20"},
          {'b', "SELECT v FROM t WHERE id = 1 FOR UPDATE", "= 10"},
          {'a', "UPDATE t SET v = 11 WHERE id = 1", "UPDATE 1"},
          {'b', "UPDATE t SET v = 21 WHERE id = 2", "UPDATE 1"},
          {'a', "COMMIT", "COMMIT"},
          {'b', "COMMIT", conflict}},
         "1:11 2:20 3:30"},
        {"S9b_WriteSkew_GuardedByForUpdate_TheOtherOrder",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "SELECT v FROM t WHERE id = 2 FOR UPDATE", "= 20"},
          {'b', "SELECT v FROM t WHERE id = 1 FOR UPDATE", "= 10"},
          {'a', "UPDATE t SET v = 11 WHERE id = 1", "UPDATE 1"},
          {'b', "UPDATE t SET v = 21 WHERE id = 2", "UPDATE 1"},
          {'b', "COMMIT", "COMMIT"},
          {'a', "COMMIT", conflict}},
         "1:10 2:21 3:30"},
        {"S10_WriteSkew_Unguarded",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "SELECT sum(v) FROM t WHERE id IN (1, 2)", "= 30"},
          {'b', "SELECT sum(v) FROM t WHERE id IN (1, 2)", "= 30"},
          {'a', "UPDATE t SET v = 11 WHERE id = 1", "UPDATE 1"},
          {'b', "UPDATE t SET v = 21 WHERE id = 2", "UPDATE 1"},
          {'a', "COMMIT", "COMMIT"},
          {'b', "COMMIT", "COMMIT"}},
         "1:11 2:21 3:30"},
        {"S10b_WriteSkew_Unguarded_TheOtherOrder",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "SELECT sum(v) FROM t WHERE id IN (1, 2)", "= 30"},
          {'b', "SELECT sum(v) FROM t WHERE id IN (1, 2)", "= 30"},
          {'a', "UPDATE t SET v = 11 WHERE id = 1", "UPDATE 1"},
          {'b', "UPDATE t SET v = 21 WHERE id = 2", "UPDATE 1"},
          {'b', "COMMIT", "COMMIT"},
          {'a', "COMMIT", "COMMIT"}},
         "1:11 2:21 3:30"},
        {"S11_CrossedUpdates_NoDeadlock",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "UPDATE t SET v = 11 WHERE id = 1", "UPDATE 1"},
          {'b', "UPDATE t SET v = 22 WHERE id = 2", "UPDATE 1"},
          {'a', "UPDATE t SET v = 21 WHERE id = 2", "UPDATE 1"},
          {'b', "UPDATE t SET v = 12 WHERE id = 1", "UPDATE 1"},
          {'b', "COMMIT", "COMMIT"},
          {'a', "COMMIT", conflict}},
         "1:12 2:22 3:30"},
        {"S11b_CrossedUpdates_TheOtherOrder",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "UPDATE t SET v = 11 WHERE id = 1", "UPDATE 1"},
          {'b', "UPDATE t SET v = 22 WHERE id = 2", "UPDATE 1"},
          {'a', "UPDATE t SET v = 21 WHERE id = 2", "UPDATE 1"},
          {'b', "UPDATE t SET v = 12 WHERE id = 1", "UPDATE 1"},
          {'a', "COMMIT", "COMMIT"},
          {'b', "COMMIT", conflict}},
         "1:11 2:21 3:30"},
        {"S12_ForeignKey_ParentDeleteCommitsFirst",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "DELETE FROM t WHERE id = 3", "DELETE 1"},
          {'b', "INSERT INTO child VALUES (1, 3)", "INSERT 0 1"},
          {'a', "COMMIT", "COMMIT"},
          {'b', "COMMIT", conflict}},
         "1:10 2:20"},
        {"S12b_ForeignKey_ChildInsertCommitsFirst",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "DELETE FROM t WHERE id = 3", "DELETE 1"},
          {'b', "INSERT INTO child VALUES (1, 3)", "INSERT 0 1"},
          {'b', "COMMIT", "COMMIT"},
          {'a', "COMMIT", conflict}},
         "1:10 2:20 3:30"},
        {"S12c_ForeignKey_NoParentInTheSnapshot",
         {{'a', "BEGIN", "BEGIN"},
          {'a', "INSERT INTO child VALUES (1, 77)", "23503"},
          {'a', "ROLLBACK", "ROLLBACK"}},
         "1:10 2:20 3:30"},
        {"S12d_ForeignKey_ParentDeletedAfterTheSnapshot",
         {{'b', "BEGIN", "BEGIN"},
          {'a', "DELETE FROM t WHERE id = 3", "DELETE 1"},
          {'b', "INSERT INTO child VALUES (1, 3)", "INSERT 0 1"},
          {'b', "COMMIT", conflict}},
         "1:10 2:20"},
        {"S13_ForeignKey_OtherColumnsOfTheParent",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "UPDATE t SET v = 31 WHERE id = 3", "UPDATE 1"},
          {'b', "INSERT INTO child VALUES (1, 3)", "INSERT 0 1"},
          {'a', "COMMIT", "COMMIT"},
          {'b', "COMMIT", "COMMIT"}},
         "1:10 2:20 3:31"},
        {"S13b_ForeignKey_OtherColumnsOfTheParent_TheOtherOrder",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "UPDATE t SET v = 31 WHERE id = 3", "UPDATE 1"},
          {'b', "INSERT INTO child VALUES (1, 3)", "INSERT 0 1"},
          {'b', "COMMIT", "COMMIT"},
          {'a', "COMMIT", "COMMIT"}},
         "1:10 2:20 3:31"},
        {"S14_DdlBesideAnOpenReader",
         {{'a', "BEGIN", "BEGIN"},
          {'a', "SELECT count(*) FROM t", "= 3"},
          {'c', "ALTER TABLE t ADD COLUMN x integer", "ALTER TABLE"},
          {'a', "COMMIT", conflict},  // OC001: the schema changed inside of it.
          {'a', "SELECT count(*) FROM t", "= 3"}},
         "1:10 2:20 3:30"},
        {"S15_ReadersNeverConflict",
         {{'a', "BEGIN", "BEGIN"},
          {'a', "SELECT v FROM t WHERE id = 1", "= 10"},
          {'b', "BEGIN", "BEGIN"},
          {'b', "UPDATE t SET v = 99 WHERE id = 1", "UPDATE 1"},
          {'b', "COMMIT", "COMMIT"},
          {'a', "SELECT v FROM t WHERE id = 1", "= 10"},
          {'a', "COMMIT", "COMMIT"}},
         "1:99 2:20 3:30"},
        {"S17_ForUpdateForUpdate_NothingWritten",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "SELECT v FROM t WHERE id = 1 FOR UPDATE", "= 10"},
          {'b', "SELECT v FROM t WHERE id = 1 FOR UPDATE", "= 10"},
          {'b', "COMMIT", "COMMIT"},
          {'a', "COMMIT", conflict}},
         "1:10 2:20 3:30"},
        {"S17b_ForUpdateForUpdate_TheOtherOrder",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "SELECT v FROM t WHERE id = 1 FOR UPDATE", "= 10"},
          {'b', "SELECT v FROM t WHERE id = 1 FOR UPDATE", "= 10"},
          {'a', "COMMIT", "COMMIT"},
          {'b', "COMMIT", conflict}},
         "1:10 2:20 3:30"},
        {"S18_DeleteCommitsFirst_ForKeyShareLast",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "SELECT v FROM t WHERE id = 1 FOR KEY SHARE", "= 10"},
          {'b', "DELETE FROM t WHERE id = 1", "DELETE 1"},
          {'b', "COMMIT", "COMMIT"},
          {'a', "COMMIT", conflict}},
         "2:20 3:30"},
        // Known to be otherwise than the service, where the DELETE conflicts.
        {"S18b_ForKeyShareCommitsFirst_DeleteLast_Deviation",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "SELECT v FROM t WHERE id = 1 FOR KEY SHARE", "= 10"},
          {'b', "DELETE FROM t WHERE id = 1", "DELETE 1"},
          {'a', "COMMIT", "COMMIT"},
          {'b', "COMMIT", "COMMIT"}},
         "2:20 3:30"},
        {"S19_UpdateDelete_DeleteCommitsFirst",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "UPDATE t SET v = 1 WHERE id = 1", "UPDATE 1"},
          {'b', "DELETE FROM t WHERE id = 1", "DELETE 1"},
          {'b', "COMMIT", "COMMIT"},
          {'a', "COMMIT", conflict}},
         "2:20 3:30"},
        {"S19b_UpdateDelete_UpdateCommitsFirst",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "UPDATE t SET v = 1 WHERE id = 1", "UPDATE 1"},
          {'b', "DELETE FROM t WHERE id = 1", "DELETE 1"},
          {'a', "COMMIT", "COMMIT"},
          {'b', "COMMIT", conflict}},
         "1:1 2:20 3:30"},
        {"S20_PredicateUpdates_ExactlyOneWinner",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "UPDATE t SET v = v + 1", "UPDATE 3"},
          {'b', "UPDATE t SET v = v + 10", "UPDATE 3"},
          {'b', "COMMIT", "COMMIT"},
          {'a', "COMMIT", conflict}},
         "1:20 2:30 3:40"},
        {"S20b_PredicateUpdates_TheOtherOrder",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "UPDATE t SET v = v + 1", "UPDATE 3"},
          {'b', "UPDATE t SET v = v + 10", "UPDATE 3"},
          {'a', "COMMIT", "COMMIT"},
          {'b', "COMMIT", conflict}},
         "1:11 2:21 3:31"},
        {"S21_TheSnapshotIsOfBegin",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "UPDATE t SET v = 77 WHERE id = 1", "UPDATE 1"},
          {'a', "SELECT v FROM t WHERE id = 1", "= 10"},
          {'a', "COMMIT", "COMMIT"}},
         "1:77 2:20 3:30"},
        {"S22_RowChangedAfterTheSnapshot_StatementStillSucceeds",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "UPDATE t SET v = 77 WHERE id = 1", "UPDATE 1"},
          {'a', "UPDATE t SET v = 11 WHERE id = 1", "UPDATE 1"},
          {'a', "COMMIT", conflict},
          {'a', "SELECT v FROM t WHERE id = 1", "= 77"}},
         "1:77 2:20 3:30"},
        {"S23_ForUpdateOfARowChangedAfterTheSnapshot",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "UPDATE t SET v = 77 WHERE id = 1", "UPDATE 1"},
          {'a', "SELECT v FROM t WHERE id = 1 FOR UPDATE", "= 10"},
          {'a', "COMMIT", conflict}},
         "1:77 2:20 3:30"},
        {"S24_DeleteDelete",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "DELETE FROM t WHERE id = 1", "DELETE 1"},
          {'b', "DELETE FROM t WHERE id = 1", "DELETE 1"},
          {'a', "COMMIT", "COMMIT"},
          {'b', "COMMIT", conflict}},
         "2:20 3:30"},
        {"S24b_DeleteDelete_TheOtherOrder",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'a', "DELETE FROM t WHERE id = 1", "DELETE 1"},
          {'b', "DELETE FROM t WHERE id = 1", "DELETE 1"},
          {'b', "COMMIT", "COMMIT"},
          {'a', "COMMIT", conflict}},
         "2:20 3:30"},
        {"S25_ReturningOfALoser_IsToldAtTheStatement",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "UPDATE t SET v = 77 WHERE id = 1", "UPDATE 1"},
          {'a', "UPDATE t SET v = 11 WHERE id = 1 RETURNING v", conflict},
          {'a', "COMMIT", "ROLLBACK"}},
         "1:77 2:20 3:30"},
        {"S26_AnOpenTransactionDoesNotStopAnAutocommit",
         {{'a', "BEGIN", "BEGIN"},
          {'a', "UPDATE t SET v = 11 WHERE id = 1", "UPDATE 1"},
          {'b', "UPDATE t SET v = 12 WHERE id = 1", "UPDATE 1"},
          {'a', "SELECT count(*) FROM child", "= 0"},
          {'a', "COMMIT", conflict}},
         "1:12 2:20 3:30"},
        {"S27_ThreeOnOneRow_TheFirstToCommitWins",
         {{'a', "BEGIN", "BEGIN"},
          {'b', "BEGIN", "BEGIN"},
          {'c', "BEGIN", "BEGIN"},
          {'a', "UPDATE t SET v = 11 WHERE id = 1", "UPDATE 1"},
          {'b', "UPDATE t SET v = 12 WHERE id = 1", "UPDATE 1"},
          {'c', "UPDATE t SET v = 13 WHERE id = 1", "UPDATE 1"},
          {'b', "COMMIT", "COMMIT"},
          {'a', "COMMIT", conflict},
          {'c', "COMMIT", conflict}},
         "1:12 2:20 3:30"},
        {"S28_UncommittedDdl_OthersGoOn",
         {{'a', "BEGIN", "BEGIN"},
          {'a', "ALTER TABLE t ADD COLUMN x integer", "ALTER TABLE"},
          {'b', "UPDATE t SET v = 12 WHERE id = 1", "UPDATE 1"},
          {'a', "COMMIT", "COMMIT"}},
         "1:12 2:20 3:30"},
    };
}

class Scenarios : public GatewayStory, public testing::WithParamInterface<Scenario> {
protected:
    void SetUp() override {
        const Client maker = client();
        for (const char* sql :
             {"CREATE TABLE t (id integer PRIMARY KEY, v integer, w text)",
              "CREATE TABLE child (id integer PRIMARY KEY, tid integer REFERENCES t)",
              "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)"}) {
            ASSERT_EQ(maker.exec(sql).code, "") << sql;
        }
    }

    [[nodiscard]] std::string left() const {
        std::string text;
        for (const auto& row : client().exec("SELECT id, v FROM t ORDER BY id").rows) {
            text += (text.empty() ? "" : " ") + row[0] + ":" + row[1];
        }
        return text;
    }

    void play(bool extended) {
        std::map<char, Client> clients;
        for (const Line& line : GetParam().lines) {
            if (!clients.contains(line.client)) {
                clients.emplace(line.client, client());
            }
        }
        for (const Line& line : GetParam().lines) {
            const Client& speaker = clients.at(line.client);
            const Said said = extended ? speaker.exec(line.sql, {}) : speaker.exec(line.sql);
            std::string outcome = said.code;
            if (outcome.empty()) {
                outcome = line.outcome.starts_with("= ") ? "= " + said.cell() : said.tag;
            }
            ASSERT_EQ(outcome, line.outcome) << line.client << ": " << line.sql << "\n"
                                             << said.message;
        }
        EXPECT_EQ(left(), GetParam().left);
    }
};

TEST_P(Scenarios, BySimpleQueries) {
    play(false);
}

TEST_P(Scenarios, ByTheExtendedProtocol) {
    play(true);
}

INSTANTIATE_TEST_SUITE_P(Of, Scenarios, testing::ValuesIn(scenarios()), [](const auto& played) {
    return played.param.name;
});

}  // namespace

}  // namespace holdfast::dsql::tests
