// The life of a poll in its queue.
#include <algorithm>
#include <utility>

#include "matching/empty_answer.hpp"
#include "matching/queue.hpp"
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::matching {
namespace {

bool over(const Poll& poll) {
    return std::visit([](const auto& reply) { return reply.over(); }, poll.reply);
}

// When a poll that comes now is answered empty.
Steady expiry_of(const Poll& poll, const Surroundings& around) {
    const Steady now = around.clock.steady_now();
    const auto deadline =
        std::visit([](const auto& reply) { return reply.info().deadline; }, poll.reply);
    std::chrono::nanoseconds wait = around.limits.poll_max;
    if (deadline) {
        // A deadline may be far beyond what a sum of nanoseconds can hold.
        const auto left =
            std::chrono::floor<std::chrono::microseconds>(*deadline) - around.clock.wall_now();
        wait = left > std::chrono::duration_cast<std::chrono::microseconds>(
                          wait + around.limits.poll_margin)
                   ? wait
                   : left - around.limits.poll_margin;
    }
    return now + wait;
}

}  // namespace

Reservation::Reservation(std::shared_ptr<Parked> parked) noexcept : parked_(std::move(parked)) {}

Reservation::~Reservation() {
    if (parked_) {
        Queue& queue = *parked_->queue;
        queue.give_back(std::move(parked_));
    }
}

const PollInfo& Reservation::info() const noexcept {
    return parked_->poll.info;
}

const QueueKey& Reservation::queue() const noexcept {
    return parked_->queue->key();
}

bool Reservation::over() const {
    return matching::over(parked_->poll);
}

Poll Reservation::take() && {
    const std::shared_ptr<Parked> parked = std::move(parked_);
    if (const std::optional<int> change = parked->queue->take(*parked)) {
        std::visit(
            [&](auto& reply) {
                auto& decision = *reply.message().mutable_poller_scaling_decision();
                decision.set_poll_request_delta_suggestion(*change);
            },
            parked->poll.reply);
    }
    return std::move(parked->poll);
}

void Queue::poll(Poll poll) {
    if (around_->stopping) {
        answer_empty(poll);
        return;
    }
    const auto parked = std::make_shared<Parked>(shared_from_this(), std::move(poll));
    parked->came = around_->clock.steady_now();
    parked->expires = expiry_of(parked->poll, *around_);
    listen(parked);
    seat(parked, Entry::arriving);
}

// Before the poll is in reach of others: they might move its reply away.
void Queue::listen(const std::shared_ptr<Parked>& parked) {
    std::visit(
        [&](auto& reply) {
            reply.on_end([weak = std::weak_ptr(parked)](rpc::Ending) {
                if (const auto ending = weak.lock()) {
                    ending->queue->leave(ending, Leaving::ended);
                }
            });
        },
        parked->poll.reply);
}

void Queue::set_expiry(const std::shared_ptr<Parked>& parked) {
    parked->alarm = around_->alarms.set(parked->expires, [weak = std::weak_ptr(parked)] {
        if (const auto expired = weak.lock()) {
            expired->queue->leave(expired, Leaving::expired);
        }
    });
}

void Queue::give_back(std::shared_ptr<Parked> parked) {
    if (around_->stopping) {
        {
            const std::lock_guard lock(mutex_);
            parked->place = Parked::Place::gone;
        }
        dismiss(*parked, false);
        return;
    }
    seat(parked, Entry::returning);
}

void Queue::seat(const std::shared_ptr<Parked>& parked, Entry entry) {
    bool arrived = false;
    for (;;) {
        Lock lock(mutex_);
        const Steady now = around_->clock.steady_now();
        if (entry == Entry::arriving && !std::exchange(arrived, true)) {
            arrive(*parked, now);
        }
        if (std::exchange(parked->charged, false)) {
            pace_.give_back();
        }
        if (must_end(*parked, now)) {
            retire(*parked, now, !parked->ended);
            match(now);
            hand_over(lock);
            lock.unlock();
            dismiss(*parked, false);
            return;
        }
        // A poll that is matched at once needs no alarm.
        if (parked->alarm || (waiting_.empty() && next(now) != Next::nothing)) {
            const auto place = entry == Entry::arriving ? waiting_.end() : waiting_.begin();
            parked->where = waiting_.insert(place, parked);
            parked->place = Parked::Place::waiting;
            match(now);
            hand_over(lock);
            return;
        }
        hand_over(lock);
        lock.unlock();
        set_expiry(parked);
    }
}

void Queue::arrive(Parked& parked, Steady now) {
    parked.epoch = epoch_;
    ++present_;
    if (must_end(parked, now)) {
        return;
    }
    seen_ = now;
    pollers_.saw(parked.poll.info, now, around_->clock.wall_now());
    std::optional<double> rate = parked.poll.info.tasks_per_second;
    if (rate && !(*rate >= 0)) {  // Neither does NaN limit anything.
        rate.reset();
    }
    if (rate != worker_rate_) {
        worker_rate_ = rate;
        set_rate(now);
        match(now);  // Delivered with what this poll brings.
    }
}

bool Queue::must_end(const Parked& parked, Steady now) const {
    return around_->stopping || parked.ended || parked.epoch != epoch_ || parked.expires <= now ||
           around_->ended.has(parked.poll.info.worker_instance_key, now);
}

void Queue::retire(Parked& parked, Steady now, bool seen) {
    parked.place = Parked::Place::gone;
    if (parked.epoch != epoch_) {
        return;  // The queue was unloaded: its worker has gone.
    }
    --present_;
    if (seen && !around_->ended.has(parked.poll.info.worker_instance_key, now)) {
        seen_ = now;
        pollers_.saw(parked.poll.info, now, around_->clock.wall_now());
    }
}

std::optional<int> Queue::take(Parked& parked) {
    const bool stopping = around_->stopping;
    std::optional<int> change;
    {
        const std::lock_guard lock(mutex_);
        if (stopping) {
            parked.place = Parked::Place::gone;
        } else {
            const Steady now = around_->clock.steady_now();
            retire(parked, now, true);
            dispatched_.add(now);
            if (parked.fresh) {
                added_.add(now);
            }
            change = scaling(parked, now);
        }
    }
    if (parked.alarm && !stopping) {
        around_->alarms.cancel(*parked.alarm);
    }
    return change;
}

void Queue::leave(const std::shared_ptr<Parked>& parked, Leaving why) {
    {
        const std::lock_guard lock(mutex_);
        parked->ended = parked->ended || why == Leaving::ended;
        if (parked->place != Parked::Place::waiting || around_->stopping) {
            return;  // The one that holds it will see. A stop answers all that wait.
        }
        waiting_.erase(parked->where);
        retire(*parked, around_->clock.steady_now(), why == Leaving::expired);
    }
    dismiss(*parked, why == Leaving::expired);
}

void Queue::dismiss(Parked& parked, bool alarm_rang) const {
    if (parked.alarm && !alarm_rang && !around_->stopping) {
        around_->alarms.cancel(*parked.alarm);
    }
    answer_empty(parked.poll);
}

void Queue::dismiss_all(const Parked::List& parked) const {
    for (const auto& each : parked) {
        dismiss(*each, false);
    }
}

void Queue::unload() {
    Parked::List waiting;
    {
        const std::lock_guard lock(mutex_);
        waiting.swap(waiting_);
        for (const auto& parked : waiting) {
            parked->place = Parked::Place::gone;
        }
        ++epoch_;
        present_ = 0;
        seen_.reset();
        pollers_.clear();
    }
    dismiss_all(waiting);
}

void Queue::end_polls(const std::string& worker_instance_key) {
    Parked::List ended;
    {
        const std::lock_guard lock(mutex_);
        const Steady now = around_->clock.steady_now();
        pollers_.forget_worker(worker_instance_key);
        for (auto each = waiting_.begin(); each != waiting_.end();) {
            const auto here = each++;
            if ((*here)->poll.info.worker_instance_key == worker_instance_key) {
                retire(**here, now, false);
                ended.splice(ended.end(), waiting_, here);
            }
        }
    }
    dismiss_all(ended);
}

// A poll whose caller has just left is passed over: its end is on the way here.
std::shared_ptr<Parked> Queue::first_poll() {
    const auto first =
        std::ranges::find_if(waiting_, [](const auto& each) { return !over(each->poll); });
    return first == waiting_.end() ? nullptr : unpark(first);
}

std::shared_ptr<Parked> Queue::unpark(Parked::List::iterator where) {
    std::shared_ptr<Parked> parked = std::move(*where);
    waiting_.erase(where);
    parked->place = Parked::Place::held;
    return parked;
}

}  // namespace holdfast::server::matching
