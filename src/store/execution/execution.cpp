#include <holdfast/store/execution.hpp>

#include "execution/current_run.hpp"
#include "execution/run_rows.hpp"
#include "execution/shard_mutex.hpp"
#include "execution/statements_shard.hpp"
#include "execution/task_rows.hpp"
#include "history/rows.hpp"
#include "transaction.hpp"
#include <fmt/core.h>

#include <holdfast/sql/error.hpp>

namespace holdfast::store {
namespace {

// Rows that do not exist yet cannot be locked: the second transaction that inserts one gets a
// duplicate key. The next try finds the row, and says what it is. A task whose key is taken is a
// duplicate again.
sql::TxOptions inserting(const Operation& operation, const Call& call) {
    sql::TxOptions options = options_of(operation, call);
    options.on_duplicate = sql::OnDuplicate::retry_once;
    return options;
}

[[noreturn]] void refuse_current(const WorkflowKey& workflow,
                                 std::string_view expected,
                                 const std::optional<CurrentRun>& found) {
    throw CurrentWorkflowConditionFailed(
        fmt::format("the current run of workflow \"{}\" should be {}, but is {}",
                    workflow.workflow_id,
                    expected,
                    found ? found->run.text() : "none"),
        found);
}

CurrentRun require_current(const WorkflowKey& workflow,
                           RunId expected,
                           const std::optional<CurrentRun>& found) {
    if (!found || found->run != expected) {
        refuse_current(workflow, expected.text(), found);
    }
    return *found;
}

void require_not_current(const RunWrite& write, const std::optional<CurrentRun>& found) {
    if (found && found->run == write.current.run) {
        refuse_current(write.workflow, "another than " + write.current.run.text(), found);
    }
}

void require_same_workflow(const RunWrite& one, const std::optional<Snapshot>& other) {
    if (other && other->workflow != one.workflow) {
        throw InvalidPersistenceRequest(
            fmt::format("a new run of workflow \"{}\" cannot be one of \"{}\"",
                        one.workflow.workflow_id,
                        other->workflow.workflow_id));
    }
}

void require_run(const std::optional<Snapshot>& follower) {
    if (follower) {
        store::require_run(*follower);
    }
}

// The run that gives way is written besides the one that is reset: of one run there would be two
// writes under one token.
void require_other_run(const ResolveRequest& request) {
    if (!request.current) {
        return;
    }
    if (request.current->workflow != request.reset.workflow) {
        throw InvalidPersistenceRequest("the current run is one of another workflow");
    }
    if (request.current->current.run == request.reset.current.run) {
        throw InvalidPersistenceRequest(
            fmt::format("run {} is reset, so it cannot give way to itself; leave `current` out",
                        request.reset.current.run.text()));
    }
}

void require_history(const sql::Dialect& dialect,
                     const ShardLease& lease,
                     const std::vector<AppendRequest>& nodes) {
    for (const AppendRequest& node : nodes) {
        if (node.shard != lease.shard) {
            throw InvalidPersistenceRequest(
                fmt::format("the history of shard {} cannot be written under the lease of shard {}",
                            number(node.shard),
                            number(lease.shard)));
        }
        require_append(dialect, node);
    }
}

// The current row, and the run it should name: of the two the run's own version counts.
void require_reusable(const CreateRequest& request,
                      const std::optional<CurrentRun>& found,
                      const std::optional<RunTokens>& previous) {
    const WorkflowKey& workflow = request.snapshot.workflow;
    const CurrentRun current =
        require_current(workflow, request.previous_run.value_or(RunId{}), found);
    const std::int64_t version =
        previous ? previous->last_write_version : current.last_write_version;
    if (version != request.previous_last_write_version || current.state != RunState::completed) {
        refuse_current(
            workflow,
            fmt::format("completed, with version {}", request.previous_last_write_version),
            found);
    }
}

void require_mode(const CreateRequest& request,
                  const std::optional<CurrentRun>& found,
                  const std::optional<RunTokens>& previous) {
    switch (request.mode) {
        case CreateMode::brand_new:
            if (found) {
                refuse_current(request.snapshot.workflow, "none", found);
            }
            return;
        case CreateMode::update_current:
            require_reusable(request, found, previous);
            return;
        case CreateMode::bypass_current:
            require_not_current(request.snapshot, found);
            return;
    }
    throw InvalidPersistenceRequest("there is no such way to create a run");
}

void create_in(sql::Tx& tx, const CreateRequest& request) {
    const ShardId shard = request.lease.shard;
    const Snapshot& snapshot = request.snapshot;
    const RunKey key = key_of(shard, snapshot);
    RunKey previous_key = key;
    previous_key.run = request.previous_run.value_or(RunId{}).value;

    sql::Answer locked = tx.ask(statements::read_lock_shard, number(shard));
    sql::LockedRow current_run = ask_current_run(tx, shard, snapshot.workflow);
    sql::LockedRow previous = ask_run(tx, previous_key);
    sql::LockedRow itself = ask_run(tx, key);
    const sql::Timestamp now = birth_of_branches(tx, request.history);

    require_lease(locked.rows(), request.lease);
    require_mode(request, read_current_run(current_run.rows()), read_run(previous.rows()));
    require_absent(snapshot, read_run(itself.rows()));

    if (request.mode == CreateMode::brand_new) {
        insert_current_run(tx, shard, snapshot.workflow, snapshot.current);
    } else if (request.mode == CreateMode::update_current) {
        move_current_run(
            tx, current_run, snapshot.workflow, RunId{previous_key.run}, snapshot.current);
    }
    append_nodes(tx, request.history, now);
    insert_run(tx, shard, snapshot);
}

// The new run of a write, if it has one: asked for with the other rows, and looked at in its turn.
class Follower {
public:
    Follower(sql::Tx& tx, ShardId shard, const std::optional<Snapshot>& snapshot)
        : snapshot_(snapshot ? &*snapshot : nullptr) {
        if (snapshot_ != nullptr) {
            locked_ = ask_run(tx, key_of(shard, *snapshot_));
        }
    }

