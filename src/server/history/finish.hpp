// The end of a transition, whatever request made it.
#pragma once

#include <optional>

#include "history/refusal.hpp"
#include "history/transition.hpp"

namespace holdfast::server::history {

struct Finished {
    Result result;
    // The request is refused after all, because the run has outgrown a limit; the result terminates
    // it.
    std::optional<Refusal> refusal;
};

// Schedules the workflow task that is asked for, moves the buffer into the history unless a worker
// is at work, and holds the run within its limits.
[[nodiscard]] Finished finish(Transition& transition);

}  // namespace holdfast::server::history
