// A whole server below gRPC, on one thread: the real table of calls, engine, task queues and store,
// with a clock that is moved by hand, and a test that plays client and worker.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/engine.hpp"
#include "executor/test/manual_alarms.hpp"
#include "executor/test/manual_executor.hpp"
#include "frontend/frontend.hpp"
#include "frontend/namespace/namespace_service.hpp"
#include "matching/matching.hpp"
#include "namespaces/deletion.hpp"
#include "namespaces/namespaces.hpp"
#include "rpc/dispatch.hpp"
#include "workers/registry.hpp"
#include <gtest/gtest.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

#include <holdfast/base/log_capture.hpp>
#include <holdfast/base/manual_clock.hpp>
#include <holdfast/store/catalogue.hpp>
#include <holdfast/testing/backends.hpp>
#include <holdfast/testing/database.hpp>

namespace holdfast::server::engine::tests {

namespace api = temporal::api::workflowservice::v1;
using namespace std::chrono_literals;
using temporal::api::command::v1::Command;

// A call that may still wait.
template <class Response>
class Pending {
public:
    explicit Pending(std::shared_ptr<std::optional<rpc::Answer>> answer,
                     std::shared_ptr<rpc::Call> call)
        : answer_(std::move(answer)), call_(std::move(call)) {}

    [[nodiscard]] bool waits() const { return !answer_->has_value(); }
    [[nodiscard]] const rpc::Refusal* refusal() const {
        return waits() ? nullptr : std::get_if<rpc::Refusal>(&**answer_);
    }
    [[nodiscard]] Response response() const {
        Response response;
        if (waits()) {
            ADD_FAILURE() << "the call still waits";
        } else if (const auto* refused = refusal()) {
            ADD_FAILURE() << refused->message;
        } else {
            EXPECT_TRUE(response.ParseFromString(std::get<std::string>(**answer_)));
        }
        return response;
    }
    void cancel() { call_->cancel(); }

private:
    std::shared_ptr<std::optional<rpc::Answer>> answer_;
    std::shared_ptr<rpc::Call> call_;
};

// One process of a server. It ends without a word when it is destroyed, as if it was killed.
class Process {
public:
    // Runs live by `run_clock`, if there is one.
    Process(sql::Database& db,
            ManualClock& clock,
            CapturingLogger& log,
            EngineLimits limits,
            const Clock* run_clock = nullptr,
            RunObserver* observer = nullptr)
        : alarms(clock),
          matching(clock, alarms),
          workers(clock),
          namespaces(db),
          engine({.db = db,
                  .clock = run_clock != nullptr ? *run_clock : clock,
                  .executor = executor,
                  .alarms = alarms,
                  .matching = matching,
                  .namespaces = namespaces,
                  .log = log,
                  .observer = observer},
                 limits),
          deletion({.db = db,
                    .namespaces = namespaces,
                    .turns = engine,
                    .matching = matching,
                    .executor = executor,
                    .alarms = alarms,
                    .clock = clock,
                    .log = log}),
          dispatch(log) {
        namespaces.open();
        matching.connect(engine);
        frontend::add_workflow_service(dispatch,
                                       {.namespaces = namespaces,
                                        .turns = engine,
                                        .matching = matching,
                                        .workers = workers,
                                        .alarms = alarms,
                                        .clock = clock,
                                        .check_attributes = frontend::attribute_check(namespaces)});
        engine.start();
        deletion.start();
        dispatch.open();
    }
    ~Process() {
        executor.drop_all();
        matching.stop();
    }
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    server::tests::ManualExecutor executor;
    server::tests::ManualAlarms alarms;
    matching::Matching matching;
    workers::Registry workers;
    namespaces::Registry namespaces;
    Engine engine;
    namespaces::Deletion deletion;
    rpc::Dispatch dispatch;
};

class ServerTest : public testing::TestWithParam<test::Backend> {
protected:
    ServerTest();

    // A new process on the database, after the old one was killed.
    void restart();
    void advance(std::chrono::nanoseconds by);

    template <class Response, class Request>
    Pending<Response> begin(const std::string& method, const Request& request) {
        auto answer = std::make_shared<std::optional<rpc::Answer>>();
        auto call = std::make_shared<rpc::Call>(
            rpc::CallInfo{.method = frontend::workflow_service(method),
                          .deadline = std::chrono::system_clock::now() + 70s,
                          .caller = {}},
            [answer](rpc::Answer given) { *answer = std::move(given); });
        process->dispatch.run(call, request.SerializeAsString());
        process->executor.run_all();
        return Pending<Response>(std::move(answer), std::move(call));
    }

    // What clients and workers do.
    api::StartWorkflowExecutionResponse start(const std::string& workflow_id,
                                              const std::string& request_id = "start");
    Pending<api::PollWorkflowTaskQueueResponse> poll(const std::string& queue = "queue");
    Pending<api::PollActivityTaskQueueResponse> poll_activity();
    Pending<api::RespondWorkflowTaskCompletedResponse> complete(
        const api::PollWorkflowTaskQueueResponse& task, std::vector<Command> commands);
    Pending<api::RespondActivityTaskCompletedResponse> complete(
        const api::PollActivityTaskQueueResponse& task);
    Pending<api::SignalWorkflowExecutionResponse> signal(const std::string& workflow_id,
                                                         const std::string& name,
                                                         const std::string& request_id = "");
    // "1 Started, 2 WorkflowTaskScheduled", and nothing if there is no such run. Of the current run
    // unless another one is named.
    std::string history(const std::string& workflow_id, const std::string& run_id = "");

    test::Database db{GetParam(), store::schema_part()};
    ManualClock clock;
    CapturingLogger log{Level::info};
    EngineLimits limits;
    std::unique_ptr<Process> process;
};

[[nodiscard]] Command activity_command(const std::string& id);
[[nodiscard]] Command timer_command(const std::string& id, std::chrono::seconds span);
[[nodiscard]] Command complete_command();

}  // namespace holdfast::server::engine::tests