    void require_absent() {
        if (locked_) {
            store::require_absent(*snapshot_, read_run(locked_->rows()));
        }
    }
    // What the current run becomes: the new run, else `otherwise`.
    [[nodiscard]] const CurrentRun& current_or(const RunWrite& otherwise) const noexcept {
        return snapshot_ != nullptr ? snapshot_->current : otherwise.current;
    }
    void insert(sql::Tx& tx, ShardId shard) const {
        if (snapshot_ != nullptr) {
            insert_run(tx, shard, *snapshot_);
        }
    }

private:
    const Snapshot* snapshot_;
    std::optional<sql::LockedRow> locked_;
};

void update_in(sql::Tx& tx, const UpdateRequest& request) {
    const ShardId shard = request.lease.shard;
    const Mutation& mutation = request.mutation;
    const bool moves = request.mode == UpdateMode::update_current;

    sql::Answer locked = tx.ask(statements::read_lock_shard, number(shard));
    std::optional<sql::LockedRow> current_run;
    if (request.mode != UpdateMode::ignore_current) {
        current_run = ask_current_run(tx, shard, mutation.workflow);
    }
    sql::LockedRow itself = ask_run(tx, key_of(shard, mutation));
    Follower follower(tx, shard, request.new_run);
    const sql::Timestamp now = birth_of_branches(tx, request.history);

    require_lease(locked.rows(), request.lease);
    std::optional<CurrentRun> current;
    if (current_run) {
        current = read_current_run(current_run->rows());
        if (moves) {
            (void)require_current(mutation.workflow, mutation.current.run, current);
        } else {
            require_not_current(mutation, current);
        }
    }
    const sql::Guard guard = require_tokens(mutation, itself);
    follower.require_absent();

    // Most writes leave the current run as it is, and its row is locked.
    if (moves && current != follower.current_or(mutation)) {
        move_current_run(tx,
                         *current_run,
                         mutation.workflow,
                         mutation.current.run,
                         follower.current_or(mutation));
    }
    append_nodes(tx, request.history, now);
    change_run(tx, shard, mutation, guard);
    follower.insert(tx, shard);
}

void resolve_in(sql::Tx& tx, const ResolveRequest& request) {
    const ShardId shard = request.lease.shard;
    const Snapshot& reset = request.reset;
    const Mutation* const current = request.current ? &*request.current : nullptr;
    const RunId expected = current != nullptr ? current->current.run : reset.current.run;

    sql::Answer locked = tx.ask(statements::read_lock_shard, number(shard));
    sql::LockedRow current_run = ask_current_run(tx, shard, reset.workflow);
    sql::LockedRow itself = ask_run(tx, key_of(shard, reset));
    std::optional<sql::LockedRow> suppressed;
    if (current != nullptr) {
        suppressed = ask_run(tx, key_of(shard, *current));
    }
    Follower follower(tx, shard, request.new_run);
    const sql::Timestamp now = birth_of_branches(tx, request.history);

    require_lease(locked.rows(), request.lease);
    const std::optional<CurrentRun> found = read_current_run(current_run.rows());
    if (request.mode == ResolveMode::update_current) {
        (void)require_current(reset.workflow, expected, found);
    } else {
        require_not_current(reset, found);
    }
    const sql::Guard guard = require_tokens(reset, itself);
    sql::Guard current_guard;
    if (suppressed) {
        current_guard = require_tokens(*current, *suppressed);
    }
    follower.require_absent();

    if (request.mode == ResolveMode::update_current) {
        move_current_run(tx, current_run, reset.workflow, expected, follower.current_or(reset));
    }
    append_nodes(tx, request.history, now);
    replace_run(tx, shard, reset, guard);
    if (current != nullptr) {
        change_run(tx, shard, *current, current_guard);
    }
    follower.insert(tx, shard);
}

}  // namespace

void Executions::create(const CreateRequest& request, const Call& call) {
    require_run(request.snapshot);
    require_history(shards_.database().dialect(), request.lease, request.history);
    const ShardMutex::Hold turn = shards_.shard_mutex().take(request.lease.shard, call);
    const sql::TxOptions options = inserting(operation::create_run, call);
    transact(shards_.database(), operation::create_run, options, [&](sql::Tx& tx) {
        create_in(tx, request);
    });
}

void Executions::update(const UpdateRequest& request, const Call& call) {
    require_run(request.mutation);
    require_run(request.new_run);
    require_history(shards_.database().dialect(), request.lease, request.history);
    require_same_workflow(request.mutation, request.new_run);
    const ShardMutex::Hold turn = shards_.shard_mutex().take(request.lease.shard, call);
    const sql::TxOptions options = inserting(operation::update_run, call);
    transact(shards_.database(), operation::update_run, options, [&](sql::Tx& tx) {
        update_in(tx, request);
    });
}

void Executions::resolve_conflict(const ResolveRequest& request, const Call& call) {
    require_run(request.reset);
    require_run(request.new_run);
    require_history(shards_.database().dialect(), request.lease, request.history);
    require_same_workflow(request.reset, request.new_run);
    require_other_run(request);
    const ShardMutex::Hold turn = shards_.shard_mutex().take(request.lease.shard, call);
    const sql::TxOptions options = inserting(operation::resolve_run, call);
    transact(shards_.database(), operation::resolve_run, options, [&](sql::Tx& tx) {
        resolve_in(tx, request);
    });
}

void Executions::set(const ShardLease& lease, const Snapshot& snapshot, const Call& call) {
    require_run(snapshot);
    const ShardMutex::Hold turn = shards_.shard_mutex().take(lease.shard, call);
    transact(shards_.database(), operation::set_run, call, [&](sql::Tx& tx) {
        sql::Answer locked = tx.ask(statements::read_lock_shard, number(lease.shard));
        sql::LockedRow itself = ask_run(tx, key_of(lease.shard, snapshot));
        require_lease(locked.rows(), lease);
        const sql::Guard guard = require_tokens(snapshot, itself);
        replace_run(tx, lease.shard, snapshot, guard);
    });
}

void Executions::remove(ShardId shard, const WorkflowKey& workflow, RunId run, const Call& call) {
    require_workflow(workflow);
    const RunKey key{.shard = shard,
                     .ns = workflow.ns.value,
                     .workflow_id = workflow.workflow_id,
                     .run = run.value};
    try {
        transact(shards_.database(), operation::delete_run, call, [&](sql::Tx& tx) {
            delete_run(tx, key);
        });
    } catch (const Error& error) {
        if (error.code() != Code::limit_exceeded) {
            throw;
        }
        delete_run_in_chunks(shards_.database(), key, call);  // More than one transaction may do.
    }
}

void Executions::remove_current(ShardId shard,
                                const WorkflowKey& workflow,
                                RunId run,
                                const Call& call) {
    require_workflow(workflow);
    delete_current_run(shards_.database(), shard, workflow, run, call);
}

std::optional<Execution> Executions::find(ShardId shard,
                                          const WorkflowKey& workflow,
                                          RunId run,
                                          const Call& call) const {
    require_workflow(workflow);
    const RunKey key{.shard = shard,
                     .ns = workflow.ns.value,
                     .workflow_id = workflow.workflow_id,
                     .run = run.value};
    return transact(shards_.database(), operation::get_run, call, [&](sql::Tx& tx) {
        return read_execution(tx, key);
    });
}

std::optional<CurrentRun> Executions::find_current(ShardId shard,
                                                   const WorkflowKey& workflow,
                                                   const Call& call) const {
    require_workflow(workflow);
    return find_current_run(shards_.database(), shard, workflow, call);
}

Execution Executions::get(ShardId shard,
                          const WorkflowKey& workflow,
                          RunId run,
                          const Call& call) const {
    if (auto found = find(shard, workflow, run, call)) {
        return *std::move(found);
    }
    throw NotFound(
        fmt::format("workflow execution not found for workflow ID \"{}\" and run ID \"{}\"",
                    workflow.workflow_id,
                    run.text()));
}

CurrentRun Executions::get_current(ShardId shard,
                                   const WorkflowKey& workflow,
                                   const Call& call) const {
    if (auto found = find_current(shard, workflow, call)) {
        return *std::move(found);
    }
    throw NotFound(fmt::format("workflow not found for ID: {}", workflow.workflow_id));
}

void Executions::list_concrete(ShardId shard) {
    throw Unimplemented(fmt::format(
        "the runs of shard {} cannot be listed; ask visibility for them", number(shard)));
}

}  // namespace holdfast::store
