// A state from its history, and what of a state its history tells.
#pragma once

#include <span>

#include <server/history/state.pb.h>
#include <temporal/api/history/v1/message.pb.h>

namespace holdfast::server::history {

// A run before its first event.
[[nodiscard]] state::Run new_run(std::string namespace_id, std::string run_id);

// Requires: batches that the checker accepts, from event 1.
[[nodiscard]] state::Run rebuild(state::Run fresh,
                                 std::span<const temporal::api::history::v1::History> batches);

// The state without what notes set. Equals the projection of rebuild() over all its events, after
// which the events that wait in its buffer are applied.
[[nodiscard]] state::Run projection(state::Run run);

}  // namespace holdfast::server::history
