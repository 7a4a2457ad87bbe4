#include <holdfast/flow_engine/event.hpp>

#include <array>
#include <cstddef>

#include "stored/layout.hpp"

namespace holdfast::flow {
namespace {

// In the order of Dropped. Stored.
constexpr std::array<std::string_view, 5> operations{
    "activity", "timer", "child", "message", "signal"};

}  // namespace

std::string_view kind_name(const EventBody& body) noexcept {
    return stored::Kinds<EventBody>::names[body.index()];
}

std::string_view to_string(Dropped operation) noexcept {
    return operations[static_cast<std::size_t>(operation)];
}

bool is_terminal(const EventBody& body) noexcept {
    return std::holds_alternative<WorkflowCompleted>(body) ||
           std::holds_alternative<WorkflowFailed>(body) ||
           std::holds_alternative<WorkflowContinued>(body);
}

}  // namespace holdfast::flow
