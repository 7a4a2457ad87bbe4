#include <algorithm>
#include <utility>

#include "engine/run_observer.hpp"
#include "engine/store_turn.hpp"
#include "history/builds/builds.hpp"
#include "history/control/control.hpp"
#include "history/due.hpp"
#include "history/finish.hpp"
#include "history/projection.hpp"

#include <holdfast/base/assert.hpp>
#include <holdfast/base/log.hpp>

namespace holdfast::server::engine {

namespace {

namespace state = history::state;
using std::chrono::microseconds;
using std::chrono::milliseconds;

bool closed(const state::Run& run) {
    return run.phase() == state::PHASE_COMPLETED;
}

sql::Timestamp timestamp_of(const google::protobuf::Timestamp& time) {
    return std::chrono::floor<microseconds>(history::time_of(time));
}

stored::RunName name_of(const state::Run& run) {
    stored::RunName name;
    name.set_namespace_id(run.namespace_id());
    name.set_workflow_id(run.workflow_id());
    name.set_run_id(run.run_id());
    return name;
}

store::Blob transfer_row(const Draft& draft, const matching::Matching& matching) {
    stored::Transfer row;
    row.set_min_reader(1);
    *row.mutable_run() = name_of(draft.run);
    for (const history::Task& task : draft.tasks) {
        stored::TransferTask& kept = *row.add_tasks();
        kept.set_kind(static_cast<int>(task.kind));
        kept.set_event_id(task.event_id);
        kept.set_stamp(task.stamp);
        const bool queued = task.kind == history::Task::Kind::workflow_task ||
                            task.kind == history::Task::Kind::activity;
        if (queued && stands(draft.run, task)) {
            const matching::QueueKey queue = queue_of(draft.run, task, matching);
            const Fairness fairness = fairness_of(draft.run, task, queue);
            kept.set_queue(queue.name);
            kept.set_priority(priority_of(draft.run, task));
            kept.set_fairness_key(fairness.key);
            kept.set_fairness_weight(fairness.weight);
        }
    }
    return encode(row);
}

// Of a closed run only the end is left to do, and nothing if it has no relatives.
bool is_needed(const state::Run& run, const history::Task& task) {
    if (task.kind == history::Task::Kind::close) {
        return run.started().has_parent_workflow_execution() || !run.children().empty();
    }
    return stands(run, task);
}

store::VisibilityRecord visibility_of(const state::Run& run,
                                      const Namespaces& namespaces,
                                      std::int64_t version) {
    const auto& started = run.started();
    store::VisibilityRecord record{
        .ns = store::NamespaceId{uuid_of(run.namespace_id())},
        .run = store::RunId{uuid_of(run.run_id())},
        .version = version,
        .workflow_id = run.workflow_id(),
        .workflow_type = started.workflow_type().name(),
        .status = static_cast<store::RunStatus>(run.status()),
        .start_time = timestamp_of(run.start_time()),
        .execution_time = timestamp_of(run.execution_time()),
    };
    record.task_queue = started.task_queue().name();
    if (!run.memo().empty()) {
        temporal::api::common::v1::Memo memo;
        *memo.mutable_fields() = run.memo();
        record.memo = encode(memo);
    }
    record.search_attributes =
        namespaces.indexed(run.namespace_id(), history::shown_attributes(run));
    if (started.has_parent_workflow_execution()) {
        const auto& parent = started.parent_workflow_execution();
        record.parent = {.workflow_id = parent.workflow_id(),
                         .run = store::RunId{uuid_of(parent.run_id())}};
    }
    if (started.has_root_workflow_execution()) {
        const auto& root = started.root_workflow_execution();
        record.root = {.workflow_id = root.workflow_id(),
                       .run = store::RunId{uuid_of(root.run_id())}};
    } else {
        record.root = {.workflow_id = run.workflow_id(), .run = record.run};
    }
    if (closed(run)) {
        record.close_time = timestamp_of(run.close_time());
        record.history_length = run.next_event_id() - 1;
        record.history_size_bytes = run.history_size_bytes();
        record.execution_duration =
            std::max(*record.close_time - record.execution_time, sql::Timestamp::duration::zero());
        record.state_transition_count = run.state_transition_count();
    }
    return record;
}

bool visibly_differs(const state::Run& before, const state::Run& after) {
    return before.status() != after.status() || before.next_event_id() == 1 ||
           info_differs(before, after) || history::pauses_differ(before, after);
}

}  // namespace

// The row is replaced when the run wants to be looked at earlier, and when it closes. A row that is
// due already has fired or is about to: it does not count.
store::Wake StoreTurn::wake_of(const state::Run& run, RunMeta& meta, const store::TaskKey* fired) {
    std::optional<history::Time> due;
    if (closed(run)) {
        const auto retention = std::max(engine_.parts.namespaces.retention(run.namespace_id()),
                                        engine_.limits.retention_min);
        const std::chrono::duration<double> jitter =
            engine_.limits.retention_jitter * source_.fraction();
        due = history::time_of(run.close_time()) + retention +
              std::chrono::duration_cast<history::Span>(jitter);
    } else {
        due = history::next_due(run);
    }
    const std::optional<store::TaskKey> kept = fired != nullptr ? std::optional(*fired) : meta.wake;
    const Wall now = engine_.parts.clock.wall_now();
    const bool stays = kept && fired == nullptr && !closed(run) && kept->fire > now &&
                       (!due || kept->fire <= *due);
    store::Wake wake;
    if (stays || (!due && fired == nullptr)) {
        return wake;
    }
    wake.remove = kept;
    meta.wake.reset();
    if (due) {
        const store::TaskKey key{.fire = std::chrono::ceil<milliseconds>(*due),
                                 .id = source_.task_id()};
        stored::Wake row;
        row.set_min_reader(1);
        *row.mutable_run() = name_of(run);
        wake.insert = store::Task{.key = key, .blob = encode(row)};
        meta.wake = key;
    }
    return wake;
}

void StoreTurn::prepare(Attempt& attempt,
                        store::RunWrite& write,
                        std::vector<store::AppendRequest>& nodes,
                        const store::TaskKey* fired) {
    Draft& draft = attempt.draft;
    RunMeta& meta = attempt.meta;
    state::Run& run = draft.run;
    HOLDFAST_ASSERT(!run.workflow_task().speculative());
    bool first_node = meta.version == 0;
    ++meta.version;
    for (const auto& batch : draft.batches) {
        const std::int64_t txn = source_.task_id();
        nodes.push_back({.branch = meta.branch,
                         .is_new_branch = std::exchange(first_node, false),
                         .node = {.id = batch.events(0).event_id(),
                                  .txn_id = txn,
                                  .previous_txn_id = meta.last_txn_id,
                                  .events = encode(batch)}});
        meta.last_txn_id = txn;
    }
    std::erase_if(draft.tasks, [&](const auto& task) { return !is_needed(run, task); });
    if (!draft.tasks.empty()) {
        attempt.row = source_.task_id();
        write.tasks[store::Category::transfer].push_back(
            {.key = {.id = *attempt.row}, .blob = transfer_row(draft, engine_.parts.matching)});
    }
    attempt.done = engine_.transfers.done(run);
    for (const std::int64_t row : attempt.done) {
        write.done.push_back({.category = store::Category::transfer, .key = {.id = row}});
    }
    attempt.wake = wake_of(run, meta, fired);
    write.wake = attempt.wake;
    write.workflow = {.ns = store::NamespaceId{uuid_of(run.namespace_id())},
                      .workflow_id = run.workflow_id()};
    write.current = current_row(run);
    write.record.next_event_id = run.next_event_id();
    write.record.db_record_version = meta.version;
    write.record.state = encode_state(run, meta);
}

store::Mutation StoreTurn::mutation_of(CachedRun& cached,
                                       Attempt& attempt,
                                       std::vector<store::AppendRequest>& nodes,
                                       const store::TaskKey* fired) {
    Draft& draft = attempt.draft;
    store::Mutation mutation;
    prepare(attempt, mutation, nodes, fired);
    encode_changes(cached.run, draft.run, mutation);
    if (info_differs(cached.run, draft.run)) {
        mutation.info = encode_info(draft.run, attempt.meta.branch);
    }
    if (visibly_differs(cached.run, draft.run)) {
        mutation.visibility =
            visibility_of(draft.run, engine_.parts.namespaces, attempt.meta.version);
    }
    return mutation;
}

store::Snapshot StoreTurn::snapshot_of(Attempt& attempt, std::vector<store::AppendRequest>& nodes) {
    Draft& draft = attempt.draft;
    if (attempt.meta.branch == store::Branch{}) {  // It has nothing in common with another.
        attempt.meta.branch = store::History::new_branch(store::TreeId::random());
    }
    store::Snapshot snapshot;
    prepare(attempt, snapshot, nodes, nullptr);
    snapshot.info = encode_info(draft.run, attempt.meta.branch);
    snapshot.items = encode_items(draft.run);
    snapshot.visibility = visibility_of(draft.run, engine_.parts.namespaces, attempt.meta.version);
    return snapshot;
}

Draft StoreTurn::first_draft(const std::string& run_id,
                             history::Time now,
                             const std::function<void(history::Transition&)>& begin) {
    const state::Run fresh = history::new_run(key_.namespace_id, run_id);
    history::Transition transition(fresh, now, source_, engine_.limits.run);
    begin(transition);
    history::Finished finished = history::finish(transition);
    Draft draft;
    absorb(draft, std::move(finished.result));
    match_tasks(draft, engine_.parts.matching, now, source_, engine_.limits.run);
    return draft;
}

Draft StoreTurn::follower_of(const Draft& draft) {
    HOLDFAST_ASSERT(draft.next.has_value());
    const history::Continuation& next = *draft.next;
    return first_draft(next.run_id,
                       history::time_of(draft.run.close_time()),
                       [&](history::Transition& transition) {
                           history::start_run(transition, next.started, source_.uuid());
                       });
}

void StoreTurn::commit(CachedRun& cached, Draft draft, const store::TaskKey* fired) {
    if (!draft.changed) {
        return keep(cached, std::move(draft));
    }
    if (draft.next) {
        const auto retention = engine_.parts.namespaces.retention(draft.run.namespace_id());
        history::expire_reset_points(
            draft.run, *draft.next, history::time_of(draft.run.close_time()) + retention);
        Draft next = follower_of(draft);
        draft.next.reset();
        return commit_instead(cached, std::move(draft), std::move(next), fired);
    }
    std::vector<Attempt> attempts;
    attempts.push_back({.draft = std::move(draft), .meta = cached.meta});
    store::UpdateRequest request;
    request.mutation = mutation_of(cached, attempts[0], request.history, fired);
    const bool is_current = current() && current()->run == request.mutation.current.run;
    request.mode =
        is_current ? store::UpdateMode::update_current : store::UpdateMode::bypass_current;
    write(
        [&](const store::ShardLease& lease) {
            request.lease = lease;
            engine_.executions.update(request);
        },
        attempts);
    if (is_current) {
        workflow_->current = request.mutation.current;
    }
    publish(cached, std::move(attempts[0]));
}

void StoreTurn::commit_instead(CachedRun& cached,
                               Draft ended,
                               Draft started,
                               const store::TaskKey* fired) {
    std::vector<Attempt> attempts;
    attempts.push_back({.draft = std::move(ended), .meta = cached.meta});
    attempts.push_back({.draft = std::move(started)});
    store::UpdateRequest request;
    request.mutation = mutation_of(cached, attempts[0], request.history, fired);
    request.new_run = snapshot_of(attempts[1], request.history);
    request.mode = store::UpdateMode::update_current;
    write(
        [&](const store::ShardLease& lease) {
            request.lease = lease;
            engine_.executions.update(request);
        },
        attempts);
    workflow_->current = request.new_run->current;
    publish(cached, std::move(attempts[0]));
    CachedRun& next = workflow_->runs[attempts[1].draft.run.run_id()];
    publish(next, std::move(attempts[1]));
}

void StoreTurn::commit_first(Draft draft, const std::optional<store::CurrentRun>& previous) {
    std::vector<Attempt> attempts;
    attempts.push_back({.draft = std::move(draft)});
    store::CreateRequest request;
    request.snapshot = snapshot_of(attempts[0], request.history);
    if (previous) {
        request.mode = store::CreateMode::update_current;
        request.previous_run = previous->run;
        request.previous_last_write_version = previous->last_write_version;
    }
    write(
        [&](const store::ShardLease& lease) {
            request.lease = lease;
            engine_.executions.create(request);
        },
        attempts);
    workflow_->current = request.snapshot.current;
    workflow_->current_known = true;
    CachedRun& cached = workflow_->runs[attempts[0].draft.run.run_id()];
    publish(cached, std::move(attempts[0]));
}

void StoreTurn::write(const Write& write, std::vector<Attempt>& attempts) {
    store::ShardLease lease;
    try {
        const Shard::Write held = shard_.write();
        lease = held.lease();
        write(lease);
        ++engine_.run_commits;
        return;
    } catch (const store::ShardOwnershipLost&) {
        forget();
    } catch (const Error& error) {
        if (error.outcome() == Outcome::unknown) {
            forget();
            engine_.resolve(key_,
                            std::make_shared<Unresolved>(
                                Unresolved{.lease = lease, .attempts = std::move(attempts)}));
            throw Error(Code::unavailable,
                        Outcome::unknown,
                        "the database did not say whether this was committed; call again");
        }
        if (error.code() == Code::condition_failed) {
            forget();  // What is in memory is not what is stored.
        }
        throw;
    }
    shard_.refused(lease);
    throw Error(Code::unavailable,
                Outcome::not_applied,
                "the shard changed hands while this was written; call again");
}

void StoreTurn::write_rows(const Write& write) {
    store::ShardLease lease;
    try {
        const Shard::Write held = shard_.write();
        lease = held.lease();
        write(lease);
        ++engine_.other_commits;
        return;
    } catch (const store::ShardOwnershipLost&) {
    }
    shard_.refused(lease);
    throw Error(Code::unavailable,
                Outcome::not_applied,
                "the shard changed hands while this was written; call again");
}

void StoreTurn::forget() {
    const RunCache::Key key{key_.namespace_id, key_.workflow_id};
    engine_.cache.forget(key);
    const auto forgotten = std::exchange(workflow_, engine_.cache.get(key));
    for (const auto& [id, run] : forgotten->runs) {
        engine_.update_waits.lose(id);
    }
}

// Turns of a workflow are serial and its writes are fenced: a run with the version that was written
// is what was written.
void StoreTurn::resolve(Unresolved& unresolved) {
    shard_.retake(unresolved.lease);
    for (Attempt& attempt : unresolved.attempts) {
        const Or<CachedRun*> loaded = load(attempt.draft.run.run_id());
        CachedRun* const* found = std::get_if<CachedRun*>(&loaded);
        if (found != nullptr && (*found)->meta.version == attempt.meta.version) {
            announce(**found, attempt);
        }
    }
    unresolved.attempts.clear();  // Polls whose task was not started wait again.
}

void StoreTurn::publish(CachedRun& cached, Attempt attempt) {
    Draft& draft = attempt.draft;
    if (engine_.parts.run_closed && closed(draft.run) && !closed(cached.run)) {
        engine_.parts.run_closed(draft.run.namespace_id(), draft.run.status());
    }
    for (const auto& batch : draft.batches) {
        for (const auto& event : batch.events()) {
            cached.newest = std::max(cached.newest, history::time_of(event.event_time()));
        }
    }
    cached.run = std::move(draft.run);
    cached.meta = std::move(attempt.meta);
    extend_tail(cached, std::move(draft.batches));
    announce(cached, attempt);
}

void StoreTurn::announce(CachedRun& cached, Attempt& attempt) {
    const state::Run& run = cached.run;
    engine_.transfers.remove(run.run_id(), attempt.done);
    if (attempt.wake.remove) {
        engine_.wakes.remove(*attempt.wake.remove);
    }
    if (attempt.wake.insert) {
        engine_.wakes.add(attempt.wake.insert->key,
                          {run.namespace_id(), run.workflow_id(), run.run_id()});
    }
    if (attempt.row) {
        engine_.transfers.add(run.run_id(), *attempt.row, attempt.draft.tasks);
        engine_.offer_rest(run, attempt.draft.tasks, *attempt.row);
    }
    tell_query_results(cached);
    for (Match& match : attempt.draft.matches) {
        deliver(cached, std::move(match));
    }
    if (engine_.parts.observer != nullptr) {
        engine_.parts.observer->committed(run);
    }
    engine_.watches.tell(run.run_id(), run.next_event_id(), closed(run));
    tell_of_updates(cached, attempt.draft.ended_updates);
}

}  // namespace holdfast::server::engine
