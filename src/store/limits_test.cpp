// What is too much for one transaction, and what no database could keep.
#include "execution/test/run_fixture.hpp"

#include <holdfast/sql/error.hpp>
#include <holdfast/store/cluster.hpp>
#include <holdfast/store/namespace.hpp>
#include <holdfast/store/queue.hpp>
#include <holdfast/store/task_queue.hpp>

namespace holdfast::store::tests {
namespace {

constexpr std::int64_t too_many = 3'001;  // For one transaction on Aurora DSQL.
constexpr std::int64_t first_id = std::numeric_limits<std::int64_t>::min();
constexpr std::size_t mebibyte = std::size_t{1} << 20U;

class Limits : public RunStory {
public:
    [[nodiscard]] static bool is_bounded() { return GetParam() == test::Backend::dsql; }

    // Refused as a whole where a transaction is bounded, done elsewhere.
    template <class Work>
    void expect_too_large_on_dsql(const Work& work) {
        if (!is_bounded()) {
            EXPECT_NO_THROW(work());
            return;
        }
        const auto refused = error_of<TransactionSizeLimit>(work);
        EXPECT_EQ(refused.code(), Code::limit_exceeded);
        EXPECT_EQ(refused.outcome(), Outcome::not_applied);
        EXPECT_EQ(sql::classify(refused), sql::ErrorClass::limit_exceeded) << "by its cause";
    }
    static Tasks transfers(std::int64_t count) {
        Tasks made;
        for (std::int64_t id = 1; id <= count; ++id) {
            made[Category::transfer].push_back({.key = {.fire = {}, .id = id}, .blob = blob("t")});
        }
        return made;
    }
    [[nodiscard]] std::vector<AppendRequest> nodes(const Branch& branch, std::int64_t count) const {
        std::vector<AppendRequest> made;
        for (std::int64_t id = 1; id <= count; ++id) {
            made.push_back(
                {.branch = branch,
                 .is_new_branch = id == 1,
                 .node = {.id = id,
                          .txn_id = id,
                          .previous_txn_id = id - 1,
                          .events = {.data = sql::Bytes(mebibyte - 100), .encoding = "Proto3"}}});
        }
        return made;
    }

