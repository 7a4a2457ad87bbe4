#include <holdfast/store/task_queue.hpp>

#include "matching/statements.hpp"
#include "test/store_fixture.hpp"

namespace holdfast::store::tests {
namespace {

class MatchingStatements : public StatementStory {};

struct StatementsOfQueues {
    const sql::Statement& insert;
    const sql::FencedStatement& update;
    const sql::Statement& select;
    const sql::Statement& lock;
    const sql::FencedStatement& remove;
};

void tell_of_queues(MatchingStatements& story, const StatementsOfQueues& table) {
    const StoredQueueKey key = stored_key({.ns = NamespaceId::random(), .name = "orders"});
    const auto insert = [&] {
        return story.count(
            table.insert, key.range_hash, key.digest, key.id, 1, bytes("info"), "Proto3");
    };
    const auto update = [&](std::int64_t from, std::int64_t to) {
        return story.count(
            table.update, {key.range_hash, key.digest}, {from}, to, bytes("newer"), "Json");
    };
    const auto remove = [&](std::int64_t range) {
        return story.count(table.remove, {key.range_hash, key.digest}, {range});
    };
    EXPECT_EQ(update(1, 2), 0);
    EXPECT_EQ(remove(1), 0);
    EXPECT_TRUE(story.rows(table.select, key.range_hash, key.digest).empty());
    EXPECT_EQ(insert(), 1);
    EXPECT_EQ(test::code_of(insert), Code::already_exists);
    const sql::Rows found = story.rows(table.select, key.range_hash, key.digest);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].get<sql::Bytes>(3), key.id) << "the id itself, not its digest";
    const auto columns = [&] {
        const sql::Rows row = story.rows(table.select, key.range_hash, key.digest);
        return std::tuple(
            row[0].get<std::int64_t>(0), row[0].get<sql::Bytes>(1), row[0].get<std::string>(2));
    };
    EXPECT_EQ(columns(), std::tuple(1, bytes("info"), "Proto3"));
    EXPECT_EQ(update(1, 2), 1);
    EXPECT_EQ(update(1, 3), 0);
    EXPECT_EQ(columns(), std::tuple(2, bytes("newer"), "Json"))
        << "what the second one would have written is not there";
    const sql::Rows locked = story.locked(table.lock, key.range_hash, key.digest);
    EXPECT_EQ(locked[0].get<std::int64_t>(0), 2);
    EXPECT_EQ(remove(1), 0);
    EXPECT_EQ(columns(), std::tuple(2, bytes("newer"), "Json"));
    EXPECT_EQ(remove(2), 1);
    EXPECT_TRUE(story.rows(table.select, key.range_hash, key.digest).empty());
}

TEST_P(MatchingStatements, AQueueIsChangedUnderItsRangeAndKeepsItsId) {
    HOLDFAST_CHECK("store 67");
    HOLDFAST_CHECK("store 68");
    HOLDFAST_CHECK("store 69");
    HOLDFAST_CHECK("store 70");
    HOLDFAST_CHECK("store 71");
    HOLDFAST_CHECK("store 72");
    HOLDFAST_CHECK("store 73");  // There is a statement for each filter, and none for a wrong one.
    using namespace statements;
    tell_of_queues(*this,
                   {insert_task_queue,
                    update_task_queue,
                    select_task_queue,
                    lock_task_queue,
                    delete_task_queue});
    tell_of_queues(*this,
                   {insert_task_queue_v2,
                    update_task_queue_v2,
                    select_task_queue_v2,
                    lock_task_queue_v2,
                    delete_task_queue_v2});
    // Keys that differ in anything differ in the database.
    const TaskQueueKey one{.ns = NamespaceId::random(), .name = "orders"};
    std::set<Uuid> digests;
    std::set<sql::Bytes> ids;
    for (const TaskQueueKey& key :
         {one,
          TaskQueueKey{.ns = NamespaceId::random(), .name = "orders"},
          TaskQueueKey{.ns = one.ns, .name = "order"},
          TaskQueueKey{.ns = one.ns, .name = "orders", .type = TaskQueueType::activity},
          TaskQueueKey{.ns = one.ns, .name = "orders", .subqueue = 1},
          TaskQueueKey{.ns = one.ns, .name = "orders", .subqueue = 300}}) {
        digests.insert(stored_key(key).digest);
        ids.insert(stored_key(key).id);
        EXPECT_EQ(stored_key(key), stored_key(key));
    }
    EXPECT_EQ(digests.size(), 6U);
    EXPECT_EQ(ids.size(), 6U);
    const sql::Bytes id = stored_key({.ns = one.ns, .name = "orders", .subqueue = 300}).id;
    EXPECT_EQ(id.size(), 16U + 6U + 3U);
    EXPECT_EQ(id.back(), std::byte{2}) << "300 is 0xAC 0x02 in LEB128";
}

