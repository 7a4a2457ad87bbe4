// A server on a free port of the loopback, with methods to echo, to wait and to refuse.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rpc/dispatch.hpp"
#include "rpc/grpc_transport.hpp"
#include "rpc/health.hpp"
#include "rpc/test/grpc_client_fixture.hpp"
#include <gtest/gtest.h>
#include <temporal/api/operatorservice/v1/request_response.pb.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

#include <holdfast/base/log_capture.hpp>

namespace holdfast::server::rpc::tests {

inline constexpr const char* echo_method =
    "/temporal.api.workflowservice.v1.WorkflowService/StartWorkflowExecution";
inline constexpr const char* wait_method =
    "/temporal.api.workflowservice.v1.WorkflowService/PollWorkflowTaskQueue";
inline constexpr const char* refuse_method =
    "/temporal.api.operatorservice.v1.OperatorService/AddSearchAttributes";

using WaitResponse = temporal::api::workflowservice::v1::PollWorkflowTaskQueueResponse;

// Calls that wait until they are told to end. A stop answers them empty.
class WaitingCalls {
public:
    void add(Reply<WaitResponse> reply);

    // False if it takes longer than the test's patience.
    bool wait_for_waiting(std::size_t count);
    bool wait_for_endings(std::size_t count);

    [[nodiscard]] std::vector<Ending> endings() const;
    [[nodiscard]] std::size_t arrived() const;

    // Answers one; false if none waits, or if that answer reaches no caller.
    bool answer_one(const std::string& token);

    // Leaves those that wait unanswered when the server stops.
    void ignore_stops() { answers_stops_ = false; }

private:
    void told(std::uint64_t id, Ending ending);

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t last_id_ = 0;
    std::map<std::uint64_t, std::shared_ptr<Reply<WaitResponse>>> waiting_;
    std::set<std::uint64_t> told_early_;  // Before they were waiting.
    std::vector<Ending> endings_;
    std::atomic<bool> answers_stops_ = true;
};

class GrpcTest : public testing::Test {
protected:
    GrpcTest();

    void start(GrpcTransportOptions options = {});
    // Requires: the server was started.
    [[nodiscard]] GrpcClient client() const { return GrpcClient(server->port()); }
    // Starts it with the default options.
    [[nodiscard]] GrpcClient started() {
        start();
        return client();
    }

    // What the echo's handler was told of its newest call.
    [[nodiscard]] CallInfo last_info() const;

    static std::string request_of(const std::string& workflow_id);
    static std::string run_id_in(const Answered& answered);

    CapturingLogger log;
    WaitingCalls waiting;
    Refusal refusal{StatusCode::not_found, "workflow not found for ID: w"};
    Health health;
    Dispatch dispatch{log};
    std::unique_ptr<GrpcTransport> server;

private:
    mutable std::mutex mutex_;
    CallInfo last_info_;
};

}  // namespace holdfast::server::rpc::tests
