#include <holdfast/store/execution.hpp>

#include "execution/current_run.hpp"
#include "execution/lease.hpp"
#include "execution/run_rows.hpp"
#include "execution/task_rows.hpp"
#include "history/rows.hpp"
#include "transaction.hpp"
#include "visibility/statements.hpp"
#include "visibility/visibility_row.hpp"
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

void require_same_workflow(const RunWrite& one, const Snapshot& other) {
    if (other.workflow != one.workflow) {
        throw InvalidPersistenceRequest(
            fmt::format("a new run of workflow \"{}\" cannot be one of \"{}\"",
                        one.workflow.workflow_id,
                        other.workflow.workflow_id));
    }
}
void require_same_workflow(const RunWrite& one, const std::optional<Snapshot>& other) {
    if (other) {
        require_same_workflow(one, *other);
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

void require_history(const sql::Dialect& dialect, const std::vector<AppendRequest>& nodes) {
    for (const AppendRequest& node : nodes) {
        require_append(dialect, node);
    }
}

// What a write makes visible of its runs, checked before the transaction and written in it.
class VisibleRuns {
public:
    explicit VisibleRuns(const sql::Dialect& dialect) : dialect_(dialect) {}

    void add(const RunWrite& write) {
        if (!write.visibility) {
            return;
        }
        const VisibilityRecord& record = *write.visibility;
        if (record.ns != write.workflow.ns || record.workflow_id != write.workflow.workflow_id ||
            record.run != write.current.run) {
            throw InvalidPersistenceRequest(fmt::format(
                "the visibility of run {} of workflow \"{}\" cannot be written with run "
                "{} of \"{}\"",
                record.run.text(),
                record.workflow_id,
                write.current.run.text(),
                write.workflow.workflow_id));
        }
        rows_.emplace_back(dialect_, record, write.record.db_record_version);
    }
    template <class Write>
    void add(const std::optional<Write>& write) {
        if (write) {
            add(*write);
        }
    }
    // Requires: the transaction has locked the runs' rows, or inserts them.
    void upsert(sql::Tx& tx) const {
        for (const VisibilityRow& row : rows_) {
            row.upsert(tx);
        }
    }

private:
    const sql::Dialect& dialect_;
    std::vector<VisibilityRow> rows_;
};

// The current row, and the run it should name: of the two the run's own version counts.
void require_reusable(const CreateRequest& request,
                      const std::optional<CurrentRun>& found,
                      const std::optional<RunTokens>& previous) {
    const WorkflowKey& workflow = request.snapshot.workflow;
    const CurrentRun current =
        require_current(workflow, request.previous_run.value_or(RunId{}), found);
    const std::int64_t version = previous && previous->is_of_workflow ? previous->last_write_version
                                                                      : current.last_write_version;
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

void create_in(sql::Tx& tx, LeaseProof& proof, const CreateRequest& request) {
    const ShardId shard = request.lease.shard;
    const Snapshot& snapshot = request.snapshot;
    const RunKey key = key_of(shard, snapshot);
    RunKey previous_key = key;
    previous_key.run = request.previous_run.value_or(RunId{}).value;

    sql::LockedRow current_run = ask_current_run(tx, shard, snapshot.workflow);
    sql::LockedRow previous = ask_run(tx, previous_key);
    sql::LockedRow itself = ask_run(tx, key);
    Appends history(tx, shard, request.history);

    proof.require();
    require_mode(request,
                 read_current_run(current_run.rows(), snapshot.workflow),
                 read_run(previous.rows(), snapshot.workflow));
    require_absent(snapshot, read_run(itself.rows(), snapshot.workflow));
    history.require_parents();

    if (request.mode == CreateMode::brand_new) {
        insert_current_run(tx, shard, snapshot.workflow, snapshot.current);
    } else if (request.mode == CreateMode::update_current) {
        move_current_run(
            tx, current_run, snapshot.workflow, RunId{previous_key.run}, snapshot.current);
    }
    history.write(tx);
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
            store::require_absent(*snapshot_, read_run(locked_->rows(), snapshot_->workflow));
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

void update_in(sql::Tx& tx, LeaseProof& proof, const UpdateRequest& request) {
    const ShardId shard = request.lease.shard;
    const Mutation& mutation = request.mutation;
    const bool moves = request.mode == UpdateMode::update_current;

    std::optional<sql::LockedRow> current_run;
    if (request.mode != UpdateMode::ignore_current) {
        current_run = ask_current_run(tx, shard, mutation.workflow);
    }
    sql::LockedRow itself = ask_run(tx, key_of(shard, mutation));
    Follower follower(tx, shard, request.new_run);
    Appends history(tx, shard, request.history);

    proof.require();
    std::optional<CurrentRun> current;
    if (current_run) {
        current = read_current_run(current_run->rows(), mutation.workflow);
        if (moves) {
            (void)require_current(mutation.workflow, mutation.current.run, current);
        } else {
            require_not_current(mutation, current);
        }
    }
    const sql::Guard guard = require_tokens(mutation, itself);
    follower.require_absent();
    history.require_parents();

    // Most writes leave the current run as it is, and its row is locked.
    if (moves && current != follower.current_or(mutation)) {
        move_current_run(tx,
                         *current_run,
                         mutation.workflow,
                         mutation.current.run,
                         follower.current_or(mutation));
    }
    history.write(tx);
    change_run(tx, shard, mutation, guard);
    follower.insert(tx, shard);
}

void resolve_in(sql::Tx& tx, LeaseProof& proof, const ResolveRequest& request) {
    const ShardId shard = request.lease.shard;
    const Snapshot& reset = request.reset;
    const Mutation* const current = request.current ? &*request.current : nullptr;
    const RunId expected = current != nullptr ? current->current.run : reset.current.run;

    sql::LockedRow current_run = ask_current_run(tx, shard, reset.workflow);
    sql::LockedRow itself = ask_run(tx, key_of(shard, reset));
    std::optional<sql::LockedRow> suppressed;
    if (current != nullptr) {
        suppressed = ask_run(tx, key_of(shard, *current));
    }
    Follower follower(tx, shard, request.new_run);
    Appends history(tx, shard, request.history);

    proof.require();
    const std::optional<CurrentRun> found = read_current_run(current_run.rows(), reset.workflow);
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
    history.require_parents();

    if (request.mode == ResolveMode::update_current) {
        move_current_run(tx, current_run, reset.workflow, expected, follower.current_or(reset));
    }
    history.write(tx);
    replace_run(tx, shard, reset, guard);
    if (current != nullptr) {
        change_run(tx, shard, *current, current_guard);
    }
    follower.insert(tx, shard);
}

// One write for each run, and a current run that the request completes or that is completed.
void require_reset(const ResetRequest& request) {
    require_same_workflow(request.base, request.new_run);
    const RunId base = request.base.current.run;
    const Mutation* const current = request.current ? &*request.current : nullptr;
    if (current != nullptr) {
        require_run(*current);
        require_same_workflow(*current, request.new_run);
        if (current->current.run != request.expected_current || current->current.run == base) {
            throw InvalidPersistenceRequest(
                fmt::format("run {} cannot give way: it must be the current one, and another than "
                            "the one that is reset",
                            current->current.run.text()));
        }
    }
    const Mutation* const closed =
        current != nullptr ? current : (base == request.expected_current ? &request.base : nullptr);
    if (closed != nullptr && closed->current.state != RunState::completed) {
        throw InvalidPersistenceRequest(fmt::format(
            "run {} gives way to a new one, so it must be completed", closed->current.run.text()));
    }
}

void reset_in(sql::Tx& tx, LeaseProof& proof, const ResetRequest& request) {
    const ShardId shard = request.lease.shard;
    const WorkflowKey& workflow = request.base.workflow;
    const Mutation* const current = request.current ? &*request.current : nullptr;

    sql::LockedRow current_run = ask_current_run(tx, shard, workflow);
    sql::LockedRow base = ask_run(tx, key_of(shard, request.base));
    std::optional<sql::LockedRow> ended;
    if (current != nullptr) {
        ended = ask_run(tx, key_of(shard, *current));
    }
    sql::LockedRow itself = ask_run(tx, key_of(shard, request.new_run));
    Appends history(tx, shard, request.history);

    proof.require();
    const auto found = read_current_run(current_run.rows(), workflow);
    if (!request.expected_current && found) {
        refuse_current(workflow, "none", found);
    }
    if (request.expected_current) {
        (void)require_current(workflow, *request.expected_current, found);
        const bool gives_way = current != nullptr || found->run == request.base.current.run;
        if (!gives_way && found->state != RunState::completed) {
            refuse_current(workflow, "completed", found);
        }
    }
    const sql::Guard base_guard = require_tokens(request.base, base);
    sql::Guard current_guard;
    if (ended) {
        current_guard = require_tokens(*current, *ended);
    }
    require_absent(request.new_run, read_run(itself.rows(), workflow));
    history.require_parents();

    if (request.expected_current) {
        move_current_run(
            tx, current_run, workflow, *request.expected_current, request.new_run.current);
    } else {
        insert_current_run(tx, shard, workflow, request.new_run.current);
    }
    history.write(tx);
    change_run(tx, shard, request.base, base_guard);
    if (current != nullptr) {
        change_run(tx, shard, *current, current_guard);
    }
    insert_run(tx, shard, request.new_run);
}

void require_removed(const WorkflowKey& workflow,
                     RunId run,
                     const std::optional<RunTokens>& found) {
    if (found) {
        throw ConditionFailed(
            fmt::format("run {} of workflow \"{}\" is still there; remove it before its items",
                        run.text(),
                        workflow.workflow_id));
    }
}

void delete_visibility(sql::Tx& tx, NamespaceId ns, RunId run) {
    tx.exec(statements::delete_visibility, ns.value, run.value);
    tx.exec(statements::delete_attributes, ns.value, run.value);
}

}  // namespace

void Executions::create(const CreateRequest& request, const Call& call) {
    require_run(request.snapshot);
    require_history(shards_.database().dialect(), request.history);
    VisibleRuns visible(shards_.database().dialect());
    visible.add(request.snapshot);
    const auto body = [&](sql::Tx& tx, LeaseProof& proof) {
        create_in(tx, proof, request);
        visible.upsert(tx);
    };
    const Operation& operation = operation::create_run;
    transact_under(shards_, request.lease, operation, inserting(operation, call), call, body);
}

void Executions::update(const UpdateRequest& request, const Call& call) {
    require_run(request.mutation);
    require_run(request.new_run);
    require_history(shards_.database().dialect(), request.history);
    require_same_workflow(request.mutation, request.new_run);
    VisibleRuns visible(shards_.database().dialect());
    visible.add(request.mutation);
    visible.add(request.new_run);
    const auto body = [&](sql::Tx& tx, LeaseProof& proof) {
        update_in(tx, proof, request);
        visible.upsert(tx);
    };
    const Operation& operation = operation::update_run;
    transact_under(shards_, request.lease, operation, inserting(operation, call), call, body);
}

void Executions::resolve_conflict(const ResolveRequest& request, const Call& call) {
    require_run(request.reset);
    require_run(request.new_run);
    require_history(shards_.database().dialect(), request.history);
    require_same_workflow(request.reset, request.new_run);
    require_other_run(request);
    VisibleRuns visible(shards_.database().dialect());
    visible.add(request.reset);
    visible.add(request.current);
    visible.add(request.new_run);
    const auto body = [&](sql::Tx& tx, LeaseProof& proof) {
        resolve_in(tx, proof, request);
        visible.upsert(tx);
    };
    const Operation& operation = operation::resolve_run;
    transact_under(shards_, request.lease, operation, inserting(operation, call), call, body);
}

void Executions::set(const ShardLease& lease, const Snapshot& snapshot, const Call& call) {
    require_run(snapshot);
    VisibleRuns visible(shards_.database().dialect());
    visible.add(snapshot);
    const auto body = [&](sql::Tx& tx, LeaseProof& proof) {
        sql::LockedRow itself = ask_run(tx, key_of(lease.shard, snapshot));
        proof.require();
        const sql::Guard guard = require_tokens(snapshot, itself);
        replace_run(tx, lease.shard, snapshot, guard);
        visible.upsert(tx);
    };
    transact_under(shards_, lease, operation::set_run, call, body);
}

void Executions::reset(const ResetRequest& request, const Call& call) {
    require_run(request.base);
    require_run(request.new_run);
    require_history(shards_.database().dialect(), request.history);
    require_reset(request);
    VisibleRuns visible(shards_.database().dialect());
    visible.add(request.base);
    visible.add(request.current);
    visible.add(request.new_run);
    const auto body = [&](sql::Tx& tx, LeaseProof& proof) {
        reset_in(tx, proof, request);
        visible.upsert(tx);
    };
    const Operation& operation = operation::reset_run;
    transact_under(shards_, request.lease, operation, inserting(operation, call), call, body);
}

void Executions::remove(const RemoveRequest& request, const Call& call) {
    require_workflow(request.workflow);
    const ShardId shard = request.lease.shard;
    const auto body = [&](sql::Tx& tx, LeaseProof& proof) {
        sql::LockedRow current = ask_current_run(tx, shard, request.workflow);
        proof.require();
        remove_current_run(tx, current, request.workflow, request.run);
        delete_run(tx, key_of(shard, request.workflow, request.run));
        delete_visibility(tx, request.workflow.ns, request.run);
        change_tasks(tx, shard, request.done);
        insert_tasks(tx, shard, request.tasks);
    };
    transact_under(shards_, request.lease, operation::delete_run, call, body);
}

void Executions::remove_items(const ShardLease& lease,
                              const WorkflowKey& workflow,
                              RunId run,
                              const Call& call) {
    require_workflow(workflow);
    const RunKey key = key_of(lease.shard, workflow, run);
    // Deletes by `work`, which counts its rows.
    const auto under_proof = [&](const auto& work) {
        const auto body = [&](sql::Tx& tx, LeaseProof& proof) {
            sql::LockedRow itself = ask_run(tx, key);
            proof.require();
            require_removed(workflow, run, read_run(itself.rows(), workflow));
            return work(tx);
        };
        return transact_under(shards_, lease, operation::delete_items, call, body);
    };
    try {
        (void)under_proof([&](sql::Tx& tx) {
            delete_items(tx, key);
            return 0;
        });
    } catch (const Error& error) {
        if (error.code() != Code::limit_exceeded) {
            throw;
        }
        // More than one transaction may do.
        for (const sql::Statement* const shed : item_sheds()) {
            in_chunks([&] {
                return under_proof([&](sql::Tx& tx) { return shed_items(tx, *shed, key); });
            });
        }
    }
}

void Executions::remove_current(const ShardLease& lease,
                                const WorkflowKey& workflow,
                                RunId run,
                                const Call& call) {
    require_workflow(workflow);
    const auto body = [&](sql::Tx& tx, LeaseProof& proof) {
        sql::LockedRow current = ask_current_run(tx, lease.shard, workflow);
        proof.require();
        remove_current_run(tx, current, workflow, run);
    };
    transact_under(shards_, lease, operation::delete_current_run, call, body);
}

std::optional<Execution> Executions::find(ShardId shard,
                                          const WorkflowKey& workflow,
                                          RunId run,
                                          const Call& call) const {
    require_workflow(workflow);
    const RunKey key = key_of(shard, workflow, run);
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
