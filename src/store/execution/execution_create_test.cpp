#include "execution/test/run_fixture.hpp"

namespace holdfast::store::tests {
namespace {

class CreateStory : public RunStory {};

TEST_P(CreateStory, ABrandNewRunIsStoredWholeAndBecomesTheCurrentOne) {
    HOLDFAST_CHECK("store 130");
    const Branch branch = History::new_branch(TreeId::random());
    append(branch, 1, 10, 0);
    const Snapshot made = create(workflow("order"));
    EXPECT_EQ(find(made), stored(made));
    EXPECT_THAT(history_of(branch, made), ElementsAre(10));
    EXPECT_EQ(executions.get(lease.shard, made.workflow, made.current.run), stored(made));
    EXPECT_EQ(current(made.workflow), made.current);
    EXPECT_EQ(executions.get_current(lease.shard, made.workflow), made.current);

    HOLDFAST_CHECK("store 131");
    const Snapshot other = create(workflow("order", scheduler));
    EXPECT_EQ(find(other), stored(other));
    EXPECT_EQ(current(other.workflow), other.current);
    EXPECT_EQ(current(made.workflow), made.current);
    EXPECT_EQ(db.number("SELECT count(*) FROM current_executions"), 1);
    EXPECT_EQ(db.number("SELECT count(*) FROM current_chasm_executions"), 1);
}

TEST_P(CreateStory, ASecondBrandNewRunIsToldWhichOneIsCurrent) {
    HOLDFAST_CHECK("store 132");
    const Snapshot first = create(workflow("order"));
    const Snapshot second = snapshot(first.workflow, RunId::random());
    const CreateRequest request{.lease = lease, .snapshot = second};
    const auto refused =
        error_of<CurrentWorkflowConditionFailed>([&] { executions.create(request); });
    EXPECT_EQ(refused.current(), first.current);  // With its request ids, state and time.
    EXPECT_EQ(refused.outcome(), Outcome::not_applied);
    EXPECT_EQ(request.snapshot.record, second.record);
    EXPECT_EQ(find(second), std::nullopt);
    EXPECT_EQ(find(first), stored(first));

    // A row from before request ids were kept tells of the request that made it.
    db.execute("UPDATE current_executions SET data = NULL");
    const std::map<std::string, RequestEvent> synthesised{
        {first.current.create_request_id, started_event}};
    EXPECT_EQ(error_of<CurrentWorkflowConditionFailed>([&] { executions.create(request); })
                  .current()
                  .value()
                  .request_ids,
              synthesised);
}

TEST_P(CreateStory, ACompletedRunIsFollowedByAnotherIfItIsTheOneThatWasMeant) {
    for (const Archetype kind : {workflow_archetype, scheduler}) {
        const WorkflowKey key = workflow("order", kind);
        const Snapshot first = completed(snapshot(key, RunId::random()));
        HOLDFAST_CHECK("store 137");
        executions.create({.lease = lease, .snapshot = first});
        EXPECT_EQ(current(key), first.current);

        HOLDFAST_CHECK("store 134");
        const Snapshot second = snapshot(key, RunId::random());
        CreateRequest request{.lease = lease,
                              .mode = CreateMode::update_current,
                              .previous_run = RunId::random(),
                              .previous_last_write_version = 100,
                              .snapshot = second};
        const auto refuse = [&] {
            return error_of<CurrentWorkflowConditionFailed>([&] { executions.create(request); })
                .current();
        };
        EXPECT_EQ(refuse(), first.current) << "another run";
        request.previous_run = first.current.run;
        request.previous_last_write_version = 99;
        EXPECT_EQ(refuse(), first.current) << "another version";
        EXPECT_EQ(find(second), std::nullopt);

        HOLDFAST_CHECK("store 133");
        request.previous_last_write_version = 100;
        executions.create(request);
        EXPECT_EQ(current(key), second.current);
        EXPECT_EQ(find(first), stored(first));

        // The second is not completed.
        request.previous_run = second.current.run;
        request.snapshot = snapshot(key, RunId::random());
        EXPECT_EQ(refuse(), second.current);
    }
}

TEST_P(CreateStory, ARunIsNotCreatedTwice) {
    HOLDFAST_CHECK("store 136");
    const Snapshot first = completed(snapshot(workflow("order"), RunId::random()));
    executions.create({.lease = lease, .snapshot = first});
    const auto refused = error_of<WorkflowConditionFailed>([&] {
        executions.create({.lease = lease,
                           .mode = CreateMode::update_current,
                           .previous_run = first.current.run,
                           .previous_last_write_version = 100,
                           .snapshot = first});
    });
    EXPECT_EQ(refused.next_event_id(), 0);
    EXPECT_EQ(refused.db_record_version(), 0);
    EXPECT_EQ(find(first), stored(first));
    const Snapshot third = completed(snapshot(workflow("order"), RunId::random()));
    executions.create({.lease = lease,
                       .mode = CreateMode::update_current,
                       .previous_run = first.current.run,
                       .previous_last_write_version = 100,
                       .snapshot = third});
    EXPECT_EQ(current(first.workflow), third.current);
}

TEST_P(CreateStory, AZombieIsStoredBesideTheCurrentRun) {
    HOLDFAST_CHECK("store 135");
    const Snapshot first = create(workflow("order"));
    const Snapshot zombie = create_zombie(first.workflow);
    EXPECT_EQ(find(zombie), stored(zombie));
    EXPECT_EQ(current(first.workflow), first.current);
    HOLDFAST_CHECK("store 137");
    const Snapshot closed = completed(snapshot(first.workflow, RunId::random()));
    executions.create({.lease = lease, .mode = CreateMode::bypass_current, .snapshot = closed});
    EXPECT_EQ(find(closed), stored(closed));
    // The current run is not a zombie.
    EXPECT_THROW(
        executions.create({.lease = lease, .mode = CreateMode::bypass_current, .snapshot = first}),
        CurrentWorkflowConditionFailed);
}

TEST_P(CreateStory, APointerToARunThatIsGoneDoesNotLockTheWorkflowOut) {
    const Snapshot lost = completed(snapshot(workflow("order"), RunId::random()));
    executions.create({.lease = lease, .snapshot = lost});
    db.execute("DELETE FROM executions");
    const Snapshot follower = snapshot(lost.workflow, RunId::random());
    EXPECT_EQ(error_of<CurrentWorkflowConditionFailed>([&] {
                  executions.create({.lease = lease, .snapshot = follower});
              }).current(),
              lost.current);
    executions.create({.lease = lease,
                       .mode = CreateMode::update_current,
                       .previous_run = lost.current.run,
                       .previous_last_write_version = 100,
                       .snapshot = follower});
    EXPECT_EQ(current(lost.workflow), follower.current);
}

TEST_P(CreateStory, AFormerOwnerOfTheShardWritesNothing) {
    Snapshot made = snapshot(workflow("order"), RunId::random());
    made.tasks[Category::transfer] = {{.key = {.fire = {}, .id = 1}, .blob = blob("task")}};
    EXPECT_EQ(error_of<ShardOwnershipLost>([&] {
                  executions.create({.lease = stale, .snapshot = made});
              }).found(),
              lease.range);
    EXPECT_EQ(find(made), std::nullopt);
    EXPECT_EQ(current(made.workflow), std::nullopt);
    EXPECT_EQ(db.number("SELECT count(*) FROM transfer_tasks"), 0);

    HOLDFAST_CHECK("store 24");
    made.workflow.archetype = Archetype{0};
    EXPECT_EQ(test::code_of([&] { executions.create({.lease = lease, .snapshot = made}); }),
              Code::invalid_argument);
    EXPECT_EQ(test::code_of([&] { (void)current(made.workflow); }), Code::invalid_argument);
    for (const std::string& no_name : {std::string(id_bytes_max + 1, 'x'),
                                       std::string(),
                                       std::string(1, '\0'),
                                       std::string("caf\xE9")}) {
        made.workflow = workflow(no_name);
        EXPECT_EQ(test::code_of([&] { executions.create({.lease = lease, .snapshot = made}); }),
                  Code::invalid_argument)
            << no_name.size() << " bytes";
    }
    EXPECT_EQ(db.number("SELECT count(*) FROM executions"), 0);
    HOLDFAST_CHECK("store 158");
    EXPECT_EQ(test::code_of([&] { Executions::list_concrete(lease.shard); }), Code::unsupported);
}

// Said before anything was tried, and not by the database.
TEST_P(CreateStory, ARequestWhoseIdIsNoNameIsRefusedAtTheDoor) {
    const Snapshot first = create(workflow("order"));
    for (const std::string& no_name :
         {std::string(id_bytes_max + 1, 'x'), std::string(1, '\0'), std::string("caf\xE9")}) {
        Snapshot made = snapshot(workflow("another"), RunId::random());
        made.current.create_request_id = no_name;
        Mutation changed = mutation(first);
        changed.current.create_request_id = no_name;
        Snapshot follower = snapshot(first.workflow, RunId::random());
        follower.current.create_request_id = no_name;
        EXPECT_EQ(test::code_of([&] { executions.create({.lease = lease, .snapshot = made}); }),
                  Code::invalid_argument);
        EXPECT_EQ(test::code_of([&] { executions.update({.lease = lease, .mutation = changed}); }),
                  Code::invalid_argument);
        EXPECT_EQ(test::code_of([&] {
                      executions.update(
                          {.lease = lease, .mutation = mutation(first), .new_run = follower});
                  }),
                  Code::invalid_argument);
        EXPECT_EQ(find(made), std::nullopt);
    }
    EXPECT_EQ(find(first), stored(first));
    Snapshot nameless = snapshot(workflow("another"), RunId::random());
    nameless.current.create_request_id = "";
    EXPECT_NO_THROW(executions.create({.lease = lease, .snapshot = nameless}));
}

INSTANTIATE_TEST_SUITE_P(Every, CreateStory, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
