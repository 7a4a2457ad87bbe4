// Statements of history tasks, nodes and trees, as the database sees them.
#include "history/statements.hpp"

#include <initializer_list>
#include <limits>
#include <map>
#include <tuple>

#include "execution/statements_tasks.hpp"
#include "test/store_fixture.hpp"

namespace holdfast::store::tests {
namespace {

using namespace statements;

constexpr std::int64_t before_all = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t all = std::numeric_limits<std::int64_t>::max();

class HistoryStatements : public StatementStory {
public:
    const Uuid tree = Uuid::v4();
    const Uuid branch = Uuid::v4();

    std::int64_t add_node(std::int64_t node, std::int64_t txn, std::string_view data = "events") {
        return count(
            insert_node, shard_7, tree, branch, node, -txn, txn - 1, bytes(data), "Proto3");
    }
};

// ---- Tasks --------------------------------------------------------------------------------------

struct TaskTable {
    const Statement& insert;
    const Statement& range;
    const Statement& remove;
    const Statement& remove_range;
};

// One table of immediate tasks; `Key` is what the key has before the task's id.
template <class... Key>
class TaskTableStory {
public:
    TaskTableStory(HistoryStatements& story, const TaskTable& table, Key... key)
        : story_(story), table_(table), key_(key...) {}

