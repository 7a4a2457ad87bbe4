#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executor/alarm_clock.hpp"
#include "executor/keyed_pool.hpp"
#include "frontend/test/frontend_fixture.hpp"
#include "workers/registry.hpp"

#include <holdfast/testing/check.hpp>

namespace holdfast::server::frontend::tests {

namespace {

// An idle run, which nothing but queries come to.
class IdleTurn final : public engine::Turn {
public:
    explicit IdleTurn(const history::state::Run& run) : run_(run) {}

    engine::Or<const history::state::Run*> find(const std::string&) override { return &run_; }
    std::optional<engine::Refusal> query_task_of(
        const std::string& run_id,
        const std::string&,
        api::PollWorkflowTaskQueueResponse& task) override {
        task.mutable_workflow_execution()->set_run_id(run_id);
        return std::nullopt;
    }

    std::optional<engine::Refusal> change(const std::string&, const engine::Change&) override {
        return unwanted();
    }
    std::optional<engine::Refusal> change_and_take(const std::string&,
                                                   const std::string&,
                                                   const engine::Change&,
                                                   api::PollWorkflowTaskQueueResponse&) override {
        return unwanted();
    }
    std::variant<engine::StartAnswer, engine::AlreadyStarted, engine::Refusal> start(
        engine::StartRequest) override {
        return unwanted();
    }
    void task_of(const std::string&, api::PollWorkflowTaskQueueResponse&) override {}
    engine::HistoryPage read(const std::string&, std::int64_t, int) override { return {}; }
    engine::HistoryPage read_back(const std::string&, std::int64_t, int) override { return {}; }
    std::optional<engine::Refusal> buffer_query(const std::string&,
                                                std::shared_ptr<engine::BufferedQuery>) override {
        return unwanted();
    }
    void bring_query_results(const engine::QueryResults&) override {}
    void activity_of(const std::string&,
                     std::int64_t,
                     api::PollActivityTaskQueueResponse&) override {}
    engine::UpdateNews update(const std::string&, const std::string&) override { return {}; }
    engine::Watch await_update(const std::string&,
                               const std::string&,
                               history::UpdateStage,
                               std::function<void(engine::UpdateNews)>) override {
        return nullptr;
    }
    engine::Or<std::string> reset(const engine::ResetRequest&) override { return unwanted(); }
    std::optional<engine::Refusal> remove(const std::string&) override { return unwanted(); }

private:
    static engine::Refusal unwanted() {
        ADD_FAILURE() << "a query changes nothing";
        return {};
    }
    const history::state::Run& run_;
};

// Turns on the threads of a pool.
class PooledTurns final : public engine::Turns {
public:
    explicit PooledTurns(KeyedPool& pool) : pool_(pool) {
        run_.set_run_id("33333333-3333-4333-8333-333333333333");
        run_.set_namespace_id(home_id);
        run_.set_phase(history::state::PHASE_RUNNING);
        run_.set_last_completed_started_event_id(3);
        run_.mutable_started()->mutable_task_queue()->set_name("orders");
    }

    void in_turn(const engine::WorkflowKey& workflow, engine::TurnWork work) override {
        pool_.post(workflow.workflow_id, [this, work = std::move(work)]() mutable {
            IdleTurn turn(run_);
            std::move(work)(turn);
        });
    }
    engine::Watch watch(const engine::WorkflowKey&,
                        const std::string&,
                        std::int64_t,
                        std::function<void()>) override {
        return nullptr;
    }

private:
    KeyedPool& pool_;
    history::state::Run run_;
};

class LiveQueryThreadsTest : public testing::Test {
protected:
    LiveQueryThreadsTest() {
        add_workflow_service(table,
                             {.namespaces = namespaces,
                              .turns = pooled,
                              .matching = queues,
                              .workers = registry,
                              .alarms = alarm_clock,
                              .clock = clock});
        table.open();
    }

    using Answered = std::shared_ptr<std::optional<rpc::Answer>>;

    template <class Request>
    std::shared_ptr<rpc::Call> run(const std::string& method,
                                   const Request& request,
                                   rpc::Call::Finish finish) {
        auto call = std::make_shared<rpc::Call>(
            rpc::CallInfo{.method = workflow_service(method), .deadline = deadline, .caller = {}},
            std::move(finish));
        table.run(call, request.SerializeAsString());
        return call;
    }

    std::shared_ptr<rpc::Call> ask(const Answered& answered) {
        api::QueryWorkflowRequest request;
        request.set_namespace_("home");
        request.mutable_execution()->set_workflow_id("order-7");
        request.mutable_query()->set_query_type("total");
        return run("QueryWorkflow", request, [answered](rpc::Answer answer) {
            *answered = std::move(answer);
        });
    }

    // A worker that answers within the delivery of its task.
    std::shared_ptr<rpc::Call> poll() {
        api::PollWorkflowTaskQueueRequest request;
        request.set_namespace_("home");
        request.mutable_task_queue()->set_name("orders");
        return run("PollWorkflowTaskQueue", request, [this](const rpc::Answer& answer) {
            api::PollWorkflowTaskQueueResponse task;
            const auto* bytes = std::get_if<std::string>(&answer);
            if (bytes == nullptr || !task.ParseFromString(*bytes) || task.task_token().empty()) {
                return;
            }
            api::RespondQueryTaskCompletedRequest result;
            result.set_namespace_("home");
            result.set_task_token(task.task_token());
            result.set_completed_type(temporal::api::enums::v1::QUERY_RESULT_TYPE_ANSWERED);
            result.mutable_query_result()->add_payloads()->set_data("7");
            run("RespondQueryTaskCompleted", result, [](const rpc::Answer&) {});
        });
    }

    CapturingLogger log;
    ManualClock clock;
    const Wall deadline = clock.wall_now() + std::chrono::seconds{70};
    TwoNamespaces namespaces;
    AlarmClock alarm_clock{clock};
    matching::Matching queues{clock, alarm_clock};
    workers::Registry registry{clock};
    KeyedPool pool{2};
    PooledTurns pooled{pool};
    rpc::Dispatch table{log};
};

// Callers and workers leave while queries are on their way to workers. Each caller that stays gets
// its answer.
TEST_F(LiveQueryThreadsTest, EveryCallerThatStaysIsAnswered) {
    constexpr int queries = 200;
    constexpr int polls = 300;  // Of workers that stay.
    std::vector<Answered> stayed;
    auto callers = std::async(std::launch::async, [&] {
        for (int i = 0; i < queries; ++i) {
            const auto answered = std::make_shared<std::optional<rpc::Answer>>();
            const auto call = ask(answered);
            if (i % 3 == 0) {
                call->cancel();
            } else {
                stayed.push_back(answered);
            }
        }
    });
    auto workers = std::async(std::launch::async, [&] {
        for (int i = 0; i < polls; ++i) {
            poll();
            poll()->cancel();
        }
    });
    callers.get();
    workers.get();
    pool.stop(test::soon());
    for (const Answered& answered : stayed) {
        ASSERT_TRUE(answered->has_value()) << "it waits still";
        api::QueryWorkflowResponse response;
        ASSERT_TRUE(std::holds_alternative<std::string>(**answered))
            << std::get<rpc::Refusal>(**answered).message;
        ASSERT_TRUE(response.ParseFromString(std::get<std::string>(**answered)));
        EXPECT_EQ(response.query_result().payloads(0).data(), "7");
    }
    queues.stop();
    alarm_clock.stop();
}

}  // namespace

}  // namespace holdfast::server::frontend::tests
