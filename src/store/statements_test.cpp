// Statements of shards, runs, current runs, open items and buffered events, as the database
// sees them.
#include <map>
#include <set>

#include "execution/statements_execution.hpp"
#include "execution/statements_maps.hpp"
#include "execution/statements_shard.hpp"
#include "id_digest.hpp"
#include "test/store_fixture.hpp"

namespace holdfast::store::tests {
namespace {

using namespace statements;

class Statements : public StatementStory {
public:
    std::int64_t insert_run() {
        return count(insert_execution,
                     shard_7,
                     run,
                     ns,
                     workflow,
                     11,
                     12,
                     bytes("info"),
                     "Proto3",
                     bytes("state"),
                     "Json",
                     13);
    }
    std::int64_t update_run(const Uuid& which, std::int64_t version) {
        return count(update_execution,
                     {shard_7, which},
                     {version, 11},
                     21,
                     22,
                     bytes("new info"),
                     "Json",
                     bytes("new state"),
                     "Proto3",
                     14);
    }
    std::int64_t delete_run() { return count(delete_execution, shard_7, run, ns, workflow); }
    sql::Rows select_run() { return rows(select_execution, shard_7, run); }
    auto columns_of_run() {
        return select_run()[0]
            .as<std::int64_t,
                std::int64_t,
                sql::Bytes,
                std::string,
                sql::Bytes,
                std::string,
                std::int64_t>();
    }

