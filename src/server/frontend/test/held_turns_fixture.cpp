#include "frontend/test/held_turns_fixture.hpp"

#include <utility>

#include "history/finish.hpp"
#include "history/projection.hpp"
#include "history/start.hpp"
#include "history/workflow_task.hpp"
#include <fmt/format.h>
#include <server/engine/token.pb.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::frontend::tests {

namespace {

namespace api = temporal::api::workflowservice::v1;

bool is_open(const history::state::Run& run) {
    return run.phase() != history::state::PHASE_COMPLETED;
}

class HeldTurn final : public engine::Turn {
public:
    HeldTurn(HeldTurns& all, engine::WorkflowKey workflow)
        : all_(all), workflow_(std::move(workflow)) {}

    engine::Or<const history::state::Run*> find(const std::string& run_id) override {
        const auto* held = all_.run_of(workflow_);
        if (held == nullptr || (!run_id.empty() && run_id != held->run.run_id())) {
            return not_found();
        }
        return &held->run;
    }

    std::optional<history::Refusal> change(const std::string& run_id,
                                           const engine::Change& change) override {
        const auto found = find(run_id);
        if (const auto* refusal = std::get_if<history::Refusal>(&found)) {
            return *refusal;
        }
        return all_.apply(*all_.run_of(workflow_), change);
    }

    std::optional<history::Refusal> change_and_take(
        const std::string& run_id,
        const std::string&,
        const engine::Change& change,
        api::PollWorkflowTaskQueueResponse& task) override {
        auto refusal = this->change(run_id, change);
        const auto* held = all_.run_of(workflow_);
        if (!refusal && held != nullptr && held->run.has_workflow_task()) {
            task.set_task_token(all_.poll_task(workflow_));
        }
        return refusal;
    }

    std::variant<engine::StartAnswer, engine::AlreadyStarted, history::Refusal> start(
        engine::StartRequest request) override {
        all_.last_start = request;
        if (const auto* held = all_.run_of(workflow_)) {
            const std::string& run_id = held->run.run_id();
            return engine::AlreadyStarted{.message = "Workflow execution is already running.",
                                          .start_request_id = "the first",
                                          .run_id = run_id,
                                          .first_execution_run_id = run_id};
        }
        auto& held = all_.runs[workflow_];
        held.run = history::new_run(workflow_.namespace_id, all_.source.uuid());
        static_cast<void>(all_.apply(held, [&](history::Transition& transition) {
            history::start_run(transition, request.started, request.request_id, request.extras);
            return std::optional<history::Refusal>();
        }));
        return engine::StartAnswer{
            .run_id = held.run.run_id(),
            .first_execution_run_id = held.run.run_id(),
            .started = true,
            .status = temporal::api::enums::v1::WORKFLOW_EXECUTION_STATUS_RUNNING,
            .eager = request.eager};
    }

    void task_of(const std::string&, api::PollWorkflowTaskQueueResponse& task) override {
        task.set_task_token("eager");
    }

    void activity_of(const std::string&,
                     std::int64_t scheduled_event_id,
                     api::PollActivityTaskQueueResponse& task) override {
        const auto& activity = all_.run_of(workflow_)->run.activities().at(scheduled_event_id);
        task.set_activity_id(activity.scheduled().activity_id());
        task.set_attempt(activity.attempt());
    }

    engine::HistoryPage read(const std::string&, std::int64_t first, int batches_max) override {
        engine::HistoryPage page;
        for (const auto& batch : all_.run_of(workflow_)->batches) {
            if (batch.events(0).event_id() < first) {
                continue;
            }
            if (batches_max-- == 0) {
                page.next_event_id = batch.events(0).event_id();
                break;
            }
            page.history.MergeFrom(batch);
        }
        return page;
    }

    engine::HistoryPage read_back(const std::string&, std::int64_t end, int batches_max) override {
        engine::HistoryPage page;
        const auto& batches = all_.run_of(workflow_)->batches;
        for (auto batch = batches.rbegin(); batch != batches.rend(); ++batch) {
            if (end != 0 && batch->events().rbegin()->event_id() >= end) {
                continue;
            }
            if (batches_max-- == 0) {
                page.next_event_id = batch->events().rbegin()->event_id() + 1;
                break;
            }
            page.history.MergeFrom(*batch);
        }
        return page;
    }

    // Stages only: no test that looks at outcomes is played here.
    engine::UpdateNews update(const std::string&, const std::string& update_id) override {
        return {.stage = history::update_stage(all_.run_of(workflow_)->run, update_id)};
    }