    HistoryTasks tasks{shards};
};

TEST_P(Limits, AWriteOfTooManyRowsIsRefusedAsAWhole) {
    Snapshot made = snapshot(workflow("order"), RunId::random());
    made.tasks = transfers(too_many);
    expect_too_large_on_dsql([&] { executions.create({.lease = lease, .snapshot = made}); });
    EXPECT_EQ(find(made).has_value(), !is_bounded());
    EXPECT_EQ(current(made.workflow).has_value(), !is_bounded());

    Tasks more = transfers(too_many);
    for (Task& task : more[Category::transfer]) {
        task.key.id += too_many;
    }
    expect_too_large_on_dsql([&] { tasks.add(lease, more); });
    EXPECT_EQ(db.number("SELECT count(*) FROM transfer_tasks"), is_bounded() ? 0 : 2 * too_many);
}

// The way out is what Temporal does always: history first, in writes of its own, then the run.
TEST_P(Limits, AHistoryThatIsTooLargeForOneWriteIsAppendedNodeByNode) {
    const Branch branch = History::new_branch(TreeId::random());
    constexpr std::int64_t count = 11;
    const Snapshot made = snapshot(workflow("order"), RunId::random());
    const std::vector<AppendRequest> all = nodes(branch, count);
    if (is_bounded()) {
        expect_too_large_on_dsql(
            [&] { executions.create({.lease = lease, .snapshot = made, .history = all}); });
        EXPECT_EQ(find(made), std::nullopt);
        EXPECT_EQ(db.number("SELECT count(*) FROM history_node"), 0);
        EXPECT_THAT(history.branches(lease.shard, branch.tree), IsEmpty());
    }
    for (const AppendRequest& node : all) {
        history.append(lease, node);
    }
    executions.create({.lease = lease, .snapshot = made});
    std::int64_t read = 0;
    ReadRequest request{.shard = lease.shard, .branch = branch, .page_size = 3};
    do {
        const HistoryPage page = history.read(request);
        read += std::ssize(page.nodes);
        request.after = page.next;
    } while (request.after);
    EXPECT_EQ(read, count);
    history.remove(lease, branch);
    EXPECT_EQ(db.number("SELECT count(*) FROM history_node"), 0);
}

TEST_P(Limits, TasksAreCompletedUpToTheLimitHoweverManyThereAre) {
    const TaskQueueKey key{.ns = ns, .name = "orders"};
    for (const Fairness fairness : {Fairness::plain, Fairness::fair}) {
        TaskQueues queues{db, fairness};
        const std::int64_t pass = fairness == Fairness::fair ? 1 : 0;
        queues.create(key, {.range = RangeId{1}, .info = {}});
        for (std::int64_t first = 1; first <= too_many; first += 1'000) {
            std::vector<QueueTask> some;
            for (std::int64_t id = first; id < first + 1'000; ++id) {
                some.push_back({.place = {.pass = pass, .id = id}, .blob = blob("t")});
            }
            queues.add(key, RangeId{1}, some);
        }
        const TaskPlace end{.pass = pass, .id = 3'901};
        EXPECT_EQ(queues.complete_before(key, RangeId{1}, end, 1), 1);
        EXPECT_EQ(queues.complete_before(key, RangeId{1}, end, 1'500), 1'500);
        const auto left = queues.read(key, {.pass = pass, .id = 0}, 1).tasks;
        EXPECT_EQ(left.at(0).place, (TaskPlace{.pass = pass, .id = 1'502})) << "the first go first";
        EXPECT_EQ(queues.complete_before(key, RangeId{1}, end, 100'000), 2'399);
        EXPECT_EQ(queues.complete_before(key, RangeId{1}, end, 100'000), 0);
        EXPECT_THAT(queues.read(key, {.pass = pass, .id = 0}, 1'000).tasks, SizeIs(100));
    }
}

// A range says "all" by the first and the last of all times.
TEST_P(Limits, ARangeOfTasksMayBeginAndEndAtAnyTime) {
    const TaskRange all{.min = {.fire = sql::Timestamp::min(), .id = first_id},
                        .max = {.fire = sql::Timestamp::max(), .id = 0}};
    for (const Category category : {Category::timer, Category::archival}) {
        Tasks some;
        for (const sql::Timestamp fire :
             {at(-2'000'000'000s), at(0s), at(250'000'000'000s)}) {  // 1906 to 9892.
            some[category].push_back({.key = {.fire = fire, .id = 1}, .blob = blob("t")});
        }
        tasks.add(lease, some);
        EXPECT_EQ(tasks.read(lease.shard, category, all, 10).tasks, some[category]);
        EXPECT_THAT(tasks.read(lease.shard, category, {.min = all.max, .max = all.max}, 10).tasks,
                    IsEmpty());
        tasks.complete(lease, category, all.min);
        EXPECT_EQ(tasks.complete_range(lease, category, all), 3);

        for (const sql::Timestamp never : {sql::Timestamp::min(), sql::Timestamp::max()}) {
            some[category] = {{.key = {.fire = never, .id = 1}, .blob = blob("t")}};
            EXPECT_EQ(test::code_of([&] { tasks.add(lease, some); }), Code::invalid_argument);
        }
    }
    EXPECT_THAT(tasks.read(lease.shard, Category::timer, all, 10).tasks, IsEmpty());
}

TEST_P(Limits, ATimeThatNoDatabaseKeepsIsRefusedAtTheDoor) {
    Cluster cluster{db};
    for (const sql::Timestamp never : {sql::Timestamp::min(), sql::Timestamp::max()}) {
        Snapshot made = snapshot(workflow("order"), RunId::random());
        made.current.start_time = never;
        EXPECT_EQ(test::code_of([&] { executions.create({.lease = lease, .snapshot = made}); }),
                  Code::invalid_argument);
        EXPECT_EQ(test::code_of([&] {
                      cluster.heartbeat({.host = HostId::random(), .session_start = never}, 10s);
                  }),
                  Code::invalid_argument);
    }
    cluster.heartbeat({.host = HostId::random(), .session_start = at(-5s)}, 10s);
    EXPECT_THAT(cluster.members({}, 10), SizeIs(1)) << "whenever its session began";
    EXPECT_THAT(cluster.members({.session_started_after = sql::Timestamp::min()}, 10), SizeIs(1));
    EXPECT_THAT(cluster.members({.session_started_after = sql::Timestamp::max()}, 10), IsEmpty());
}

TEST_P(Limits, PlacesBeyondAllOthersAreNoPlaces) {
    constexpr std::int64_t last = std::numeric_limits<std::int64_t>::max();
    const Branch branch = History::new_branch(TreeId::random());
    append(branch, 1, 10, 0);
    EXPECT_THROW(append(branch, last, 11, 10), InvalidPersistenceRequest);
    EXPECT_THROW(history.trim(lease, branch, last, 10), InvalidPersistenceRequest);
    EXPECT_THROW(history.trim(lease, branch, 1, 0), InvalidPersistenceRequest);
    EXPECT_THROW(history.delete_node(lease, branch, 1, first_id), InvalidPersistenceRequest);
    NamedQueues named{db};
    named.create({.type = 1, .name = "n"});
    EXPECT_THROW((void)named.read({.type = 1, .name = "n"}, 1, last), InvalidPersistenceRequest);
    EXPECT_THAT(named.read({.type = 1, .name = "n"}, 1, last - 1), IsEmpty());
}

// The same on every database: some would take it, some refuse it, in words of their own.
TEST_P(Limits, WhatIsNoNameIsRefusedWhereverItIsAskedFor) {
    Cluster cluster{db};
    NamedQueues named{db};
    TaskQueueUserData user_data{db};
    for (const std::string& no_name : {std::string(name_bytes_max + 1, 'x'),
                                       std::string(),
                                       std::string("a\0b", 3),
                                       std::string("caf\xE9")}) {
        const QueueName queue{.type = 1, .name = no_name};
        for (const auto& use : std::vector<std::function<void()>>{
                 [&] { (void)cluster.find(no_name); },
                 [&] { cluster.remove(no_name); },
                 [&] { named.create(queue); },
                 [&] { named.enqueue(queue, blob("m")); },
                 [&] { (void)named.read(queue, 1); },
                 [&] { named.remove_up_to(queue, 1); },
                 [&] { (void)user_data.queues_of_build(ns, no_name); },
                 [&] { (void)user_data.count_queues_of_build(ns, no_name); },
                 [&] { (void)tasks.is_dlq_empty(lease.shard, no_name, 0); },
                 [&] { tasks.delete_from_dlq(lease, no_name, 0); },
             }) {
            EXPECT_EQ(test::code_of(use), Code::invalid_argument) << no_name.size() << " bytes";
        }
    }
    for (const std::string& no_encoding :
         {std::string(name_bytes_max + 1, 'x'), std::string("a\0b", 3), std::string("caf\xE9")}) {
        Snapshot made = snapshot(workflow("order"), RunId::random());
        made.items.timers["timer"].encoding = no_encoding;
        EXPECT_EQ(test::code_of([&] { executions.create({.lease = lease, .snapshot = made}); }),
                  Code::invalid_argument);
        EXPECT_EQ(find(made), std::nullopt);
        EXPECT_EQ(test::code_of([&] {
                      cluster.save("east", {.blob = {.data = {}, .encoding = no_encoding}});
                  }),
                  Code::invalid_argument);
    }
    Snapshot plain = snapshot(workflow("order"), RunId::random());
    plain.items.timers["timer"].encoding = "";
    executions.create({.lease = lease, .snapshot = plain});
    EXPECT_EQ(find(plain), stored(plain)) << "no encoding is one, too";
}

INSTANTIATE_TEST_SUITE_P(Every, Limits, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
