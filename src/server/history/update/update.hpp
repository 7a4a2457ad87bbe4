// Updates as the history knows them: admitted by a reset, accepted by a worker, completed by it.
//
// An update that is not accepted yet leaves no event; it is kept by those who wait for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "history/transition.hpp"
#include <temporal/api/failure/v1/message.pb.h>
#include <temporal/api/update/v1/message.pb.h>

namespace holdfast::server::history {

enum class UpdateStage : std::uint8_t { unknown, admitted, accepted, completed };

[[nodiscard]] UpdateStage update_stage(const state::Run& run, const std::string& update_id);

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

}  // namespace holdfast::server::history
