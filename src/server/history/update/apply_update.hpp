// What events and notes about updates do to the state of a run. See apply.hpp.
#pragma once

#include "history/note.hpp"
#include <temporal/api/history/v1/message.pb.h>

namespace holdfast::server::history {

// False for an event that is not about updates.
bool apply_update(state::Run& run, const temporal::api::history::v1::HistoryEvent& event);

void apply_update(state::Run& run, const note::UpdatePending& note);
void apply_update(state::Run& run, const note::UpdatesSent& note);
void apply_update(state::Run& run, const note::UpdateForgotten& note);

}  // namespace holdfast::server::history
