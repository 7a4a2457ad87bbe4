// Updates in a turn: what is in memory only, and those who wait.
#include <algorithm>
#include <utility>

#include "engine/run_observer.hpp"
#include "engine/store_turn.hpp"
#include "history/due.hpp"
#include "history/update/update.hpp"
#include "history/workflow_task.hpp"
#include <temporal/api/protocol/v1/message.pb.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

#include <holdfast/base/log.hpp>

namespace holdfast::server::engine {

namespace {

namespace state = history::state;
using history::UpdateStage;

bool is_open(const state::Run& run) {
    return run.phase() != state::PHASE_COMPLETED;
}

UpdateNews news_of(const history::UpdateEnd& end) {
    UpdateNews news{.stage = UpdateStage::completed};
    if (const auto* failure = std::get_if<temporal::api::failure::v1::Failure>(&end.how)) {
        *news.outcome.emplace().mutable_failure() = *failure;
    } else {
        news.refusal = std::get<Refusal>(end.how);
    }
    return news;
}

}  // namespace

void add_update_messages(const state::Run& run,
                         temporal::api::workflowservice::v1::PollWorkflowTaskQueueResponse& task) {
    for (const state::PendingUpdate* update : history::sent_updates(run)) {
        if (update->admitted_event_id() != 0) {
            continue;  // A worker takes it from its event; a message would be a second request.
        }
        auto& message = *task.add_messages();
        const std::string& id = update->request().meta().update_id();
        message.set_id(id + "/request");
        message.set_protocol_instance_id(id);
        message.set_event_id(run.workflow_task().started_event_id() - 1);
        message.mutable_body()->PackFrom(update->request());
    }
}

UpdateNews StoreTurn::update(const std::string& run_id, const std::string& update_id) {
    const Or<CachedRun*> loaded = load(run_id);
    if (const auto* refusal = std::get_if<Refusal>(&loaded)) {
        return {.refusal = *refusal};
    }
    const state::Run& run = std::get<CachedRun*>(loaded)->run;
    UpdateNews news{.stage = history::update_stage(run, update_id)};
    if (news.stage == UpdateStage::completed) {
        const state::Update& known = run.updates().at(update_id);
        const auto completed =
            event(run.run_id(), known.completed_batch_event_id(), known.completed_event_id());
        news.outcome = completed.workflow_execution_update_completed_event_attributes().outcome();
    } else if (news.stage == UpdateStage::accepted && !is_open(run)) {
        news.stage = UpdateStage::completed;
        *news.outcome.emplace().mutable_failure() = history::closed_before_update();
    } else if (!is_open(run)) {
        news.stage = UpdateStage::unknown;  // Also one that only a reset has admitted.
    }
    return news;
}

Watch StoreTurn::await_update(const std::string& run_id,
                              const std::string& update_id,
                              UpdateStage stage,
                              std::function<void(UpdateNews)> told) {
    return engine_.update_waits.add(run_id, update_id, stage, std::move(told));
}

// An update that is not known any more has ended with its run, or with what was in memory.
void StoreTurn::tell_of_updates(const CachedRun& cached,
                                const std::vector<history::UpdateEnd>& ended) {
    const std::string& run_id = cached.run.run_id();
    for (const history::UpdateEnd& end : ended) {
        engine_.update_waits.tell(run_id, end.update_id, news_of(end));
    }
    try {
        for (const std::string& id : engine_.update_waits.awaited(run_id)) {
            UpdateNews news = update(run_id, id);
            if (news.stage == UpdateStage::unknown) {
                news.refusal = is_open(cached.run) ? history::update_lost()
                                                   : history::aborted_by_close(cached.run);
            }
            engine_.update_waits.tell(run_id, id, news);
        }
    } catch (const std::exception& error) {  // The outcome is committed: they may ask again.
        engine_.parts.log.warn("outcome of an update not read",
                               {{"workflow", key_.workflow_id}, {"error", error.what()}});
        engine_.update_waits.lose(run_id);
    }
}

// No event of it is stored, so its tasks have no row: if the process ends, its clients ask again.
void StoreTurn::keep(CachedRun& cached, Draft draft) {
    cached.run = std::move(draft.run);
    const state::WorkflowTask& task = cached.run.workflow_task();
    cached.newest = std::max({cached.newest,
                              history::time_of(task.scheduled_time()),
                              history::time_of(task.started_time())});
    engine_.offer_rest(cached.run, draft.tasks, 0);
    tell_query_results(cached);
    for (Match& match : draft.matches) {
        deliver(cached, std::move(match));
    }
    if (engine_.parts.observer != nullptr) {
        engine_.parts.observer->committed(cached.run);
    }
    tell_of_updates(cached, draft.ended_updates);
    watch_speculative(cached);
}

void StoreTurn::watch_speculative(const CachedRun& cached) {
    const auto deadline = history::workflow_task_deadline(cached.run);
    if (deadline && cached.run.workflow_task().speculative()) {
        engine_.look_again(
            {cached.run.namespace_id(), cached.run.workflow_id(), cached.run.run_id()},
            std::max(deadline->at - engine_.now(), history::Span::zero()));
    }
}

void StoreTurn::offer_updates(CachedRun& cached) {
    Draft draft = speculative_draft(cached);
    if (!draft.empty()) {
        match_tasks(draft, engine_.parts.matching, now_for(cached), source_, engine_.limits.run);
        keep(cached, std::move(draft));
    }
}

std::string StoreTurn::take_updates(CachedRun& cached, const matching::PollInfo& caller) {
    Draft draft = speculative_draft(cached);
    if (draft.empty()) {
        return "";
    }
    const history::Task task = draft.tasks.front();
    draft.tasks.clear();
    std::string queue = draft.run.workflow_task().task_queue().name();
    if (!start_task(draft, task, caller, queue, now_for(cached), source_, engine_.limits.run)) {
        draft.tasks.push_back(task);
        queue.clear();
    }
    keep(cached, std::move(draft));
    return queue;
}

Draft StoreTurn::speculative_draft(CachedRun& cached) {
    Draft draft{.run = cached.run};
    if (history::update_wants_task(cached.run)) {
        std::optional<Refusal> refusal;
        draft = draft_of(
            cached,
            [](history::Transition& transition) {
                history::schedule_speculative_task(transition);
                return std::optional<Refusal>();
            },
            refusal);
    }
    return draft;
}

void StoreTurn::fire_due(const std::string& run_id) {
    const Or<CachedRun*> loaded = load(run_id);
    if (std::holds_alternative<Refusal>(loaded)) {
        return;
    }
    CachedRun& cached = *std::get<CachedRun*>(loaded);
    std::optional<Refusal> refusal;
    Draft draft = draft_of(
        cached,
        [](history::Transition& transition) {
            history::fire_due(transition);
            return std::optional<Refusal>();
        },
        refusal);
    if (!draft.empty()) {
        match_tasks(draft, engine_.parts.matching, now_for(cached), source_, engine_.limits.run);
        commit(cached, std::move(draft));
    }
}

void Engine::State::look_again(const RunName& run, std::chrono::nanoseconds after) {
    parts.alarms.set(parts.clock.steady_now() + after, [this, run] {
        engine.in_turn({run.namespace_id, run.workflow_id}, [this, run](Turn& turn) {
            try {
                static_cast<StoreTurn&>(turn).fire_due(run.run_id);
            } catch (const std::exception& error) {
                parts.log.warn("workflow task not timed out; trying again",
                               {{"workflow", run.workflow_id}, {"error", error.what()}});
                constexpr std::chrono::seconds pause{1};
                look_again(run, pause);
            }
        });
    });
}

}  // namespace holdfast::server::engine
