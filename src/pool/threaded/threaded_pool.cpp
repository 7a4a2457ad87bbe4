#include "threaded/threaded_pool.hpp"

#include <algorithm>
#include <utility>

#include "durations.hpp"
#include "threaded/pool_turn.hpp"
#include <fmt/core.h>

#include <holdfast/base/assert.hpp>

namespace holdfast::pool {
namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::seconds log_every{1};  // Of one class of failure.

template <class Enum>
constexpr std::size_t index(Enum value) noexcept {
    return static_cast<std::size_t>(value);
}

FailureClass class_of(Code code) noexcept {
    switch (code) {
        case Code::unauthorized:
            return FailureClass::auth;
        case Code::exhausted:
            return FailureClass::full;
        case Code::unavailable:
        case Code::deadline:
            return FailureClass::transport;
        default:
            return FailureClass::other;
    }
}

// The deadline and the token were the opening's. A borrower would take them for its own.
Code code_for_borrower(Code code) noexcept {
    return code == Code::deadline || code == Code::cancelled ? Code::unavailable : code;
}

// The current exception as a value, of which each borrower gets a copy.
OpenError caught() {
    try {
        throw;
    } catch (const OpenError& e) {
        return e;
    } catch (const Error& e) {
        OpenError error(class_of(e.code()), e.code(), e.what(), e.where());
        error.set_cause(e.cause());
        return error;
    } catch (const std::exception& e) {
        return OpenError(FailureClass::other, Code::unavailable, e.what());
    } catch (...) {
        return OpenError(FailureClass::other, Code::unavailable, "an unknown exception");
    }
}

}  // namespace

ThreadedPool::ThreadedPool(const Config& config,
                           Opener& opener,
                           const Clock& clock,
                           Metrics* metrics,
                           Logger& logger,
                           std::string name,
                           std::uint64_t seed)
    : config_(config),
      opener_(opener),
      clock_(clock),
      clock_lasts_(&clock == &system_clock()),
      logger_(logger),
      name_(std::move(name)),
      machine_(config, seed),
      meters_(metrics, config.meters, name_),
      openers_(config.limits.opening_max,
               [this](ConnectionId id, const std::stop_token& stop) { open(id, stop); }),
      closers_(config.limits.closers_max,
               [this](ConnectionId id, const std::stop_token&) { close(id); }),
      keeper_([this](const std::stop_token& stop) { keep(stop); }) {
    meters_.wanted.set(std::min(config.min_ready, config.target));
    note_created();
    if (metrics != nullptr) {
        refresher_ = metrics->refresh_with([this] { publish(); });
    }
}

// --- Borrowing ---

// The usual case: one is ready, and lending it has no other effect.
inline std::optional<ThreadedPool::Lent> ThreadedPool::lend_at_once() {
    const Steady early = early_now();
    const std::lock_guard lock(mutex_);
    if (!watchers_.empty()) {
        return std::nullopt;
    }
    const auto lend = machine_.lend_at_once(now(early), nobody);
    if (!lend) {
        return std::nullopt;
    }
    ++lent_;
    return lent(*lend);
}

inline bool ThreadedPool::take_back_at_once(const ConnectionId& id) {
    const Steady early = early_now();
    const std::lock_guard lock(mutex_);
    return !abandoned_ && watchers_.empty() && machine_.take_back_at_once(now(early), id);
}

inline bool ThreadedPool::works(const Lent& lent) const {
    return lent.idle < config_.check_after || lent.connection->usable();
}

Loan ThreadedPool::acquire(Deadline deadline, const std::stop_token& stop, Lane lane) {
    std::optional<Lent> ready;
    if (!stop.stop_requested()) {
        ready = lend_at_once();
    }
    if (ready && works(*ready)) {
        return {*this, ready->id, *ready->connection};
    }
    return acquire_in_turn(ready, deadline, stop, lane);
}

Loan ThreadedPool::acquire_in_turn(std::optional<Lent> dead,
                                   Deadline deadline,
                                   const std::stop_token& stop,
                                   Lane lane) {
    Waiter waiter{.lent = dead};
    const Borrow what{.waiter = waiter.id(), .deadline = deadline.when(), .lane = lane};
    const auto lent = borrow(waiter, what, stop);
    if (waiter.began) {
        note_wait(clock_.steady_now() - *waiter.began);
    }
    if (!lent) {
        throw refusal(waiter);
    }
    return {*this, lent->id, *lent->connection};
}

std::optional<Loan> ThreadedPool::try_acquire() {
    auto lent = lend_at_once();
    if (!lent || !works(*lent)) {
        Waiter waiter{.lent = lent};
        lent = borrow(waiter, Borrow{.waiter = waiter.id(), .deadline = Steady::min()}, {});
    }
    return lent ? std::optional(Loan{*this, lent->id, *lent->connection}) : std::nullopt;
}

