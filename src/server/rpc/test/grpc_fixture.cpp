#include "rpc/test/grpc_fixture.hpp"

namespace holdfast::server::rpc::tests {

namespace {

namespace workflow = temporal::api::workflowservice::v1;
namespace operators = temporal::api::operatorservice::v1;

}  // namespace

void WaitingCalls::add(Reply<WaitResponse> reply) {
    const auto held = std::make_shared<Reply<WaitResponse>>(std::move(reply));
    std::uint64_t id = 0;
    {
        const std::lock_guard lock(mutex_);
        id = ++last_id_;
    }
    held->on_end([this, id](Ending ending) { told(id, ending); });
    const std::lock_guard lock(mutex_);
    if (!told_early_.contains(id)) {
        waiting_.emplace(id, held);
    }
    changed_.notify_all();
}

void WaitingCalls::told(std::uint64_t id, Ending ending) {
    std::shared_ptr<Reply<WaitResponse>> held;
    {
        const std::lock_guard lock(mutex_);
        endings_.push_back(ending);
        const auto found = waiting_.find(id);
        if (found == waiting_.end()) {
            told_early_.insert(id);
        } else if (ending == Ending::cancelled || answers_stops_) {
            held = std::move(found->second);
            waiting_.erase(found);
        }
        changed_.notify_all();
    }
    if (held && ending == Ending::stopping) {
        std::move(*held).send();
    }
}

bool WaitingCalls::wait_for_waiting(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return waiting_.size() == count; });
}

bool WaitingCalls::wait_for_endings(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return endings_.size() >= count; });
}

std::vector<Ending> WaitingCalls::endings() const {
    const std::lock_guard lock(mutex_);
    return endings_;
}

std::size_t WaitingCalls::arrived() const {
    const std::lock_guard lock(mutex_);
    return last_id_;
}

bool WaitingCalls::answer_one(const std::string& token) {
    std::shared_ptr<Reply<WaitResponse>> held;
    {
        const std::lock_guard lock(mutex_);
        if (waiting_.empty()) {
            return false;
        }
        held = std::move(waiting_.begin()->second);
        waiting_.erase(waiting_.begin());
    }
    held->message().set_task_token(token);
    return std::move(*held).send();
}

GrpcTest::GrpcTest() {
    dispatch.add<workflow::StartWorkflowExecutionRequest, workflow::StartWorkflowExecutionResponse>(
        echo_method, [this](const auto& request, auto reply) {
            {
                const std::lock_guard lock(mutex_);
                last_info_ = reply.info();
            }
            reply.message().set_run_id("run of " + request.workflow_id());
            std::move(reply).send();
        });
    dispatch.add<workflow::PollWorkflowTaskQueueRequest, WaitResponse>(
        wait_method, [this](const auto&, auto reply) { waiting.add(std::move(reply)); });
    dispatch.add<operators::AddSearchAttributesRequest, operators::AddSearchAttributesResponse>(
        refuse_method, [this](const auto&, auto reply) { std::move(reply).refuse(refusal); });
    health.add_to(dispatch);
    dispatch.open();
}

void GrpcTest::start(GrpcTransportOptions options) {
    server = std::make_unique<GrpcTransport>(dispatch, health, std::move(options));
}

CallInfo GrpcTest::last_info() const {
    const std::lock_guard lock(mutex_);
    return last_info_;
}

std::string GrpcTest::request_of(const std::string& workflow_id) {
    workflow::StartWorkflowExecutionRequest request;
    request.set_workflow_id(workflow_id);
    return request.SerializeAsString();
}

std::string GrpcTest::run_id_in(const Answered& answered) {
    workflow::StartWorkflowExecutionResponse response;
    return answered.status.ok() && response.ParseFromString(answered.bytes)
               ? response.run_id()
               : "refused: " + answered.status.error_message();
}

}  // namespace holdfast::server::rpc::tests
