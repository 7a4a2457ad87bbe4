// Whether a workflow's code does what a whole history says.
#include "replay/engine.hpp"
#include "stored/payload_json.hpp"
#include <fmt/core.h>

namespace holdfast::flow {
namespace {

// As with requests, a result may have other fields than then.
bool same_end(const EventBody& now, const EventBody& then) {
    if (const auto* const completed = std::get_if<WorkflowCompleted>(&now)) {
        const auto* const was = std::get_if<WorkflowCompleted>(&then);
        return was != nullptr && agree(completed->output.json, was->output.json);
    }
    if (const auto* const continued = std::get_if<WorkflowContinued>(&now)) {
        const auto* const was = std::get_if<WorkflowContinued>(&then);
        return was != nullptr && continued->version == was->version &&
               agree(continued->input.json, was->input.json);
    }
    return now == then;
}

}  // namespace

std::optional<FailureInfo> Execution::Engine::check() {
    verifying_ = true;
    Turn turn;
    turn_ = &turn;
    primed_ = true;
    if (history_.empty()) {
        return FailureInfo{.kind = FailureKind::infrastructure, .message = "the history is empty"};
    }
    if (!has_run(history_)) {
        return std::nullopt;
    }
    const EventBody last = history_.back().body;
    replay();
    turn_ = nullptr;
    const WorkflowFailed* const failed = std::get_if<WorkflowFailed>(&last);
    if (failed != nullptr && abort_ == failed->failure &&
        abort_->kind != FailureKind::nondeterminism) {
        return std::nullopt;  // It ends as it did then.
    }
    if (!abort_) {
        check_ending(last);
    }
    return abort_;
}

void Execution::Engine::check_ending(const EventBody& last) {
    const WorkflowFailed* const failed = std::get_if<WorkflowFailed>(&last);
    const bool from_outside = failed != nullptr && !reaches_code(failed->failure.kind) &&
                              failed->failure.kind != FailureKind::panic;
    if (forced_ || from_outside) {
        return;  // The code did not cause this end.
    }
    if (!asked_.empty()) {
        differs(fmt::format("the history ends, but the code asks for {}",
                            describe_action(asked_.front()->action)));
        return;
    }
    if (!dropped_.empty()) {
        differs(fmt::format("the code gave up the {} of event {}, and the history does not say so",
                            to_string(dropped_kind(dropped_.front()->action)),
                            dropped_.front()->event));
        return;
    }
    if (!is_terminal(last) || !code_ended()) {
        if (code_ended()) {
            differs("the code has ended, but the history goes on");
        } else if (is_terminal(last)) {
            differs(
                fmt::format("the history ends with {}, but the code still waits", kind_name(last)));
        }
        return;
    }
    Turn end;
    turn_ = &end;
    finish();
    turn_ = nullptr;
    const EventBody& now = end.events.back().body;
    if (!same_end(now, last)) {
        differs(now.index() == last.index()
                    ? fmt::format("the code ended with another {} than the history has",
                                  kind_name(last))
                    : fmt::format("the code ended with {}, but the history with {}",
                                  kind_name(now),
                                  kind_name(last)));
    }
}

}  // namespace holdfast::flow