// The connection that the waiter was lent is dead. Empty if it was refused, or neither lent nor
// refused because the token fired.
std::optional<ThreadedPool::Lent> ThreadedPool::borrow(Waiter& waiter,
                                                       Borrow what,
                                                       const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        bool wait = false;
        {
            Turn turn(*this);
            if (waiter.lent) {  // Waiters behind must not get ahead by that.
                turn.step(GiveBack{.connection = waiter.lent->id, .bad = Reason::dead});
                waiter.lent.reset();
                what.first = true;
            }
            turn.step(what);
            wait = !waiter.answered();
            if (!waiter.lent && !waiter.began) {
                ++stats_.empty;
                meters_.empty.add();
            }
            if (wait) {
                waiter.wake = std::stop_source{};
                waiter.began = waiter.began.value_or(turn.now());
            }
        }
        if (wait) {
            wait_in_line(waiter, Deadline::at(what.deadline), stop);
        }
        if (!waiter.lent) {
            return std::nullopt;
        }
        if (works(*waiter.lent)) {
            return waiter.lent;
        }
    }
    if (waiter.lent) {
        give_back(waiter.lent->id, Reason::dead);
    }
    return std::nullopt;
}

// Afterwards the machine does not know the waiter any more.
void ThreadedPool::wait_in_line(Waiter& waiter, Deadline deadline, const std::stop_token& stop) {
    for (;;) {
        sleep(deadline, stop, waiter.wake);
        Turn turn(*this);
        if (!waiter.answered()) {
            turn.step(Tick{});
        }  // Refuses us if it was the deadline.
        if (!waiter.answered() && !stop.stop_requested()) {
            continue;
        }
        if (!waiter.answered()) {
            turn.step(Cancel{waiter.id()});
        }
        waiter.wake = std::stop_source{std::nostopstate};
        return;
    }
}

void ThreadedPool::note_wait(nanoseconds time) {
    const std::lock_guard lock(mutex_);
    ++stats_.waited;
    meters_.wait_seconds.observe(in_seconds(time));
}

Error ThreadedPool::refusal(const Waiter& waiter) const {
    const auto cause = waiter.failed ? std::make_exception_ptr(*waiter.failed) : nullptr;
    const auto failure = [&](Code code, std::string message) {
        Error error(code, Outcome::not_applied, std::move(message));
        error.set_cause(cause);
        return error;
    };
    if (!waiter.refused) {
        return failure(Code::cancelled,
                       fmt::format("waiting for a connection to {} was cancelled", name_));
    }
    switch (waiter.refused->why) {
        case Refusal::shutdown:
            return failure(Code::unavailable,
                           fmt::format("the pool of connections to {} is stopped; open the "
                                       "database again",
                                       name_));
        case Refusal::unavailable:
            return failure(
                waiter.failed ? code_for_borrower(waiter.failed->code()) : Code::unavailable,
                fmt::format("no connection to {}: {}", name_, describe(cause)));
        case Refusal::timeout:
            break;
    }
    const Counts& counts = waiter.counts;
    std::string why = "give connections back sooner or make the pool larger";
    if (cause) {
        why = fmt::format("the last attempt to open one failed: {}", describe(cause));
    } else if (counts.in_use < counts.target) {
        why = "the server is slow to accept connections; check it or wait longer";
    }
    const nanoseconds waited = waiter.began ? clock_.steady_now() - *waiter.began : nanoseconds{0};
    return failure(Code::deadline,
                   fmt::format("no connection to {} within {:.3g} s ({} of {} in use, {} being "
                               "opened, {} more waiting); {}",
                               name_,
                               in_seconds(waited),
                               counts.in_use,
                               counts.target,
                               counts.opening,
                               counts.waiting,
                               why));
}

void ThreadedPool::give_back(const ConnectionId& id, const std::optional<Reason>& bad) {
    if (!bad && take_back_at_once(id)) {
        return;
    }
    std::shared_ptr<ThreadedPool> last_owner;
    std::unique_ptr<Connection> last;  // Both end after the mutex is released.
    Turn turn(*this);
    if (!abandoned_) {
        turn.step(GiveBack{.connection = id, .bad = bad});
        return;
    }
    last = std::move(held_[id.slot].connection);
    if (--abandoned_loans_ == 0) {
        last_owner = std::move(self_);
    }
}

// --- Background ---