    engine::Watch await_update(const std::string&,
                               const std::string&,
                               history::UpdateStage,
                               std::function<void(engine::UpdateNews)>) override {
        return nullptr;
    }

    std::optional<history::Refusal> buffer_query(
        const std::string&, std::shared_ptr<engine::BufferedQuery> query) override {
        all_.buffered_query = std::move(query);
        return std::nullopt;
    }

    void bring_query_results(const engine::QueryResults&) override {}

    std::optional<history::Refusal> query_task_of(
        const std::string& run_id,
        const std::string&,
        api::PollWorkflowTaskQueueResponse& task) override {
        task.mutable_workflow_execution()->set_run_id(run_id);
        return std::nullopt;
    }

    engine::Or<std::string> reset(const engine::ResetRequest& request) override {
        all_.last_reset = request;
        return all_.source.uuid();
    }

    std::optional<history::Refusal> remove(const std::string& run_id) override {
        const auto found = find(run_id);
        if (const auto* refusal = std::get_if<history::Refusal>(&found)) {
            return *refusal;
        }
        all_.runs.erase(workflow_);
        return std::nullopt;
    }

private:
    [[nodiscard]] history::Refusal not_found() const {
        return {history::Refused::not_found,
                fmt::format("workflow not found for ID: {}", workflow_.workflow_id)};
    }

    HeldTurns& all_;
    const engine::WorkflowKey workflow_;
};

}  // namespace

std::string NumberedSource::uuid() {
    return fmt::format("00000000-0000-4000-8000-{:012}", ++uuids_);
}

void HeldTurns::in_turn(const engine::WorkflowKey& workflow, engine::TurnWork work) {
    ++turns;
    HeldTurn turn(*this, workflow);
    std::move(work)(turn);
}

engine::Watch HeldTurns::watch(const engine::WorkflowKey& workflow,
                               const std::string&,
                               std::int64_t next_event_id,
                               std::function<void()> told) {
    auto watching = std::make_shared<Watching>(
        Watching{.workflow = workflow, .next_event_id = next_event_id, .told = std::move(told)});
    watches_.push_back(watching);
    return watching;
}

void HeldTurns::tell() {
    const auto watches = std::exchange(watches_, {});
    for (const auto& weak : watches) {
        const auto watching = weak.lock();
        if (!watching) {
            continue;
        }
        const auto& run = run_of(watching->workflow)->run;
        if (!is_open(run) || run.next_event_id() > watching->next_event_id) {
            watching->told();
        } else {
            watches_.push_back(watching);
        }
    }
}

HeldTurns::HeldRun* HeldTurns::run_of(const engine::WorkflowKey& workflow) {
    const auto found = runs.find(workflow);
    return found == runs.end() ? nullptr : &found->second;
}

std::optional<history::Refusal> HeldTurns::apply(HeldRun& held, const engine::Change& change) {
    history::Transition transition(held.run, now, source, limits);
    auto refusal = change(transition);
    history::Finished finished = history::finish(transition);
    if (finished.result.changed || finished.result.touched) {
        held.run = finished.result.run;
        auto& made = finished.result.batches;
        held.batches.insert(held.batches.end(), made.begin(), made.end());
        tell();
    }
    return finished.refusal ? finished.refusal : refusal;
}

std::string HeldTurns::poll_task(const engine::WorkflowKey& workflow) {
    HeldRun& held = *run_of(workflow);
    const history::Poll poll{.scheduled_event_id = held.run.workflow_task().scheduled_event_id(),
                             .stamp = held.run.workflow_task().stamp(),
                             .request_id = source.uuid(),
                             .identity = "worker",
                             .queue = held.run.workflow_task().task_queue().name()};
    static_cast<void>(apply(held, [&](history::Transition& transition) {
        return history::start_workflow_task(transition, poll);
    }));
    engine::token::Task task;
    auto& token = *task.mutable_workflow_task();
    token.set_namespace_id(workflow.namespace_id);
    token.set_workflow_id(workflow.workflow_id);
    token.set_run_id(held.run.run_id());
    token.set_scheduled_event_id(held.run.workflow_task().scheduled_event_id());
    token.set_started_event_id(held.run.workflow_task().started_event_id());
    token.set_attempt(held.run.workflow_task().attempt());
    *token.mutable_started_time() = held.run.workflow_task().started_time();
    return task.SerializeAsString();
}

}  // namespace holdfast::server::frontend::tests
