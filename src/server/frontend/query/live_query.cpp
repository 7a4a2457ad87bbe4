#include "frontend/query/live_query.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "frontend/refusals.hpp"
#include <server/engine/token.pb.h>

namespace holdfast::server::frontend {

namespace {

using matching::QueueKey;
using matching::QueueType;
using TaskReply = temporal::api::workflowservice::v1::PollWorkflowTaskQueueResponse;

// A queue without a poll for so long has no worker, by what can be told.
constexpr std::chrono::seconds poller_gone_after{20};
constexpr std::chrono::seconds before_deadline{1};

std::string token_of(const QueueKey& queue, const std::string& task_id) {
    engine::token::Task token;
    token.mutable_query()->set_namespace_id(queue.namespace_id);
    token.mutable_query()->set_queue(queue.name);
    token.mutable_query()->set_id(task_id);
    return token.SerializeAsString();
}

}  // namespace

LiveQuery::LiveQuery(Parts parts,
                     std::shared_ptr<QueryTasks> tasks,
                     std::unique_ptr<QueryTasks::Place> place,
                     AskedQuery asked)
    : parts_(std::move(parts)),
      tasks_(std::move(tasks)),
      asked_(std::move(asked)),
      parked_(parts_->alarms,
              [this](Woken why, Reply reply) {
                  if (why != Woken::left) {
                      send(std::move(reply));
                  }
              }),
      place_(std::move(place)) {}

void LiveQuery::begin(engine::Turn& turn, Reply reply) {
    // The alarm owns it: it rings, or the query is over before.
    parked_.set_alarm(parts_->alarms.set(asked_.until, [self = shared_from_this()] {
        self->end(Woken::expired,
                  rpc::Refusal(rpc::StatusCode::deadline_exceeded,
                               "query timed out before a worker could process it"));
    }));
    reply.on_end([weak = weak_from_this()](rpc::Ending ending) {
        const auto self = weak.lock();
        if (self && ending == rpc::Ending::stopping) {
            self->refuse({rpc::StatusCode::unavailable, "the server is stopping"});
        } else if (self) {
            self->end(Woken::left, std::nullopt);
        }
    });
    try {
        route(turn, asked_.terms);
    } catch (...) {
        refuse(rpc::refusal_of(std::current_exception()));
    }
    parked_.put(std::move(reply));
}

// ---- Its end
// ---------------------------------------------------------------------------------------

void LiveQuery::end(Woken why, std::optional<QueryAnswer> answer) {
    Waiting left;
    bool buffered = false;
    std::unique_ptr<QueryTasks::Place> place;
    {
        const std::lock_guard lock(mutex_);
        if (std::exchange(over_, true)) {
            return;
        }
        answer_ = std::move(answer);
        left = std::exchange(waiting_, {});
        buffered = buffered_;
        place = std::move(place_);
    }
    leave(left);
    if (buffered && why != Woken::news) {
        parts_->turns.in_turn(asked_.workflow, [](engine::Turn&) {});  // Its run forgets it.
    }
    parked_.wake(why);
}

void LiveQuery::answer(QueryAnswer answer) {
    end(Woken::news, std::move(answer));
}

void LiveQuery::leave(const Waiting& waiting) {
    if (waiting.offer) {
        (void)parts_->matching.withdraw(*waiting.offer);
    }
    if (waiting.alarm) {
        parts_->alarms.cancel(*waiting.alarm);
    }
    if (!waiting.task_id.empty()) {
        tasks_->forget(waiting.task_id);
    }
}

void LiveQuery::send(Reply reply) {
    if (auto* refusal = std::get_if<rpc::Refusal>(&*answer_)) {
        std::move(reply).refuse(std::move(*refusal));
        return;
    }
    if (const auto* rejected = std::get_if<history::QueryRejected>(&*answer_)) {
        reply.message().mutable_query_rejected()->set_status(rejected->status);
    } else {
        *reply.message().mutable_query_result() =
            std::get<temporal::api::common::v1::Payloads>(*answer_);
    }
    std::move(reply).send();
}

// ---- In its run
// ------------------------------------------------------------------------------------

const temporal::api::query::v1::WorkflowQuery& LiveQuery::query() const {
    return asked_.query;
}

bool LiveQuery::over() const {
    const std::lock_guard lock(mutex_);
    return over_;
}

void LiveQuery::answered(const temporal::api::query::v1::WorkflowQueryResult& result) {
    answer(answer_of(result, parts_->limits));
}

void LiveQuery::released() {
    {
        const std::lock_guard lock(mutex_);
        buffered_ = false;
    }
    parts_->turns.in_turn(asked_.workflow, [self = shared_from_this()](engine::Turn& turn) {
        if (self->over()) {
            return;
        }
        try {
            // It was accepted: a run that has closed since does not reject it.
            self->route(turn, {.reject = {}, .deadline = self->asked_.terms.deadline});
        } catch (...) {
            self->refuse(rpc::refusal_of(std::current_exception()));
        }
    });
}

void LiveQuery::cleared() {
    refuse({rpc::StatusCode::unavailable, "buffered query cleared, please retry"});
}

void LiveQuery::route(engine::Turn& turn, const history::QueryTerms& terms) {
    const auto found = turn.find(asked_.run_id);
    if (const auto* refusal = std::get_if<history::Refusal>(&found)) {
        return refuse(wire_refusal(*refusal));
    }
    const history::state::Run& run = *std::get<const history::state::Run*>(found);
    if (asked_.run_id.empty()) {
        asked_.run_id = run.run_id();
    }
    const history::QueryPlan plan = history::plan_query(run, terms);
    if (const auto* rejected = std::get_if<history::QueryRejected>(&plan)) {
        return answer(*rejected);
    }
    if (const auto* reason = std::get_if<history::QueryNotReady>(&plan)) {
        return refuse(not_ready(*reason));
    }
    if (std::get<history::QueryRoute>(plan) == history::QueryRoute::direct) {
        return ask(run);
    }
    if (const auto refusal = turn.buffer_query(asked_.run_id, shared_from_this())) {
        return refuse(wire_refusal(*refusal));
    }
    const std::lock_guard lock(mutex_);
    buffered_ = true;
}

// ---- On a task queue
// -------------------------------------------------------------------------------

// The worker that has the run in memory first, if it is there.
void LiveQuery::ask(const history::state::Run& run) {
    normal_queue_ = run.started().task_queue().name();
    const std::string& sticky = run.sticky_queue();
    if (sticky.empty() ||
        !parts_->matching.polled_recently(
            {.namespace_id = run.namespace_id(), .name = sticky, .type = QueueType::workflow})) {
        return ask_normal();
    }
    const Steady slow =
        parts_->clock.steady_now() + history::span_of(run.sticky_schedule_to_start_timeout());
    const std::uint64_t round = offer(sticky);
    keep_alarm(round, parts_->alarms.set(slow, [weak = weak_from_this(), round] {
        if (const auto self = weak.lock()) {
            self->sticky_is_slow(round);
        }
    }));
}

void LiveQuery::ask_normal() {
    const std::uint64_t round = offer(normal_queue_);
    const Steady late = asked_.until - before_deadline;
    if (late <= parts_->clock.steady_now()) {
        return;
    }
    keep_alarm(round, parts_->alarms.set(late, [weak = weak_from_this(), round] {
        if (const auto self = weak.lock()) {
            self->look_for_pollers(round);
        }
    }));
}

std::uint64_t LiveQuery::offer(const std::string& queue) {
    std::uint64_t round = 0;
    {
        const std::lock_guard lock(mutex_);
        round = ++round_;
    }
    const matching::OfferId id = parts_->matching.offer(
        {.namespace_id = asked_.workflow.namespace_id, .name = queue, .type = QueueType::workflow},
        [weak = weak_from_this(), round](matching::Reservation poller) {
            if (const auto self = weak.lock()) {
                self->taken(round, std::move(poller));
            }
        });
    {
        const std::lock_guard lock(mutex_);
        if (!over_ && round_ == round) {
            waiting_.offer = id;
            return round;
        }
    }
    (void)parts_->matching.withdraw(id);
    return round;
}

void LiveQuery::keep_alarm(std::uint64_t round, AlarmId alarm) {
    {
        const std::lock_guard lock(mutex_);
        if (!over_ && round_ == round) {
            waiting_.alarm = alarm;
            return;
        }
    }
    parts_->alarms.cancel(alarm);
}

bool LiveQuery::stands(std::uint64_t round) const {
    const std::lock_guard lock(mutex_);
    return !over_ && round_ == round;
}

// It did not take the query, or does not answer it.
void LiveQuery::sticky_is_slow(std::uint64_t round) {
    Waiting left;
    {
        const std::lock_guard lock(mutex_);
        if (over_ || round_ != round) {
            return;
        }
        left = std::exchange(waiting_, {});
    }
    left.alarm.reset();  // It rings.
    leave(left);
    ask_normal();
}

void LiveQuery::look_for_pollers(std::uint64_t round) {
    {
        const std::lock_guard lock(mutex_);
        if (over_ || round_ != round || !waiting_.task_id.empty()) {
            return;
        }
        waiting_.alarm.reset();  // It rings.
    }
    const Wall since = parts_->clock.wall_now() - poller_gone_after;
    const auto view = parts_->matching.view({.namespace_id = asked_.workflow.namespace_id,
                                             .name = normal_queue_,
                                             .type = QueueType::workflow});
    if (std::ranges::none_of(view.pollers,
                             [&](const auto& poller) { return poller.last_access >= since; })) {
        refuse({rpc::StatusCode::failed_precondition,
                "no poller seen for task queue recently, worker may be down"});
    }
}

void LiveQuery::taken(std::uint64_t round, matching::Reservation poller) {
    if (!stands(round)) {
        return;  // The poll waits again.
    }
    parts_->turns.in_turn(
        asked_.workflow,
        [self = shared_from_this(), round, poller = std::move(poller)](engine::Turn& turn) mutable {
            try {
                self->deliver(turn, round, std::move(poller));
            } catch (...) {
                self->refuse(rpc::refusal_of(std::current_exception()));
            }
        });
}

// ---- With a worker
// ---------------------------------------------------------------------------------

bool LiveQuery::hand_to_worker(std::uint64_t round, const std::string& task_id) {
    {
        const std::lock_guard lock(mutex_);
        if (over_ || round_ != round) {
            return false;
        }
        waiting_.task_id = task_id;
    }
    tasks_->add(task_id, weak_from_this());
    if (stands(round)) {
        return true;
    }
    tasks_->forget(task_id);  // It ended in between.
    return false;
}

void LiveQuery::deliver(engine::Turn& turn, std::uint64_t round, matching::Reservation poller) {
    if (!stands(round)) {
        return;
    }
    const QueueKey queue = poller.queue();
    TaskReply task;
    if (const auto refusal = turn.query_task_of(asked_.run_id, queue.name, task)) {
        return refuse(wire_refusal(*refusal));
    }
    const std::string task_id = parts_->new_id();
    *task.mutable_query() = asked_.query;
    task.set_task_token(token_of(queue, task_id));
    if (!hand_to_worker(round, task_id)) {
        return;
    }
    matching::Poll poll = std::move(poller).take();
    auto& reply = std::get<matching::WorkflowReply>(poll.reply);
    reply.message().Swap(&task);
    if (std::move(reply).send()) {
        return;
    }
    // The worker has left: the next one gets it.
    if (tasks_->take(task_id)) {
        Waiting left;
        {
            const std::lock_guard lock(mutex_);
            if (over_ || round_ != round) {
                return;
            }
            left = std::exchange(waiting_, {});
        }
        leave(left);
        ask_normal();
    }
}

}  // namespace holdfast::server::frontend
