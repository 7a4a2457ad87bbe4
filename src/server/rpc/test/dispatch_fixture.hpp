// A table with one method, StartWorkflowExecution, whose handler each test replaces.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rpc/dispatch.hpp"
#include <gtest/gtest.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

#include <holdfast/base/log_capture.hpp>

namespace holdfast::server::rpc::tests {

using StartRequest = temporal::api::workflowservice::v1::StartWorkflowExecutionRequest;
using StartResponse = temporal::api::workflowservice::v1::StartWorkflowExecutionResponse;
using StartHandler = Dispatch::Handler<StartRequest, StartResponse>;

inline constexpr const char* start =
    "/temporal.api.workflowservice.v1.WorkflowService/StartWorkflowExecution";

class DispatchTest : public testing::Test {
protected:
    DispatchTest() {
        serve([](const StartRequest&, Reply<StartResponse> reply) { std::move(reply).send(); });
        dispatch.add<StartRequest, StartResponse>(
            start, [this](const StartRequest& request, Reply<StartResponse> reply) {
                handler(request, std::move(reply));
            });
        dispatch.open();
    }

    void serve(StartHandler with) { handler = std::move(with); }

    // Every call waits in `parked`, and writes down how it was told to end.
    void park() {
        serve([this](const StartRequest&, Reply<StartResponse> reply) {
            reply.on_end([this](Ending ending) { endings.push_back(ending); });
            parked.push_back(std::move(reply));
        });
    }

    std::shared_ptr<Call> begin_method(std::string method, std::string_view bytes) {
        auto call = std::make_shared<Call>(
            CallInfo{.method = std::move(method), .deadline = {}, .caller = {}},
            [this](Answer answer) { answers.push_back(std::move(answer)); });
        dispatch.run(call, bytes);
        return call;
    }
    std::shared_ptr<Call> begin(const std::string& workflow_id) {
        StartRequest request;
        request.set_workflow_id(workflow_id);
        return begin_method(start, request.SerializeAsString());
    }

    // The newest answer; a refusal without text if there is none yet.
    Answer call_method(std::string method, std::string_view bytes) {
        begin_method(std::move(method), bytes);
        return answers.empty() ? Answer(Refusal(StatusCode::unknown, "")) : answers.back();
    }
    Answer call(const std::string& workflow_id) {
        begin(workflow_id);
        return answers.empty() ? Answer(Refusal(StatusCode::unknown, "")) : answers.back();
    }

    static std::string run_id(const Answer& answer) {
        StartResponse response;
        const auto* bytes = std::get_if<std::string>(&answer);
        return bytes != nullptr && response.ParseFromString(*bytes) ? response.run_id()
                                                                    : "(refused)";
    }
    static Refusal refusal_in(const Answer& answer) {
        const auto* refusal = std::get_if<Refusal>(&answer);
        return refusal != nullptr ? *refusal : Refusal(StatusCode::unknown, "(not refused)");
    }

    CapturingLogger log;
    StartHandler handler;
    std::vector<Answer> answers;
    std::vector<Ending> endings;
    Dispatch dispatch{log};
    std::deque<Reply<StartResponse>> parked;
};

}  // namespace holdfast::server::rpc::tests
