#include "fleet/slot_keeper.hpp"

#include <algorithm>
#include <deque>
#include <utility>

#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/random.hpp>
#include <holdfast/pool/pool.hpp>

namespace holdfast::dsql {
namespace {

constexpr std::chrono::minutes block_nap_max{1};

SlotKeeperOptions checked(SlotKeeperOptions options) {
    check_place(options.client, options.table, options.endpoint);
    return options;
}

pool::BlockUnanswered unanswered(int block, const Error& error) {
    return {.block = block, .throttled = error.code() == Code::conflict};
}

// The event for an action that could not be sent.
pool::SlotEvent not_sent(const pool::SlotAction& action) {
    if (const auto* take = std::get_if<pool::TakeBlock>(&action)) {
        return pool::BlockUnanswered{.block = take->block};
    }
    if (const auto* renew = std::get_if<pool::RenewBlock>(&action)) {
        return pool::BlockUnanswered{.block = renew->block};
    }
    return pool::SlotsTick{};
}

}  // namespace

struct SlotKeeper::Meters {
    Meters(Metrics* metrics, const std::string& service) {
        if (metrics == nullptr) {
            return;
        }
        const std::pair<std::string_view, std::string_view> who{"service", service};
        owned = metrics->gauge(
            "dsql_slot_blocks_owned", "Blocks of slots that this process owns", {who});
        used = metrics->gauge("dsql_slot_blocks_slots_used", "Slots with a connection", {who});
        capacity =
            metrics->gauge("dsql_slot_blocks_capacity", "Connections that may exist now", {who});
        degraded = metrics->gauge("dsql_conn_lease_degraded",
                                  "1 while the store does not answer and the local cap applies",
                                  {who});
        lost = metrics->counter(
            "dsql_slot_blocks_lost_total", "Blocks that this process has lost", {who});
        denied = metrics->counter(
            "dsql_slot_acquire_denied_total", "Openings that found no slot in time", {who});
        renew_failures = metrics->counter(
            "dsql_slot_renew_failures_total", "Renewals that were refused or not answered", {who});
        renew_seconds = metrics->histogram(
            "dsql_slot_renew_seconds", "How long a renewal took", latency_bounds(), {who});
    }

    Gauge owned, used, capacity, degraded;
    Counter lost, denied, renew_failures;
    Histogram renew_seconds;
};

SlotKeeper::SlotKeeper(SlotKeeperOptions options)
    : options_(checked(std::move(options))),
      logger_(options_.logger == nullptr ? null_logger() : *options_.logger),
      clock_(options_.clock == nullptr ? system_clock() : *options_.clock),
      meters_(std::make_unique<Meters>(options_.metrics, options_.member.service)),
      store_(options_.client,
             options_.table,
             options_.endpoint,
             options_.member,
             options_.blocks,
             options_.limits),
      blocks_(options_.blocks, options_.limits, secure_seed()),
      workers_(options_.calls_max,
               [this](const pool::SlotAction& action, const std::stop_token& stop) {
                   perform(action, stop);
               }),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

SlotKeeper::~SlotKeeper() {
    stop();
}

ShedRegistry::Id SlotKeeper::join(int target, ShedRegistry::Shed shed) {
    const ShedRegistry::Id holder = holders_.join(target, std::move(shed));
    const std::lock_guard lock(mutex_);
    wants_changed_ = true;
    wake();
    return holder;
}

void SlotKeeper::leave(ShedRegistry::Id holder) {
    holders_.leave(holder);
    const std::lock_guard lock(mutex_);
    wants_changed_ = true;
    wake();
}

pool::SlotId SlotKeeper::acquire(Deadline deadline, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stopped_) {
        if (const auto slot = blocks_.acquire(clock_.steady_now())) {
            publish();
            wake();  // Another block may be needed.
            return *slot;
        }
        wake();
        const bool in_time = changed_.wait_until(lock, stop, deadline.when(), [this] {
            return stopped_ || blocks_.used() < blocks_.capacity(clock_.steady_now());
        });
        if (stop.stop_requested()) {
            throw Error(Code::cancelled, Outcome::not_applied, "waiting for a slot was cancelled");
        }
        if (!in_time) {
            break;
        }
    }
    const int capacity = blocks_.capacity(clock_.steady_now());
    const int used = blocks_.used();
    lock.unlock();
    meters_->denied.add();
    logger_.warn("lease.denied",
                 {{"reason", capacity == 0 ? "none_owned" : "full"},
                  {"used", used},
                  {"capacity", capacity},
                  {"limit", options_.blocks.size * options_.blocks.count}});
    throw pool::OpenError(
        pool::FailureClass::full,
        Code::exhausted,
        capacity == 0
            ? "no block of connection slots could be acquired; look at `holdfast dsql leases show`"
            : fmt::format("all {} connection slots of this process are used, and the fleet has no "
                          "more; look at `holdfast dsql leases show`",
                          capacity));
}

void SlotKeeper::release(pool::SlotId slot) {
    const std::lock_guard lock(mutex_);
    blocks_.release(clock_.steady_now(), slot);
    publish();
    wake();
    changed_.notify_all();
}

SlotKeeper::View SlotKeeper::view() const {
    const std::lock_guard lock(mutex_);
    const Steady now = clock_.steady_now();
    return {.capacity = blocks_.capacity(now),
            .used = blocks_.used(),
            .blocks = blocks_.blocks_owned(now),
            .degraded = blocks_.degraded()};
}

void SlotKeeper::stop() {
    {
        const std::lock_guard lock(mutex_);
        if (std::exchange(stopped_, true)) {
            return;
        }
        changed_.notify_all();
    }
    workers_.request_stop();
    thread_.request_stop();
    thread_.join();
    workers_.join();
}

