#include "fleet/lease_keeper.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/random.hpp>
#include <holdfast/pool/pool.hpp>

namespace holdfast::dsql {
namespace {

constexpr std::chrono::minutes nap_max{1};
// How long the service remembers a token; later it is a new request.
constexpr std::chrono::minutes token_life{10};

LeaseKeeperOptions checked(LeaseKeeperOptions options) {
    check_place(options.client, options.table, options.endpoint);
    return options;
}

}  // namespace

struct LeaseKeeper::Meters {
    Meters(Metrics* metrics, const std::string& service) {
        if (metrics == nullptr) {
            return;
        }
        const std::pair<std::string_view, std::string_view> who{"service", service};
        active = metrics->gauge("dsql_distributed_conn_lease_active",
                                "Connections of the whole fleet, as its counter says",
                                {who});
        limit = metrics->gauge(
            "dsql_distributed_conn_lease_limit", "Connections that the fleet may have", {who});
        drift = metrics->gauge(
            "dsql_conn_lease_drift", "Leases minus the counter, when last reconciled", {who});
        degraded = metrics->gauge("dsql_conn_lease_degraded",
                                  "1 while the store does not answer and the local cap applies",
                                  {who});
        retries = metrics->counter(
            "dsql_conn_lease_release_retries_total", "Releases that had to be repeated", {who});
        for (const auto why :
             {pool::LeaseDenial::full, pool::LeaseDenial::unanswered, pool::LeaseDenial::timeout}) {
            denied[why] = metrics->counter("dsql_conn_lease_denied_total",
                                           "Openings that got no lease",
                                           {who, {"reason", to_string(why)}});
        }
    }

    Gauge active, limit, drift, degraded;
    Counter retries;
    std::map<pool::LeaseDenial, Counter> denied;
};

LeaseKeeper::LeaseKeeper(LeaseKeeperOptions options)
    : options_(checked(std::move(options))),
      logger_(options_.logger == nullptr ? null_logger() : *options_.logger),
      clock_(options_.clock == nullptr ? system_clock() : *options_.clock),
      meters_(std::make_unique<Meters>(options_.metrics, options_.member.service)),
      store_(options_.client, options_.table, options_.endpoint, options_.member, options_.limits),
      leases_(options_.leases, options_.limits, secure_seed()),
      reconcile_at_(clock_.steady_now() + options_.limits.reconcile_every),
      thread_([this](const std::stop_token& stop) { run(stop); }),
      reaper_([this](const std::stop_token& stop) { reap(stop); }) {
    meters_->limit.set(static_cast<double>(options_.leases.limit));
}

LeaseKeeper::~LeaseKeeper() {
    stop();
}

ShedRegistry::Id LeaseKeeper::join(int target, ShedRegistry::Shed shed) {
    return holders_.join(target, std::move(shed));
}

pool::LeaseId LeaseKeeper::acquire(Deadline deadline, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    const pool::LeaseWish wish{++wishes_};
    if (stopped_) {
        lock.unlock();
        deny(pool::LeaseDenial::timeout);
    }
    waiting_.insert(wish);
    inbox_.emplace_back(pool::WantLease{.wish = wish, .deadline = deadline.when()});
    changed_.notify_all();
    // A little longer than the state machine waits, because its answer says more.
    const Steady end = deadline.when() + options_.call_patience;
    changed_.wait_until(lock, stop, end, [&] { return stopped_ || answers_.contains(wish); });
    waiting_.erase(wish);
    const auto found = answers_.extract(wish);
    if (found.empty()) {
        inbox_.emplace_back(pool::LeaveLease{wish});
        changed_.notify_all();
    }
    const auto* const lease = found.empty() ? nullptr : std::get_if<pool::LeaseId>(&found.mapped());
    if (stop.stop_requested()) {
        if (lease != nullptr) {
            inbox_.emplace_back(pool::GiveLeaseBack{*lease});
            changed_.notify_all();
        }
        throw Error(Code::cancelled, Outcome::not_applied, "waiting for a lease was cancelled");
    }
    lock.unlock();
    if (lease == nullptr) {
        deny(found.empty() ? pool::LeaseDenial::timeout
                           : std::get<pool::LeaseDenial>(found.mapped()));
    }
    return *lease;
}

void LeaseKeeper::deny(pool::LeaseDenial why) {
    const auto meter = meters_->denied.find(why);
    if (meter != meters_->denied.end()) {
        meter->second.add();
    }
    logger_.warn(
        "lease.denied",
        {{"reason", to_string(why)}, {"used", view().used}, {"limit", options_.leases.limit}});
    throw pool::OpenError(
        pool::FailureClass::full,
        why == pool::LeaseDenial::full ? Code::exhausted : Code::unavailable,
        why == pool::LeaseDenial::full
            ? fmt::format("the fleet has all {} connections that it may have; look at `holdfast "
                          "dsql leases show`",
                          options_.leases.limit)
            : "no lease for a connection: DynamoDB does not answer in time");
}

void LeaseKeeper::release(const pool::LeaseId& lease) {
    const std::lock_guard lock(mutex_);
    inbox_.emplace_back(pool::GiveLeaseBack{lease});
    changed_.notify_all();
}

void LeaseKeeper::doubt_count() {
    const std::lock_guard lock(mutex_);
    doubted_ = true;
    changed_.notify_all();
}

LeaseKeeper::View LeaseKeeper::view() const {
    const std::lock_guard lock(mutex_);
    return {
        .used = leases_.used(), .releasing = leases_.releasing(), .degraded = leases_.degraded()};
}

void LeaseKeeper::stop() {
    {
        const std::lock_guard lock(mutex_);
        if (std::exchange(stopped_, true)) {
            return;
        }
        changed_.notify_all();
    }
    reaper_.request_stop();
    thread_.request_stop();
    reaper_.join();
    thread_.join();
}

// --- The keeper's thread ---

void LeaseKeeper::run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
        do {
            pool::LeaseEvent event = pool::LeasesTick{};
            if (!inbox_.empty()) {
                event = inbox_.front();
                inbox_.pop_front();
            }
            step(lock, event);
        } while (!inbox_.empty());
        publish();
        const int excess = leases_.excess();
        lock.unlock();
        holders_.tell(excess);
        lock.lock();
        const auto nap = std::min<std::chrono::nanoseconds>(
            Deadline::at(leases_.next_wake()).remaining(clock_.steady_now()), nap_max);
        changed_.wait_for(lock, stop, nap, [this] { return !inbox_.empty(); });
    }
    finish(lock);
}

