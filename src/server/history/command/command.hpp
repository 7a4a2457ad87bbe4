// The commands of a workflow: what the code of a worker asks for when it completes a workflow task.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "history/transition.hpp"
#include <google/protobuf/map.h>
#include <temporal/api/command/v1/message.pb.h>
#include <temporal/api/common/v1/message.pb.h>
#include <temporal/api/enums/v1/failed_cause.pb.h>

namespace holdfast::server::history {

// Why a command fails the workflow task. `terminate`: it fails the run as well, because the same
// command would come again.
struct CommandFailure {
    temporal::api::enums::v1::WorkflowTaskFailedCause cause{};
    std::string text;
    bool terminate = false;
};

class MessageInbox;  // history/update/messages.hpp

using CommandResult = std::optional<CommandFailure>;

// Looks at search attributes, and completes them as those of a start. What is wrong with them, or
// nothing; then they are as they were.
using AttributeCheck = std::function<std::optional<std::string>(
    google::protobuf::Map<std::string, temporal::api::common::v1::Payload>&)>;

// One completion, while its commands run.
struct Completing {
    Transition& transition;
    std::int64_t completed_event_id = 0;  // Of event 7.
    std::string identity;
    bool unseen_events = false;            // Events waited in the buffer when it began.
    std::set<std::string> children = {};   // Workflow ids of children that it starts.
    MessageInbox* messages = nullptr;      // Those that came with it.
    AttributeCheck check_attributes = {};  // Nothing: they are taken as they come.
    std::vector<std::int64_t> eager = {};  // Scheduled events of activities that the worker wants.
};

// What is wrong with the list as a whole, before any of it is done: a command of unknown kind, or
// one behind a command that closes the run.
[[nodiscard]] std::optional<std::string> command_list_problem(
    const google::protobuf::RepeatedPtrField<temporal::api::command::v1::Command>& commands);

// Runs one command. After a failure the transition has to be forgotten.
[[nodiscard]] CommandResult run_command(Completing& completing,
                                        const temporal::api::command::v1::Command& command);

// "BadStartTimerAttributes" for WORKFLOW_TASK_FAILED_CAUSE_BAD_START_TIMER_ATTRIBUTES.
[[nodiscard]] std::string cause_name(temporal::api::enums::v1::WorkflowTaskFailedCause cause);

// The commands about activities (command_activity.cpp), other runs (command_external.cpp), the
// attributes and the memo of the run (command_properties.cpp), and its end (command_close.cpp).
[[nodiscard]] CommandResult schedule_activity(Completing& completing,
                                              const temporal::api::command::v1::Command& command);
[[nodiscard]] CommandResult request_cancel_activity(
    Completing& completing, const temporal::api::command::v1::Command& command);
[[nodiscard]] CommandResult upsert_search_attributes(
    Completing& completing, const temporal::api::command::v1::Command& command);
[[nodiscard]] CommandResult modify_properties(Completing& completing,
                                              const temporal::api::command::v1::Command& command);
[[nodiscard]] CommandResult start_child(Completing& completing,
                                        const temporal::api::command::v1::Command& command);
[[nodiscard]] CommandResult request_cancel_external(
    Completing& completing, const temporal::api::command::v1::Command& command);
[[nodiscard]] CommandResult signal_external(Completing& completing,
                                            const temporal::api::command::v1::Command& command);
[[nodiscard]] CommandResult close_run(Completing& completing,
                                      const temporal::api::command::v1::Command& command);

// What is wrong with the attributes and the memo of another run that a command asks for; else the
// attributes are complete. `too_large` is about the memo.
[[nodiscard]] CommandResult check_properties(
    const Completing& completing,
    const CommandFailure& too_large,
    const temporal::api::common::v1::Memo& memo,
    temporal::api::common::v1::SearchAttributes& attributes);

// An event that a command makes: it carries the command's metadata.
[[nodiscard]] temporal::api::history::v1::HistoryEvent command_event(
    const Completing& completing,
    EventType type,
    const temporal::api::command::v1::Command& command);

// "N is not set" or "N exceeds length limit", for a text that must be there and within the limit of
// ids; nothing if it is fine.
[[nodiscard]] std::optional<std::string> id_problem(const Completing& completing,
                                                    const std::string& value,
                                                    std::string_view not_set);

}  // namespace holdfast::server::history
