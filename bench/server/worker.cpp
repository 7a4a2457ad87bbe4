#include "worker.hpp"

#include <utility>

#include <holdfast/base/error.hpp>
#include <holdfast/base/uuid.hpp>

namespace holdfast::server_bench {
namespace {

namespace enums = temporal::api::enums::v1;
namespace rpc = temporal::api::workflowservice::v1;

constexpr int sticky_seconds = 10;

}  // namespace

Worker::Worker(Link& link, WorkerPlace place, const Plan& plan, int polls)
    : link_(link),
      place_(std::move(place)),
      plan_(plan),
      polls_(polls),
      sticky_(place_.task_queue + ":" + Uuid::v4().text()) {}

void Worker::start() {
    stopping_ = false;
    for (int i = 0; i < polls_; ++i) {
        poll_workflow(false);
        poll_workflow(true);
        poll_activity();
    }
}

void Worker::stop(const std::stop_token& token) {
    stopping_ = true;
    link_.cancel_polls();
    (void)link_.run([this] { return !link_.polls(); }, Deadline::after(poll_timeout), token);
}

void Worker::poll_workflow(bool sticky) {
    rpc::PollWorkflowTaskQueueRequest request;
    request.set_namespace_(place_.name_space);
    request.set_identity(identity_);
    auto& queue = *request.mutable_task_queue();
    queue.set_name(sticky ? sticky_ : place_.task_queue);
    queue.set_kind(sticky ? enums::TASK_QUEUE_KIND_STICKY : enums::TASK_QUEUE_KIND_NORMAL);
    if (sticky) {
        queue.set_normal_name(place_.task_queue);
    }
    const auto done = [this, sticky](const grpc::Status& status,
                                     rpc::PollWorkflowTaskQueueResponse& task) {
        if (!stopping_) {
            poll_workflow(sticky);
        }
        if (status.ok() && !task.task_token().empty()) {
            work(task);
        } else if (!status.ok() && !stopping_ &&
                   status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) {
            require(status, "PollWorkflowTaskQueue");
        }
    };
    link_.call<rpc::PollWorkflowTaskQueueResponse>(
        "PollWorkflowTaskQueue", std::move(request), done, CallKind::poll);
}

void Worker::poll_activity() {
    rpc::PollActivityTaskQueueRequest request;
    request.set_namespace_(place_.name_space);
    request.set_identity(identity_);
    request.mutable_task_queue()->set_name(place_.task_queue);
    request.mutable_task_queue()->set_kind(enums::TASK_QUEUE_KIND_NORMAL);
    const auto done = [this](const grpc::Status& status, rpc::PollActivityTaskQueueResponse& task) {
        if (!stopping_) {
            poll_activity();
        }
        if (!status.ok() || task.task_token().empty()) {
            return;
        }
        rpc::RespondActivityTaskCompletedRequest answer;
        answer.set_namespace_(place_.name_space);
        answer.set_identity(identity_);
        answer.set_task_token(std::move(*task.mutable_task_token()));
        set_payload(*answer.mutable_result());
        link_.call<rpc::RespondActivityTaskCompletedResponse>(
            "RespondActivityTaskCompleted",
            std::move(answer),
            [](const grpc::Status& answered, rpc::RespondActivityTaskCompletedResponse&) {
                // Gone if the server had given it to another poll as well.
                if (answered.error_code() != grpc::StatusCode::NOT_FOUND) {
                    require(answered, "RespondActivityTaskCompleted");
                }
            });
    };
    link_.call<rpc::PollActivityTaskQueueResponse>(
        "PollActivityTaskQueue", std::move(request), done, CallKind::poll);
}

void Worker::work(rpc::PollWorkflowTaskQueueResponse& task) {
    const std::string& run = task.workflow_execution().run_id();
    const auto& events = task.history().events();
    const bool whole = !events.empty() && events[0].event_id() == 1;
    if (whole) {
        runs_[run] = {};
    }
    const auto found = runs_.find(run);
    if (found == runs_.end() || !task.next_page_token().empty()) {
        throw Error(Code::internal,
                    Outcome::not_applied,
                    "a workflow task came with a part of its history only; this driver has no "
                    "replay, and its histories are short");
    }
    for (const auto& event : events) {
        found->second.see(event);
    }
    rpc::RespondWorkflowTaskCompletedRequest request;
    request.set_namespace_(place_.name_space);
    request.set_identity(identity_);
    request.set_task_token(task.task_token());
    request.set_return_new_workflow_task(true);
    auto& sticky = *request.mutable_sticky_attributes();
    sticky.mutable_worker_task_queue()->set_name(sticky_);
    sticky.mutable_worker_task_queue()->set_kind(enums::TASK_QUEUE_KIND_STICKY);
    sticky.mutable_worker_task_queue()->set_normal_name(place_.task_queue);
    sticky.mutable_schedule_to_start_timeout()->set_seconds(sticky_seconds);
    const bool ends = found->second.decide(plan_, place_.task_queue, task, request);
    begun_ += whole ? 1 : 0;
    respond(std::move(request), run, ends);
}

void Worker::respond(rpc::RespondWorkflowTaskCompletedRequest request, std::string run, bool ends) {
    const auto done = [this, run = std::move(run), ends](
                          const grpc::Status& status,
                          rpc::RespondWorkflowTaskCompletedResponse& answer) {
        // Not taken: something came in between, and a new task has the whole history.
        if (status.error_code() == grpc::StatusCode::INVALID_ARGUMENT ||
            status.error_code() == grpc::StatusCode::NOT_FOUND) {
            return;
        }
        require(status, "RespondWorkflowTaskCompleted");
        if (ends) {
            runs_.erase(run);
            ++completed_;
        }
        if (!answer.workflow_task().task_token().empty()) {
            work(*answer.mutable_workflow_task());
        }
    };
    link_.call<rpc::RespondWorkflowTaskCompletedResponse>(
        "RespondWorkflowTaskCompleted", std::move(request), done);
}

}  // namespace holdfast::server_bench
