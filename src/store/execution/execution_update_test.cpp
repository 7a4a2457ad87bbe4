#include "execution/test/run_fixture.hpp"

namespace holdfast::store::tests {
namespace {

class UpdateStory : public RunStory {};

TEST_P(UpdateStory, AnUpdateChangesWhatItNamesAndLeavesTheRest) {
    for (const Archetype kind : {workflow_archetype, scheduler}) {
        HOLDFAST_CHECK("store 139");
        const Snapshot made = create(workflow("order", kind));
        const Branch branch = History::new_branch(TreeId::random());
        append(branch, 1, 10, 0);
        append(branch, 3, 11, 10);
        EXPECT_THAT(history_of(branch, made), ElementsAre(10)) << "not yet";
        Mutation change = mutation(made);
        change.record.next_event_id = 9;
        change.info = blob("new info");
        change.current.status = RunStatus::paused;
        change.opened.activities = {{5, blob("newer")}, {50, blob("opened and closed at once")}};
        change.opened.signals_requested = {"s1", "s3"};
        change.opened.chasm = {{"a/b", {.metadata = blob("m"), .data = std::nullopt}}};
        change.closed = {.activities = {6, 50},
                         .timers = {"timer"},
                         .children = {7},
                         .request_cancels = {8},
                         .signals = {9},
                         .signals_requested = {"s2"},
                         .chasm = {"a/c"}};
        change.buffered = blob("first");
        executions.update({.lease = lease, .mutation = change});

        HOLDFAST_CHECK("store 145");
        Execution expected{.record = change.record,
                           .info = blob("new info"),
                           .items = {},
                           .buffered = {blob("first")}};
        expected.items.activities = {{5, blob("newer")}};
        expected.items.signals_requested = {"s1", "s3"};
        expected.items.chasm = change.opened.chasm;
        EXPECT_EQ(find(made), expected);
        EXPECT_EQ(current(made.workflow), change.current);
        EXPECT_THAT(history_of(branch, made), ElementsAre(10, 11));

        Mutation more = mutation(made, 2);
        more.buffered = blob("second");
        executions.update({.lease = lease, .mutation = more});
        EXPECT_THAT(find(made).value().buffered, ElementsAre(blob("first"), blob("second")));
        more.record.db_record_version += 1;
        more.clear_buffered = true;
        more.buffered = blob("after");
        executions.update({.lease = lease, .mutation = more});
        EXPECT_THAT(find(made).value().buffered, ElementsAre(blob("after")));
        more.record.db_record_version += 1;
        more.buffered.reset();
        executions.update({.lease = lease, .mutation = more});
        EXPECT_THAT(find(made).value().buffered, IsEmpty());
    }
}

TEST_P(UpdateStory, HistoryThatARequestBringsIsThereWithTheRunOrNotAtAll) {
    const Branch branch = History::new_branch(TreeId::random());
    const auto node = [&](std::int64_t id, std::int64_t txn, std::int64_t previous) {
        return AppendRequest{
            .branch = branch,
            .is_new_branch = previous == 0,
            .node = {
                .id = id, .txn_id = txn, .previous_txn_id = previous, .events = blob("events")}};
    };
    const auto nodes = [&] { return db.number("SELECT count(*) FROM history_node"); };
    const Snapshot made = snapshot(workflow("order"), RunId::random());
    CreateRequest first{.lease = stale, .snapshot = made, .history = {node(1, 10, 0)}};
    EXPECT_THROW(executions.create(first), ShardOwnershipLost);
    EXPECT_EQ(nodes(), 0);
    first.lease = lease;
    executions.create(first);
    EXPECT_THAT(history_of(branch, made), ElementsAre(10));
    EXPECT_THAT(history.branches(lease.shard, branch.tree), SizeIs(1));

    UpdateRequest second{
        .lease = lease, .mutation = mutation(made, 0), .history = {node(3, 11, 10)}};
    EXPECT_THROW(executions.update(second), WorkflowConditionFailed);
    EXPECT_EQ(nodes(), 1);
    second.mutation = mutation(made);
    second.mutation.record.next_event_id = 5;
    executions.update(second);
    EXPECT_THAT(history_of(branch, made), ElementsAre(10, 11));
    EXPECT_EQ(nodes(), 2);
}

TEST_P(UpdateStory, WhoDoesNotKnowTheStateOfARunChangesNothing) {
    const Branch branch = History::new_branch(TreeId::random());
    append(branch, 1, 10, 0);
    const Snapshot made = create(workflow("order"));
    HOLDFAST_CHECK("store 141");
    append(branch, 3, 11, 10);  // Of the write that is refused.
    Mutation late = mutation(made, 0);
    late.tasks[Category::transfer] = {{.key = {.fire = {}, .id = 1}, .blob = blob("task")}};
    const auto stale_token = error_of<WorkflowConditionFailed>(
        [&] { executions.update({.lease = lease, .mutation = late}); });
    EXPECT_EQ(stale_token.db_record_version(), 1);
    EXPECT_EQ(stale_token.next_event_id(), 3);
    EXPECT_EQ(stale_token.outcome(), Outcome::not_applied);

    HOLDFAST_CHECK("store 140");
    const Snapshot unknown = snapshot(made.workflow, RunId::random());
    EXPECT_EQ(error_of<CurrentWorkflowConditionFailed>([&] {
                  executions.update({.lease = lease, .mutation = mutation(unknown)});
              }).current(),
              made.current);
    EXPECT_EQ(find(unknown), std::nullopt);
    const Snapshot nowhere = snapshot(workflow("unknown"), RunId::random());
    EXPECT_EQ(error_of<CurrentWorkflowConditionFailed>([&] {
                  executions.update({.lease = lease, .mutation = mutation(nowhere)});
              }).current(),
              std::nullopt);
    EXPECT_THROW(executions.update({.lease = stale, .mutation = mutation(made)}),
                 ShardOwnershipLost);
    EXPECT_THROW(
        executions.update(
            {.lease = lease, .mode = UpdateMode::ignore_current, .mutation = mutation(unknown)}),
        ConditionFailed);
    EXPECT_EQ(find(made), stored(made));
    EXPECT_THAT(history_of(branch, made), ElementsAre(10)) << "what was left behind is not seen";
    EXPECT_EQ(db.number("SELECT count(*) FROM transfer_tasks"), 0);
}

TEST_P(UpdateStory, AWriterWithoutVersionsIsFencedByTheNextEvent) {
    HOLDFAST_CHECK("store 146");
    const Snapshot made = snapshot(workflow("order"), RunId::random(), 0);
    executions.create({.lease = lease, .snapshot = made});
    Mutation change = mutation(made, 0);
    change.record.next_event_id = 5;
    change.expected_next_event_id = 4;
    EXPECT_EQ(error_of<WorkflowConditionFailed>([&] {
                  executions.update({.lease = lease, .mutation = change});
              }).next_event_id(),
              3);
    change.expected_next_event_id = 3;
    change.buffered = blob("one");
    executions.update({.lease = lease, .mutation = change});
    // Buffered events do not move the next event, and none is lost by that.
    change.expected_next_event_id = 5;
    change.buffered = blob("two");
    executions.update({.lease = lease, .mutation = change});
    EXPECT_THAT(find(made).value().buffered, ElementsAre(blob("one"), blob("two")));
}

TEST_P(UpdateStory, ARunContinuesAsANewOneInOneStep) {
    HOLDFAST_CHECK("store 142");
    const Snapshot made = create(workflow("order"));
    const Snapshot follower = snapshot(made.workflow, RunId::random());
    Mutation last = mutation(made);
    last.current.state = RunState::completed;
    executions.update({.lease = lease, .mutation = last, .new_run = follower});
    EXPECT_EQ(find(follower), stored(follower));
    EXPECT_EQ(find(made).value().record, last.record);
    EXPECT_EQ(current(made.workflow), follower.current);

    // A run that already exists cannot be the new run.
    EXPECT_THROW(
        executions.update({.lease = lease, .mutation = mutation(follower), .new_run = made}),
        WorkflowConditionFailed);
    const Snapshot stranger = snapshot(workflow("another"), RunId::random());
    EXPECT_THROW(
        executions.update({.lease = lease, .mutation = mutation(follower), .new_run = stranger}),
        InvalidPersistenceRequest);
    EXPECT_EQ(find(follower), stored(follower));
}

TEST_P(UpdateStory, ZombiesAndClosedRunsAreWrittenWithoutTouchingThePointer) {
    const Snapshot made = create(workflow("order"));
    const Snapshot zombie = create_zombie(made.workflow);
    HOLDFAST_CHECK("store 143");
    const auto bypass = [&](const Mutation& change, std::optional<Snapshot> follower = {}) {
        executions.update({.lease = lease,
                           .mode = UpdateMode::bypass_current,
                           .mutation = change,
                           .new_run = std::move(follower)});
    };
    bypass(mutation(zombie));
    EXPECT_EQ(find(zombie).value().record.db_record_version, 2);
    EXPECT_THROW(bypass(mutation(made)), CurrentWorkflowConditionFailed);
    EXPECT_THROW(bypass(mutation(zombie)), WorkflowConditionFailed);
    const Snapshot follower = snapshot(made.workflow, RunId::random());
    bypass(mutation(zombie, 2), follower);
    EXPECT_EQ(find(follower), stored(follower));
    EXPECT_EQ(find(zombie).value().record.db_record_version, 3);
    EXPECT_EQ(current(made.workflow), made.current);
    EXPECT_EQ(find(made), stored(made));

    HOLDFAST_CHECK("store 144");
    for (const Snapshot& closed : {made, follower}) {
        Mutation change = mutation(completed(closed));
        change.info = blob("closed");
        executions.update({.lease = lease, .mode = UpdateMode::ignore_current, .mutation = change});
        EXPECT_EQ(find(closed).value().record, change.record);
    }
    EXPECT_EQ(current(made.workflow), made.current);
}

INSTANTIATE_TEST_SUITE_P(Every, UpdateStory, test::every_backend(), test::backend_name);

// ---- Conflicts, replacement, deletion ---------------------------------------------------------

class ResolveStory : public RunStory {
public:
    const Snapshot made = create(workflow("order"));
    const Snapshot zombie = create_zombie(workflow("order"));