void ThreadedPool::open(ConnectionId id, const std::stop_token& stop) {
    std::unique_ptr<Connection> connection;
    const Steady began = clock_.steady_now();
    OpenPhases phases(clock_);
    try {
        if (stop.stop_requested()) {
            throw Error(Code::cancelled, Outcome::not_applied, "the pool is being stopped");
        }
        const auto deadline = Deadline::at(began + config_.limits.open_timeout);
        connection = opener_.open(deadline, stop, phases);
        HOLDFAST_ASSERT(connection != nullptr);
        phases.end();
    } catch (...) {
        phases.end();
        return open_failed(id, caught(), phases);
    }
    Turn turn(*this);
    if (held_.size() <= id.slot) {
        held_.resize(id.slot + 1);
    }
    held_[id.slot] = {.connection = std::move(connection), .opened = clock_.steady_now()};
    last_open_error_.reset();
    ++stats_.opened;
    meters_.opened.add();
    meters_.open_seconds.observe(in_seconds(held_[id.slot].opened - began));
    note_phases(phases);
    turn.step(Opened{id});
}

void ThreadedPool::open_failed(ConnectionId id, const OpenError& error, const OpenPhases& phases) {
    const std::size_t number = index(error.failure());
    int attempt = 0;
    nanoseconds pause{0};
    {
        Turn turn(*this);
        last_open_error_ = error;
        turn.step(OpenFailed{.connection = id, .failure = error.failure()});
        if (machine_.stopped()) {
            return;
        }  // The stop made it fail.
        ++stats_.open_failures[number];
        meters_.open_failed(error.failure(), phases.last());
        note_phases(phases);
        if (turn.now() - logged_[number] < log_every) {
            return;
        }
        logged_[number] = turn.now();
        attempt = machine_.failures(error.failure());
        pause = std::max(machine_.paused_until() - turn.now(), nanoseconds{0});
    }
    const std::optional<OpenPhase> phase = phases.last();
    logger_.warn("open.failed",
                 {{"db", name_},
                  {"stage", phase ? to_string(*phase) : ""},
                  {"class", to_string(error.failure())},
                  {"sqlstate", error.sqlstate()},
                  {"attempt", attempt},
                  {"backoff_seconds", in_seconds(pause)},
                  {"error", error.what()}});
}

// Those of a failure, too: they show where openings are held up.
void ThreadedPool::note_phases(const OpenPhases& phases) {
    for (std::size_t i = 0; i < open_phase_count; ++i) {
        if (const auto time = phases.took()[i]) {
            meters_.phase_seconds[i].observe(in_seconds(*time));
        }
    }
}

void ThreadedPool::close(ConnectionId id) {
    Held held;
    {
        const std::lock_guard lock(mutex_);
        held = std::move(held_[id.slot]);
    }
    held.connection.reset();
    const double age = in_seconds(clock_.steady_now() - held.opened);
    logger_.debug("conn.retired",
                  {{"db", name_}, {"reason", to_string(held.reason)}, {"age_seconds", age}});
    Turn turn(*this);
    meters_.age_seconds.observe(age);
    turn.step(Closed{id});
}

// Ticks whenever the machine wants it.
void ThreadedPool::keep(const std::stop_token& stop) {
    Steady look = clock_.steady_now() + config_.look_every;
    while (!stop.stop_requested()) {
        if (config_.look_every > nanoseconds{0} && clock_.steady_now() >= look) {
            look_at_idle(stop);
            look = clock_.steady_now() + config_.look_every;
        }
        std::stop_source wake;
        Steady until;
        std::uint64_t evicted = 0;
        int ready = 0;
        {
            Turn turn(*this);
            const std::uint64_t before = closed_for_age();
            turn.step(Tick{});
            evicted = closed_for_age() - before;
            ready = machine_.counts().ready;
            until = std::min(machine_.next_wake(), turn.now() + config_.limits.nap_max);
            if (config_.look_every > nanoseconds{0}) {
                until = std::min(until, look);
            }
            keeper_wake_ = wake;
            keeper_until_ = until;
        }
        if (evicted > 0) {
            logger_.debug("scan.evicted", {{"db", name_}, {"evicted", evicted}, {"ready", ready}});
        }
        note_oldest(clock_.steady_now());
        note_shortage(clock_.steady_now());
        sleep(Deadline::at(until), stop, std::move(wake));
    }
}

// Requires: the mutex is held.
std::uint64_t ThreadedPool::closed_for_age() const {
    return stats_.closed[index(Reason::expired)] + stats_.closed[index(Reason::idle)];
}

// A few at a time: they cannot be borrowed while they are checked.
void ThreadedPool::look_at_idle(const std::stop_token& stop) {
    const Steady began = clock_.steady_now();
    std::vector<Lent> idle;
    do {
        idle.clear();
        {
            Turn turn(*this);
            turn.step(Look{.looker = looker, .before = began, .most = config_.limits.looks_max});
            idle.swap(looked_at_);
        }
        std::vector<GiveBack> found;
        for (const Lent& lent : idle) {
            found.push_back({.connection = lent.id});
            if (!lent.connection->usable()) {
                found.back().bad = Reason::dead;
            }
        }
        Turn turn(*this);
        for (const GiveBack& back : found) {
            turn.step(back);
        }
    } while (!idle.empty() && !stop.stop_requested());
}

