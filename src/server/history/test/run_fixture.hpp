// One run whose client, workers and clock are the test. After every transition the history is
// checked, and the state is compared with what it tells.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "history/activity.hpp"
#include "history/completion.hpp"
#include "history/finish.hpp"
#include "history/outside.hpp"
#include "history/reset/reset.hpp"
#include "history/start.hpp"
#include "history/transition.hpp"
#include "history/workflow_task.hpp"
#include <gtest/gtest.h>
#include <temporal/api/command/v1/message.pb.h>
#include <temporal/api/history/v1/message.pb.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::history::tests {

// NOLINTNEXTLINE(google-build-using-namespace): 50 names of it, in tests only.
using namespace temporal::api::enums::v1;
using namespace std::chrono_literals;
using temporal::api::command::v1::Command;
using temporal::api::failure::v1::Failure;
using temporal::api::history::v1::History;
using temporal::api::history::v1::HistoryEvent;

// Ids in a row, and no chance at all.
class CountingSource final : public Source {
public:
    std::string uuid() override { return "uuid-" + std::to_string(++uuids_); }
    std::int64_t task_id() override { return ++tasks_; }
    double fraction() override { return 0; }

private:
    int uuids_ = 0;
    std::int64_t tasks_ = 0;
};

class RunFixture : public testing::Test {
protected:
    RunFixture();

    // The requests. Each is one transition; `refusal` is why the last one was refused.
    void start();
    void start(const Started& started);
    // As start(), and everything before is forgotten.
    void start_again();
    bool poll(const std::string& queue = "queue", const std::string& request_id = "poll");
    bool complete(std::vector<Command> commands = {}, bool force_new = false);
    bool fail_task(WorkflowTaskFailedCause cause =
                       WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE);
    bool signal(const std::string& name, const std::string& request_id = "");
    void cancel();
    bool terminate();
    bool start_activity(std::int64_t scheduled, const std::string& request_id = "activity-poll");
    bool complete_activity(std::int64_t scheduled, std::optional<int> attempt = std::nullopt);
    bool fail_activity(std::int64_t scheduled, const Failure& failure);
    bool cancel_activity(std::int64_t scheduled);
    std::optional<HeartbeatReply> heartbeat(std::int64_t scheduled, const std::string& details);

    // Resets the run and goes on with the new one, "run-2".
    bool reset(const ResetOptions& options);

    // Everything that is due after this long.
    void advance(Span span);

    // "1 Started, 2 WorkflowTaskScheduled", as a reader of the history sees it.
    [[nodiscard]] std::string history() const;
    [[nodiscard]] const HistoryEvent& event(std::int64_t id) const;
    [[nodiscard]] const state::Run& run() const { return run_; }

    // Kinds of the tasks that the last transition made.
    [[nodiscard]] std::vector<Task::Kind> made() const;

    // Of the completions to come; an empty queue: none.
    std::string sticky_queue;
    CompletionScene scene;
    Limits limits;
    std::optional<Refusal> refusal;
    Result last;
    state::Run base;  // Of the last reset, as it left it.

    // One transition that does this.
    bool transition(const std::function<std::optional<Refusal>(Transition&)>& change);

private:
    void check_rebuild() const;

    CountingSource source_;
    Time now_{std::chrono::sys_days{std::chrono::year{2026} / 3 / 1}};
    state::Run run_;
    std::vector<History> batches_;
};

// Commands with what they need.
[[nodiscard]] Command schedule_activity_command(const std::string& id,
                                                Span start_to_close = 10s,
                                                Span schedule_to_close = 0s);
[[nodiscard]] Command cancel_activity_command(std::int64_t scheduled);
[[nodiscard]] Command start_timer_command(const std::string& id, Span span);
[[nodiscard]] Command cancel_timer_command(const std::string& id);
[[nodiscard]] Command start_child_command(
    const std::string& workflow_id, ParentClosePolicy policy = PARENT_CLOSE_POLICY_UNSPECIFIED);
[[nodiscard]] Command continue_as_new_command();
[[nodiscard]] Command marker_command(const std::string& name);
[[nodiscard]] Command complete_command();
[[nodiscard]] Command fail_command(const std::string& type = "", bool non_retryable = false);
[[nodiscard]] Failure application_failure(const std::string& type = "", bool non_retryable = false);

}  // namespace holdfast::server::history::tests
