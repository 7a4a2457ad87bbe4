// What users call things may have 1,000 bytes on every database, and differ in the last of them.
#include "execution/test/run_fixture.hpp"
#include "id_digest.hpp"
#include "visibility/visibility_row.hpp"

#include <holdfast/base/utf8.hpp>
#include <holdfast/store/namespace.hpp>
#include <holdfast/store/task_queue.hpp>
#include <holdfast/store/visibility.hpp>

namespace holdfast::store::tests {
namespace {

// 1,000 bytes, most of them of characters of four; `last` is the only one that differs.
std::string long_id(char last) {
    std::string id = "x";  // So that an index's prefix would end in the middle of a character.
    while (id.size() + 4 < id_bytes_max) {
        id += "\U0001F680";
    }
    id.resize(id_bytes_max - 1, 'x');
    return id + last;
}

class LongIds : public RunStory {
public:
    const std::string one = long_id('1');
    const std::string two = long_id('2');
    const std::string too_long = one + "x";
};

TEST_P(LongIds, OfWorkflowsAndWhatTheyHaveOpenAreToldApart) {
    HOLDFAST_CHECK("store 226");
    ASSERT_EQ(one.size(), id_bytes_max);
    ASSERT_TRUE(is_utf8(one));
    for (const Archetype kind : {workflow_archetype, scheduler}) {
        Snapshot first = snapshot(workflow(one, kind), RunId::random());
        first.current.create_request_id = two;
        first.current.request_ids = {{one, started_event}};
        first.items.timers = {{one, blob("first")}, {two, blob("second")}};
        first.items.signals_requested = {one, two};
        executions.create({.lease = lease, .snapshot = first});
        EXPECT_EQ(find(first), stored(first));
        EXPECT_EQ(current(first.workflow), first.current);
        EXPECT_EQ(current(workflow(two, kind)), std::nullopt);
        const Snapshot second = create(workflow(two, kind));
        EXPECT_EQ(current(second.workflow), second.current);

        Mutation change = mutation(first);
        change.opened.timers = {{one, blob("newer")}};
        change.closed = {.timers = {two}, .signals_requested = {one}};
        executions.update({.lease = lease, .mutation = change});
        EXPECT_EQ(find(first).value().items.timers,
                  (std::map<std::string, Blob>{{one, blob("newer")}}));
        EXPECT_EQ(find(first).value().items.signals_requested, (std::set<std::string>{two}));
        EXPECT_EQ(find(second), stored(second));
        remove(first);
        EXPECT_EQ(current(first.workflow), std::nullopt);
        EXPECT_EQ(current(second.workflow), second.current);
    }
}

TEST_P(LongIds, OfNamespacesAndTaskQueuesAreToldApart) {
    HOLDFAST_CHECK("store 226");
    Namespaces namespaces{db};
    const Namespace first{.id = NamespaceId::random(), .name = one, .info = blob("1")};
    const Namespace second{.id = NamespaceId::random(), .name = two, .info = blob("2")};
    namespaces.create(first);
    namespaces.create(second);
    EXPECT_EQ(namespaces.find(one).value().id, first.id);
    EXPECT_EQ(namespaces.find(two).value().id, second.id);
    EXPECT_THROW(namespaces.create({.id = NamespaceId::random(), .name = one}),
                 NamespaceAlreadyExists);
    namespaces.remove(one);
    EXPECT_EQ(namespaces.find(one), std::nullopt);
    EXPECT_EQ(namespaces.find(two).value().id, second.id);

    for (const Fairness fairness : {Fairness::plain, Fairness::fair}) {
        TaskQueues queues{db, fairness};
        queues.create({.ns = ns, .name = one}, {.range = RangeId{1}, .info = blob("1")});
        queues.create({.ns = ns, .name = two}, {.range = RangeId{2}, .info = blob("2")});
        EXPECT_EQ(queues.find({.ns = ns, .name = one}).value().range, RangeId{1});
        queues.update({.ns = ns, .name = two}, {.range = RangeId{3}, .info = {}}, RangeId{2});
        EXPECT_EQ(queues.find({.ns = ns, .name = two}).value().range, RangeId{3});
    }
    TaskQueueUserData user_data{db};
    user_data.update(ns,
                     {{one, {.data = {.blob = blob("1")}, .added_builds = {"b"}}},
                      {two, {.data = {.blob = blob("2")}, .added_builds = {"b"}}}});
    EXPECT_EQ(user_data.find(ns, one), (UserData{.blob = blob("1"), .version = 1}));
    EXPECT_THAT(user_data.queues_of_build(ns, "b"), ElementsAre(one, two));
    user_data.update(ns,
                     {{one, {.data = {.blob = blob("1"), .version = 1}, .removed_builds = {"b"}}}});
    EXPECT_THAT(user_data.queues_of_build(ns, "b"), ElementsAre(two));
}

TEST_P(LongIds, OfVisibleRunsAreFoundWholeAndByTheirBeginning) {
    HOLDFAST_CHECK("store 227");
    Visibility visibility{db};
    const auto put = [&](const std::string& id, const std::string& type) {
        const VisibilityRecord record{.ns = ns,
                                      .run = RunId::random(),
                                      .version = 1,
                                      .workflow_id = id,
                                      .workflow_type = type,
                                      .start_time = at(1s),
                                      .execution_time = at(1s),
                                      .task_queue = one,
                                      .parent = RelatedRun{.workflow_id = two},
                                      .root = RelatedRun{.workflow_id = two}};
        EXPECT_TRUE(visibility.replace(record));
        EXPECT_EQ(visibility.find(ns, record.run), record);
    };
    put(one, two);
    put(two, one);
    put("short", "short");
    const auto count = [&](const std::string& field, const char* test, const std::string& text) {
        return visibility.count(ns, field + test + quoted_text(text));
    };
    for (const std::string field : {"WorkflowId", "WorkflowType"}) {
        SCOPED_TRACE(field);
        EXPECT_EQ(count(field, " = ", one), 1);
        EXPECT_EQ(count(field, " != ", one), 2);
        EXPECT_EQ(count(field, " STARTS_WITH ", one), 1);
        EXPECT_EQ(count(field, " NOT STARTS_WITH ", one), 2);
        EXPECT_EQ(count(field, " STARTS_WITH ", one.substr(0, id_bytes_max - 1)), 2);
        // Around what the index has of it.
        for (const std::size_t bytes :
             {indexed_prefix_bytes - 3, indexed_prefix_bytes + 1, indexed_prefix_bytes + 5}) {
            EXPECT_EQ(count(field, " STARTS_WITH ", one.substr(0, bytes)), 2) << bytes;
            EXPECT_EQ(count(field, " STARTS_WITH ", one.substr(0, bytes) + "y"), 0) << bytes;
        }
        EXPECT_EQ(count(field, " STARTS_WITH ", "sh"), 1);
        EXPECT_EQ(visibility.count(ns,
                                   field + " IN (" + quoted_text(one) + ", 'short', " +
                                       quoted_text(two + "x") + ")"),
                  2);
        EXPECT_EQ(visibility.list(ns, "ORDER BY " + field, 2).records.size(), 2U);
    }
    EXPECT_EQ(count("TaskQueue", " = ", one), 3);
    EXPECT_EQ(count("ParentWorkflowId", " = ", two), 3);
}

TEST_P(LongIds, OfMoreBytesAreRefused) {
    HOLDFAST_CHECK("store 228");
    const Snapshot good = snapshot(workflow("order"), RunId::random());
    const auto create_with = [&](const auto& spoil) {
        Snapshot bad = good;
        spoil(bad);
        return test::code_of([&] { executions.create({.lease = lease, .snapshot = bad}); });
    };
    EXPECT_EQ(create_with([&](Snapshot& bad) { bad.workflow.workflow_id = too_long; }),
              Code::invalid_argument);
    EXPECT_EQ(create_with([&](Snapshot& bad) { bad.items.timers = {{too_long, blob("t")}}; }),
              Code::invalid_argument);
    EXPECT_EQ(create_with([&](Snapshot& bad) { bad.items.signals_requested = {too_long}; }),
              Code::invalid_argument);
    EXPECT_EQ(create_with([&](Snapshot& bad) {
                  bad.visibility = VisibilityRecord{.ns = ns,
                                                    .run = bad.current.run,
                                                    .workflow_id = bad.workflow.workflow_id,
                                                    .workflow_type = too_long};
              }),
              Code::invalid_argument);
    EXPECT_EQ(find(good), std::nullopt);
    Namespaces namespaces{db};
    TaskQueues queues{db};
    TaskQueueUserData user_data{db};
    for (const auto& use : std::vector<std::function<void()>>{
             [&] { namespaces.create({.id = ns, .name = too_long}); },
             [&] { (void)namespaces.find(too_long); },
             [&] { namespaces.remove(too_long); },
             [&] { queues.create({.ns = ns, .name = too_long}, {.range = RangeId{1}}); },
             [&] { (void)user_data.find(ns, too_long); },
             [&] { user_data.update(ns, {{too_long, {.data = {.blob = blob("u")}}}}); }}) {
        EXPECT_EQ(test::code_of(use), Code::invalid_argument);
    }
}

// Never seen; made here by writing another id beside the digest.
TEST_P(LongIds, WithOneDigestAreNotTakenForEachOther) {
    HOLDFAST_CHECK("store 230");
    const Snapshot made = create(workflow("order"));
    TaskQueues queues{db};
    const TaskQueueKey queue{.ns = ns, .name = "orders"};
    queues.create(queue, {.range = RangeId{1}, .info = {}});
    Namespaces namespaces{db};
    namespaces.create({.id = ns, .name = "ours", .info = {}});
    db.execute("UPDATE current_executions SET workflow_id = 'another'");
    db.execute("UPDATE executions SET workflow_id = 'another'");
    db.execute("UPDATE namespaces SET name = 'another'");
    db.execute(GetParam() == test::Backend::sqlite
                   ? "UPDATE task_queues SET task_queue_name = CAST('another' AS BLOB)"
                   : "UPDATE task_queues SET task_queue_name = 'another'");
    EXPECT_THROW((void)current(made.workflow), DamagedData);
    EXPECT_THROW(executions.update({.lease = lease, .mutation = mutation(made)}), DamagedData);
    EXPECT_EQ(find(made), std::nullopt) << "a run of another workflow";
    EXPECT_THROW((void)queues.find(queue), DamagedData);
    EXPECT_THROW(queues.add(queue, RangeId{1}, {}), DamagedData);
    EXPECT_THROW((void)namespaces.find("ours"), DamagedData);
}

// Items are kept by shard and run, so that no two runs of a shard may have one id.
TEST_P(LongIds, ARunsIdBelongsToOneWorkflowOfItsShard) {
    HOLDFAST_CHECK("store 231");
    const Snapshot made = create(workflow("order"));
    const Snapshot same = snapshot(workflow("another"), made.current.run);
    EXPECT_THROW(executions.create({.lease = lease, .snapshot = same}), WorkflowConditionFailed);
    EXPECT_EQ(find(same), std::nullopt);
    EXPECT_EQ(current(same.workflow), std::nullopt);
    Mutation change = mutation(made);
    change.workflow.workflow_id = "another";
    const UpdateRequest update{
        .lease = lease, .mode = UpdateMode::ignore_current, .mutation = change};
    EXPECT_EQ(test::code_of([&] { executions.update(update); }), Code::condition_failed);
    executions.remove({.lease = lease, .workflow = same.workflow, .run = made.current.run});
    EXPECT_THROW(executions.remove_items(lease, same.workflow, made.current.run), ConditionFailed);
    EXPECT_EQ(find(made), stored(made));
}

INSTANTIATE_TEST_SUITE_P(Every, LongIds, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
