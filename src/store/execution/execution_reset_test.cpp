// A run that is reset: what ends, what begins, and the history that both have in common.
#include "execution/test/run_fixture.hpp"

namespace holdfast::store::tests {
namespace {

class ResetStory : public RunStory {
public:
    // A run whose history has nodes 1 and 3.
    Snapshot begin(std::string id) {
        Snapshot made = snapshot(workflow(std::move(id)), RunId::random());
        executions.create(
            {.lease = lease, .snapshot = made, .history = {node(base_branch, 1, 10)}});
        append(base_branch, 3, 11, 10);
        return made;
    }
    // It completes, and another run follows.
    Snapshot follow(const Snapshot& made) {
        Snapshot next_run = snapshot(made.workflow, RunId::random());
        executions.update(
            {.lease = lease, .mutation = mutation(completed(made)), .new_run = next_run});
        return next_run;
    }
    static AppendRequest node(const Branch& branch, std::int64_t id, std::int64_t txn) {
        return {.branch = branch,
                .is_new_branch = true,
                .node = {.id = id, .txn_id = txn, .events = blob("events")}};
    }
    // Continues behind node 1.
    [[nodiscard]] ResetRequest request_of(const Snapshot& base) const {
        ResetRequest request{.lease = lease,
                             .expected_current = base.current.run,
                             .base = mutation(completed(base)),
                             .new_run = snapshot(base.workflow, RunId::random())};
        request.base.info = blob("was reset");
        request.new_run.record.next_event_id = 9;
        request.history = {node(History::fork_of(base_branch, 3), 3, 20)};
        request.history[0].forked_from = base_branch.id;
        request.history[0].node.previous_txn_id = 10;
        return request;
    }
    [[nodiscard]] std::vector<std::int64_t> nodes_of(const Branch& branch) const {
        std::vector<std::int64_t> seen;
        for (const Node& node : history.read({.shard = lease.shard, .branch = branch}).nodes) {
            seen.push_back(node.txn_id);
        }
        return seen;
    }

