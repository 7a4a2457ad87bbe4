// Runs the histories on a store.
//
// Everything that happens to the runs of one workflow id happens in its turns, one after another; a
// turn changes a copy of a run's state, commits it in one transaction of the store, and only then
// tells anyone. So a reply, a task that a worker gets, and an event that a reader sees are durable.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/turns.hpp"
#include "executor/alarms.hpp"
#include "executor/executor.hpp"
#include "history/limits.hpp"
#include "matching/matching.hpp"
#include <google/protobuf/map.h>
#include <temporal/api/common/v1/message.pb.h>

#include <holdfast/store/visibility.hpp>

namespace holdfast {
class Clock;
class Logger;
}  // namespace holdfast

namespace holdfast::sql {
class Database;
}

namespace holdfast::server::engine {

// What the engine asks of a namespace.
class Namespaces {
public:
    Namespaces() = default;
    Namespaces(const Namespaces&) = delete;
    Namespaces& operator=(const Namespaces&) = delete;
    virtual ~Namespaces() = default;

    // How long closed runs are kept; a default if the namespace is gone.
    [[nodiscard]] virtual std::chrono::seconds retention(const std::string& namespace_id) const = 0;
    // Empty if there is none.
    [[nodiscard]] virtual std::string name_of(const std::string& namespace_id) const = 0;
    [[nodiscard]] virtual std::optional<std::string> id_of(const std::string& name) const = 0;
    // What of a run's search attributes is searched: by the names and in the form of the store.
    using Payloads = google::protobuf::Map<std::string, temporal::api::common::v1::Payload>;
    [[nodiscard]] virtual store::SearchAttributes indexed(const std::string& namespace_id,
                                                          const Payloads& attributes) const = 0;
};

class RunObserver;

struct EngineLimits {
    history::Limits run;
    std::size_t cached_bytes_max = std::size_t{24} << 20;
    std::chrono::seconds retention_jitter = std::chrono::minutes{30};
    std::chrono::seconds retention_min{0};  // Of closed runs, whatever their namespace says.
};

struct EngineParts {
    sql::Database& db;
    const Clock& clock;
    Executor& executor;
    Alarms& alarms;
    matching::Matching& matching;
    const Namespaces& namespaces;
    Logger& log;
    RunObserver* observer = nullptr;
    // Told of each run that is closed by a commit, to count it; `status` is the API's. Called in
    // the run's turn: it must be quick, and not throw.
    std::function<void(const std::string& namespace_id, int status)> run_closed = {};
};

// Counted, for tests, benchmarks and metrics.
struct EngineCounts {
    std::uint64_t run_commits = 0;    // Transactions that wrote a run.
    std::uint64_t other_commits = 0;  // Leases, re-armed wake-ups, deleted rows.
    std::size_t cached_workflows = 0;
    std::size_t cached_bytes = 0;
};

// Safe to share between threads.
class Engine final : public Turns, public matching::TaskStarter {
public:
    // Requires: what `parts` names outlives this object. The executor may still hold jobs of this
    // object when stop() returns; they end without doing anything.
    explicit Engine(const EngineParts& parts, EngineLimits limits = {});
    ~Engine() override;

    // Takes the shards, and brings back what waits: tasks, timers. Blocks.
    void start();
    // No turn begins after this, and none is under way when it returns.
    void stop();

    // Turns
    void in_turn(const WorkflowKey& workflow, TurnWork work) override;
    [[nodiscard]] Watch watch(const WorkflowKey& workflow,
                              const std::string& run_id,
                              std::int64_t next_event_id,
                              std::function<void()> told) override;

    // The wall time of the clock has moved: looks at what is due by now. Does not block.
    // Requires: it is called by an alarm.
    void look_at_clock();

    [[nodiscard]] EngineCounts counts() const;

    // Throws unavailable if another process has the shard, as far as this one knows.
    void require_owned() const;

    // matching::TaskStarter
    void start(const matching::QueueKey& queue,
               matching::QueuedTask task,
               matching::Reservation poller) override;

    struct State;  // engine_state.hpp

private:
    std::unique_ptr<State> state_;
};

}  // namespace holdfast::server::engine
