#include "engine/store_turn.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "engine/errand.hpp"
#include "history/due.hpp"
#include "history/finish.hpp"
#include "history/outside.hpp"
#include "history/workflow_task.hpp"
#include <fmt/format.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::engine {

namespace {

namespace state = history::state;
using temporal::api::history::v1::HistoryEvent;

Refusal unknown_workflow(const std::string& workflow_id) {
    return {history::Refused::not_found, fmt::format("workflow not found for ID: {}", workflow_id)};
}

Refusal unknown_run(const std::string& workflow_id, const std::string& run_id) {
    return {history::Refused::not_found,
            fmt::format("workflow execution not found for workflow ID \"{}\" and run ID \"{}\"",
                        workflow_id,
                        run_id)};
}

// No event of the run is later, as far as its state tells.
history::Time newest_of(const state::Run& run) {
    const state::WorkflowTask& task = run.workflow_task();
    return std::max({history::time_of(run.start_time()),
                     history::time_of(run.close_time()),
                     history::time_of(task.scheduled_time()),
                     history::time_of(task.started_time())});
}

// Next attempts of activities go to their queue. That is stored, but says nothing new of the run:
// its count of transitions stays.
bool only_dispatches(const Draft& draft) {
    return draft.batches.empty() && !draft.tasks.empty() &&
           std::ranges::all_of(draft.tasks, [](const history::Task& task) {
               return task.kind == history::Task::Kind::activity;
           });
}

}  // namespace

StoreTurn::StoreTurn(Engine::State& engine, WorkflowKey workflow)
    : engine_(engine),
      key_(std::move(workflow)),
      shard_(engine.shard_of(key_)),
      source_(shard_),
      workflow_(engine.cache.get({key_.namespace_id, key_.workflow_id})) {}

// Of a chain of runs the last one is looked at; the others are read again if they should be.
StoreTurn::~StoreTurn() {
    settle_queries();
    if (workflow_->current_known && workflow_->current) {
        const std::string current = workflow_->current->run.text();
        std::erase_if(workflow_->runs, [&](const auto& run) {
            return run.first != current && run.second.run.phase() == state::PHASE_COMPLETED;
        });
    }
    engine_.cache.put_back({key_.namespace_id, key_.workflow_id}, bytes_of(*workflow_));
}

const std::optional<store::CurrentRun>& StoreTurn::current() {
    shard_.require_owned();
    if (!workflow_->current_known) {
        workflow_->current =
            engine_.executions.find_current(shard_.id(),
                                            {.ns = store::NamespaceId{uuid_of(key_.namespace_id)},
                                             .workflow_id = key_.workflow_id});
        workflow_->current_known = true;
    }
    return workflow_->current;
}

Or<CachedRun*> StoreTurn::load(const std::string& run_id) {
    shard_.require_owned();
    std::string id = run_id;
    if (id.empty()) {
        if (!current()) {
            return unknown_workflow(key_.workflow_id);
        }
        id = current()->run.text();
    }
    const auto found = workflow_->runs.find(id);
    if (found != workflow_->runs.end()) {
        return &found->second;
    }
    const auto execution = engine_.executions.find(
        shard_.id(),
        {.ns = store::NamespaceId{uuid_of(key_.namespace_id)}, .workflow_id = key_.workflow_id},
        store::RunId{uuid_of(id)});
    if (!execution) {
        return run_id.empty() ? unknown_workflow(key_.workflow_id)
                              : unknown_run(key_.workflow_id, run_id);
    }
    StoredRun stored = decode_run(*execution);
    CachedRun& cached = workflow_->runs[id];
    cached.run = std::move(stored.run);
    cached.meta = std::move(stored.meta);
    cached.newest = newest_of(cached.run);
    return &cached;
}

history::Time StoreTurn::now_for(const CachedRun& run) const {
    return std::max(engine_.now(), run.newest);
}

Or<const state::Run*> StoreTurn::find(const std::string& run_id) {
    const Or<CachedRun*> loaded = load(run_id);
    if (const auto* refusal = std::get_if<Refusal>(&loaded)) {
        return *refusal;
    }
    return &std::get<CachedRun*>(loaded)->run;
}

Draft StoreTurn::draft_of(CachedRun& cached,
                          const Change& change,
                          std::optional<Refusal>& refusal) {
    history::Transition transition(cached.run, now_for(cached), source_, engine_.limits.run);
    refusal = change(transition);
    history::Finished finished = history::finish(transition);
    if (finished.refusal) {
        refusal = std::move(finished.refusal);
    }
    Draft draft;
    absorb(draft, std::move(finished.result));
    return draft;
}

std::optional<Refusal> StoreTurn::change(const std::string& run_id, const Change& change) {
    const Or<CachedRun*> loaded = load(run_id);
    if (const auto* refusal = std::get_if<Refusal>(&loaded)) {
        return *refusal;
    }
    CachedRun& cached = *std::get<CachedRun*>(loaded);
    std::optional<Refusal> refusal;
    Draft draft = draft_of(cached, change, refusal);
    if (!draft.empty()) {
        match_tasks(draft, engine_.parts.matching, now_for(cached), source_, engine_.limits.run);
        commit(cached, std::move(draft));
        offer_updates(cached);
    }
    return refusal;
}

