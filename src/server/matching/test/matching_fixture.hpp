// Task queues with a clock that is moved by hand, workers that poll, and a fake of the engine.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "executor/test/manual_alarms.hpp"
#include "matching/matching.hpp"
#include <gtest/gtest.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

#include <holdfast/base/manual_clock.hpp>

namespace holdfast::server::matching::tests {

using server::tests::ManualAlarms;
using namespace std::chrono_literals;

// Answers the poll with the name of the task, which is its workflow id. False if the caller left.
inline bool deliver(Reservation poller, const QueuedTask& task) {
    Poll poll = std::move(poller).take();
    return std::visit(
        [&](auto& reply) {
            reply.message().set_task_token(task.workflow_id);
            return std::move(reply).send();
        },
        poll.reply);
}

// Starts every task at once, unless the test says what to do.
class FakeStarter final : public TaskStarter {
public:
    using Start = std::function<void(const QueueKey&, QueuedTask, Reservation)>;

    void start(const QueueKey& queue, QueuedTask task, Reservation poller) override {
        with_(queue, std::move(task), std::move(poller));
    }

    void serve(Start with) { with_ = std::move(with); }
    void serve_at_once() { with_ = at_once; }

private:
    static void at_once(const QueueKey& /*queue*/, const QueuedTask& task, Reservation poller) {
        deliver(std::move(poller), task);
    }

    Start with_ = at_once;
};

// The call of a worker that polls.
class PollCall {
public:
    explicit PollCall(std::optional<std::chrono::system_clock::time_point> deadline = {})
        : heard_(std::make_shared<Heard>()),
          call_(std::make_shared<rpc::Call>(
              rpc::CallInfo{.method = "/poll", .deadline = deadline, .caller = {}},
              [heard = heard_](rpc::Answer answer) {
                  const std::lock_guard lock(heard->mutex);
                  heard->answers.push_back(std::move(answer));
              })) {}

    // What the worker sees: "waiting", "empty", "cancelled", or the name of a task.
    [[nodiscard]] std::string result() const {
        const std::lock_guard lock(heard_->mutex);
        if (heard_->answers.empty()) {
            return "waiting";
        }
        EXPECT_EQ(heard_->answers.size(), 1U);
        if (const auto* refusal = std::get_if<rpc::Refusal>(&heard_->answers.front())) {
            return refusal->code == rpc::StatusCode::cancelled ? "cancelled" : refusal->message;
        }
        const auto& bytes = std::get<std::string>(heard_->answers.front());
        return bytes.empty() ? "empty" : read_as<ActivityResponse>(bytes).task_token();
    }
    // Requires: the poll was answered, and not refused.
    template <class Response = temporal::api::workflowservice::v1::PollWorkflowTaskQueueResponse>
    [[nodiscard]] Response response() const {
        const std::lock_guard lock(heard_->mutex);
        return read_as<Response>(std::get<std::string>(heard_->answers.at(0)));
    }

    void cancel() const { call_->cancel(); }
    void server_stops() const { call_->stop(); }

    [[nodiscard]] Poll poll(const QueueKey& queue, PollInfo info) const {
        if (queue.type == QueueType::workflow) {
            return {.queue = queue, .info = std::move(info), .reply = WorkflowReply(call_)};
        }
        return {.queue = queue, .info = std::move(info), .reply = ActivityReply(call_)};
    }

private:
    using ActivityResponse = temporal::api::workflowservice::v1::PollActivityTaskQueueResponse;
    template <class Response>
    static Response read_as(const std::string& bytes) {
        Response response;
        EXPECT_TRUE(response.ParseFromString(bytes));
        return response;
    }

    struct Heard {
        std::mutex mutex;
        std::vector<rpc::Answer> answers;
    };
    std::shared_ptr<Heard> heard_;
    std::shared_ptr<rpc::Call> call_;
};

class MatchingTest : public testing::Test {
protected:
    MatchingTest() { matching.connect(starter); }

    static QueueKey queue_of(std::string name, QueueType type) {
        return {.namespace_id = "shop", .name = std::move(name), .type = type};
    }
    static PollInfo worker(std::string identity, std::string instance = {}) {
        return {.request_id = "request of " + identity,
                .identity = std::move(identity),
                .worker_instance_key = std::move(instance),
                .tasks_per_second = {},
                .normal_name = {}};
    }
    static PollInfo worker_at(double tasks_per_second) {
        PollInfo info = worker("ann");
        info.tasks_per_second = tasks_per_second;
        return info;
    }

    PollCall poll(const QueueKey& queue, PollInfo info, std::chrono::nanoseconds deadline = 70s) {
        const std::chrono::system_clock::time_point now = clock.wall_now();
        PollCall call(now + deadline);
        matching.poll(call.poll(queue, std::move(info)));
        return call;
    }
    PollCall poll(std::string identity = "ann") {
        return poll(orders, worker(std::move(identity)));
    }

    QueuedTask task(std::string name, int priority = default_priority) const {
        QueuedTask made;
        made.workflow_id = std::move(name);
        made.priority = priority;
        made.created = clock.wall_now();
        return made;
    }
    void add(const std::string& name, int priority = default_priority) {
        matching.add(orders, task(name, priority));
    }
    void add_tasks(const QueueKey& queue, int count) {
        for (int i = 1; i <= count; ++i) {
            matching.add(queue, task(std::to_string(i)));
        }
    }
    // Asks for a waiting poll for `name`, and starts it there.
    bool start_in_commit(const std::string& name, int priority = default_priority) {
        auto reserved = matching.reserve(orders, priority);
        return reserved && deliver(std::move(*reserved), task(name));
    }
    // The starter keeps what it is given, as an engine that is busy.
    void keep_reservations() {
        starter.serve([this](const QueueKey&, QueuedTask started, Reservation poller) {
            tasks_kept.push_back(std::move(started));
            kept.push_back(std::move(poller));
        });
    }

    std::size_t backlog() const { return matching.view(orders).backlog; }

    static std::vector<std::string> results(const std::vector<PollCall>& polls) {
        std::vector<std::string> all;
        for (const PollCall& each : polls) {
            all.push_back(each.result());
        }
        return all;
    }

    const QueueKey orders = queue_of("orders", QueueType::workflow);
    const QueueKey payments = queue_of("payments", QueueType::activity);
    ManualClock clock;
    ManualAlarms alarms{clock};
    FakeStarter starter;
    std::vector<QueuedTask> tasks_kept;
    std::optional<Matching> own{std::in_place, clock, alarms};
    Matching& matching = *own;
    std::vector<Reservation> kept;
};

}  // namespace holdfast::server::matching::tests