void LeaseKeeper::finish(std::unique_lock<std::mutex>& lock) {
    const Deadline deadline = Deadline::after(options_.limits.release_wait);
    do {
        const pool::LeaseEvent event =
            inbox_.empty() ? pool::LeaseEvent{pool::LeasesTick{}} : inbox_.front();
        if (!inbox_.empty()) {
            inbox_.pop_front();
        }
        step(lock, event);
        if (inbox_.empty() && leases_.releasing() > 0) {
            const Deadline next = Deadline::at(leases_.next_wake());
            const auto nap = std::min(next.remaining(clock_.steady_now()), deadline.remaining());
            changed_.wait_for(lock, nap, [] { return false; });
        }
    } while (!deadline.passed() && (!inbox_.empty() || leases_.releasing() > 0));
    const int left = leases_.used() + leases_.releasing();
    lock.unlock();
    if (left > 0) {
        logger_.warn("lease.abandoned", {{"leases", left}});
        return;
    }
    try {
        store_.forget_owner(deadline, {});
    } catch (const Error& error) {
        logger_.warn("lease.release_failed", {{"error", error.what()}});
    }
}

// One event and all that follows from it. The lock is not held while the store is asked.
void LeaseKeeper::step(std::unique_lock<std::mutex>& lock, const pool::LeaseEvent& event) {
    pool::LeaseActions actions;
    leases_.step(clock_.steady_now(), event, actions);
    std::deque<pool::LeaseAction> queue(actions.begin(), actions.end());
    while (!queue.empty()) {
        const pool::LeaseAction action = queue.front();
        queue.pop_front();
        if (const auto* granted = std::get_if<pool::LeaseGranted>(&action)) {
            settle(granted->wish, granted->lease);
            continue;
        }
        if (const auto* denied = std::get_if<pool::LeaseDenied>(&action)) {
            settle(denied->wish, denied->why);
            continue;
        }
        lock.unlock();
        const auto answer = carry_out(action);
        lock.lock();
        if (answer) {
            actions.clear();
            leases_.step(clock_.steady_now(), *answer, actions);
            queue.insert(queue.end(), actions.begin(), actions.end());
        }
    }
}

