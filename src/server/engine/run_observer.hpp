// Told of what happens to runs, for a server whose time may jump.
#pragma once

#include <memory>

#include <server/history/state.pb.h>

namespace holdfast::server::engine {

// Functions are called from any thread and must not block. It must outlive the engine and the jobs
// of the engine.
class RunObserver {
public:
    RunObserver() = default;
    RunObserver(const RunObserver&) = delete;
    RunObserver& operator=(const RunObserver&) = delete;
    virtual ~RunObserver() = default;

    // The run is committed in this state, in a turn that has not ended; or in memory only, with a
    // workflow task that carries updates.
    virtual void committed(const history::state::Run& run) = 0;

    // Work between runs is under way while the result lives.
    [[nodiscard]] virtual std::shared_ptr<void> work() = 0;

    // No turn is under way, or was not a moment ago.
    virtual void idle() = 0;
};

}  // namespace holdfast::server::engine