std::optional<Refusal> StoreTurn::change_and_take(
    const std::string& run_id,
    const std::string& identity,
    const Change& change,
    temporal::api::workflowservice::v1::PollWorkflowTaskQueueResponse& task) {
    const Or<CachedRun*> loaded = load(run_id);
    if (const auto* refusal = std::get_if<Refusal>(&loaded)) {
        return *refusal;
    }
    CachedRun& cached = *std::get<CachedRun*>(loaded);
    std::optional<Refusal> refusal;
    Draft draft = draft_of(cached, change, refusal);
    if (draft.empty()) {
        return refusal;
    }
    matching::PollInfo caller{.request_id = "request-from-RespondWorkflowTaskCompleted",
                              .identity = identity};
    if (draft.run.has_worker_version()) {  // Of the completion.
        caller.worker_version = draft.run.worker_version();
    }
    // The caller is the poll of the workflow task that follows, if it did not fail.
    const auto follows =
        std::ranges::find(draft.tasks, history::Task::Kind::workflow_task, &history::Task::kind);
    std::string queue;
    if (!refusal && follows != draft.tasks.end()) {
        const history::Task next = *follows;
        draft.tasks.erase(follows);
        queue = draft.run.workflow_task().task_queue().name();
        const std::int64_t transitions = draft.run.state_transition_count();
        if (start_task(draft, next, caller, queue, now_for(cached), source_, engine_.limits.run)) {
            draft.run.set_state_transition_count(transitions);  // A part of the completion.
        } else {
            if (stands(draft.run, next)) {
                draft.tasks.push_back(next);
            }
            queue.clear();
        }
    }
    match_tasks(draft, engine_.parts.matching, now_for(cached), source_, engine_.limits.run);
    commit(cached, std::move(draft));
    if (queue.empty() && !refusal) {
        queue = take_updates(cached, caller);
    }
    if (!queue.empty()) {
        fill_workflow_task(cached, "", task);
    }
    return refusal;
}

bool StoreTurn::start_waiting(const std::string& run_id,
                              const history::Task& task,
                              const std::string& queue,
                              matching::Reservation poller) {
    const Or<CachedRun*> loaded = load(run_id);
    CachedRun* const* found = std::get_if<CachedRun*>(&loaded);
    if (found == nullptr) {  // Deleted.
        complete_rows(run_id, engine_.transfers.of(run_id));
        return false;
    }
    CachedRun& cached = **found;
    Draft draft{.run = cached.run};
    if (!stands(cached.run, task) ||
        !start_task(
            draft, task, poller.info(), queue, now_for(cached), source_, engine_.limits.run)) {
        if (!draft.empty()) {  // The run has ended of it.
            commit(cached, std::move(draft));
        } else {
            complete_rows(run_id, engine_.transfers.done(cached.run));
        }
        return false;
    }
    draft.matches.push_back({.poll = std::move(poller), .task = task});
    commit(cached, std::move(draft));
    return true;
}

void StoreTurn::complete_rows(const std::string& run_id, const std::vector<std::int64_t>& rows) {
    if (rows.empty()) {
        return;
    }
    std::vector<store::TaskKey> keys;
    keys.reserve(rows.size());
    for (const std::int64_t row : rows) {
        keys.push_back({.id = row});
    }
    write_rows([&](const store::ShardLease& lease) {
        engine_.tasks.complete(
            lease, store::Category::transfer, std::span<const store::TaskKey>(keys));
    });
    engine_.transfers.remove(run_id, rows);
}

HistoryEvent StoreTurn::event(const std::string& run_id,
                              std::int64_t batch_event_id,
                              std::int64_t event_id) {
    const HistoryPage page = read(run_id, batch_event_id, 1);
    const auto found = std::ranges::find(page.history.events(), event_id, &HistoryEvent::event_id);
    if (found == page.history.events().end()) {
        throw store::DamagedData(fmt::format(
            "run {} has no event {} in the batch of event {}", run_id, event_id, batch_event_id));
    }
    return *found;
}

void StoreTurn::finish(const Errand& errand) {
    const std::string& run_id = errand.run().run_id;
    engine_.transfers.finish(run_id, errand.row(), errand.task());
    const Or<CachedRun*> loaded = load(run_id);
    CachedRun* const* found = std::get_if<CachedRun*>(&loaded);
    complete_rows(
        run_id,
        found != nullptr ? engine_.transfers.done((*found)->run) : engine_.transfers.of(run_id));
}