    const Branch base_branch = History::new_branch(TreeId::random());
};

TEST_P(ResetStory, TheCurrentRunEndsAndItsSuccessorSharesItsHistory) {
    HOLDFAST_CHECK("store 222");
    const Snapshot base = begin("order");
    const ResetRequest request = request_of(base);
    executions.reset(request);
    EXPECT_EQ(current(base.workflow), request.new_run.current);
    EXPECT_EQ(find(request.new_run), stored(request.new_run));
    EXPECT_EQ(find(base).value().info, blob("was reset"));
    EXPECT_EQ(find(base).value().record, request.base.record);
    EXPECT_THAT(nodes_of(request.history[0].branch), ElementsAre(10, 20));
    EXPECT_THAT(nodes_of(base_branch), ElementsAre(10, 11));
    history.remove(lease, base_branch);
    EXPECT_THAT(nodes_of(request.history[0].branch), ElementsAre(10, 20)) << "what both share";
}

TEST_P(ResetStory, AnEarlierRunIsResetAndTheOpenCurrentOneIsEnded) {
    HOLDFAST_CHECK("store 222");
    const Snapshot base = begin("order");
    const Snapshot open = follow(base);
    ResetRequest request = request_of(base);
    request.base = mutation(completed(base), 2);
    request.expected_current = open.current.run;
    EXPECT_EQ(
        error_of<CurrentWorkflowConditionFailed>([&] { executions.reset(request); }).current(),
        open.current)
        << "it is open, and nothing ends it";
    request.current = mutation(completed(open));
    request.current->info = blob("terminated");
    executions.reset(request);
    EXPECT_EQ(current(base.workflow), request.new_run.current);
    EXPECT_EQ(find(open).value().info, blob("terminated"));
    EXPECT_EQ(find(base).value().record.db_record_version, 3);
}

TEST_P(ResetStory, AnEarlierRunIsResetWhereTheCurrentOneIsCompleted) {
    HOLDFAST_CHECK("store 222");
    const Snapshot base = begin("order");
    const Snapshot closed = follow(base);
    executions.update({.lease = lease, .mutation = mutation(completed(closed))});
    ResetRequest request = request_of(base);
    request.base = mutation(completed(base), 2);
    request.expected_current = closed.current.run;
    executions.reset(request);
    EXPECT_EQ(current(base.workflow), request.new_run.current);
    EXPECT_EQ(find(closed).value().record.db_record_version, 2) << "it is left alone";
}

TEST_P(ResetStory, AnEarlierRunIsResetWhereTheCurrentOneWasRemoved) {
    const Snapshot base = begin("order");
    const Snapshot closed = follow(base);
    executions.update({.lease = lease, .mutation = mutation(completed(closed))});
    ResetRequest request = request_of(base);
    request.base = mutation(completed(base), 2);
    request.expected_current.reset();
    EXPECT_THROW(executions.reset(request), CurrentWorkflowConditionFailed);
    executions.remove({.lease = lease, .workflow = closed.workflow, .run = closed.current.run});
    executions.reset(request);
    EXPECT_EQ(current(base.workflow), request.new_run.current);
    EXPECT_EQ(find(base).value().record.db_record_version, 3);
}

TEST_P(ResetStory, WhatIsNotAsItsWriterBelievesLeavesEverythingAsItWas) {
    HOLDFAST_CHECK("store 223");
    const Snapshot base = begin("order");
    const Snapshot open = follow(base);
    ResetRequest good = request_of(base);
    good.base = mutation(completed(base), 2);
    good.expected_current = open.current.run;
    good.current = mutation(completed(open));

    ResetRequest bad = good;
    bad.expected_current = base.current.run;
    bad.current.reset();
    EXPECT_THROW(executions.reset(bad), CurrentWorkflowConditionFailed);
    bad = good;
    bad.base.record.db_record_version = 9;
    EXPECT_THROW(executions.reset(bad), WorkflowConditionFailed);
    bad = good;
    bad.current->record.db_record_version = 9;
    EXPECT_THROW(executions.reset(bad), WorkflowConditionFailed);
    bad = good;
    bad.new_run.current.run = base.current.run;
    EXPECT_THROW(executions.reset(bad), WorkflowConditionFailed);
    bad = good;
    bad.history[0].forked_from = BranchId::random();
    EXPECT_THROW(executions.reset(bad), NotFound);

    EXPECT_EQ(current(base.workflow), open.current);
    EXPECT_EQ(find(open), stored(open));
    EXPECT_EQ(find(base).value().record.db_record_version, 2);
    EXPECT_EQ(find(good.new_run), std::nullopt);
    EXPECT_EQ(db.number("SELECT count(*) FROM history_node"), 2);
}

TEST_P(ResetStory, ARequestThatContradictsItselfIsRefused) {
    const Snapshot base = begin("order");
    const ResetRequest good = request_of(base);
    ResetRequest bad = good;
    bad.base.current.state = RunState::running;
    EXPECT_THROW(executions.reset(bad), InvalidPersistenceRequest) << "two runs would be open";
    bad = good;
    bad.current = mutation(completed(base));
    EXPECT_THROW(executions.reset(bad), InvalidPersistenceRequest) << "one run, two writes";
    bad = good;
    bad.new_run.workflow.workflow_id = "another";
    EXPECT_THROW(executions.reset(bad), InvalidPersistenceRequest);
    bad = good;
    bad.history[0].is_new_branch = false;
    EXPECT_THROW(executions.reset(bad), InvalidPersistenceRequest) << "it is forked already";
    EXPECT_EQ(current(base.workflow), base.current);
}

// A fork of a branch that is being deleted would read nodes that are about to go.
TEST_P(ResetStory, ABranchOnItsWayOutIsNotForked) {
    HOLDFAST_CHECK("store 223");
    const Snapshot base = begin("order");
    history.remove(lease, base_branch);
    EXPECT_THROW(executions.reset(request_of(base)), NotFound);
    EXPECT_EQ(current(base.workflow), base.current);
    EXPECT_EQ(find(base), stored(base));
}

INSTANTIATE_TEST_SUITE_P(Every, ResetStory, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