    void tell_of_one_task() {
        EXPECT_EQ(count(table_.remove, 1), 0);
        EXPECT_EQ(count(table_.remove_range, 1, 100, 1'000), 0);
        EXPECT_THAT(ids(0, 100), IsEmpty());
        EXPECT_EQ(put(5), 1);
        EXPECT_THAT(ids(5, 6), ElementsAre(5));
        EXPECT_EQ(test::code_of([&] { put(5); }), Code::already_exists);
        EXPECT_EQ(test::code_of([&] { put_together({4, 5, 6}); }), Code::already_exists);
        EXPECT_THAT(ids(0, 100), ElementsAre(5)) << "no row of the batch is stored";
        EXPECT_EQ(count(table_.remove, 5), 1);
        EXPECT_THAT(ids(0, 100), IsEmpty());
    }

    void tell_of_many_tasks() {
        std::vector<std::int64_t> expected;
        for (std::int64_t id = 30; id > 10; --id) {
            EXPECT_EQ(put(id), 1);
            expected.insert(expected.begin(), id);
        }
        EXPECT_EQ(ids(0, 100), expected);
        EXPECT_THAT(ids(11, 30, 2), ElementsAre(11, 12));
        EXPECT_EQ(count(table_.remove_range, 11, 31, 15), 15) << "in chunks";
        EXPECT_EQ(count(table_.remove_range, 11, 31, 15), 5);
        EXPECT_THAT(ids(0, 100), IsEmpty());
    }

private:
    template <class... Args>
    std::int64_t count(const Statement& statement, const Args&... args) {
        return std::apply(
            [&](const auto&... key) { return story_.count(statement, key..., args...); }, key_);
    }
    std::int64_t put(std::int64_t id) { return count(table_.insert, id, bytes("task"), "Proto3"); }
    void put_together(std::initializer_list<std::int64_t> ids) {
        story_.db->transact("Test", {}, [&](sql::Tx& tx) {
            for (const std::int64_t id : ids) {
                std::apply(
                    [&](const auto&... key) {
                        tx.exec(table_.insert, key..., id, bytes("task"), "Proto3");
                    },
                    key_);
            }
        });
    }
    std::vector<std::int64_t> ids(std::int64_t min, std::int64_t max, std::int64_t limit = 100) {
        const sql::Rows rows = std::apply(
            [&](const auto&... key) { return story_.rows(table_.range, key..., min, max, limit); },
            key_);
        std::vector<std::int64_t> found;
        for (const sql::Row row : rows) {
            found.push_back(row.get<std::int64_t>(0));
            EXPECT_EQ(row.get<sql::Bytes>(1), bytes("task"));
        }
        return found;
    }

    HistoryStatements& story_;
    TaskTable table_;
    std::tuple<Key...> key_;
};

// Tells the same story of each table.
template <class Tell>
void in_every_task_table(HistoryStatements& story, const Tell& tell) {
    const TaskTable transfer{insert_transfer_task,
                             range_transfer_task,
                             delete_transfer_task,
                             delete_range_transfer_task};
    const TaskTable replication{insert_replication_task,
                                range_replication_task,
                                delete_replication_task,
                                delete_range_replication_task};
    const TaskTable visibility{insert_visibility_task,
                               range_visibility_task,
                               delete_visibility_task,
                               delete_range_visibility_task};
    const TaskTable immediate{insert_immediate_task,
                              range_immediate_task,
                              delete_immediate_task,
                              delete_range_immediate_task};
    const TaskTable dlq{insert_dlq_task, range_dlq_task, delete_dlq_task, delete_range_dlq_task};
    tell(TaskTableStory(story, transfer, shard_7));
    tell(TaskTableStory(story, replication, shard_7));
    tell(TaskTableStory(story, visibility, shard_7));
    tell(TaskTableStory(story, immediate, shard_7, 7));
    tell(TaskTableStory(story, dlq, std::string_view("east"), shard_7));
}

TEST_P(HistoryStatements, AnImmediateTaskIsInsertedOnceReadAndDeletedByItsId) {
    HOLDFAST_CHECK("store 45");
    HOLDFAST_CHECK("store 46");
    HOLDFAST_CHECK("store 47");
    HOLDFAST_CHECK("store 48");
    HOLDFAST_CHECK("store 50");
    HOLDFAST_CHECK("store 51");
    HOLDFAST_CHECK("store 52");
    in_every_task_table(*this, [](auto table) { table.tell_of_one_task(); });
}

TEST_P(HistoryStatements, ImmediateTasksAreReadInTheirOrderAndDeletedInChunks) {
    HOLDFAST_CHECK("store 49");
    HOLDFAST_CHECK("store 53");
    in_every_task_table(*this, [](auto table) { table.tell_of_many_tasks(); });
}

TEST_P(HistoryStatements, ALetterOfAnotherClusterOrShardIsNeverSeen) {
    HOLDFAST_CHECK("store 55");
    EXPECT_EQ(count(insert_dlq_task, "east", shard_7, 1, bytes("a"), "Proto3"), 1);
    EXPECT_EQ(count(insert_dlq_task, "west", shard_7, 2, bytes("b"), "Proto3"), 1);
    EXPECT_EQ(count(insert_dlq_task, "east", shard_7 + 1, 3, bytes("c"), "Proto3"), 1);
    const sql::Rows found = rows(range_dlq_task, "east", shard_7, 0, 100, 100);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].get<std::int64_t>(0), 1);
    EXPECT_EQ(count(insert_dlq_task_once, "east", shard_7, 1, bytes("again"), "Proto3"), 0);
}

template <class... Key>
void tell_of_timers(HistoryStatements& story, const TaskTable& table, const Key&... key) {
    const auto ms = [](std::int64_t n) { return at(std::chrono::milliseconds{n}); };
    const auto put = [&](std::int64_t time, std::int64_t id) {
        return story.count(table.insert, key..., ms(time), id, bytes("task"), "Proto3");
    };
    using Found = std::vector<std::pair<std::int64_t, std::int64_t>>;  // Milliseconds, id.
    const auto range = [&](std::int64_t min, std::int64_t min_id, std::int64_t max) {
        Found found;
        for (const sql::Row row : story.rows(table.range, key..., ms(min), min_id, ms(max), 100)) {
            const auto fire = row.get<sql::Timestamp>(0);
            EXPECT_EQ(fire.time_since_epoch() % 1ms, 0us);
            found.emplace_back(fire.time_since_epoch() / 1ms, row.get<std::int64_t>(1));
        }
        return found;
    };
    EXPECT_EQ(story.count(table.remove_range, key..., ms(0), ms(2'000), 1'000), 0);
    EXPECT_EQ(range(0, before_all, 2'000), Found{});
    EXPECT_EQ(put(1'000, 3), 1);
    EXPECT_EQ(put(1'000, 1), 1);
    EXPECT_EQ(put(1'001, 2), 1);
    EXPECT_EQ(test::code_of([&] { put(1'001, 2); }), Code::already_exists);
    EXPECT_EQ(test::code_of([&] {
                  story.db->transact("Test", {}, [&](sql::Tx& tx) {
                      for (const std::int64_t id : {7, 2, 8}) {
                          tx.exec(table.insert, key..., ms(1'001), id, bytes("task"), "Proto3");
                      }
                  });
              }),
              Code::already_exists)
        << "and no row of the batch is stored";
    EXPECT_EQ(range(0, before_all, 2'000), (Found{{1'000, 1}, {1'000, 3}, {1'001, 2}}));
    EXPECT_EQ(range(1'000, 2, 1'001), (Found{{1'000, 3}}));
    EXPECT_EQ(range(1'001, 2, 1'002), (Found{{1'001, 2}}));
    EXPECT_EQ(story.count(table.remove, key..., ms(1'000), 2), 0);
    EXPECT_EQ(story.count(table.remove, key..., ms(1'000), 3), 1);
    EXPECT_EQ(story.count(table.remove_range, key..., ms(1'001), ms(1'001), 1'000), 0);
    EXPECT_EQ(story.count(table.remove_range, key..., ms(0), ms(1'002), 1'000), 2);
    EXPECT_EQ(range(0, before_all, 2'000), Found{});

    Found expected;
    for (std::int64_t id = 20; id > 0; --id) {  // Two at each moment.
        EXPECT_EQ(put(2'000 + id / 2, id), 1);
        expected.emplace(expected.begin(), 2'000 + id / 2, id);
    }
    EXPECT_EQ(range(0, before_all, 3'000), expected);
    EXPECT_EQ(story.count(table.remove_range, key..., ms(2'000), ms(3'000), 15), 15) << "in chunks";
    EXPECT_EQ(range(0, before_all, 3'000), Found(expected.begin() + 15, expected.end()));
    EXPECT_EQ(story.count(table.remove_range, key..., ms(2'000), ms(3'000), 15), 5);
    EXPECT_EQ(range(0, before_all, 3'000), Found{});
}

TEST_P(HistoryStatements, ScheduledTasksAreOrderedByTimeAndThenById) {
    HOLDFAST_CHECK("store 54");
    tell_of_timers(
        *this,
        {insert_timer_task, range_timer_task, delete_timer_task, delete_range_timer_task},
        shard_7);
    tell_of_timers(*this,
                   {insert_scheduled_task,
                    range_scheduled_task,
                    delete_scheduled_task,
                    delete_range_scheduled_task},
                   shard_7,
                   5);
}

// ---- Nodes --------------------------------------------------------------------------------------

using Places = std::vector<std::pair<std::int64_t, std::int64_t>>;  // Node, transaction.

// Pages through the branch, in either direction, and collects what it sees.
Places walk(HistoryStatements& story, const Statement& statement, bool back, std::int64_t page) {
    Places places;
    std::int64_t node = back ? all : 0;
    std::int64_t txn = before_all;
    for (;;) {
        const sql::Rows rows = story.rows(
            statement, shard_7, story.tree, story.branch, node, txn, back ? 0 : all, page);
        for (const sql::Row row : rows) {
            node = row.get<std::int64_t>(0);
            txn = row.get<std::int64_t>(1);
            places.emplace_back(node, -txn);
        }
        if (static_cast<std::int64_t>(rows.size()) < page) {
            return places;
        }
    }
}

TEST_P(HistoryStatements, NodesComeInOrderTheNewestOfEachFirstAndBackwardsInReverse) {
    HOLDFAST_CHECK("store 59");
    EXPECT_EQ(count(delete_nodes, shard_7, tree, branch, 1, 1'000), 0);
    EXPECT_THAT(walk(*this, range_nodes, false, 10), IsEmpty());

    HOLDFAST_CHECK("store 58");
    Places expected;
    db->transact("Test", {}, [&](sql::Tx& tx) {
        expected.clear();
        for (std::int64_t node = 1; node <= 100; ++node) {
            for (std::int64_t txn = 3; txn > 0; --txn) {
                tx.exec(insert_node,
                        shard_7,
                        tree,
                        branch,
                        node,
                        -(node * 10 + txn),
                        txn,
                        bytes("events"),
                        "Proto3");
                expected.emplace_back(node, node * 10 + txn);
            }
        }
    });
    EXPECT_EQ(walk(*this, range_nodes, false, 7), expected);
    HOLDFAST_CHECK("store 63");
    EXPECT_EQ(walk(*this, range_node_metadata, false, 100), expected);
    EXPECT_EQ(rows(range_node_metadata, shard_7, tree, branch, 0, 0, all, 1)[0].columns(), 3U);
    HOLDFAST_CHECK("store 62");
    std::ranges::reverse(expected);
    EXPECT_EQ(walk(*this, range_nodes_back, true, 100), expected);
    EXPECT_EQ(walk(*this, range_nodes_back, true, 1), expected)
        << "pages of one miss nothing of a node";
    HOLDFAST_CHECK("store 61");
    EXPECT_EQ(count(delete_nodes, shard_7, tree, branch, 51, 1'000), 150);
    EXPECT_EQ(count(delete_nodes, shard_7, tree, branch, 1, 100), 100) << "in chunks";
    EXPECT_EQ(count(delete_nodes, shard_7, tree, branch, 1, 100), 50);
}

TEST_P(HistoryStatements, ANodeIsWrittenAgainAndDeletedByItsTransaction) {
    HOLDFAST_CHECK("store 56");
    EXPECT_EQ(add_node(1, 5, "older"), 1);
    EXPECT_EQ(add_node(1, 5, "newer"), 1);
    const sql::Rows found = rows(range_nodes, shard_7, tree, branch, 0, before_all, all, 10);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].get<std::int64_t>(1), -5) << "stored with its sign turned";
    EXPECT_EQ(found[0].get<sql::Bytes>(3), bytes("newer"));
    HOLDFAST_CHECK("store 60");
    EXPECT_EQ(add_node(1, 6), 1);
    EXPECT_EQ(count(delete_node, shard_7, tree, branch, 1, -6), 1);
    EXPECT_EQ(count(delete_node, shard_7, tree, branch, 1, -6), 0);
}

TEST_P(HistoryStatements, ABranchIsARowOfItsTree) {
    const auto put = [&](std::string_view data) {
        return count(insert_tree, shard_7, tree, branch, bytes(data), "Json");
    };
    HOLDFAST_CHECK("store 64");
    EXPECT_EQ(put("older"), 1);
    EXPECT_EQ(put("newer"), 1);
    HOLDFAST_CHECK("store 65");
    const sql::Rows found = rows(select_tree, shard_7, tree);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].get<Uuid>(0), branch);
    EXPECT_EQ(found[0].get<sql::Bytes>(1), bytes("newer"));
    EXPECT_EQ(locked(lock_branch, shard_7, tree, branch)[0].get<sql::Bytes>(0), bytes("newer"));
    EXPECT_EQ(count(delete_tree, shard_7, tree, Uuid::v4()), 0);
    EXPECT_EQ(count(delete_tree, shard_7, tree, branch), 1);
    EXPECT_TRUE(rows(select_tree, shard_7, tree).empty());
}

TEST_P(HistoryStatements, AllTreesComeInPages) {
    HOLDFAST_CHECK("store 66");
    db->transact("Test", {}, [&](sql::Tx& tx) {
        for (int i = 0; i < 1'002; ++i) {
            tx.exec(insert_tree, 1 + (i % 3), Uuid::v4(), branch, bytes("{}"), "Json");
        }
    });
    std::set<std::pair<std::int32_t, Uuid>> seen;
    std::int32_t last_shard = 0;
    Uuid last_tree;
    Uuid last_branch;
    std::size_t rows_seen = 0;
    for (;;) {
        const sql::Rows page = rows(page_of_trees, last_shard, last_tree, last_branch, 100);
        for (const sql::Row row : page) {
            last_shard = row.get<std::int32_t>(0);
            last_tree = row.get<Uuid>(1);
            last_branch = row.get<Uuid>(2);
            seen.emplace(last_shard, last_tree);
        }
        rows_seen += page.size();
        if (page.size() < 100) {
            break;
        }
    }
    EXPECT_EQ(seen.size(), 1'002U);
    EXPECT_EQ(rows_seen, 1'002U);
}

INSTANTIATE_TEST_SUITE_P(Every, HistoryStatements, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
