// Runs workflows and activities, in this process.
//
// Several runtimes, in one or many processes, may share a store. A runtime first tries to do the
// work that it produces itself, without a query. When a process dies, the others take over its work
// once its leases have run out.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include <holdfast/flow/provider.hpp>
#include <holdfast/flow/registry.hpp>
#include <holdfast/flow/store.hpp>
#include <holdfast/flow_engine/execution.hpp>

namespace holdfast {
class Clock;
class Logger;
class Metrics;
}  // namespace holdfast

namespace holdfast::flow {

// Twelve digits of the build id that the linker wrote into the running program; empty if it wrote
// none. It differs between builds of the same code, and does not depend on where it is installed.
[[nodiscard]] const std::string& program_build_id();

struct RuntimeOptions {
    int workflow_threads = 2;                // 0: this process runs no workflows.
    int activity_threads = 8;                // 0: this process runs no activities.
    milliseconds workflow_lease{5'000};      // At least 2 s; renewed after a third of it.
    milliseconds activity_lease{30'000};     // At least 2 s.
    int max_attempts = 10;                   // After that many a message or an activity is poison.
    milliseconds cancel_grace{10'000};       // A cancelled activity may take this long to end.
    milliseconds unregistered_first{1'000};  // Pause before blocked work is tried again,
    milliseconds unregistered_max{60'000};   // doubled each time up to this.
    ReplayVersions versions{};
    TagFilter tags{};
    // Owner of sessions; by default a random one. Give a stable one to keep sessions over restarts.
    std::string worker_id{};
    milliseconds session_lease{30'000};
    milliseconds session_idle{300'000};
    int sessions_max = 10;
    milliseconds poll_max{1'000};  // How long other processes' work may go unnoticed at worst.
    std::size_t cached_instances_max = 10'000;  // Coroutines kept between turns.
    std::size_t cached_bytes_max = 20U << 20U;  // Others are replayed when they are needed.
    int shadow_replay_every = 64;  // One turn in this many is checked by a full replay.
    int turns_per_commit_max = 128;
    int stuck_activities_max = 8;  // Threads that may be replaced because an activity does not end.
    milliseconds early_mail_ttl{60'000};
    milliseconds reply_ttl{60'000};
    // Instances and earlier executions that ended longer ago are removed. 0: none are.
    milliseconds retention{0};
    ExecutionLimits limits{};
    // Recorded in histories where it changes; decides how a replay treats changed inputs
    // (input_check.hpp). At most 64 bytes; empty: none is recorded. Give one if workflows are in
    // libraries that change without the program.
    std::string build_id = program_build_id();
    const Clock* clock = nullptr;  // Null: the machine's. For pauses and limits of this process.
    Logger* logger = nullptr;
    Metrics* metrics = nullptr;
    milliseconds gauges_every{60'000};  // How often the gauges are measured, by a query.
    // No threads at all: work is done by run_until_idle() on its caller's thread.
    bool manual = false;
};

struct DrainReport {
    int turns_abandoned = 0;
    int activities_abandoned = 0;
    int activities_stuck = 0;  // Their threads could not be ended.
    [[nodiscard]] bool clean() const noexcept {
        return turns_abandoned == 0 && activities_abandoned == 0 && activities_stuck == 0;
    }
};

struct RuntimeStats {
    std::int64_t turns = 0;
    std::int64_t turns_from_cache = 0;  // That needed no replay.
    std::int64_t turns_lost = 0;        // Overtaken by another process.
    std::int64_t events_replayed = 0;
    std::int64_t history_bytes_read = 0;  // For replays, also those that check.
    std::int64_t commits = 0;             // Batches of turns.
    std::int64_t activities = 0;
    std::int64_t shadow_replays = 0;
    std::int64_t cached_instances = 0;
};

class Runtime {
public:
    // Starts at once. Contradictory options are InvalidArgument.
    Runtime(std::shared_ptr<Store> store, Registry registry, RuntimeOptions options = {});
    // Requires: `store` outlives the runtime.
    Runtime(Store& store, Registry registry, RuntimeOptions options = {});
    // Drains, with a deadline of ten seconds.
    ~Runtime();
    Runtime(const Runtime&) = delete;
    Runtime& operator=(const Runtime&) = delete;

    // Takes no new work, finishes what runs, and gives the rest back so that other workers can take
    // it at once. Returns as soon as nothing runs. Idempotent.
    DrainReport drain(milliseconds deadline);

    // Of a manual runtime: works until there is nothing to do right now. Returns how many turns and
    // activities it ran.
    int run_until_idle();

    [[nodiscard]] RuntimeStats stats() const;

private:
    class State;
    std::shared_ptr<Store> store_;
    std::unique_ptr<State> state_;
};

}  // namespace holdfast::flow
