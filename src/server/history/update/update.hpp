// Updates as a run knows them: asked for by a client or admitted by a reset, accepted by a worker,
// completed by it.
//
// An update that is not accepted yet leaves no event: it is in memory, and lost with it. Its client
// asks again then, and a worker that has it already brings it back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "history/refusal.hpp"
#include "history/transition.hpp"
#include <temporal/api/failure/v1/message.pb.h>
#include <temporal/api/update/v1/message.pb.h>

namespace holdfast::server::history {

enum class UpdateStage : std::uint8_t { unknown, admitted, accepted, completed };

[[nodiscard]] UpdateStage update_stage(const state::Run& run, const std::string& update_id);

// All that it has had, without those that were rejected.
[[nodiscard]] std::size_t updates_of(const state::Run& run);

// A client asks for an update: it is pending until a worker has accepted or rejected it. Nothing
// changes if the run knows it already. Without a pending workflow task it gets a speculative one.
[[nodiscard]] std::optional<Refusal> ask_update(Transition& transition,
                                                const temporal::api::update::v1::Request& request);

// Some update waits for a workflow task, and none is pending.
[[nodiscard]] bool update_wants_task(const state::Run& run);

// The pending updates that the started workflow task carries, in the order of their admission.
[[nodiscard]] std::vector<const state::PendingUpdate*> sent_updates(const state::Run& run);

// Event 41. `request` is what the client asked for, null if that is not known any more: then the
// worker's message brings it. What is wrong with the message otherwise, which fails the workflow
// task.
[[nodiscard]] std::optional<std::string> accept_update(
    Transition& transition,
    const std::string& update_id,
    const temporal::api::update::v1::Acceptance& message,
    const temporal::api::update::v1::Request* request);

// Event 43, or what is wrong with the message.
[[nodiscard]] std::optional<std::string> complete_update(
    Transition& transition,
    const std::string& update_id,
    const temporal::api::update::v1::Response& message);

// Event 47: a reset carries over an update that the new run has not accepted.
void admit_update(Transition& transition, const temporal::api::update::v1::Request& request);

// The outcome of an accepted update whose run has closed.
[[nodiscard]] temporal::api::failure::v1::Failure closed_before_update();

// Why an update that was not accepted ended with its closed run.
[[nodiscard]] Refusal aborted_by_close(const state::Run& run);
// Why one ended that was lost with what was in memory.
[[nodiscard]] Refusal update_lost();

}  // namespace holdfast::server::history
