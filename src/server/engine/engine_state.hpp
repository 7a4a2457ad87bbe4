// What turns share. See engine.hpp for what the engine is.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "engine/run_cache.hpp"
#include "engine/shard.hpp"
#include "engine/transfers.hpp"
#include "engine/update_waits.hpp"
#include "engine/wakes.hpp"
#include "engine/watches.hpp"

#include <holdfast/base/clock.hpp>
#include <holdfast/base/random.hpp>
#include <holdfast/store/execution.hpp>
#include <holdfast/store/history.hpp>
#include <holdfast/store/history_tasks.hpp>
#include <holdfast/store/shard.hpp>

namespace holdfast::server::engine {

struct Unresolved;  // store_turn.hpp

struct Engine::State {
    State(Engine& owner, const EngineParts& given, const EngineLimits& bounds);

    [[nodiscard]] Shard& shard_of(const WorkflowKey& workflow);
    [[nodiscard]] history::Time now() const;

    // Work of the server itself, in a turn of the run's workflow. Errors are logged; what failed
    // for a passing reason is tried again after a pause.
    void offer_rest(const history::state::Run& run,
                    const std::vector<history::Task>& tasks,
                    std::int64_t row);
    void fire(const store::TaskKey& key, const RunName& run);
    // Fires what is due in the run then, without a row that outlives the process.
    void look_again(const RunName& run, std::chrono::nanoseconds after);
    // Finds out what became of a write without an answer, until the database tells.
    void resolve(const WorkflowKey& workflow, std::shared_ptr<Unresolved> unresolved);
    // If the process dies before, the run is deleted at the end of its retention.
    void remove_later(const WorkflowKey& workflow, const std::string& run_id);
    void load_wakes(Wall from);
    void load_transfers(Shard& shard);
    void begin_errand(const RunName& run, const history::Task& task, std::int64_t row);
    void bring_back(const stored::Transfer& row, std::int64_t id);

    // A turn is counted from its begin to its end; none begins once the engine stops.
    [[nodiscard]] bool begin_turn();
    void end_turn();

    Engine& engine;
    const EngineParts parts;
    const EngineLimits limits;

    store::Shards shards;
    store::Executions executions;
    store::History histories;
    store::HistoryTasks tasks;
    std::vector<std::unique_ptr<Shard>> owned;

    RunCache cache;
    Transfers transfers;
    Watches watches;
    UpdateWaits update_waits;
    Wakes wakes;

    std::atomic<std::uint64_t> run_commits = 0;
    std::atomic<std::uint64_t> other_commits = 0;

    std::mutex turns_mutex;
    std::condition_variable turns_ended;
    std::size_t turns = 0;
    bool stopping = false;
};

// Ids from the shard, chance from the kernel.
class ShardSource final : public history::Source {
public:
    explicit ShardSource(Shard& shard) noexcept : shard_(shard) {}

    std::string uuid() override { return Uuid::v4().text(); }
    std::int64_t task_id() override { return shard_.next_id(); }
    double fraction() override { return thread_random().unit(); }

private:
    Shard& shard_;
};

}  // namespace holdfast::server::engine
