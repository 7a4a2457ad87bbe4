// A history as a timeline: one line per operation, with a bar from when it was asked for to when it
// was answered.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flow/text.hpp"

#include <holdfast/flow_engine/event.hpp>

namespace holdfast::app {

enum class Fate : std::uint8_t {
    open,
    done,
    failed,
    cancelled,  // The answer was no longer wanted.
    moment,     // A fact without duration.
};
[[nodiscard]] std::string_view to_string(Fate fate) noexcept;

struct Step {
    flow::EventId event = 0;
    std::string kind;  // activity, timer, child, message, signal, or of a fact: cancel, update, ...
    std::string name;
    std::int64_t begin_ms = 0;
    std::optional<std::int64_t> end_ms{};
    Fate fate = Fate::open;
    std::string note{};  // The answer or the failure.
};

// In the order in which they were asked for. Which message answers which wait of a channel is
// told by their order.
[[nodiscard]] std::vector<Step> steps_of(const std::vector<flow::Event>& history);
[[nodiscard]] Json to_json(const Step& step);

struct TimelineOptions {
    std::size_t width = 100;     // Of the whole line.
    std::size_t lines_max = 40;  // The newest are shown; a line says how many were left out.
    bool blocks = false;         // Bars of line-drawing characters, for terminals.
    flow::Moment now{};          // Where bars of open operations end.
    // Moments to point at in a line above the bars, and what they are.
    std::vector<flow::Moment> marks{};
    std::string marks_name{};
};
// Lines that end with a newline; empty for an empty history.
[[nodiscard]] std::string draw_timeline(const std::vector<flow::Event>& history,
                                        const TimelineOptions& options);

}  // namespace holdfast::app
