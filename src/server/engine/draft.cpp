#include "engine/draft.hpp"

#include <iterator>
#include <utility>

#include "engine/transfers.hpp"
#include "history/activity.hpp"
#include "history/finish.hpp"
#include "history/workflow_task.hpp"

#include <holdfast/base/assert.hpp>

namespace holdfast::server::engine {

namespace {

using Kind = history::Task::Kind;

bool has_queue(const history::Task& task) {
    return task.kind == Kind::workflow_task || task.kind == Kind::activity;
}

const history::state::Activity& activity_of(const history::state::Run& run,
                                            const history::Task& task) {
    const auto found = run.activities().find(task.event_id);
    HOLDFAST_ASSERT(found != run.activities().end());
    return found->second;
}

}  // namespace

void absorb(Draft& draft, history::Result result) {
    draft.run = std::move(result.run);
    std::ranges::move(result.batches, std::back_inserter(draft.batches));
    std::ranges::move(result.tasks, std::back_inserter(draft.tasks));
    if (result.next) {
        draft.next = std::move(result.next);
    }
    std::ranges::move(result.ended_updates, std::back_inserter(draft.ended_updates));
    draft.changed = draft.changed || result.changed;
    draft.touched = draft.touched || result.touched;
}

matching::QueueKey queue_of(const history::state::Run& run,
                            const history::Task& task,
                            const matching::Matching& matching) {
    if (task.kind == Kind::activity) {
        return {.namespace_id = run.namespace_id(),
                .name = activity_of(run, task).scheduled().task_queue().name(),
                .type = matching::QueueType::activity};
    }
    const auto& queue = run.workflow_task().task_queue();
    matching::QueueKey key{.namespace_id = run.namespace_id(),
                           .name = queue.name(),
                           .type = matching::QueueType::workflow};
    if (queue.kind() == temporal::api::enums::v1::TASK_QUEUE_KIND_STICKY &&
        !matching.polled_recently(key)) {
        key.name = queue.normal_name();
    }
    return key;
}

namespace {

const temporal::api::common::v1::Priority& priority_message(const history::state::Run& run,
                                                            const history::Task& task) {
    return task.kind == Kind::activity ? activity_of(run, task).scheduled().priority()
                                       : run.priority();
}

}  // namespace

int priority_of(const history::state::Run& run, const history::Task& task) {
    const int key = priority_message(run, task).priority_key();
    constexpr int lowest = 5;
    return key <= 0 ? matching::default_priority : std::min(key, lowest);
}

Fairness fairness_of(const history::state::Run& run,
                     const history::Task& task,
                     const matching::QueueKey& queue) {
    const bool sticky =
        task.kind == Kind::workflow_task && queue.name == run.workflow_task().task_queue().name() &&
        run.workflow_task().task_queue().kind() == temporal::api::enums::v1::TASK_QUEUE_KIND_STICKY;
    const auto& priority = priority_message(run, task);
    return sticky ? Fairness()
                  : Fairness{.key = priority.fairness_key(), .weight = priority.fairness_weight()};
}

bool start_task(Draft& draft,
                const history::Task& task,
                const matching::PollInfo& poll,
                const std::string& queue,
                history::Time now,
                history::Source& source,
                const history::Limits& limits) {
    history::Transition transition(draft.run, now, source, limits);
    const auto refusal =
        task.kind == Kind::activity
            ? history::start_activity(
                  transition, task.event_id, task.stamp, poll.identity, poll.request_id)
            : history::start_workflow_task(transition,
                                           {.scheduled_event_id = task.event_id,
                                            .stamp = task.stamp,
                                            .request_id = poll.request_id,
                                            .identity = poll.identity,
                                            .queue = queue,
                                            .worker_version = poll.worker_version});
    if (refusal) {
        return false;
    }
    history::Finished finished = history::finish(transition);
    const bool outgrown = finished.refusal.has_value();
    absorb(draft, std::move(finished.result));
    return !outgrown;
}

void match_tasks(Draft& draft,
                 matching::Matching& matching,
                 history::Time now,
                 history::Source& source,
                 const history::Limits& limits) {
    for (const history::Task& task : std::exchange(draft.tasks, {})) {
        if (!has_queue(task) || !stands(draft.run, task)) {
            draft.tasks.push_back(task);
            continue;
        }
        const matching::QueueKey queue = queue_of(draft.run, task, matching);
        auto poll = matching.reserve(queue, priority_of(draft.run, task));
        if (poll && start_task(draft, task, poll->info(), queue.name, now, source, limits)) {
            draft.matches.push_back({.poll = *std::move(poll), .task = task});
        } else if (stands(draft.run, task)) {
            draft.tasks.push_back(task);
        }
    }
}

}  // namespace holdfast::server::engine
