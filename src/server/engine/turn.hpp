// The turn of one workflow: what a request may do with its runs.
//
// All functions block in the store. They throw what the store throws when it does not answer; a
// refusal is an answer, and what `run_id` names is then as it was, unless the function says
// otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/query/buffered_queries.hpp"
#include "executor/job.hpp"
#include "history/refusal.hpp"
#include "history/reset/reset.hpp"
#include "history/start.hpp"
#include "history/start/attach.hpp"
#include "history/transition.hpp"
#include "history/update/update.hpp"
#include <temporal/api/enums/v1/workflow.pb.h>
#include <temporal/api/history/v1/message.pb.h>
#include <temporal/api/update/v1/message.pb.h>

namespace temporal::api::workflowservice::v1 {
class PollActivityTaskQueueResponse;
class PollWorkflowTaskQueueResponse;
}  // namespace temporal::api::workflowservice::v1

namespace holdfast::server::engine {

using history::Refusal;
template <class T>
using Or = history::Or<T>;

// A change may be refused and change the run all the same: a completion with a bad command fails
// its workflow task.
using Change = std::function<std::optional<Refusal>(history::Transition&)>;

struct StartRequest {
    history::Started started;  // Complete but for the ids of runs.
    std::string request_id;
    history::StartExtras extras;
    // As normalise_policies() gives them.
    temporal::api::enums::v1::WorkflowIdReusePolicy reuse{};
    temporal::api::enums::v1::WorkflowIdConflictPolicy conflict{};
    // Of signal-with-start: also sent to a run that is there already.
    std::optional<temporal::api::history::v1::WorkflowExecutionSignaledEventAttributes> signal;
    // Of update-with-start: also asked of a run that is there already.
    std::optional<temporal::api::update::v1::Request> update;
    // What it leaves at a run that it uses.
    std::optional<history::Attachment> attachment;
    bool eager = false;  // The caller would run the first workflow task itself.
    std::string identity;
};

struct StartAnswer {
    std::string run_id;
    std::string first_execution_run_id;
    bool started = false;  // This request, or an earlier one with its id, started the run.
    temporal::api::enums::v1::WorkflowExecutionStatus status{};
    bool attached = false;  // To a run that was there: event 55 knows the request.
    bool eager = false;     // The caller has the first workflow task: see Turn::task_of.
};

// There is a run that forbids the start.
struct AlreadyStarted {
    std::string message;
    std::string start_request_id;
    std::string run_id;
    std::string first_execution_run_id;
};

// Ends the current run, and goes on from a point of the base run in a new one.
struct ResetRequest {
    std::string base_run_id;  // Empty: the current run.
    std::string request_id;
    history::ResetOptions options;
};

// Whole batches of events, as they are stored.
struct HistoryPage {
    temporal::api::history::v1::History history;
    std::int64_t next_event_id = 0;  // Where the next page begins; 0 after the last.
};

// Keeps a watch alive; the watch ends when it is destroyed. That may happen within `told`.
using Watch = std::shared_ptr<void>;

// What is known of an update. Once it has ended, there is an outcome, or a refusal if it was
// aborted.
struct UpdateNews {
    history::UpdateStage stage{};
    std::optional<temporal::api::update::v1::Outcome> outcome{};
    std::optional<Refusal> refusal{};
};

class Turn {
public:
    virtual ~Turn() = default;

    // The run's state, as it is committed. An empty id names the current run. Refused if there is
    // none. Valid until the next call.
    [[nodiscard]] virtual Or<const history::state::Run*> find(const std::string& run_id) = 0;

    // Applies `change`, matches the tasks it makes with waiting workers, commits, and tells
    // everyone. The run must not change if `change` throws.
    [[nodiscard]] virtual std::optional<Refusal> change(const std::string& run_id,
                                                        const Change& change) = 0;

    // As change(), for the completion of a workflow task whose worker takes the next one with the
    // reply: `task` is filled if there is one.
    [[nodiscard]] virtual std::optional<Refusal> change_and_take(
        const std::string& run_id,
        const std::string& identity,
        const Change& change,
        temporal::api::workflowservice::v1::PollWorkflowTaskQueueResponse& task) = 0;

    [[nodiscard]] virtual std::variant<StartAnswer, AlreadyStarted, Refusal> start(
        StartRequest request) = 0;

    // The started workflow task of the run as a poll gets it. Requires: it is started.
    virtual void task_of(
        const std::string& run_id,
        temporal::api::workflowservice::v1::PollWorkflowTaskQueueResponse& task) = 0;

    // The started activity of the run as a poll gets it. Requires: it is started.
    virtual void activity_of(
        const std::string& run_id,
        std::int64_t scheduled_event_id,
        temporal::api::workflowservice::v1::PollActivityTaskQueueResponse& task) = 0;

    // Stored batches that begin at `first_event_id` or later, at most so many.
    [[nodiscard]] virtual HistoryPage read(const std::string& run_id,
                                           std::int64_t first_event_id,
                                           int batches_max) = 0;
    // The last first: batches that end before `end_event_id`, 0 for the end. next_event_id is the
    // end of the next page.
    [[nodiscard]] virtual HistoryPage read_back(const std::string& run_id,
                                                std::int64_t end_event_id,
                                                int batches_max) = 0;

    // Unknown is a stage like the others. Requires: the run was found in this turn.
    [[nodiscard]] virtual UpdateNews update(const std::string& run_id,
                                            const std::string& update_id) = 0;
    // Calls `told` once: when the update has reached the stage, or has ended. It must not block.
    // Requires: neither is so yet.
    [[nodiscard]] virtual Watch await_update(const std::string& run_id,
                                             const std::string& update_id,
                                             history::UpdateStage stage,
                                             std::function<void(UpdateNews)> told) = 0;
    // Keeps a query for the next workflow task of the run that starts. Refused if the run has as
    // many as it may. Requires: history::buffers_queries() of it.
    [[nodiscard]] virtual std::optional<Refusal> buffer_query(
        const std::string& run_id, std::shared_ptr<BufferedQuery> query) = 0;

    // What a completion says of buffered queries: they are told once it is committed, and never if
    // it is not. Requires: called within a Change; `results` outlive the turn.
    virtual void bring_query_results(const QueryResults& results) = 0;

    // The run as the task of one query, without the query and the token: with its history for a
    // poll of its normal queue.
    [[nodiscard]] virtual std::optional<Refusal> query_task_of(
        const std::string& run_id,
        const std::string& queue,
        temporal::api::workflowservice::v1::PollWorkflowTaskQueueResponse& task) = 0;

    // The id of the new run, in which the workflow goes on; that of the current one if the request
    // started it.
    [[nodiscard]] virtual Or<std::string> reset(const ResetRequest& request) = 0;

    // Deletes the run; one that is open is terminated first. Refused if there is none.
    [[nodiscard]] virtual std::optional<Refusal> remove(const std::string& run_id) = 0;
};

}  // namespace holdfast::server::engine