void StoreTurn::wake(const std::string& run_id, const store::TaskKey& row) {
    const auto complete = [&] {
        write_rows([&](const store::ShardLease& lease) {
            engine_.tasks.complete(lease, store::Category::timer, row);
        });
    };
    const Or<CachedRun*> loaded = load(run_id);
    CachedRun* const* found = std::get_if<CachedRun*>(&loaded);
    if (found == nullptr) {
        return complete();
    }
    CachedRun& cached = **found;
    if (cached.meta.wake && cached.meta.wake != row && cached.meta.wake->fire > row.fire) {
        return complete();  // The run has a later row by now.
    }
    if (cached.run.phase() == state::PHASE_COMPLETED) {
        if (!engine_.transfers.of(run_id).empty()) {
            throw Error(Code::unavailable,
                        Outcome::not_applied,
                        "the end of the run is not told to its relatives yet");
        }
        (void)remove(run_id);
        return complete();
    }
    std::optional<Refusal> refusal;
    Draft draft = draft_of(
        cached,
        [](history::Transition& transition) {
            history::fire_due(transition);
            return std::optional<Refusal>{};
        },
        refusal);
    if (draft.changed) {
        if (only_dispatches(draft)) {
            draft.run.set_state_transition_count(cached.run.state_transition_count());
        }
        match_tasks(draft, engine_.parts.matching, now_for(cached), source_, engine_.limits.run);
        return commit(cached, std::move(draft), &row);
    }
    // Nothing is due any more: the row moves to the next moment, and the run is not written.
    RunMeta meta = cached.meta;
    const store::Wake moved = wake_of(cached.run, meta, &row);
    if (moved.insert) {
        write_rows([&](const store::ShardLease& lease) {
            engine_.tasks.add(lease, {{store::Category::timer, {*moved.insert}}});
        });
    }
    complete();
    cached.meta.wake = meta.wake;
    if (moved.insert) {
        engine_.wakes.add(moved.insert->key, {key_.namespace_id, key_.workflow_id, run_id});
    }
}

HistoryPage StoreTurn::read_run(CachedRun& cached, std::int64_t first_event_id, int batches_max) {
    HistoryPage page;
    if (!cached.tail.empty() && cached.tail.front().events(0).event_id() <= first_event_id) {
        int taken = 0;
        for (const auto& batch : cached.tail) {
            if (batch.events(0).event_id() < first_event_id) {
                continue;
            }
            if (taken++ == batches_max) {
                page.next_event_id = batch.events(0).event_id();
                break;
            }
            page.history.mutable_events()->MergeFrom(batch.events());
        }
        return page;
    }
    const store::HistoryPage stored =
        engine_.histories.read({.shard = shard_.id(),
                                .branch = cached.meta.branch,
                                .min_event = first_event_id,
                                .max_event = cached.run.next_event_id(),
                                .page_size = batches_max});
    for (const store::Node& node : stored.nodes) {
        temporal::api::history::v1::History batch;
        decode(node.events, batch);
        page.history.mutable_events()->MergeFrom(batch.events());
    }
    if (stored.next && page.history.events_size() > 0) {
        page.next_event_id = page.history.events(page.history.events_size() - 1).event_id() + 1;
        if (page.next_event_id >= cached.run.next_event_id()) {
            page.next_event_id = 0;
        }
    }
    return page;
}

HistoryPage StoreTurn::read(const std::string& run_id,
                            std::int64_t first_event_id,
                            int batches_max) {
    const Or<CachedRun*> loaded = load(run_id);
    CachedRun* const* found = std::get_if<CachedRun*>(&loaded);
    if (found == nullptr || first_event_id >= (*found)->run.next_event_id()) {
        return {};
    }
    return read_run(**found, first_event_id, batches_max);
}

HistoryPage StoreTurn::read_back(const std::string& run_id,
                                 std::int64_t end_event_id,
                                 int batches_max) {
    const Or<CachedRun*> loaded = load(run_id);
    CachedRun* const* found = std::get_if<CachedRun*>(&loaded);
    if (found == nullptr) {
        return {};
    }
    const CachedRun& cached = **found;
    // The chain of nodes is followed from its end, so a page far from it reads what lies behind it.
    const std::int64_t end = end_event_id == 0 ? cached.run.next_event_id() : end_event_id;
    store::ReadRequest request{.shard = shard_.id(),
                               .branch = cached.meta.branch,
                               .max_event = cached.run.next_event_id(),
                               .page_size = std::max(batches_max, 1)};
    HistoryPage page;
    int taken = 0;
    do {
        const store::HistoryPage stored =
            engine_.histories.read_back(request, cached.meta.last_txn_id);
        for (const store::Node& node : stored.nodes) {
            if (node.id < end && taken < batches_max) {
                ++taken;
                temporal::api::history::v1::History batch;
                decode(node.events, batch);
                page.next_event_id = node.id;
                for (int i = batch.events_size(); i > 0; --i) {
                    *page.history.add_events() = batch.events(i - 1);
                }
            }
        }
        request.after = stored.next;
    } while (request.after && taken < batches_max);
    if (page.next_event_id <= 1) {
        page.next_event_id = 0;
    }
    return page;
}

void StoreTurn::task_of(const std::string& run_id,
                        temporal::api::workflowservice::v1::PollWorkflowTaskQueueResponse& task) {
    const Or<CachedRun*> loaded = load(run_id);
    if (CachedRun* const* found = std::get_if<CachedRun*>(&loaded)) {
        fill_workflow_task(**found, (*found)->run.started().task_queue().name(), task);
    }
}

}  // namespace holdfast::server::engine
