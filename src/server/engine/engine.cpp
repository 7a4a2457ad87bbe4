#include "engine/engine.hpp"

#include <utility>

#include "engine/engine_state.hpp"
#include "engine/run_observer.hpp"
#include "engine/store_turn.hpp"

#include <holdfast/base/log.hpp>

namespace holdfast::server::engine {

namespace {

constexpr std::chrono::minutes wake_window = std::chrono::minutes{10};
constexpr std::int64_t rows_of_a_page = 1000;

std::string executor_key(const WorkflowKey& workflow) {
    return workflow.namespace_id + "/" + workflow.workflow_id;
}

// One damaged row does not hold up the others: it stays, and is logged at every start.
bool decode_row(const store::Task& task, google::protobuf::Message& row, Logger& log) {
    try {
        decode(task.blob, row);
        return true;
    } catch (const store::DamagedData& error) {
        log.error("stored task cannot be read", {{"task", task.key.id}, {"error", error.what()}});
        return false;
    }
}

RunName run_name(const stored::RunName& name) {
    return {name.namespace_id(), name.workflow_id(), name.run_id()};
}

}  // namespace

// ---- What turns share
// ------------------------------------------------------------------------------

Engine::State::State(Engine& owner, const EngineParts& given, const EngineLimits& bounds)
    : engine(owner),
      parts(given),
      limits(bounds),
      shards(given.db),
      executions(shards),
      histories(shards),
      tasks(shards),
      cache(bounds.cached_bytes_max),
      wakes(
          given.clock,
          given.alarms,
          [this](const store::TaskKey& key, const RunName& run) { fire(key, run); },
          [this] { parts.executor.post("wakes", [this] { load_wakes(wakes.horizon()); }); }) {}

Shard& Engine::State::shard_of(const WorkflowKey& workflow) {
    const std::size_t hash = std::hash<std::string>{}(executor_key(workflow));
    return *owned[hash % owned.size()];
}

history::Time Engine::State::now() const {
    return parts.clock.wall_now();
}

bool Engine::State::begin_turn() {
    const std::lock_guard lock(turns_mutex);
    if (stopping) {
        return false;
    }
    ++turns;
    return true;
}

void Engine::State::end_turn() {
    RunObserver* const observer = parts.observer;
    {
        const std::lock_guard lock(turns_mutex);
        if (--turns != 0) {
            return;
        }
        turns_ended.notify_all();
    }
    if (observer != nullptr) {  // From here on this object may be gone.
        observer->idle();
    }
}

void Engine::State::fire(const store::TaskKey& key, const RunName& run) {
    engine.in_turn({run.namespace_id, run.workflow_id}, [this, key, run](Turn& turn) {
        try {
            static_cast<StoreTurn&>(turn).wake(run.run_id, key);
        } catch (const std::exception& error) {
            parts.log.warn("timer not fired; trying again",
                           {{"workflow", run.workflow_id}, {"error", error.what()}});
            constexpr std::chrono::seconds pause{1};
            parts.alarms.set(parts.clock.steady_now() + pause,
                             [this, key, run] { fire(key, run); });
        }
    });
}

void Engine::State::resolve(const WorkflowKey& workflow, std::shared_ptr<Unresolved> unresolved) {
    engine.in_turn(workflow, [this, workflow, unresolved](Turn& turn) {
        try {
            static_cast<StoreTurn&>(turn).resolve(*unresolved);
        } catch (const std::exception& error) {
            parts.log.warn("commit without an answer not resolved; trying again",
                           {{"workflow", workflow.workflow_id}, {"error", error.what()}});
            constexpr std::chrono::milliseconds pause{200};
            parts.alarms.set(parts.clock.steady_now() + pause,
                             [this, workflow, unresolved] { resolve(workflow, unresolved); });
        }
    });
}

void Engine::State::remove_later(const WorkflowKey& workflow, const std::string& run_id) {
    constexpr std::chrono::milliseconds pause{100};
    parts.alarms.set(parts.clock.steady_now() + pause, [this, workflow, run_id] {
        engine.in_turn(workflow, [this, workflow, run_id](Turn& turn) {
            try {
                (void)turn.remove(run_id);
            } catch (const std::exception& error) {
                parts.log.warn("run not deleted; trying again",
                               {{"workflow", workflow.workflow_id}, {"error", error.what()}});
                remove_later(workflow, run_id);
            }
        });
    });
}

// Rows that are due from `from` to the end of the next window, of all shards. Rows that are added
// meanwhile, or twice, are the same rows.
void Engine::State::load_wakes(Wall from) {
    const Wall to = parts.clock.wall_now() + wake_window;
    try {
        wakes.extend(to);
        for (const auto& shard : owned) {
            store::TaskRange range{.min = {.fire = from}, .max = {.fire = to}};
            while (true) {
                const store::TaskPage page =
                    tasks.read(shard->id(), store::Category::timer, range, rows_of_a_page);
                for (const store::Task& task : page.tasks) {
                    stored::Wake row;
                    if (decode_row(task, row, parts.log)) {
                        wakes.add(task.key, run_name(row.run()));
                    }
                }
                if (!page.next) {
                    break;
                }
                range.min = *page.next;
            }
        }
    } catch (const std::exception& error) {
        parts.log.error("timers not read; trying again", {{"error", error.what()}});
        constexpr std::chrono::seconds pause{1};
        parts.alarms.set(parts.clock.steady_now() + pause, [this, from] {
            parts.executor.post("wakes", [this, from] { load_wakes(from); });
        });
    }
}

void Engine::State::load_transfers(Shard& shard) {
    store::TaskRange range{.min = {}, .max = {.id = std::numeric_limits<std::int64_t>::max()}};
    while (true) {
        const store::TaskPage page =
            tasks.read(shard.id(), store::Category::transfer, range, rows_of_a_page);
        for (const store::Task& task : page.tasks) {
            stored::Transfer row;
            if (decode_row(task, row, parts.log)) {
                bring_back(row, task.key.id);
            }
        }
        if (!page.next) {
            return;
        }
        range.min = *page.next;
    }
}

// ---- The engine
// ------------------------------------------------------------------------------------

Engine::Engine(const EngineParts& parts, EngineLimits limits)
    : state_(std::make_unique<State>(*this, parts, limits)) {}

Engine::~Engine() {
    stop();
}

void Engine::start() {
    state_->owned.push_back(
        std::make_unique<Shard>(state_->shards, store::ShardId{1}, state_->parts.log));
    for (const auto& shard : state_->owned) {
        shard->take();
    }
    state_->load_wakes(Wall{});
    for (const auto& shard : state_->owned) {
        state_->load_transfers(*shard);
    }
}

void Engine::stop() {
    state_->wakes.stop();
    std::unique_lock lock(state_->turns_mutex);
    state_->stopping = true;
    state_->turns_ended.wait(lock, [&] { return state_->turns == 0; });
}

void Engine::in_turn(const WorkflowKey& workflow, TurnWork work) {
    state_->parts.executor.post(executor_key(workflow),
                                [state = state_.get(), workflow, work = std::move(work)]() mutable {
                                    if (!state->begin_turn()) {
                                        return;
                                    }
                                    {
                                        StoreTurn turn(*state, workflow);
                                        std::move(work)(turn);
                                    }
                                    state->end_turn();
                                });
}

// It may have happened before the watch began: a turn looks.
Watch Engine::watch(const WorkflowKey& workflow,
                    const std::string& run_id,
                    std::int64_t next_event_id,
                    std::function<void()> told) {
    auto watch =
        std::make_shared<Watches::Watch>(state_->watches, run_id, next_event_id, std::move(told));
    in_turn(workflow, [state = state_.get(), run_id](Turn& turn) {
        try {
            const auto found = turn.find(run_id);
            if (const auto* run = std::get_if<const history::state::Run*>(&found)) {
                state->watches.tell(run_id,
                                    (*run)->next_event_id(),
                                    (*run)->phase() == history::state::PHASE_COMPLETED);
            }
        } catch (const std::exception& error) {  // The next event tells, or the caller's deadline.
            state->parts.log.warn("run not read for a waiting reader", {{"error", error.what()}});
        }
    });
    return watch;
}

void Engine::look_at_clock() {
    state_->wakes.look();
}

EngineCounts Engine::counts() const {
    return {.run_commits = state_->run_commits,
            .other_commits = state_->other_commits,
            .cached_workflows = state_->cache.workflows(),
            .cached_bytes = state_->cache.bytes()};
}

void Engine::require_owned() const {
    for (const auto& shard : state_->owned) {
        shard->require_owned();
    }
}

void Engine::start(const matching::QueueKey& queue,
                   matching::QueuedTask task,
                   matching::Reservation poller) {
    in_turn({queue.namespace_id, task.workflow_id},
            [this, queue, task, poller = std::move(poller)](Turn& turn) mutable {
                const history::Task wanted{.kind = queue.type == matching::QueueType::activity
                                                       ? history::Task::Kind::activity
                                                       : history::Task::Kind::workflow_task,
                                           .event_id = task.event_id,
                                           .stamp = task.stamp};
                try {
                    (void)static_cast<StoreTurn&>(turn).start_waiting(
                        task.run_id, wanted, queue.name, std::move(poller));
                } catch (const std::exception& error) {
                    state_->parts.log.warn(
                        "task not started; trying again",
                        {{"workflow", task.workflow_id}, {"error", error.what()}});
                    state_->parts.matching.put_back(queue, std::move(task));
                }
            });
}

}  // namespace holdfast::server::engine
