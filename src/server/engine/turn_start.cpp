// Starts of runs, and their removal.
#include <utility>

#include "engine/store_turn.hpp"
#include "history/outside.hpp"
#include "history/start.hpp"
#include "history/start/cron.hpp"
#include "history/start/first_run.hpp"
#include "history/start/policy.hpp"

#include <holdfast/base/assert.hpp>

namespace holdfast::server::engine {

namespace {

namespace state = history::state;
using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 20 names of it.

history::CurrentRun known(const std::string& workflow_id, const store::CurrentRun& row) {
    history::CurrentRun run{.workflow_id = workflow_id,
                            .run_id = row.run.text(),
                            .first_execution_run_id = row.first_run.value_or(row.run).text(),
                            .create_request_id = row.create_request_id,
                            .status = static_cast<WorkflowExecutionStatus>(row.status),
                            .requests = {}};
    for (const auto& [id, event] : row.request_ids) {
        run.requests[id] = static_cast<EventType>(event.event_type);
    }
    return run;
}

StartAnswer answer_of(const history::CurrentRun& run, bool started) {
    return {.run_id = run.run_id,
            .first_execution_run_id = run.first_execution_run_id,
            .started = started,
            .status = run.status};
}

}  // namespace

Draft StoreTurn::started_draft(const std::string& run_id, StartRequest& request, bool& eager) {
    const history::Time now = engine_.now();
    history::wait_for_slot(request.started, now);
    return first_draft(run_id, now, [&](history::Transition& transition) {
        if (request.eager) {
            eager = history::start_run_eagerly(
                transition, std::move(request.started), request.request_id, request.extras);
        } else {
            history::start_run(
                transition, std::move(request.started), request.request_id, request.extras);
        }
        if (request.signal) {
            // A new run refuses a signal only for its size, which is checked before.
            const auto refusal =
                history::signal_run(transition, *request.signal, false, request.extras.links);
            HOLDFAST_ASSERT(!refusal);
        }
        if (request.update) {  // Before the commit, so that the first workflow task carries it.
            const auto refusal = history::ask_update(transition, *request.update);
            HOLDFAST_ASSERT(!refusal);
        }
    });
}

Draft StoreTurn::ended_for(CachedRun& cached, const std::string& new_run_id) {
    std::optional<Refusal> refusal;
    Draft draft = draft_of(
        cached,
        [&](history::Transition& transition) {
            return history::terminate_run(transition, history::replacing_termination(new_run_id));
        },
        refusal);
    HOLDFAST_ASSERT(!refusal);  // It is open.
    return draft;
}

std::optional<Refusal> StoreTurn::ask_existing(const std::string& run_id,
                                               const StartRequest& request) {
    if (!request.update) {
        return std::nullopt;
    }
    return change(run_id, [&](history::Transition& transition) {
        return history::ask_update(transition, *request.update);
    });
}

std::optional<Refusal> StoreTurn::use_existing(const std::string& run_id,
                                               const StartRequest& request) {
    if (!request.signal && !request.attachment) {
        return std::nullopt;
    }
    return change(run_id, [&](history::Transition& transition) -> std::optional<Refusal> {
        if (request.attachment) {
            if (auto refusal = history::attach_to_run(transition, *request.attachment)) {
                return refusal;
            }
        }
        return request.signal
                   ? history::signal_run(transition, *request.signal, true, request.extras.links)
                   : std::nullopt;
    });
}

std::variant<StartAnswer, AlreadyStarted, Refusal> StoreTurn::start(StartRequest request) {
    const std::optional<store::CurrentRun> row = current();
    std::optional<history::CurrentRun> running;
    if (row) {
        running = known(key_.workflow_id, *row);
    }
    const history::StartOutcome outcome =
        history::decide_start({.reuse = request.reuse, .conflict = request.conflict},
                              request.request_id,
                              running ? &*running : nullptr);
    if (const auto* refused = std::get_if<history::start_outcome::AlreadyStarted>(&outcome)) {
        return AlreadyStarted{.message = refused->message,
                              .start_request_id = running->create_request_id,
                              .run_id = running->run_id,
                              .first_execution_run_id = running->first_execution_run_id};
    }
    if (const auto* repeated = std::get_if<history::start_outcome::Repeated>(&outcome)) {
        StartAnswer answer = answer_of(*running, repeated->started);
        if (auto refusal = ask_existing(running->run_id, request)) {
            return *std::move(refusal);
        }
        answer.attached = !repeated->started;
        const auto found = find(running->run_id);
        if (const auto* run = std::get_if<const state::Run*>(&found)) {
            answer.eager = request.eager && history::eager_task_stands(**run, request.request_id);
        }
        return answer;
    }
    if (std::holds_alternative<history::start_outcome::UseExisting>(outcome)) {
        if (auto refusal = use_existing(running->run_id, request)) {
            return *std::move(refusal);
        }
        if (auto refusal = ask_existing(running->run_id, request)) {
            return *std::move(refusal);
        }
        StartAnswer answer = answer_of(*running, false);
        answer.attached = request.attachment && !request.attachment->request_id.empty();
        return answer;
    }
    const std::string run_id = source_.uuid();
    bool eager = false;
    if (std::holds_alternative<history::start_outcome::TerminateAndStart>(outcome)) {
        const Or<CachedRun*> loaded = load(running->run_id);
        if (const auto* refusal = std::get_if<Refusal>(&loaded)) {
            return *refusal;
        }
        CachedRun& cached = *std::get<CachedRun*>(loaded);
        Draft ended = ended_for(cached, run_id);
        commit_instead(cached, std::move(ended), started_draft(run_id, request, eager));
    } else {
        commit_first(started_draft(run_id, request, eager), row);
    }
    StartAnswer answer = answer_of(known(key_.workflow_id, *workflow_->current), true);
    answer.eager = eager;
    return answer;
}

// What a run has open, and its history, goes after its row; a crash in between leaves rows that no
// reader finds.
std::optional<Refusal> StoreTurn::remove(const std::string& run_id) {
    const Or<CachedRun*> loaded = load(run_id);
    if (const auto* refusal = std::get_if<Refusal>(&loaded)) {
        return *refusal;
    }
    const std::string id = std::get<CachedRun*>(loaded)->run.run_id();
    if (std::get<CachedRun*>(loaded)->run.phase() != state::PHASE_COMPLETED) {
        const auto refusal = change(id, [](history::Transition& transition) {
            temporal::api::history::v1::WorkflowExecutionTerminatedEventAttributes attributes;
            attributes.set_reason("Delete workflow execution");
            attributes.set_identity("history-service");
            return history::terminate_run(transition, attributes);
        });
        HOLDFAST_ASSERT(!refusal);  // It was open.
    }
    if (!engine_.transfers.of(id).empty()) {  // Its relatives are told first.
        engine_.remove_later(key_, id);
        return std::nullopt;
    }
    const RunMeta meta = workflow_->runs.at(id).meta;
    const std::int64_t next_event_id = workflow_->runs.at(id).run.next_event_id();
    const store::WorkflowKey workflow{.ns = store::NamespaceId{uuid_of(key_.namespace_id)},
                                      .workflow_id = key_.workflow_id};
    const store::RunId run{uuid_of(id)};
    std::vector<Attempt> none;
    write(
        [&](const store::ShardLease& lease) {
            store::RemoveRequest request{.lease = lease, .workflow = workflow, .run = run};
            if (meta.wake) {
                request.done.push_back({.category = store::Category::timer, .key = *meta.wake});
            }
            engine_.executions.remove(request);
            engine_.executions.remove_items(lease, workflow, run);
            engine_.histories.remove(lease, meta.branch);
        },
        none);
    if (meta.wake) {
        engine_.wakes.remove(*meta.wake);
    }
    engine_.watches.tell(id, next_event_id, true);
    forget();
    return std::nullopt;
}

}  // namespace holdfast::server::engine