    void expect_unchanged() {
        EXPECT_EQ(find(made), stored(made));
        EXPECT_EQ(find(zombie), stored(zombie));
        EXPECT_EQ(current(made.workflow), made.current);
    }
};

TEST_P(ResolveStory, AZombieTakesThePlaceOfTheCurrentRun) {
    HOLDFAST_CHECK("store 148");
    const Snapshot reset = next(zombie, "reset");
    const Snapshot bystander = create_zombie(made.workflow);
    ResolveRequest request{
        .lease = lease, .reset = reset, .current = mutation(bystander), .new_run = {}};
    EXPECT_EQ(error_of<CurrentWorkflowConditionFailed>([&] {
                  executions.resolve_conflict(request);
              }).current(),
              made.current);
    HOLDFAST_CHECK("store 149");
    request.current = mutation(made, 0);
    EXPECT_THROW(executions.resolve_conflict(request), WorkflowConditionFailed);
    request.current = mutation(made);
    request.reset.record.db_record_version = 9;
    EXPECT_THROW(executions.resolve_conflict(request), WorkflowConditionFailed);
    request.lease = stale;
    EXPECT_THROW(executions.resolve_conflict(request), ShardOwnershipLost);
    expect_unchanged();
    EXPECT_EQ(find(bystander), stored(bystander));

    HOLDFAST_CHECK("store 147");
    request.lease = lease;
    request.reset = reset;
    executions.resolve_conflict(request);
    EXPECT_EQ(find(zombie), stored(reset));
    EXPECT_EQ(find(made).value().record, request.current->record);
    EXPECT_EQ(current(made.workflow), reset.current);
}

// Both would be written under the token that was found, and the second would miss it in silence.
TEST_P(ResolveStory, ARunDoesNotGiveWayToItself) {
    const ResolveRequest request{
        .lease = lease, .reset = next(made, "reset"), .current = mutation(made), .new_run = {}};
    EXPECT_THROW(executions.resolve_conflict(request), InvalidPersistenceRequest);
    expect_unchanged();
}

TEST_P(ResolveStory, AResetDropsAllThatTheRunHadBefore) {
    HOLDFAST_CHECK("store 153");
    Mutation buffer = mutation(made);
    buffer.buffered = blob("event");
    executions.update({.lease = lease, .mutation = buffer});
    Snapshot reset = next(made, "reset");
    reset.record.db_record_version = 3;
    HOLDFAST_CHECK("store 151");
    ResolveRequest request{.lease = lease, .reset = reset, .current = {}, .new_run = {}};
    executions.resolve_conflict(request);
    EXPECT_EQ(find(made), stored(reset)) << "without the buffered event";
    EXPECT_THROW(executions.resolve_conflict(request), WorkflowConditionFailed);
    request.reset = next(zombie, "reset");
    EXPECT_THROW(executions.resolve_conflict(request), CurrentWorkflowConditionFailed);

    request.reset = reset;
    request.reset.record.db_record_version = 4;
    request.new_run = snapshot(made.workflow, RunId::random());
    executions.resolve_conflict(request);
    EXPECT_EQ(find(*request.new_run), stored(*request.new_run));
    EXPECT_EQ(current(made.workflow), request.new_run->current);
}

TEST_P(ResolveStory, AllThreeRunsOfAResolutionAreStoredTogether) {
    HOLDFAST_CHECK("store 150");
    const Snapshot other = create(workflow("order", scheduler));
    const Snapshot other_zombie = create_zombie(other.workflow);
    for (const auto& [current_run, reset_run] :
         {std::pair{made, zombie}, std::pair{other, other_zombie}}) {
        const Snapshot follower = snapshot(current_run.workflow, RunId::random());
        const Snapshot reset = next(reset_run, "reset");
        executions.resolve_conflict({.lease = lease,
                                     .reset = reset,
                                     .current = mutation(current_run),
                                     .new_run = follower});
        EXPECT_EQ(find(reset_run), stored(reset));
        EXPECT_EQ(find(current_run).value().record.db_record_version, 2);
        EXPECT_EQ(find(follower), stored(follower));
        EXPECT_EQ(current(current_run.workflow), follower.current);
    }
}

TEST_P(ResolveStory, AZombieIsResetBesideTheCurrentRun) {
    HOLDFAST_CHECK("store 152");
    ResolveRequest request{.lease = lease,
                           .mode = ResolveMode::bypass_current,
                           .reset = next(made, "reset"),
                           .current = {},
                           .new_run = {}};
    EXPECT_THROW(executions.resolve_conflict(request), CurrentWorkflowConditionFailed);
    request.reset = next(zombie, "reset");
    request.reset.record.db_record_version = 7;
    EXPECT_THROW(executions.resolve_conflict(request), WorkflowConditionFailed);
    expect_unchanged();
    request.reset.record.db_record_version = 2;
    executions.resolve_conflict(request);
    EXPECT_EQ(find(zombie), stored(request.reset));
    EXPECT_EQ(current(made.workflow), made.current);
    request.reset.record.db_record_version = 3;
    request.new_run = snapshot(made.workflow, RunId::random());
    executions.resolve_conflict(request);
    EXPECT_EQ(find(zombie), stored(request.reset));
    EXPECT_EQ(find(*request.new_run), stored(*request.new_run));
    EXPECT_EQ(current(made.workflow), made.current);
}

TEST_P(ResolveStory, ARunIsReplacedOnlyByWhoKnowsIt) {
    HOLDFAST_CHECK("store 154");
    const Snapshot missing = snapshot(made.workflow, RunId::random(), 2);
    EXPECT_EQ(test::code_of([&] { executions.set(lease, missing); }), Code::condition_failed);
    EXPECT_EQ(find(missing), std::nullopt);
    EXPECT_THROW(executions.set(lease, made), WorkflowConditionFailed);
    EXPECT_THROW(executions.set(stale, next(made, "set")), ShardOwnershipLost);
    expect_unchanged();
    const Snapshot other = create(workflow("order", scheduler));
    for (const Snapshot& run : {made, other}) {
        const Snapshot replacement = next(run, "set");
        executions.set(lease, replacement);
        EXPECT_EQ(find(run), stored(replacement));
        EXPECT_EQ(current(run.workflow), run.current);
    }
}

TEST_P(ResolveStory, WhatIsDeletedLeavesNothingBehind) {
    Mutation buffer = mutation(made);
    buffer.buffered = blob("event");
    executions.update({.lease = lease, .mutation = buffer});

    HOLDFAST_CHECK("store 155");
    const RunId run = made.current.run;
    executions.remove_current(lease, made.workflow, zombie.current.run);
    EXPECT_EQ(current(made.workflow).value().run, run);
    executions.remove_current(lease, made.workflow, run);
    EXPECT_EQ(error_of<NotFound>([&] {
                  (void)executions.get_current(lease.shard, made.workflow);
              }).what(),
              std::string("workflow not found for ID: order"));
    EXPECT_NE(find(made), std::nullopt);

    HOLDFAST_CHECK("store 157");
    const Snapshot again = create(made.workflow);
    const Snapshot other = create(workflow("order", scheduler));
    Mutation paused = mutation(other);
    paused.current.status = RunStatus::paused;
    executions.update({.lease = lease, .mutation = paused});
    EXPECT_EQ(current(other.workflow), paused.current);
    EXPECT_EQ(current(made.workflow), again.current);
    EXPECT_THROW(
        executions.update(
            {.lease = lease, .mutation = mutation(snapshot(made.workflow, other.current.run))}),
        CurrentWorkflowConditionFailed)
        << "the run of one kind is not one of the other";
    executions.remove_current(lease, made.workflow, again.current.run);
    EXPECT_EQ(current(made.workflow), std::nullopt);
    EXPECT_EQ(current(other.workflow), paused.current);
    executions.remove_current(lease, made.workflow, other.current.run);
    EXPECT_EQ(current(other.workflow), paused.current);

    HOLDFAST_CHECK("store 156");
    for (const Snapshot& gone : {made, zombie, again, other}) {
        for (int i = 0; i < 2; ++i) {
            remove(gone);
        }
    }
    EXPECT_EQ(
        error_of<NotFound>([&] { (void)executions.get(lease.shard, made.workflow, run); }).what(),
        "workflow execution not found for workflow ID \"order\" and run ID \"" + run.text() + "\"");
    for (const std::string table : {"executions",
                                    "activity_info_maps",
                                    "timer_info_maps",
                                    "child_execution_info_maps",
                                    "request_cancel_info_maps",
                                    "signal_info_maps",
                                    "signals_requested_sets",
                                    "chasm_node_maps",
                                    "buffered_events"}) {
        EXPECT_EQ(db.number("SELECT count(*) FROM " + table), 0) << table;
    }
}

INSTANTIATE_TEST_SUITE_P(Every, ResolveStory, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
