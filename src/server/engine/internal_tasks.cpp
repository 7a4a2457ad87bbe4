// Tasks that wait: those of workers go to their queues, those of the server itself are done in
// turns of their own.
#include <utility>

#include "engine/engine_state.hpp"
#include "engine/errand.hpp"

#include <holdfast/base/log.hpp>

namespace holdfast::server::engine {

namespace {

namespace state = history::state;
using Kind = history::Task::Kind;

std::optional<matching::QueueType> queue_type(Kind kind) {
    switch (kind) {
        case Kind::workflow_task:
            return matching::QueueType::workflow;
        case Kind::activity:
            return matching::QueueType::activity;
        default:
            return std::nullopt;
    }
}

std::optional<history::Time> expiry_of(const state::Run& run, const history::Task& task) {
    if (task.kind != Kind::activity) {
        return std::nullopt;
    }
    const state::Activity& activity = run.activities().at(task.event_id);
    const auto wait = history::span_of(activity.scheduled().schedule_to_start_timeout());
    if (wait <= history::Span::zero()) {
        return std::nullopt;
    }
    return history::time_of(activity.scheduled_time()) + wait;
}

}  // namespace

void Engine::State::offer_rest(const state::Run& run,
                               const std::vector<history::Task>& tasks_left,
                               std::int64_t row) {
    for (const history::Task& task : tasks_left) {
        if (!stands(run, task)) {
            continue;
        }
        if (!queue_type(task.kind)) {
            begin_errand({run.namespace_id(), run.workflow_id(), run.run_id()}, task, row);
            continue;
        }
        const matching::QueueKey queue = queue_of(run, task, parts.matching);
        Fairness fairness = fairness_of(run, task, queue);
        parts.matching.add(queue,
                           {.workflow_id = run.workflow_id(),
                            .run_id = run.run_id(),
                            .event_id = task.event_id,
                            .stamp = task.stamp,
                            .priority = priority_of(run, task),
                            .fairness_key = std::move(fairness.key),
                            .fairness_weight = fairness.weight,
                            .created = now(),
                            .expiry = expiry_of(run, task),
                            .row = row});
    }
}

void Engine::State::begin_errand(const RunName& run, const history::Task& task, std::int64_t row) {
    std::make_shared<Errand>(*this, run, task, row)->begin();
}

void Engine::State::bring_back(const stored::Transfer& row, std::int64_t id) {
    std::vector<history::Task> listed;
    for (const stored::TransferTask& kept : row.tasks()) {
        const history::Task task{.kind = static_cast<Kind>(kept.kind()),
                                 .event_id = kept.event_id(),
                                 .stamp = kept.stamp()};
        listed.push_back(task);
    }
    transfers.add(row.run().run_id(), id, listed);
    for (int i = 0; i < row.tasks_size(); ++i) {
        const auto type = queue_type(listed[static_cast<std::size_t>(i)].kind);
        if (!type) {
            begin_errand({row.run().namespace_id(), row.run().workflow_id(), row.run().run_id()},
                         listed[static_cast<std::size_t>(i)],
                         id);
            continue;
        }
        if (row.tasks(i).queue().empty()) {
            continue;
        }
        parts.matching.add(
            {.namespace_id = row.run().namespace_id(), .name = row.tasks(i).queue(), .type = *type},
            {.workflow_id = row.run().workflow_id(),
             .run_id = row.run().run_id(),
             .event_id = row.tasks(i).event_id(),
             .stamp = row.tasks(i).stamp(),
             .priority = row.tasks(i).priority(),
             .fairness_key = row.tasks(i).fairness_key(),
             .fairness_weight = row.tasks(i).fairness_weight(),
             .created = now(),
             .expiry = std::nullopt,
             .row = id});
    }
}

}  // namespace holdfast::server::engine
