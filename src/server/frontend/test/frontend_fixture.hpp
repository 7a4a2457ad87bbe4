// The whole table of methods over runs in memory; every call is answered or parked at once.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/frontend.hpp"
#include "frontend/test/held_turns_fixture.hpp"
#include "workers/registry.hpp"
#include <gtest/gtest.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

#include <holdfast/base/log_capture.hpp>
#include <holdfast/base/manual_clock.hpp>

namespace holdfast::server::frontend::tests {

namespace api = temporal::api::workflowservice::v1;

inline constexpr const char* home_id = "11111111-1111-4111-8111-111111111111";
inline constexpr const char* retired_id = "22222222-2222-4222-8222-222222222222";

// Two namespaces: "home", and "retired", which is deprecated.
class TwoNamespaces final : public NamespaceGate {
public:
    NamespaceAnswer resolve(const std::string& name, NamespaceUse use) override {
        if (auto refusal = name_refusal(name)) {
            return *std::move(refusal);
        }
        return named([&](const ResolvedNamespace& it) { return it.name == name; }, name, use);
    }
    NamespaceAnswer by_id(const std::string& id, NamespaceUse use) override {
        return named([&](const ResolvedNamespace& it) { return it.id == id; }, id, use);
    }

private:
    template <class Is>
    NamespaceAnswer named(const Is& is, const std::string& asked, NamespaceUse use) {
        using temporal::api::enums::v1::NAMESPACE_STATE_DEPRECATED;
        using temporal::api::enums::v1::NAMESPACE_STATE_REGISTERED;
        for (const auto& it :
             {ResolvedNamespace{home_id, "home", NAMESPACE_STATE_REGISTERED},
              ResolvedNamespace{retired_id, "retired", NAMESPACE_STATE_DEPRECATED}}) {
            if (is(it)) {
                auto refusal = state_refusal(it, use);
                return refusal ? NamespaceAnswer(*std::move(refusal)) : NamespaceAnswer(it);
            }
        }
        return namespace_not_found(asked);
    }
};

// Alarms that ring when the test says so.
class RungAlarms final : public Alarms {
public:
    AlarmId set(Steady at, Job ring) override {
        pending_.emplace(++last_, std::pair(at, std::move(ring)));
        return AlarmId{last_};
    }
    bool cancel(AlarmId alarm) override {
        return pending_.erase(static_cast<std::uint64_t>(alarm)) != 0;
    }
    // Those that are due by then, in the order in which they were set.
    void ring(Steady until) {
        for (auto it = pending_.begin(); it != pending_.end();) {
            if (it->second.first > until) {
                ++it;
                continue;
            }
            Job job = std::move(it->second.second);
            it = pending_.erase(it);
            std::move(job)();
        }
    }
    [[nodiscard]] std::size_t pending() const { return pending_.size(); }

private:
    std::map<std::uint64_t, std::pair<Steady, Job>> pending_;
    std::uint64_t last_ = 0;
};

class FrontendTest : public testing::Test {
protected:
    FrontendTest() {
        add_workflow_service(dispatch,
                             {.namespaces = namespaces,
                              .turns = turns,
                              .matching = matching,
                              .workers = workers,
                              .alarms = alarms,
                              .clock = clock,
                              .limits = {},
                              .check_attributes = {},
                              .new_id = [this] { return turns.source.uuid(); }});
        add_unbuilt(dispatch);
        dispatch.open();
    }

    // Begins a call; its answer is answers.back() once there is one.
    template <class Request>
    std::shared_ptr<rpc::Call> begin(const std::string& method, const Request& request) {
        auto call = std::make_shared<rpc::Call>(
            rpc::CallInfo{
                .method = workflow_service(method), .deadline = deadline, .caller = caller},
            [this](rpc::Answer answer) { answers.push_back(std::move(answer)); });
        dispatch.run(call, request.SerializeAsString());
        return call;
    }

    // The response; an empty one, and a failed test, if the call was refused or parked.
    template <class Response, class Request>
    Response call(const std::string& method, const Request& request) {
        answers.clear();
        begin(method, request);
        return response<Response>();
    }
    template <class Response>
    Response response() {
        Response response;
        const auto* bytes = answers.empty() ? nullptr : std::get_if<std::string>(&answers.back());
        EXPECT_NE(bytes, nullptr) << (answers.empty() ? "parked" : refusal().message);
        EXPECT_TRUE(bytes == nullptr || response.ParseFromString(*bytes));
        return response;
    }

    template <class Request>
    rpc::Refusal refused(const std::string& method, const Request& request) {
        answers.clear();
        begin(method, request);
        return refusal();
    }
    [[nodiscard]] rpc::Refusal refusal() const {
        const auto* refusal =
            answers.empty() ? nullptr : std::get_if<rpc::Refusal>(&answers.back());
        return refusal != nullptr ? *refusal
                                  : rpc::Refusal(rpc::StatusCode::unknown, "not refused");
    }

    static api::StartWorkflowExecutionRequest start_request(const std::string& workflow_id) {
        api::StartWorkflowExecutionRequest request;
        request.set_namespace_("home");
        request.set_workflow_id(workflow_id);
        request.mutable_workflow_type()->set_name("Order");
        request.mutable_task_queue()->set_name("orders");
        return request;
    }
    // Starts order-7. Returns its run id.
    std::string start_order() {
        return call<api::StartWorkflowExecutionResponse>("StartWorkflowExecution",
                                                         start_request("order-7"))
            .run_id();
    }

    template <class Request>
    static Request about_order() {
        Request request;
        request.set_namespace_("home");
        request.mutable_workflow_execution()->set_workflow_id("order-7");
        return request;
    }

    const engine::WorkflowKey order{.namespace_id = home_id, .workflow_id = "order-7"};
    CapturingLogger log;
    ManualClock clock;
    RungAlarms alarms;
    TwoNamespaces namespaces;
    HeldTurns turns;
    matching::Matching matching{clock, alarms};
    workers::Registry workers{clock};
    rpc::Dispatch dispatch{log};
    std::optional<std::chrono::system_clock::time_point> deadline;
    rpc::Caller caller;
    std::vector<rpc::Answer> answers;
};

}  // namespace holdfast::server::frontend::tests
