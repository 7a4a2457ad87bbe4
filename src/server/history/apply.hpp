// The two ways in which the state of a run changes.
#pragma once

#include "history/note.hpp"
#include <server/history/state.pb.h>
#include <temporal/api/history/v1/message.pb.h>

namespace holdfast::server::history {

// What the event means for the run. An event that waits in the buffer is applied when it is put
// there, with its id still buffered_event_id.
// Requires: a history that the checker accepts; else the process stops where a reference leads
// nowhere.
void apply(state::Run& run, const temporal::api::history::v1::HistoryEvent& event);

// Counts the event as the next one of the history. `first` begins a batch.
void append(state::Run& run, const temporal::api::history::v1::HistoryEvent& event, bool first);

void apply(state::Run& run, const Note& note);

}  // namespace holdfast::server::history