INSTANTIATE_TEST_SUITE_P(Every, MatchingStatements, test::every_backend(), test::backend_name);

class TaskQueueStory : public testing::TestWithParam<test::Backend> {
public:
    static QueueTask task(std::int64_t pass, std::int64_t id, std::int32_t subqueue = 0) {
        return {.place = {.pass = pass, .id = id},
                .blob = blob("task " + std::to_string(id)),
                .subqueue = subqueue};
    }
    static std::vector<std::int64_t> ids(const std::vector<QueueTask>& tasks) {
        std::vector<std::int64_t> found;
        found.reserve(tasks.size());
        for (const QueueTask& each : tasks) {
            found.push_back(each.place.id);
        }
        return found;
    }
    std::vector<QueueTask> read_all(const TaskQueues& queues, TaskPlace from, std::int64_t page) {
        std::vector<QueueTask> all;
        for (;;) {
            const QueueTaskPage read = queues.read(key, from, page);
            all.insert(all.end(), read.tasks.begin(), read.tasks.end());
            if (!read.next) {
                return all;
            }
            from = *read.next;
        }
    }

    const TaskQueueKey key{.ns = NamespaceId::random(), .name = "orders"};
    MigratedDatabase db{GetParam()};
    TaskQueues plain{db};
    TaskQueues fair{db, Fairness::fair};
    TaskQueueUserData user_data{db};
};

TEST_P(TaskQueueStory, OnlyTheOwnerOfTheRangeChangesAQueueOrAddsToIt) {
    for (TaskQueues* queues : {&plain, &fair}) {
        const std::int64_t pass = queues == &fair ? 1 : 0;
        HOLDFAST_CHECK("store 172");
        const TaskQueue first{.range = RangeId{1}, .info = blob("info")};
        EXPECT_EQ(queues->find(key), std::nullopt);
        queues->create(key, first);
        EXPECT_THROW(queues->create(key, {.range = RangeId{9}, .info = {}}), ConditionFailed);
        EXPECT_EQ(queues->find(key), first);
        HOLDFAST_CHECK("store 173");
        const TaskQueue second{.range = RangeId{2}, .info = blob("taken")};
        EXPECT_THROW(queues->update(key, second, RangeId{7}), ConditionFailed);
        queues->update(key, second, RangeId{1});
        EXPECT_THROW(queues->update(key, first, RangeId{1}), ConditionFailed);
        EXPECT_EQ(queues->find(key), second);

        HOLDFAST_CHECK("store 175");
        EXPECT_THROW(queues->add(key, RangeId{1}, {task(pass, 1)}), ConditionFailed);
        EXPECT_THROW(queues->add({.ns = key.ns, .name = "unknown"}, RangeId{1}, {}),
                     ConditionFailed);
        EXPECT_THAT(queues->read(key, {pass, 0}, 10).tasks, IsEmpty());
        HOLDFAST_CHECK("store 74");
        queues->add(key, RangeId{2}, {task(pass, 1), task(pass, 2, 3)});
        EXPECT_THAT(ids(queues->read(key, {pass, 0}, 10).tasks), ElementsAre(1));
        TaskQueueKey third = key;
        third.subqueue = 3;
        EXPECT_THAT(ids(queues->read(third, {pass, 0}, 10).tasks), ElementsAre(2));
        for (const std::vector<QueueTask>& taken :
             {std::vector{task(pass, 1)}, {task(pass, 5), task(pass, 1)}}) {
            EXPECT_EQ(test::code_of([&] { queues->add(key, RangeId{2}, taken); }),
                      Code::already_exists);
        }
        EXPECT_THAT(queues->read(key, {pass, 0}, 10).tasks, SizeIs(1));

        HOLDFAST_CHECK("store 174");
        EXPECT_THROW(queues->remove(key, RangeId{1}), ConditionFailed);
        queues->remove(key, RangeId{2});
        EXPECT_EQ(queues->find(key), std::nullopt);
        EXPECT_THROW(queues->remove(key, RangeId{2}), ConditionFailed);
    }
}

