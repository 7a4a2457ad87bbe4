// Workflows and events in words, for people and for programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/answer.hpp"
#include "cli/times.hpp"

#include <holdfast/flow/provider.hpp>
#include <holdfast/flow_engine/event.hpp>

namespace holdfast::app {

[[nodiscard]] flow::Moment moment_of(std::int64_t time_ms);

// The value itself. Text that is not JSON, which only a damaged row can hold, becomes a string.
[[nodiscard]] Json payload_json(std::string_view text);
[[nodiscard]] Json to_json(const flow::FailureInfo& failure);
[[nodiscard]] Json to_json(const flow::InstanceInfo& info);
[[nodiscard]] Json to_json(const flow::PendingActivity& activity);
[[nodiscard]] Json to_json(const flow::Event& event);
[[nodiscard]] Json to_json(const flow::DeleteCounts& counts);

// "running", "running, suspended", "completed".
[[nodiscard]] std::string status_text(const flow::InstanceInfo& info);
// How it ended, or what it says about itself meanwhile; empty if nothing.
[[nodiscard]] std::string summary_of(const flow::InstanceInfo& info);
// "attempt 3 in 12 s, 2 of 5 failed, last failure: Busy: try later".
[[nodiscard]] std::string attempt_of(const flow::PendingActivity& activity);
// What the event says besides its kind: "shop.charge [7]".
[[nodiscard]] std::string describe(const flow::EventBody& body);

}  // namespace holdfast::app