// --- The whole pool ---

bool ThreadedPool::wait_ready(int n, Deadline deadline, const std::stop_token& stop) {
    bool reached = false;
    const auto done = [&] {
        const Counts counts = machine_.counts();
        reached = reached || counts.ready + counts.in_use >= n;
        return reached || machine_.stopped();
    };
    return wait_for(done, deadline, stop) && reached;
}

WarmUp ThreadedPool::warm_up(const std::stop_token& stop) {
    const Steady began = clock_.steady_now();
    logger_.info("fill.start", {{"db", name_}, {"warm", config_.warm}, {"target", config_.target}});
    WarmUp report;
    report.reached = wait_ready(config_.warm, Deadline::at(began + config_.warm_up_max), stop);
    report.elapsed = clock_.steady_now() - began;
    meters_.warm_up_seconds.set(in_seconds(report.elapsed));
    const Stats now = stats();
    report.open = now.now.ready + now.now.in_use;
    for (const std::uint64_t failures : now.open_failures) {
        report.failures += failures;
    }
    meters_.warm_up_failures.add(static_cast<double>(report.failures));
    logger_.write(report.reached ? Level::info : Level::warn,
                  report.reached ? "fill.complete" : "fill.timeout",
                  {{"db", name_},
                   {"open", report.open},
                   {"target", config_.target},
                   {"failures", report.failures},
                   {"elapsed_seconds", in_seconds(report.elapsed)}});
    return report;
}

Stats ThreadedPool::stats() const {
    const std::lock_guard lock(mutex_);
    Stats stats = stats_;
    stats.now = machine_.counts();
    stats.lent = lent_;
    if (const auto oldest = machine_.oldest()) {
        stats.oldest_age = clock_.steady_now() - *oldest;
    }
    return stats;
}

void ThreadedPool::shed(int connections) {
    Turn turn(*this);
    turn.step(Shed{connections});
}

void ThreadedPool::resize(int target) {
    Config wanted = config_;
    wanted.target = target;
    check(wanted);
    Turn turn(*this);
    turn.step(Resize{target});
}

void ThreadedPool::stop(Deadline deadline) {
    const Steady began = clock_.steady_now();
    bool repeated = false;
    {
        Turn turn(*this);
        repeated = machine_.stopped();
        turn.step(Stop{});
    }
    openers_.request_stop();
    const auto all_closed = [&] { return machine_.counts().total() == 0; };
    const bool complete = wait_for(all_closed, deadline, {});
    int abandoned = 0;
    std::uint64_t closed = 0;
    {
        const std::lock_guard lock(mutex_);
        if (!complete) {
            stats_.abandoned = machine_.counts().in_use;
        }
        abandoned = stats_.abandoned;
        closed = stats_.closed[index(Reason::shutdown)];
    }
    if (!repeated) {
        logger_.info("pool.stopped",
                     {{"db", name_},
                      {"closed", closed},
                      {"abandoned", abandoned},
                      {"elapsed_seconds", in_seconds(clock_.steady_now() - began)}});
    }
}

void ThreadedPool::abandon(const std::shared_ptr<ThreadedPool>& self) {
    stop(Deadline::at(clock_.steady_now()));
    keeper_.request_stop();
    keeper_.join();
    openers_.join();  // First: what they still open is handed to the closers.
    {
        const std::lock_guard lock(mutex_);
        abandoned_ = true;
        abandoned_loans_ = machine_.counts().in_use;
        if (abandoned_loans_ > 0) {
            self_ = self;
        }
    }
    closers_.join();
    publish();  // For the last time.
    refresher_ = {};
}

void ThreadedPool::publish() {
    const std::lock_guard lock(mutex_);
    meters_.publish(machine_.counts(), lent_);
}

void ThreadedPool::sleep(Deadline deadline,
                         const std::stop_token& stop,
                         std::stop_source wake) const {
    const std::stop_callback pass_on(stop, [&] { wake.request_stop(); });
    // Why it ended does not matter: the caller looks at the state.
    static_cast<void>(clock_.sleep_until(deadline.when(), wake.get_token()));
}

// Requires: `done` only looks at what the mutex guards.
bool ThreadedPool::wait_for(std::function<bool()> done,
                            Deadline deadline,
                            const std::stop_token& stop) {
    Watcher watcher{.done = std::move(done), .wake = {}};
    {
        const std::lock_guard lock(mutex_);
        if (watcher.done()) {
            return true;
        }
        watchers_.push_back(&watcher);
    }
    sleep(deadline, stop, watcher.wake);
    const std::lock_guard lock(mutex_);
    std::erase(watchers_, &watcher);
    return watcher.met;
}

}  // namespace holdfast::pool
