// What a run remembers of the workers that complete its tasks: the version of the newest one, a
// point to reset to for each build, and the builds as search attributes.
#pragma once

#include "history/times.hpp"
#include <server/history/state.pb.h>

namespace temporal::api::history::v1 {
class HistoryEvent;
}

namespace holdfast::server::history {

struct Continuation;

// Event 7 as far as it tells of its worker. A build that is new to the run begins a reset point,
// which can be used if no child, signal or cancel of another workflow is on its way.
void remember_build(state::Run& run, const temporal::api::history::v1::HistoryEvent& completed);

// The reset points of a run that another one follows last as long as its history. Those that it has
// from earlier runs have their end already. The run that follows has them all.
void expire_reset_points(state::Run& closed, Continuation& next, Time expiry);

}  // namespace holdfast::server::history
