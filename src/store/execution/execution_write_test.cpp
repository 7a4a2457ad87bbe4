// What a write of a run brings along: tasks that are done, its wake-up row and its visibility.
#include "execution/test/run_fixture.hpp"

#include <holdfast/store/visibility.hpp>

namespace holdfast::store::tests {
namespace {

class WriteStory : public RunStory {
public:
    static Task task(std::int64_t id, std::string_view text = "task") {
        return {.key = {.fire = at(std::chrono::seconds{id}), .id = id}, .blob = blob(text)};
    }
    static Task immediate(std::int64_t id, std::string_view text = "task") {
        return {.key = {.fire = {}, .id = id}, .blob = blob(text)};
    }
    [[nodiscard]] std::vector<Task> read(Category category) const {
        const TaskRange all{.min = {}, .max = {.fire = at(1h), .id = 1'000}};
        return tasks.read(lease.shard, category, all, 100).tasks;
    }
    static VisibilityRecord record_of(const RunWrite& write) {
        return {.ns = write.workflow.ns,
                .run = write.current.run,
                .workflow_id = write.workflow.workflow_id,
                .workflow_type = "order",
                .start_time = at(1s),
                .execution_time = at(1s),
                .search_attributes = {{"customer", {"\"ann\""}}}};
    }
    [[nodiscard]] std::int64_t seen(std::string_view filter) const {
        return visibility.count(ns, filter);
    }

    HistoryTasks tasks{shards};
    Visibility visibility{db};
};

TEST_P(WriteStory, WhatIsDoneGoesAndWhatIsRewrittenStaysWithTheRunThatSaysSo) {
    HOLDFAST_CHECK("store 217");
    const Snapshot made = create(workflow("order"));
    tasks.add(lease,
              {{Category::transfer, {immediate(1), immediate(2), immediate(3)}},
               {Category::timer, {task(1), task(2)}},
               {Category::replication, {immediate(1), immediate(2)}},
               {Category::visibility, {immediate(1), immediate(2)}},
               {Category::archival, {task(1), task(2)}},
               {Category::outbound, {immediate(1), immediate(2)}}});
    Mutation change = mutation(made);
    for (const Category category : {Category::transfer,
                                    Category::timer,
                                    Category::replication,
                                    Category::visibility,
                                    Category::archival,
                                    Category::outbound}) {
        const bool timed = is_scheduled(category);
        change.done.push_back(
            {.category = category, .key = timed ? task(1).key : immediate(1).key});
        change.done.push_back({.category = category,
                               .key = timed ? task(2).key : immediate(2).key,
                               .rewritten = blob("rest")});
    }
    Mutation late = change;
    late.record.db_record_version += 7;
    EXPECT_THROW(executions.update({.lease = lease, .mutation = late}), WorkflowConditionFailed);
    EXPECT_THAT(read(Category::transfer), ElementsAre(immediate(1), immediate(2), immediate(3)))
        << "a refused write does nothing to tasks";

    executions.update({.lease = lease, .mutation = change});
    EXPECT_THAT(read(Category::transfer), ElementsAre(immediate(2, "rest"), immediate(3)));
    EXPECT_THAT(read(Category::timer), ElementsAre(task(2, "rest")));
    EXPECT_THAT(read(Category::replication), ElementsAre(immediate(2, "rest")));
    EXPECT_THAT(read(Category::visibility), ElementsAre(immediate(2, "rest")));
    EXPECT_THAT(read(Category::archival), ElementsAre(task(2, "rest")));
    EXPECT_THAT(read(Category::outbound), ElementsAre(immediate(2, "rest")));

    Mutation again = mutation(made, 2);
    again.done = {{.category = Category::transfer, .key = immediate(1).key},
                  {.category = Category::transfer,
                   .key = immediate(1).key,
                   .rewritten = blob("it does not come back")}};
    executions.update({.lease = lease, .mutation = again});
    EXPECT_THAT(read(Category::transfer), ElementsAre(immediate(2, "rest"), immediate(3)))
        << "one that is gone already is done";
}

TEST_P(WriteStory, ARunHasOneWakeUpRowThatIsReplacedWithIt) {
    HOLDFAST_CHECK("store 218");
    Snapshot made = snapshot(workflow("order"), RunId::random());
    made.wake.insert = task(50, "wake");
    executions.create({.lease = lease, .snapshot = made});
    EXPECT_THAT(read(Category::timer), ElementsAre(task(50, "wake")));

    Mutation earlier = mutation(made);
    earlier.wake = {.remove = task(50).key, .insert = task(20, "wake")};
    executions.update({.lease = lease, .mutation = earlier});
    EXPECT_THAT(read(Category::timer), ElementsAre(task(20, "wake")));

    Mutation same_key = mutation(made, 2);
    same_key.wake = {.remove = task(20).key, .insert = task(20, "another")};
    executions.update({.lease = lease, .mutation = same_key});
    EXPECT_THAT(read(Category::timer), ElementsAre(task(20, "another")));

    Snapshot reset = next(made, "reset");
    reset.record.db_record_version = 4;
    reset.wake.remove = task(20).key;
    Snapshot follower = snapshot(made.workflow, RunId::random());
    follower.wake.insert = task(30, "follower");
    executions.resolve_conflict({.lease = lease, .reset = reset, .new_run = follower});
    EXPECT_THAT(read(Category::timer), ElementsAre(task(30, "follower")));
}

TEST_P(WriteStory, ARunIsVisibleAsItsWriteSaysFromTheSameCommitOn) {
    HOLDFAST_CHECK("store 219");
    Snapshot made = snapshot(workflow("order"), RunId::random());
    made.visibility = record_of(made);
    executions.create({.lease = lease, .snapshot = made});
    VisibilityRecord expected = *made.visibility;
    expected.version = made.record.db_record_version;
    EXPECT_EQ(visibility.find(ns, made.current.run), expected);

    Mutation change = mutation(made);
    change.visibility = record_of(made);
    change.visibility->status = RunStatus::completed;
    change.visibility->close_time = at(9s);
    Snapshot follower = snapshot(made.workflow, RunId::random());
    follower.visibility = record_of(follower);
    Mutation late = change;
    late.record.db_record_version += 7;
    EXPECT_THROW(executions.update({.lease = lease, .mutation = late, .new_run = follower}),
                 WorkflowConditionFailed);
    EXPECT_EQ(seen("ExecutionStatus = 'Completed'"), 0);
    executions.update({.lease = lease, .mutation = change, .new_run = follower});
    EXPECT_EQ(seen("ExecutionStatus = 'Completed'"), 1);
    EXPECT_EQ(seen("ExecutionStatus = 'Running'"), 1);
    EXPECT_EQ(visibility.find(ns, made.current.run).value().version, 2);
}

// A row that was written by other means may have any version: it gives way to the run's own writer.
TEST_P(WriteStory, TheWriterOfARunReplacesItsVisibilityWhateverTheRowHolds) {
    HOLDFAST_CHECK("store 219");
    Snapshot made = snapshot(workflow("order"), RunId::random());
    made.visibility = record_of(made);
    made.visibility->version = 99;
    ASSERT_TRUE(visibility.replace(*made.visibility));
    made.visibility->workflow_type = "newer";
    executions.create({.lease = lease, .snapshot = made});
    EXPECT_EQ(visibility.find(ns, made.current.run).value().workflow_type, "newer");
    EXPECT_EQ(visibility.find(ns, made.current.run).value().version, 1);
}

TEST_P(WriteStory, VisibilityOfAnotherRunIsRefused) {
    const Snapshot made = snapshot(workflow("order"), RunId::random());
    for (const auto& spoil : std::vector<std::function<void(VisibilityRecord&)>>{
             [](VisibilityRecord& record) { record.ns = NamespaceId::random(); },
             [](VisibilityRecord& record) { record.run = RunId::random(); },
             [](VisibilityRecord& record) { record.workflow_id = "another"; }}) {
        Snapshot wrong = made;
        wrong.visibility = record_of(made);
        spoil(*wrong.visibility);
        EXPECT_THROW(executions.create({.lease = lease, .snapshot = wrong}),
                     InvalidPersistenceRequest);
    }
    EXPECT_EQ(find(made), std::nullopt);
}

TEST_P(WriteStory, InfoStaysAsItIsUntilAWriteBringsAnother) {
    HOLDFAST_CHECK("store 220");
    const Snapshot made = create(workflow("order"));
    executions.update({.lease = lease, .mutation = mutation(made)});
    EXPECT_EQ(find(made).value().info, made.info);
    EXPECT_EQ(find(made).value().record.db_record_version, 2);
    Mutation change = mutation(made, 2);
    change.info = blob("new info");
    executions.update({.lease = lease, .mutation = change});
    EXPECT_EQ(find(made).value().info, blob("new info"));
}

TEST_P(WriteStory, AttributesAreReplacedAsAWholeHoweverManyThereAre) {
    HOLDFAST_CHECK("store 219");
    Snapshot made = snapshot(workflow("order"), RunId::random());
    made.visibility = record_of(made);
    executions.create({.lease = lease, .snapshot = made});
    EXPECT_EQ(seen("customer = 'ann'"), 1);

    constexpr int many = 400;  // More than one statement takes.
    Mutation change = mutation(made);
    change.visibility = record_of(made);
    change.visibility->search_attributes.clear();
    std::string list;
    for (int i = 0; i < many; ++i) {
        list += (i == 0 ? "" : ",") + std::to_string(i);
    }
    change.visibility->search_attributes["level"] = {"[" + list + "]"};
    executions.update({.lease = lease, .mutation = change});
    EXPECT_EQ(seen("customer = 'ann'"), 0);
    int found = 0;
    for (int i = 0; i < many; ++i) {
        found += seen("level = " + std::to_string(i)) == 1 ? 1 : 0;
    }
    EXPECT_EQ(found, many);
}

INSTANTIATE_TEST_SUITE_P(Every, WriteStory, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