    const Uuid ns = Uuid::v4();
    const Uuid run = Uuid::v4();
    const std::string workflow = "order-7";
};

TEST_P(Statements, AShardIsInsertedOnceAndUpdatedUnderItsRange) {
    HOLDFAST_CHECK("store 1");
    EXPECT_EQ(count(insert_shard, shard_7, 5, bytes("info"), "Proto3"), 1);
    HOLDFAST_CHECK("store 2");
    EXPECT_EQ(code(insert_shard, shard_7, 6, bytes("other"), "Proto3"), Code::already_exists);
    HOLDFAST_CHECK("store 3");
    const auto row = [&] {
        return rows(select_shard, shard_7)[0].as<std::int64_t, sql::Bytes, std::string>();
    };
    EXPECT_EQ(row(), std::tuple(5, bytes("info"), "Proto3"));

    HOLDFAST_CHECK("store 4");
    EXPECT_EQ(count(update_shard, {shard_7}, {5}, 6, bytes("newer"), "Json"), 1);
    HOLDFAST_CHECK("store 5");
    EXPECT_EQ(count(update_shard, {shard_7 + 1}, {5}, 6, bytes("newer"), "Json"), 0);
    EXPECT_EQ(count(update_shard, {shard_7}, {5}, 7, bytes("late"), "Json"), 0);
    HOLDFAST_CHECK("store 6");
    EXPECT_EQ(row(), std::tuple(6, bytes("newer"), "Json"));

    HOLDFAST_CHECK("store 7");
    EXPECT_EQ(locked(read_lock_shard, shard_7)[0].get<std::int64_t>(0), 6);
    HOLDFAST_CHECK("store 8");
    EXPECT_EQ(locked(write_lock_shard, shard_7)[0].get<std::int64_t>(0), 6);
}

TEST_P(Statements, ARunIsInsertedOnceAndReadAsItWasInserted) {
    HOLDFAST_CHECK("store 14");
    EXPECT_EQ(delete_run(), 0);
    EXPECT_TRUE(select_run().empty());
    HOLDFAST_CHECK("store 9");
    EXPECT_EQ(insert_run(), 1);
    HOLDFAST_CHECK("store 10");
    EXPECT_EQ(test::code_of([&] { insert_run(); }), Code::already_exists);
    HOLDFAST_CHECK("store 11");
    EXPECT_EQ(columns_of_run(),
              std::tuple(11, 12, bytes("info"), "Proto3", bytes("state"), "Json", 13));
    HOLDFAST_CHECK("store 16");
    HOLDFAST_CHECK("store 17");  // One lock for both: a weaker one had no caller.
    const sql::Rows lock = locked(lock_execution, shard_7, run);
    EXPECT_EQ((lock[0].as<std::int64_t, std::int64_t>()), std::tuple(13, 11));
}

TEST_P(Statements, ARunIsUpdatedUnderItsTokensAndDeleted) {
    EXPECT_EQ(insert_run(), 1);
    HOLDFAST_CHECK("store 13");
    EXPECT_EQ(update_run(Uuid::v4(), 13), 0);
    EXPECT_EQ(update_run(run, 12), 0) << "the token is part of the statement";
    HOLDFAST_CHECK("store 12");
    EXPECT_EQ(update_run(run, 13), 1);
    EXPECT_EQ(columns_of_run(),
              std::tuple(21, 22, bytes("new info"), "Json", bytes("new state"), "Proto3", 14));
    HOLDFAST_CHECK("store 15");
    EXPECT_EQ(delete_run(), 1);
    EXPECT_TRUE(select_run().empty());
}

// The same story for both tables; `key` is what the key has after the namespace.
template <class... Key>
void tell_of_current_runs(Statements& story,
                          const Statement& insert,
                          const FencedStatement& update,
                          const Statement& select,
                          const Statement& lock,
                          const FencedStatement& remove,
                          const Uuid& ns,
                          const Key&... key) {
    const Uuid first = Uuid::v4();
    const Uuid second = Uuid::v4();
    const std::optional<sql::Timestamp> no_time;
    const auto put = [&] {
        return story.count(insert,
                           shard_7,
                           ns,
                           key...,
                           "order-7",
                           first,
                           "request",
                           1,
                           1,
                           no_time,
                           3,
                           bytes("blob"),
                           "Proto3");
    };
    const auto move = [&](const Uuid& from) {
        return story.count(update,
                           {shard_7, ns, key...},
                           {from},
                           second,
                           "again",
                           3,
                           2,
                           at(5'000'000us),
                           4,
                           bytes("newer"),
                           "Json");
    };
    const auto read = [&](const Statement& statement) {
        return story.locked(statement, shard_7, ns, key...);
    };

    EXPECT_EQ(move(first), 0) << "there is none yet";
    EXPECT_EQ(put(), 1);
    EXPECT_EQ(test::code_of(put), Code::already_exists);
    for (const Statement& statement : {select, lock}) {
        const sql::Rows rows = read(statement);
        ASSERT_EQ(rows.size(), 1U);
        EXPECT_EQ(rows[0].get<Uuid>(0), first);
        EXPECT_EQ(rows[0].get<std::string>(1), "request");
        EXPECT_EQ(rows[0].get<std::int64_t>(2), 1);
        EXPECT_EQ(rows[0].get<std::int64_t>(3), 1);
        EXPECT_EQ(rows[0].get<std::optional<sql::Timestamp>>(4), std::nullopt);
        EXPECT_EQ(rows[0].get<std::int64_t>(5), 3);
        EXPECT_EQ(rows[0].get<sql::Bytes>(6), bytes("blob"));
        EXPECT_EQ(rows[0].get<std::string>(7), "Proto3") << "as it was inserted";
        EXPECT_EQ(rows[0].get<std::string>(8), "order-7") << "beside its digest";
    }
    EXPECT_EQ(move(second), 0) << "another run is the current one";
    EXPECT_EQ(move(first), 1);
    const sql::Rows moved = read(select);
    EXPECT_EQ(moved[0].get<Uuid>(0), second);
    EXPECT_EQ(moved[0].get<std::string>(1), "again");
    EXPECT_EQ(moved[0].get<std::int64_t>(2), 3);
    EXPECT_EQ(moved[0].get<std::int64_t>(3), 2);
    EXPECT_EQ(moved[0].get<std::int64_t>(5), 4);
    EXPECT_EQ(moved[0].get<sql::Bytes>(6), bytes("newer"));
    EXPECT_EQ(moved[0].get<std::string>(7), "Json");
    EXPECT_EQ(moved[0].get<sql::Timestamp>(4), at(5'000'000us));

    EXPECT_EQ(story.count(remove, {shard_7, ns, key...}, {first}), 0);
    EXPECT_EQ(read(select).size(), 1U);
    EXPECT_EQ(story.count(remove, {shard_7, ns, key...}, {second}), 1);
    EXPECT_TRUE(read(select).empty());
}

TEST_P(Statements, APointerNamesOneRunUntilThatRunIsNamedToMoveIt) {
    HOLDFAST_CHECK("store 18");
    HOLDFAST_CHECK("store 19");
    HOLDFAST_CHECK("store 20");
    HOLDFAST_CHECK("store 21");
    HOLDFAST_CHECK("store 22");
    tell_of_current_runs(*this,
                         insert_current,
                         update_current,
                         select_current,
                         lock_current,
                         delete_current,
                         ns,
                         key_digest(workflow));
    tell_of_current_runs(*this,
                         insert_current_chasm,
                         update_current_chasm,
                         select_current_chasm,
                         lock_current_chasm,
                         delete_current_chasm,
                         ns,
                         key_digest(workflow),
                         42);
}

// ---- What a run has open ------------------------------------------------------------------------

struct MapStatements {
    const Statement& put;
    const Statement& all;
    const Statement& drop;
    const Statement& clear;
};

// What such a map holds: bytes, or of the set nothing.
struct BlobOf {
    static constexpr bool is_set = false;
    static sql::Bytes of_row(const sql::Row& row) {
        EXPECT_EQ(row.get<std::string>(2), "Proto3");
        return row.get<sql::Bytes>(1);
    }
    static sql::Bytes of_data(sql::Bytes data) { return data; }
};
struct NothingOf {
    static constexpr bool is_set = true;
    static sql::Bytes of_row(const sql::Row&) { return {}; }
    static sql::Bytes of_data(const sql::Bytes&) { return {}; }
};

// One map of one run. `put(run, key, data)` counts what one statement changed; `key(i)` makes keys
// of the map's type; `Value` knows what a row holds besides its key.
template <class MakeKey, class Put, class Value>
class MapStory {
public:
    using Key = std::invoke_result_t<MakeKey, int>;
    using Items = std::map<Key, sql::Bytes>;

