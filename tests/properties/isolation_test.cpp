// Aurora DSQL checks at a commit the rows that were written or locked, and no others. So whatever a
// transaction of the store reads before it writes is locked, or a row that was locked before keeps
// it as it is. Checked by what was really sent, transaction by transaction.
#include <algorithm>
#include <map>
#include <set>

#include "cluster/statements_cluster.hpp"
#include "cluster/statements_namespace.hpp"
#include "execution/statements_execution.hpp"
#include "execution/statements_maps.hpp"
#include "execution/statements_shard.hpp"
#include "execution/statements_tasks.hpp"
#include "history/statements.hpp"
#include "matching/statements.hpp"
#include "queue/statements.hpp"
#include "statement_rules.hpp"
#include "statements.hpp"
#include "test/operations_walk_fixture.hpp"
#include "visibility/statements.hpp"

#include <holdfast/testing/catalogue_rules.hpp>

namespace holdfast::store::tests {
namespace {

using Transaction = std::vector<std::string>;

std::string on_dsql(const sql::Statement& statement) {
    return sql::render(sql::dialect_named("dsql"), statement.name(), statement.text()).text;
}

// Reads that lock nothing, and the lock under which what they find cannot change. A new
// one needs its reason here.
std::map<std::string, std::string> reads_under_a_lock() {
    using namespace statements;
    const std::string counter = on_dsql(lock_namespace_metadata);
    const std::string queue = on_dsql(lock_queue_metadata);
    const std::string named_queue = on_dsql(lock_queue);
    const std::string shard = on_dsql(read_lock_shard);
    return {{on_dsql(delete_range_immediate_task), shard},
            {on_dsql(delete_range_scheduled_task), shard},
            {on_dsql(delete_range_transfer_task), shard},
            {on_dsql(delete_range_timer_task), shard},
            {on_dsql(delete_range_replication_task), shard},
            {on_dsql(delete_range_visibility_task), shard},
            {on_dsql(delete_range_dlq_task), shard},
            {on_dsql(delete_nodes), shard},
            {on_dsql(shed_activity), shard},
            {on_dsql(shed_timer), shard},
            {on_dsql(shed_child), shard},
            {on_dsql(shed_request_cancel), shard},
            {on_dsql(shed_signal), shard},
            {on_dsql(shed_signal_requested), shard},
            {on_dsql(shed_chasm), shard},
            {on_dsql(shed_buffered), shard},
            {on_dsql(delete_tasks), on_dsql(lock_task_queue)},
            {on_dsql(delete_tasks_v2), on_dsql(lock_task_queue_v2)},
            {on_dsql(select_namespace), counter},
            {on_dsql(select_namespace_by_name), counter},
            {on_dsql(insert_message), queue},
            {on_dsql(delete_messages), queue},
            {on_dsql(last_named_message), named_queue},
            {on_dsql(insert_named_message), named_queue},
            {on_dsql(insert_buffered_event), on_dsql(lock_execution)}};
}

bool reads_without_a_lock(const std::string& text) {
    return text.find("SELECT ") != std::string::npos && !text.ends_with("FOR UPDATE") &&
           text != on_dsql(sql::statements::now);  // The time decides nothing.
}
bool writes(const std::string& text) {
    return !text.starts_with("SELECT ");
}

// One statement decides by the row that it writes; but what it writes must not come from others.
bool computes_from_others(const std::string& text) {
    return !text.starts_with("DELETE ") && text.find("SELECT ") != std::string::npos &&
           text != on_dsql(statements::upsert_member);  // From the clock.
}

// What a transaction that writes reads without a proof that it stays so until the commit.
std::vector<std::string> unproved(const Transaction& transaction) {
    static const std::map<std::string, std::string> proofs = reads_under_a_lock();
    std::vector<std::string> found;
    if (std::none_of(transaction.begin(), transaction.end(), writes)) {
        return found;
    }
    if (transaction.size() == 1) {
        return computes_from_others(transaction.front()) ? transaction : found;
    }
    for (auto read = transaction.begin(); read != transaction.end(); ++read) {
        const auto proof = proofs.find(*read);
        const bool proved =
            proof != proofs.end() && std::find(transaction.begin(), read, proof->second) != read;
        if (reads_without_a_lock(*read) && !proved) {
            found.push_back(*read);
        }
    }
    return found;
}

// Statements that no transaction on DSQL has, and why.
std::set<std::string> never_sent() {
    using namespace statements;
    return {on_dsql(insert_shard),      // The second one inserts it once,
            on_dsql(insert_dlq_task)};  // and so does a letter that comes again.
}

TEST(SnapshotIsolation, WhatATransactionDecidesByIsLockedOrWritten) {
    test::StatementRules rules(test::Backend::dsql);
    test::Database db{test::Backend::dsql};
    sql::schema_apply(db, schema_part(), {});  // In the check's sight.
    const std::set<Transaction> of_the_schema = rules.transactions();
    OperationsWalk(db).see_all();
    HOLDFAST_CHECK("store 212");
    EXPECT_THAT(rules.complaints(), IsEmpty());
    EXPECT_THAT(rules.locks(), ElementsAre("FOR UPDATE"));

    std::set<std::string> all;
    std::size_t blocks = 0;
    for (const Transaction& transaction : rules.transactions()) {
        if (of_the_schema.contains(transaction)) {
            continue;
        }
        EXPECT_THAT(unproved(transaction), IsEmpty());
        all.insert(transaction.begin(), transaction.end());
        blocks += transaction.size() > 1 ? 1 : 0;
    }
    EXPECT_GT(blocks, 20U) << "or little was tested";
    for (const auto& [read, lock] : reads_under_a_lock()) {
        EXPECT_TRUE(all.contains(read)) << "nobody needs it any more: " << read;
    }
    // None is missing: a new statement must be sent by the walk.
    std::set<std::string> known;
    for (const sql::Statement* statement : catalogue().statements) {
        known.insert(on_dsql(*statement));
    }
    for (const sql::FencedStatement* statement : catalogue().fenced) {
        known.insert(on_dsql(sql::CatalogueReader::write(*statement)));
    }
    for (const std::string& statement : known) {
        EXPECT_NE(all.contains(statement), never_sent().contains(statement)) << statement;
    }
}

// The test above must be able to fail.
TEST(SnapshotIsolation, AReadThatProvesNothingWouldBeFound) {
    using namespace statements;
    const std::string read = on_dsql(select_execution);
    const std::string lock = on_dsql(lock_execution);
    const std::string write = on_dsql(sql::CatalogueReader::write(update_execution));
    EXPECT_THAT(unproved({read, write}), ElementsAre(read));
    EXPECT_THAT(unproved({lock, write}), IsEmpty());
    EXPECT_THAT(unproved({read, lock}), IsEmpty()) << "it writes nothing";
    const std::string append = on_dsql(insert_buffered_event);
    EXPECT_THAT(unproved({append, lock, write}), ElementsAre(append)) << "locked too late";
    EXPECT_THAT(unproved({lock, append, write}), IsEmpty());
    EXPECT_THAT(unproved({append}), ElementsAre(append)) << "two would count to the same number";
}

}  // namespace
}  // namespace holdfast::store::tests
