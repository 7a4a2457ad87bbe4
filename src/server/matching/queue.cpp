#include "matching/queue.hpp"

#include <algorithm>
#include <utility>

#include "matching/empty_answer.hpp"

namespace holdfast::server::matching {

Queue::Queue(QueueKey key, std::shared_ptr<Surroundings> around)
    : key_(std::move(key)),
      around_(std::move(around)),
      pollers_(around_->limits.pollers_kept),
      added_(around_->clock.steady_now()),
      dispatched_(around_->clock.steady_now()) {
    constexpr double more_polls_per_second = 10;
    more_polls_.limit(more_polls_per_second, around_->clock.steady_now());
}

std::optional<Reservation> Queue::reserve(int priority) {
    if (around_->stopping) {
        return std::nullopt;
    }
    const std::lock_guard lock(mutex_);
    const Steady now = around_->clock.steady_now();
    if (waiting_.empty() || (limited() && !pace_.open(now))) {
        return std::nullopt;
    }
    const std::optional<int> before = backlog_.first_level(time_now());
    if (before && *before <= level_of(priority)) {
        return std::nullopt;
    }
    std::shared_ptr<Parked> poll = first_poll();
    if (!poll) {
        return std::nullopt;
    }
    poll->charged = limited() && pace_.take(now);
    poll->fresh = true;
    return Reservation(std::move(poll));
}

void Queue::add(QueuedTask task) {
    if (around_->stopping) {
        return;  // Its row keeps it.
    }
    Lock lock(mutex_);
    const Steady now = around_->clock.steady_now();
    const double weight = weight_of(task);
    backlog_.add(std::move(task), weight);
    added_.add(now);
    match(now);
    hand_over(lock);
}

void Queue::put_back(QueuedTask task) {
    if (around_->stopping) {
        return;
    }
    std::uint64_t id = 0;
    {
        const std::lock_guard lock(mutex_);
        id = ++last_put_back_;
        put_back_.emplace(id, std::move(task));
    }
    around_->alarms.set(around_->clock.steady_now() + around_->limits.put_back_pause,
                        [weak = weak_from_this(), id] {
                            if (const auto queue = weak.lock()) {
                                queue->pause_ends(id);
                            }
                        });
}

void Queue::pause_ends(std::uint64_t put_back) {
    if (around_->stopping) {
        return;
    }
    Lock lock(mutex_);
    auto task = put_back_.extract(put_back);
    backlog_.put_back(std::move(task.mapped()));
    match(around_->clock.steady_now());
    hand_over(lock);
}

void Queue::offer(OfferId id, Taken taken) {
    Lock lock(mutex_);
    offers_.emplace(id, std::move(taken));
    if (!around_->stopping) {
        match(around_->clock.steady_now());
        hand_over(lock);
    }
}

bool Queue::withdraw(OfferId id) {
    std::map<OfferId, Taken>::node_type withdrawn;  // Destroyed without the lock.
    const std::lock_guard lock(mutex_);
    withdrawn = offers_.extract(id);
    return !withdrawn.empty();
}

bool Queue::polled_recently() {
    const std::lock_guard lock(mutex_);
    return present_ > 0 ||
           (seen_ && around_->clock.steady_now() - *seen_ < around_->limits.sticky_gone_after);
}

void Queue::limit_rate(std::optional<double> tasks_per_second) {
    Lock lock(mutex_);
    const Steady now = around_->clock.steady_now();
    configured_rate_ = tasks_per_second;
    set_rate(now);
    match(now);
    hand_over(lock);
}

void Queue::set_weights(std::map<std::string, double> weights) {
    const std::lock_guard lock(mutex_);
    weights_ = std::move(weights);
}

double Queue::weight_of(const QueuedTask& task) const {
    const auto configured = weights_.find(task.fairness_key);
    const double weight = configured == weights_.end() ? task.fairness_weight : configured->second;
    return weight > 0 ? weight : 1;
}

QueueView Queue::view() {
    const std::lock_guard lock(mutex_);
    const Steady now = around_->clock.steady_now();
    const Time time = time_now();
    static_cast<void>(backlog_.first_level(time));
    QueueView view{.pollers = pollers_.view(now),
                   .backlog = backlog_.size() + put_back_.size(),
                   .backlog_age = {},
                   .add_rate = added_.per_second(now),
                   .dispatch_rate = dispatched_.per_second(now),
                   .backlog_by_priority = backlog_.sizes(),
                   .worker_rate = worker_rate_,
                   .configured_rate = configured_rate_,
                   .rate_limited = rate_limited(now)};
    std::optional<Time> oldest = backlog_.oldest();
    for (const auto& [id, task] : put_back_) {
        ++view.backlog_by_priority[static_cast<std::size_t>(level_of(task.priority) - 1)];
        oldest = oldest ? std::min(*oldest, task.created) : task.created;
    }
    if (oldest) {
        view.backlog_age = std::max(time - *oldest, std::chrono::nanoseconds{0});
    }
    return view;
}

void Queue::add_to(MatchingTotals& totals) {
    const QueueView seen = view();
    const std::lock_guard lock(mutex_);
    ++totals.queues;
    totals.polls += waiting_.size();
    totals.backlog += seen.backlog;
    totals.backlog_age = std::max(totals.backlog_age, seen.backlog_age);
}

bool Queue::idle() {
    const std::lock_guard lock(mutex_);
    const Steady now = around_->clock.steady_now();
    return waiting_.empty() && present_ == 0 && !backlog_.first_level(time_now()) &&
           put_back_.empty() && offers_.empty() && !handing_over_ && !configured_rate_ &&
           weights_.empty() && !pollers_.any(now) &&
           !(seen_ && now - *seen_ < around_->limits.sticky_gone_after);
}

void Queue::stop() {
    Parked::List waiting;
    {
        Lock lock(mutex_);
        waiting.swap(waiting_);
        for (const auto& parked : waiting) {
            parked->place = Parked::Place::gone;
        }
        handed_over_.wait(lock, [this] { return !handing_over_; });
    }
    dismiss_all(waiting);
}

Queue::Next Queue::next(Steady now) {
    const bool may_start = put_back_.size() < put_back_max && (!limited() || pace_.open(now));
    const std::optional<int> level =
        may_start ? backlog_.first_level(time_now()) : std::optional<int>();
    if (level && (*level < default_priority || offers_.empty())) {
        return Next::task;
    }
    return offers_.empty() ? Next::nothing : Next::offer;
}

void Queue::match(Steady now) {
    if (around_->stopping) {
        return;
    }
    while (!waiting_.empty()) {
        const Next next_work = next(now);
        if (next_work == Next::nothing) {
            ring_at_next_token(now);
            return;
        }
        std::shared_ptr<Parked> poll = first_poll();
        if (!poll) {
            return;
        }
        if (next_work == Next::task) {
            match_task(std::move(poll), now);
        } else {
            match_offer(std::move(poll));
        }
    }
}

void Queue::match_task(std::shared_ptr<Parked> poll, Steady now) {
    poll->charged = limited() && pace_.take(now);
    poll->fresh = false;
    const std::optional<int> level = backlog_.first_level(time_now());
    outbox_.push_back({.poll = std::move(poll), .work = backlog_.take(*level)});
}

void Queue::match_offer(std::shared_ptr<Parked> poll) {
    poll->charged = false;
    poll->fresh = true;
    auto first = offers_.extract(offers_.begin());
    outbox_.push_back({.poll = std::move(poll),
                       .work = Offer{.id = first.key(), .taken = std::move(first.mapped())}});
}

void Queue::set_rate(Steady now) {
    if (limited()) {
        pace_.limit(configured_rate_ ? configured_rate_ : worker_rate_, now);
    }
}

bool Queue::rate_limited(Steady now) const {
    constexpr std::chrono::seconds recent{30};
    return limited_ && now < *limited_ + recent;
}

// A worker whose polls wait long has too many; it has too few if tasks wait for a poll, or come
// faster than they go.
std::optional<int> Queue::scaling(const Parked& parked, Steady now) {
    constexpr std::chrono::seconds idle_after{1};
    constexpr std::chrono::milliseconds backlog_age_max{200};
    constexpr double growth_max = 1.2;
    if (parked.fresh && now - parked.came >= idle_after) {
        return -1;
    }
    if (!more_polls_.open(now) || rate_limited(now)) {
        return std::nullopt;
    }
    const std::optional<Time> made = backlog_.next_made();
    const bool waits = made && time_now() - *made > backlog_age_max;
    if (!waits && added_.per_second(now) <= growth_max * dispatched_.per_second(now)) {
        return std::nullopt;
    }
    static_cast<void>(more_polls_.take(now));
    return 1;
}

void Queue::ring_at_next_token(Steady now) {
    if (!limited() || pace_.open(now) || backlog_.size() == 0) {
        return;
    }
    limited_ = now;
    const std::optional<Steady> opens = pace_.opens();
    if (opens && (!token_alarm_ || *opens < *token_alarm_)) {
        token_alarm_ = opens;
        token_wanted_ = opens;
    }
}

void Queue::token_rings(Steady at) {
    if (around_->stopping) {
        return;
    }
    Lock lock(mutex_);
    if (token_alarm_ == at) {
        token_alarm_.reset();
    }
    match(around_->clock.steady_now());
    hand_over(lock);
}

void Queue::hand_over(Lock& lock) {
    const bool busy = std::exchange(handing_over_, true);
    if (const auto at = std::exchange(token_wanted_, std::nullopt)) {
        lock.unlock();
        around_->alarms.set(*at, [weak = weak_from_this(), at = *at] {
            if (const auto queue = weak.lock()) {
                queue->token_rings(at);
            }
        });
        lock.lock();
    }
    if (busy) {
        return;
    }
    while (!outbox_.empty()) {
        delivering_.swap(outbox_);
        lock.unlock();
        for (Match& match : delivering_) {
            give(std::move(match));
        }
        delivering_.clear();
        lock.lock();
    }
    handing_over_ = false;
    handed_over_.notify_all();
}

void Queue::give(Match match) const {
    Reservation poller(std::move(match.poll));
    if (auto* offer = std::get_if<Offer>(&match.work)) {
        static_cast<void>(around_->offers.remove(offer->id));
        offer->taken(std::move(poller));
    } else if (!around_->stopping) {
        around_->starter.load()->start(
            key_, std::get<QueuedTask>(std::move(match.work)), std::move(poller));
    }
}

}  // namespace holdfast::server::matching