    MapStory(Statements& story, const MapStatements& map, MakeKey key, Put put, Value)
        : story_(story), map_(map), key_(std::move(key)), put_(std::move(put)) {}

    void tell_of_one_item() {
        EXPECT_EQ(drop(1), 0);
        EXPECT_EQ(drop(2), 0);
        EXPECT_EQ(clear(), 0);
        EXPECT_THAT(items(run_), IsEmpty());
        EXPECT_EQ(put_(neighbour_, key_(1), "of another run"), 1);
        EXPECT_EQ(put_(run_, key_(1), "one"), 1);
        EXPECT_EQ(items(run_), item("one"));
        EXPECT_EQ(put_(run_, key_(1), "newer"), Value::is_set ? 0 : 1);
        EXPECT_EQ(items(run_), item("newer")) << "put again, an item has the newer value";
        EXPECT_EQ(drop(1), 1);
        EXPECT_THAT(items(run_), IsEmpty());
        EXPECT_EQ(items(neighbour_), item("of another run"));
    }

    void tell_of_many_items() {
        EXPECT_EQ(put_(neighbour_, key_(1), "of another run"), 1);
        Items expected;
        std::int64_t put_rows = 0;
        for (int i = 0; i < 5; ++i) {
            const std::string data = "item " + std::to_string(i);
            put_rows += put_(run_, key_(i), data);
            expected[key_(i)] = Value::of_data(bytes(data));
        }
        EXPECT_EQ(put_rows, 5);
        EXPECT_EQ(items(run_), expected) << "all of them, each with its own value";
        EXPECT_EQ(drop(1) + drop(3), 2);
        expected.erase(key_(1));
        expected.erase(key_(3));
        EXPECT_EQ(items(run_), expected);
        EXPECT_EQ(clear(), 3);
        EXPECT_THAT(items(run_), IsEmpty());
        EXPECT_EQ(items(neighbour_), item("of another run"));
    }

private:
    Items items(const Uuid& of) {
        Items found;
        for (const sql::Row row : story_.rows(map_.all, shard_7, of)) {
            EXPECT_TRUE(found.emplace(row.template get<Key>(0), Value::of_row(row)).second);
        }
        return found;
    }
    Items item(std::string_view data) { return {{key_(1), Value::of_data(bytes(data))}}; }
    std::int64_t drop(int i) {
        if constexpr (std::is_same_v<Key, std::string>) {  // Stands beside its digest.
            return story_.count(map_.drop, shard_7, run_, key_digest(key_(i)), key_(i));
        } else {
            return story_.count(map_.drop, shard_7, run_, key_(i));
        }
    }
    std::int64_t clear() { return story_.count(map_.clear, shard_7, run_); }