TEST_P(TaskQueueStory, TasksComeInTheirOrderUntilTheyAreComplete) {
    HOLDFAST_CHECK("store 176");
    HOLDFAST_CHECK("store 75");
    HOLDFAST_CHECK("store 77");
    plain.create(key, {.range = RangeId{1}, .info = {}});
    std::vector<std::int64_t> expected;
    for (std::int64_t batch = 0; batch < 32; ++batch) {
        std::vector<QueueTask> tasks;
        for (std::int64_t id = batch * 32 + 1; id <= (batch + 1) * 32; ++id) {
            tasks.push_back(task(0, id));
            expected.push_back(id);
        }
        plain.add(key, RangeId{1}, tasks);
    }
    EXPECT_EQ(ids(read_all(plain, {}, 1)), expected);
    EXPECT_EQ(ids(read_all(plain, {}, 100)), expected);
    EXPECT_THAT(ids(plain.read(key, {0, 5}, 2, 9).tasks), ElementsAre(5, 6));
    EXPECT_EQ(plain.complete_before(key, RangeId{1}, {0, 1'025}, 1'000), 1'000);
    HOLDFAST_CHECK("store 76");
    EXPECT_THROW(plain.complete_before(key, RangeId{1}, {0, 1'025}, 0), InvalidPersistenceRequest);
    EXPECT_EQ(plain.complete_before(key, RangeId{1}, {0, 1'025}, 1'000), 24)
        << "no task was deleted by that";
    EXPECT_THAT(read_all(plain, {}, 10), IsEmpty());
    EXPECT_THROW((void)plain.read(key, {1, 0}, 1), InvalidPersistenceRequest);
}

TEST_P(TaskQueueStory, TasksOfAFairQueueComeByPassAndThenById) {
    HOLDFAST_CHECK("store 78");
    fair.create(key, {.range = RangeId{1}, .info = {}});
    fair.add(key, RangeId{1}, {task(1, 20), task(1, 5), task(2, 10), task(2, 15)});
    HOLDFAST_CHECK("store 80");
    EXPECT_THAT(ids(read_all(fair, {1, 0}, 1)), ElementsAre(5, 20, 10, 15));
    EXPECT_EQ(fair.read(key, {2, 0}, 1).tasks[0].place, (TaskPlace{2, 10}));
    HOLDFAST_CHECK("store 79");
    HOLDFAST_CHECK("store 177");
    fair.add(key, RangeId{1}, {task(3, 5), task(4, 1), task(5, 20)});
    EXPECT_EQ(fair.complete_before(key, RangeId{1}, {3, 0}, 10), 4);
    EXPECT_THAT(ids(read_all(fair, {1, 0}, 2)), ElementsAre(5, 1, 20));
    constexpr std::int64_t last_id = std::numeric_limits<std::int64_t>::max();
    fair.add(key, RangeId{1}, {task(6, last_id - 1), task(6, last_id), task(7, 2)});
    EXPECT_THAT(ids(read_all(fair, {6, 0}, 1)), ElementsAre(last_id - 1, last_id, 2));
    EXPECT_THROW((void)fair.read(key, {0, 0}, 1), InvalidPersistenceRequest);
    EXPECT_THROW((void)fair.read(key, {1, 0}, 1, 9), InvalidPersistenceRequest);
}

TEST_P(TaskQueueStory, QueuesAreListedInPagesAndEachOnce) {
    HOLDFAST_CHECK("store 180");
    for (TaskQueues* queues : {&plain, &fair}) {
        queues->create(key, {.range = RangeId{1}, .info = {}});
        std::map<sql::Bytes, TaskQueue> expected{{stored_key(key).id, queues->find(key).value()}};
        for (int i = 0; i < 10; ++i) {
            const TaskQueueKey made{.ns = key.ns, .name = "queue-" + std::to_string(i)};
            const TaskQueue queue{.range = RangeId{i}, .info = blob(made.name)};
            queues->create(made, queue);
            expected[stored_key(made).id] = queue;
        }
        std::map<sql::Bytes, TaskQueue> listed;
        std::optional<StoredQueueKey> last;
        for (std::size_t page = 3; page == 3;) {
            const auto some = queues->list(3, last);
            for (const ListedTaskQueue& each : some) {
                EXPECT_TRUE(listed.emplace(each.key.id, each.queue).second);
                last = each.key;
            }
            page = some.size();
        }
        EXPECT_EQ(listed, expected);
    }
}

TEST_P(TaskQueueStory, UserDataOfSeveralQueuesAreWrittenTogetherOrNotAtAll) {
    HOLDFAST_CHECK("store 178");
    const NamespaceId ns = key.ns;
    EXPECT_EQ(user_data.find(ns, "a"), std::nullopt);
    user_data.update(ns, {{"a", {.data = {.blob = blob("one"), .version = 0}}}});
    user_data.update(ns, {{"a", {.data = {.blob = blob("two"), .version = 1}}}});
    EXPECT_EQ(user_data.find(ns, "a"), (UserData{.blob = blob("two"), .version = 2}));
    EXPECT_THROW(user_data.update(ns, {{"a", {.data = {.blob = blob("new"), .version = 0}}}}),
                 UserDataConflict);

    HOLDFAST_CHECK("store 179");
    const auto write = [&](std::int64_t b, std::int64_t c, std::int64_t d) {
        user_data.update(ns,
                         {{"b", {.data = {.blob = blob("b"), .version = b}, .added_builds = {"x"}}},
                          {"c", {.data = {.blob = blob("c"), .version = c}, .added_builds = {"x"}}},
                          {"d",
                           {.data = {.blob = blob("d"), .version = d},
                            .added_builds = {"y"},
                            .removed_builds = {"x"}}}});
    };
    for (std::int64_t version = 0; version < 3; ++version) {
        write(version, version, version);
    }
    const auto conflict = error_of<UserDataConflict>([&] { write(3, 2, 3); });
    EXPECT_THAT(conflict.queues(), ElementsAre("c"));
    for (const std::string queue : {"b", "c", "d"}) {
        EXPECT_EQ(user_data.find(ns, queue).value().version, 3) << queue;
    }
    EXPECT_THAT(user_data.queues_of_build(ns, "x"), ElementsAre("b", "c"));
    EXPECT_EQ(user_data.count_queues_of_build(ns, "x"), 2);
    EXPECT_EQ(user_data.count_queues_of_build(ns, "z"), 0);
    std::vector<std::string> names;
    for (std::string last;;) {
        const auto page = user_data.list(ns, 3, last);
        for (const auto& [name, data] : page) {
            names.push_back(name);
            last = name;
        }
        if (page.size() < 3) {
            break;
        }
    }
    EXPECT_THAT(names, UnorderedElementsAre("a", "b", "c", "d"));
}

INSTANTIATE_TEST_SUITE_P(Every, TaskQueueStory, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