void SlotKeeper::run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
        poked_ = false;
        if (std::exchange(wants_changed_, false)) {
            step(pool::WantSlots{holders_.wanted()});
        } else {
            step(pool::SlotsTick{});
        }
        publish();
        changed_.notify_all();
        shed(lock);
        const auto nap = std::min<std::chrono::nanoseconds>(
            Deadline::at(blocks_.next_wake()).remaining(clock_.steady_now()), block_nap_max);
        changed_.wait_for(lock, stop, nap, [this] { return poked_; });
    }
    finish(lock);
}

// The calls in progress have been stopped; now everything is given back, within bounds.
void SlotKeeper::finish(std::unique_lock<std::mutex>& lock) {
    const auto idle = [this] { return under_way_ == 0; };
    changed_.wait(lock, idle);
    if (blocks_.used() > 0) {
        logger_.warn("slots.abandoned", {{"used", blocks_.used()}});
        return;
    }
    last_call_ = Deadline::after(options_.limits.release_wait);
    step(pool::StopSlots{});
    changed_.wait(lock, idle);
}

// Handles one event, and passes the resulting actions to the workers.
void SlotKeeper::step(const pool::SlotEvent& event) {
    std::deque<pool::SlotEvent> events{event};
    while (!events.empty()) {
        pool::SlotActions actions;
        blocks_.step(clock_.steady_now(), events.front(), actions);
        events.pop_front();
        for (const pool::SlotAction& action : actions) {
            if (workers_.push(action)) {
                ++under_way_;
            } else {
                events.push_back(not_sent(action));
            }
        }
    }
}

// On a worker's thread. The lock is not held while the store is asked.
void SlotKeeper::perform(const pool::SlotAction& action, const std::stop_token& stop) {
    std::optional<Deadline> last_call;
    {
        const std::lock_guard lock(mutex_);
        last_call = last_call_;
    }
    report(action);
    const pool::SlotEvent answer =
        last_call ? carry_out(action, *last_call, {})
                  : carry_out(action, Deadline::after(options_.call_patience), stop);
    {
        const std::lock_guard lock(mutex_);
        step(answer);
        publish();
        wake();
    }
    if (const auto* taken = std::get_if<pool::BlockTaken>(&answer)) {
        say("slots.acquired", taken->block);
    }
    const std::lock_guard lock(mutex_);
    --under_way_;
    changed_.notify_all();
}

void SlotKeeper::say(const char* event, int block) {
    const View now = view();
    logger_.info(event, {{"block", block}, {"owned", now.blocks}, {"capacity", now.capacity}});
}

pool::SlotEvent SlotKeeper::carry_out(const pool::SlotAction& action,
                                      Deadline deadline,
                                      const std::stop_token& stop) {
    if (const auto* take = std::get_if<pool::TakeBlock>(&action)) {
        try {
            return store_.take(take->block, deadline, stop);
        } catch (const Error& error) {
            logger_.warn("slots.unanswered", {{"block", take->block}, {"error", error.what()}});
            return unanswered(take->block, error);
        }
    }
    if (const auto* block = std::get_if<pool::RenewBlock>(&action)) {
        return renew(block->block, deadline, stop);
    }
    if (const auto* back = std::get_if<pool::GiveBlockBack>(&action)) {
        try {
            store_.give_back(*back, deadline, stop);
            say("slots.released", back->block);
        } catch (const Error& error) {
            logger_.warn("lease.release_failed", {{"block", back->block}, {"error", error.what()}});
        }
    }
    return pool::SlotsTick{};
}

pool::SlotEvent SlotKeeper::renew(int block, Deadline deadline, const std::stop_token& stop) {
    const Steady began = clock_.steady_now();
    try {
        const pool::SlotEvent answer = store_.renew(block, deadline, stop);
        meters_->renew_seconds.observe(
            std::chrono::duration<double>(clock_.steady_now() - began).count());
        if (std::holds_alternative<pool::BlockRefused>(answer)) {
            meters_->renew_failures.add();
        }
        return answer;
    } catch (const Error& error) {
        meters_->renew_failures.add();
        logger_.warn("slots.unanswered", {{"block", block}, {"error", error.what()}});
        return unanswered(block, error);
    }
}

void SlotKeeper::report(const pool::SlotAction& action) {
    if (const auto* lost = std::get_if<pool::BlockLost>(&action)) {
        meters_->lost.add();
        const View now = view();
        logger_.error("slots.lost",
                      {{"block", lost->block},
                       {"why", to_string(lost->why)},
                       {"owned", now.blocks},
                       {"capacity", now.capacity}});
    } else if (const auto* odd = std::get_if<pool::BlockMismatch>(&action)) {
        logger_.error(
            "slots.mismatch",
            {{"block", odd->block}, {"slots", odd->slots}, {"expected", options_.blocks.size}});
    } else if (std::holds_alternative<pool::SlotsShort>(action)) {
        logger_.warn("slots.short", {{"blocks", options_.blocks.count}});
    }
}

void SlotKeeper::shed(std::unique_lock<std::mutex>& lock) {
    const int excess = blocks_.excess(clock_.steady_now());
    lock.unlock();
    holders_.tell(excess);
    lock.lock();
}

void SlotKeeper::publish() {
    const Steady now = clock_.steady_now();
    meters_->owned.set(blocks_.blocks_owned(now));
    meters_->used.set(blocks_.used());
    meters_->capacity.set(blocks_.capacity(now));
    meters_->degraded.set(blocks_.degraded() ? 1 : 0);
}

void SlotKeeper::wake() noexcept {
    poked_ = true;
    changed_.notify_all();
}

}  // namespace holdfast::dsql