// The lease of a caller that has stopped waiting is given back.
void LeaseKeeper::settle(pool::LeaseWish wish, Answer answer) {
    if (waiting_.contains(wish)) {
        answers_.emplace(wish, std::move(answer));
        changed_.notify_all();
    } else if (const auto* lease = std::get_if<pool::LeaseId>(&answer)) {
        inbox_.emplace_back(pool::GiveLeaseBack{*lease});
    }
}

std::optional<pool::LeaseEvent> LeaseKeeper::carry_out(const pool::LeaseAction& action) {
    const Deadline deadline = Deadline::after(options_.call_patience);
    if (const auto* acquire = std::get_if<pool::AcquireLease>(&action)) {
        const auto answer = store_.acquire(
            *acquire, options_.leases.limit, first_asked(acquire->token), deadline, {});
        return pool::LeaseAcquired{.lease = acquire->lease, .answer = answer};
    }
    if (const auto* release = std::get_if<pool::ReleaseLease>(&action)) {
        const auto answer = store_.release(*release, first_asked(release->token), deadline, {});
        if (answer == pool::LeaseAnswer::unanswered) {
            logger_.warn("lease.release_failed", {{"lease", release->lease}});
        }
        return pool::LeaseReleased{.lease = release->lease, .answer = answer};
    }
    if (std::holds_alternative<pool::BeatHeart>(action)) {
        try {
            store_.beat(deadline, {});
            return pool::HeartAnswered{.done = true};
        } catch (const Error& error) {
            logger_.warn("lease.heart_unheard", {{"error", error.what()}});
            return pool::HeartAnswered{.throttled = error.code() == Code::conflict};
        }
    }
    return std::nullopt;
}

// A repeat with the same token must be the same request, to the millisecond.
Wall LeaseKeeper::first_asked(const std::string& token) {
    const Wall now = store_.wall_now();
    std::erase_if(asked_, [&](const auto& entry) { return entry.second < now - token_life; });
    return asked_.emplace(token, now).first->second;
}

void LeaseKeeper::publish() {
    meters_->degraded.set(leases_.degraded() ? 1 : 0);
    const std::uint64_t retries = leases_.release_retries();
    meters_->retries.add(static_cast<double>(retries - std::exchange(retries_told_, retries)));
}

// --- Reaper ---

void LeaseKeeper::reap(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        {
            std::unique_lock lock(mutex_);
            const auto every = options_.limits.reaper_lease / 2;
            const auto part = static_cast<std::int64_t>(static_cast<double>(every.count()) *
                                                        thread_random().unit() / 2);
            const auto nap = every / 2 + std::chrono::nanoseconds{part};
            changed_.wait_for(lock, stop, nap, [this] { return doubted_; });
        }
        if (stop.stop_requested()) {
            return;
        }
        try {
            reap_once(stop);
        } catch (const Error& error) {
            if (!stop.stop_requested()) {
                logger_.warn("reaper.failed", {{"error", error.what()}});
            }
        }
    }
}

void LeaseKeeper::reap_once(const std::stop_token& stop) {
    const Deadline deadline = Deadline::after(options_.reap_patience);
    bool reconcile = false;
    {
        const std::lock_guard lock(mutex_);
        reconcile = std::exchange(doubted_, false) || clock_.steady_now() >= reconcile_at_;
    }
    if (store_.lock_reaper(deadline, stop)) {
        const ReapReport done = reap_leases(store_, options_.limits, reconcile, deadline, stop);
        if (done.drift) {
            meters_->drift.set(static_cast<double>(*done.drift));
            const std::lock_guard lock(mutex_);
            reconcile_at_ = clock_.steady_now() + options_.limits.reconcile_every;
        }
        if (done.freed > 0 || done.drift.value_or(0) != 0) {
            logger_.info("reaper.run",
                         {{"dead_owners", done.dead_owners},
                          {"freed", done.freed},
                          {"drift", done.drift.value_or(0)}});
        }
    }
    if (const auto count = store_.count(deadline, stop)) {
        meters_->active.set(static_cast<double>(count->active));
    }
}

}  // namespace holdfast::dsql