    Statements& story_;
    MapStatements map_;
    MakeKey key_;
    Put put_;
    Uuid run_ = Uuid::v4();
    Uuid neighbour_ = Uuid::v4();
};

// Tells the same story of each map.
template <class Tell>
void in_every_map(Statements& story, const Tell& tell) {
    const auto number = [](int i) { return std::int64_t{i} + 100; };
    const auto name = [](int i) { return "item-" + std::to_string(i); };
    const auto blobs = [&](const MapStatements& map, const auto& key) {
        const auto put = [&](const Uuid& run, const auto& item, std::string_view data) {
            if constexpr (std::is_same_v<std::decay_t<decltype(item)>, std::string>) {
                return story.count(
                    map.put, shard_7, run, key_digest(item), item, bytes(data), "Proto3");
            } else {
                return story.count(map.put, shard_7, run, item, bytes(data), "Proto3");
            }
        };
        tell(MapStory(story, map, key, put, BlobOf{}));
    };
    blobs({put_activity, all_activity, drop_activity, clear_activity}, number);
    blobs({put_timer, all_timer, drop_timer, clear_timer}, name);
    blobs({put_child, all_child, drop_child, clear_child}, number);
    blobs({put_request_cancel, all_request_cancel, drop_request_cancel, clear_request_cancel},
          number);
    blobs({put_signal, all_signal, drop_signal, clear_signal}, number);
    const MapStatements requested{
        put_signal_requested, all_signal_requested, drop_signal_requested, clear_signal_requested};
    const auto put = [&](const Uuid& run, const std::string& signal, std::string_view) {
        return story.count(put_signal_requested, shard_7, run, key_digest(signal), signal);
    };
    tell(MapStory(story, requested, name, put, NothingOf{}));
}

TEST_P(Statements, AnOpenItemIsPutReadAndDroppedAlikeInEveryMap) {
    HOLDFAST_CHECK("store 25");
    HOLDFAST_CHECK("store 27");
    HOLDFAST_CHECK("store 29");
    HOLDFAST_CHECK("store 30");
    HOLDFAST_CHECK("store 31");
    HOLDFAST_CHECK("store 32");
    in_every_map(*this, [](auto map) { map.tell_of_one_item(); });
}

TEST_P(Statements, ManyOpenItemsAreReadDroppedAndClearedAlikeInEveryMap) {
    HOLDFAST_CHECK("store 26");
    HOLDFAST_CHECK("store 28");
    HOLDFAST_CHECK("store 33");
    HOLDFAST_CHECK("store 34");
    in_every_map(*this, [](auto map) { map.tell_of_many_items(); });
}

TEST_P(Statements, NodesOfAnExecutionsTreeAreKeptByTheirPath) {
    const auto path = [](int i) { return "root/" + std::to_string(i); };
    const auto put = [&](int i, std::string_view data) {
        return count(
            put_chasm, shard_7, run, path(i), bytes("meta"), "Proto3", bytes(data), "Json");
    };
    const auto values = [&] {
        std::map<std::string, sql::Bytes> found;
        for (const sql::Row row : rows(all_chasm, shard_7, run)) {
            found[row.get<std::string>(0)] = row.get<sql::Bytes>(3);
        }
        return found;
    };
    std::map<std::string, sql::Bytes> expected;

    HOLDFAST_CHECK("store 35");
    for (int i = 0; i < 15; ++i) {
        EXPECT_EQ(put(i, "old"), 1);
        expected[path(i)] = bytes("old");
    }
    EXPECT_EQ(values(), expected);
    HOLDFAST_CHECK("store 36");
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(put(i, "new"), 1);
        expected[path(i)] = bytes("new");
    }
    EXPECT_EQ(values(), expected);
    HOLDFAST_CHECK("store 37");
    HOLDFAST_CHECK("store 39");
    for (int i = 5; i < 10; ++i) {
        EXPECT_EQ(count(drop_chasm, shard_7, run, path(i)), 1);
        expected.erase(path(i));
    }
    EXPECT_EQ(values(), expected);
    HOLDFAST_CHECK("store 38");
    EXPECT_EQ(count(clear_chasm, shard_7, run), 10);
    EXPECT_TRUE(values().empty());
}

TEST_P(Statements, BufferedEventsComeBackInTheOrderInWhichTheyCame) {
    const auto insert = [&](sql::Tx& tx, int i) {
        return tx.count(
            insert_buffered_event, shard_7, run, bytes("event " + std::to_string(i)), "Proto3");
    };
    const auto read = [&] {
        std::vector<sql::Bytes> found;
        for (const sql::Row row : rows(select_buffered_events, shard_7, run)) {
            found.push_back(row.get<sql::Bytes>(0));
        }
        return found;
    };
    HOLDFAST_CHECK("store 42");
    EXPECT_EQ(count(delete_buffered_events, shard_7, run), 0);
    EXPECT_THAT(read(), IsEmpty());

    HOLDFAST_CHECK("store 40");
    HOLDFAST_CHECK("store 41");
    std::vector<sql::Bytes> expected;
    db->transact("Test", {}, [&](sql::Tx& tx) {
        expected.clear();
        std::int64_t inserted = 0;
        for (int i = 0; i < 20; ++i) {
            inserted += insert(tx, i);
            expected.push_back(bytes("event " + std::to_string(i)));
        }
        EXPECT_EQ(inserted, 20);
    });
    EXPECT_EQ(read(), expected);
    HOLDFAST_CHECK("store 43");
    EXPECT_EQ(count(delete_buffered_events, shard_7, run), 20);
    EXPECT_THAT(read(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Every, Statements, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
