// What a run does because time has passed. It has one alarm: the earliest moment at which anything
// is due; when it rings, everything that is due by then happens.
#pragma once

#include <optional>

#include "history/transition.hpp"

namespace holdfast::server::history {

// Nothing if only a worker or a client can move the run on.
[[nodiscard]] std::optional<Time> next_due(const state::Run& run);

// Everything that is due at the transition's moment, but at most a bounded number of timers and
// activities: next_due() tells then that more is due at once. Nothing for a closed run.
void fire_due(Transition& transition);

}  // namespace holdfast::server::history
