#include <holdfast/lock/with_lock.hpp>

#include <algorithm>
#include <cmath>
#include <thread>

#include "handle/handle_state.hpp"
#include <fmt/core.h>

#include <holdfast/base/random.hpp>
#include <holdfast/lock/key.hpp>

namespace holdfast::lock {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

void check(const Acquisition& acquisition, milliseconds ttl) {
    if (ttl.count() <= 0 || ttl > ttl_max) {
        throw LockError(LockCode::invalid_argument,
                        ttl > ttl_max ? "ttl exceeds maximum" : "ttl must be positive");
    }
    if (acquisition.timeout.count() < 0 || acquisition.retry_delay.count() < 0 ||
        acquisition.max_delay.count() < 0 || acquisition.max_retries < 0) {
        throw LockError(LockCode::invalid_argument, "no acquisition option may be negative");
    }
}

// Fires when one of two tokens does.
class EitherStop {
public:
    EitherStop(const std::stop_token& one, const std::stop_token& other)
        : one_(one, Fire{source_}), other_(other, Fire{source_}) {}
    [[nodiscard]] std::stop_token token() const { return source_.get_token(); }

private:
    struct Fire {
        std::stop_source& source;
        void operator()() const { source.request_stop(); }
    };
    std::stop_source source_;
    std::stop_callback<Fire> one_;
    std::stop_callback<Fire> other_;
};

// One wait for one lock, with one id.
class Waiter {
public:
    Waiter(Backend& backend,
           std::string_view key,
           milliseconds ttl,
           const Acquisition& how,
           const std::stop_token& stop)
        : backend_(backend),
          key_(normalised_key(key)),
          ttl_(ttl),
          how_(how),
          clock_(how.clock != nullptr ? *how.clock : system_clock()),
          stop_(stop),
          either_(stop, how.stop),
          started_(clock_.steady_now()),
          deadline_(started_ + how.timeout) {}

    Acquired wait();

private:
    [[nodiscard]] LockError timed_out(std::string message) const;
    void refuse_if_stopped() const;
    void line_up();
    Acquired attempt();
    std::optional<Acquired> try_attempt();
    void pause(const std::optional<Busy>& busy);
    bool wait_in_line(const Busy& busy);
    void poll(const Busy& busy);
    [[nodiscard]] nanoseconds delay(const Busy& busy) const;
    void give_back() noexcept;

    Backend& backend_;
    const std::string key_;
    const milliseconds ttl_;
    const Acquisition& how_;
    const Clock& clock_;
    const std::stop_token stop_;
    const EitherStop either_;
    const Steady started_;
    const Steady deadline_;
    const LockId id_ = LockId::fresh();

    int attempts_ = 0;  // All of them.
    int polls_ = 0;     // Those that max_retries bounds.
    Steady attempted_at_{};
    std::unique_ptr<WaitTicket> ticket_;  // Null if there is no wait queue.
    bool joined_ = false;
    std::exception_ptr last_failure_;
    bool indeterminate_ = false;  // An attempt may have taken the lock without our knowing.
};

LockError Waiter::timed_out(std::string message) const {
    LockError error(LockCode::acquisition_timeout, std::move(message));
    error.set_context({.key = key_});
    error.set_cause(last_failure_);
    return error;
}

void Waiter::refuse_if_stopped() const {
    const bool by_caller = stop_.stop_requested();
    if (by_caller || how_.stop.stop_requested()) {
        LockError error(LockCode::aborted,
                        by_caller ? "Operation cancelled by user signal"
                                  : "Acquisition cancelled by acquisition signal");
        error.set_context({.key = key_});
        throw error;
    }
}

// A wait queues behind earlier waiters of this process.
void Waiter::line_up() {
    if (how_.timeout.count() > 0) {
        ticket_ = backend_.line_up(key_, id_, Deadline::at(deadline_));
    }
    if (ticket_) {
        ticket_->wait_behind(deadline_, either_.token());
    }
}

Acquired Waiter::attempt() {
    // Enough for an attempt that begins when the time is up.
    const milliseconds grace = std::min(how_.timeout / 4, milliseconds{500});
    AcquireOptions options{
        .stop = either_.token(), .lock_id = id_, .meta = how_.meta, .attempt = ++attempts_};
    ++polls_;
    attempted_at_ = clock_.steady_now();
    if (how_.timeout.count() > 0) {
        options.deadline = Deadline::at(std::max(deadline_, attempted_at_ + grace));
    }
    return acquire_once(backend_, key_, ttl_, options);
}

// Empty after a transient failure.
std::optional<Acquired> Waiter::try_attempt() {
    try {
        return attempt();
    } catch (const LockError& error) {
        indeterminate_ = indeterminate_ || error.indeterminate();
        last_failure_ = std::current_exception();
        if (!error.retryable() || how_.timeout.count() == 0) {
            throw;
        }
        return std::nullopt;
    } catch (...) {
        throw to_lock_error(std::current_exception(), {.key = key_});
    }
}

Acquired Waiter::wait() {
    try {
        refuse_if_stopped();
        line_up();
        while (true) {
            refuse_if_stopped();
            const std::optional<Acquired> acquired = try_attempt();
            if (acquired && std::holds_alternative<Grant>(*acquired)) {
                if (ticket_) {
                    ticket_->arrived();
                }
                indeterminate_ = true;  // From here on it must be released.
                refuse_if_stopped();
                return *acquired;
            }
            std::optional<Busy> busy;
            if (acquired) {
                busy = std::get<Busy>(*acquired);
                if (how_.timeout.count() == 0) {
                    return *busy;
                }
            }
            pause(busy);
        }
    } catch (...) {
        if (indeterminate_) {
            give_back();
        }
        throw;
    }
}

void Waiter::give_back() noexcept {
    try {
        backend_.release(id_);
    } catch (...) {
        backend_.abandon(id_, ttl_);
    }
}

// Until another attempt is worth it. `busy` is empty after a failure.
void Waiter::pause(const std::optional<Busy>& busy) {
    const Steady now = clock_.steady_now();
    if (now >= deadline_) {
        if (attempted_at_ < deadline_) {
            throw timed_out("Timeout reached before next retry");
        }
        const auto waited = std::chrono::duration_cast<milliseconds>(now - started_);
        throw timed_out(fmt::format("Failed to acquire lock after {} ms", waited.count()));
    }
    if (busy && wait_in_line(*busy)) {
        return;
    }
    if (!joined_ && polls_ > how_.max_retries) {
        throw timed_out(fmt::format("Failed to acquire lock after {} attempts", attempts_));
    }
    poll(busy.value_or(Busy{}));
}

// False if there is no wait queue, or it cannot be reached now.
bool Waiter::wait_in_line(const Busy& busy) {
    if (!ticket_) {
        return false;
    }
    try {
        const bool now_joined = ticket_->join();
        joined_ = true;
        if (!now_joined) {
            const Steady now = clock_.steady_now();
            ticket_->wait(
                busy.retry_after ? std::min(deadline_, now + *busy.retry_after) : deadline_,
                either_.token());
        }
        return true;
    } catch (const LockError& error) {
        if (!error.retryable()) {
            throw;
        }
        last_failure_ = std::current_exception();
        return false;
    }
}

void Waiter::poll(const Busy& busy) {
    const nanoseconds pause = delay(busy);
    if (pause.count() == 0) {
        std::this_thread::yield();
        return;
    }
    clock_.sleep_until(std::min(clock_.steady_now() + pause, deadline_), either_.token());
}

nanoseconds Waiter::delay(const Busy& busy) const {
    constexpr int doublings_max = 40;  // Far beyond any max_delay, and no overflow.
    double base = static_cast<double>(nanoseconds{how_.retry_delay}.count());
    if (how_.backoff == Backoff::exponential) {
        base = std::ldexp(base, std::min(polls_ - 1, doublings_max));
    }
    base = std::min(base, static_cast<double>(nanoseconds{how_.max_delay}.count()));
    if (how_.jitter != Jitter::none) {
        const double unit = how_.unit ? how_.unit() : thread_random().unit();
        base = how_.jitter == Jitter::full ? unit * base : base / 2 + unit * base / 2;
    }
    const nanoseconds drawn{static_cast<std::int64_t>(base)};
    if (!busy.retry_after) {
        return drawn;
    }
    return std::min<nanoseconds>(drawn, std::max(*busy.retry_after, milliseconds{1}));
}

Handle acquire_or_throw(Backend& backend, const WithLock& options) {
    if (options.auto_extend) {
        check_auto_extend(*options.auto_extend, options.ttl);
    }
    Acquired acquired =
        acquire_waiting(backend, options.key, options.ttl, options.acquisition, options.stop);
    if (std::holds_alternative<Busy>(acquired)) {
        LockError error(LockCode::acquisition_timeout,
                        "Failed to acquire lock: it is busy, and the timeout is zero");
        error.set_context({.key = options.key});
        throw error;
    }
    return {backend,
            normalised_key(options.key),
            std::move(acquired),
            {.on_release_error = options.on_release_error,
             .on_lost = options.on_lost,
             .dispose_timeout = options.dispose_timeout,
             .logger = options.logger,
             .clock = options.acquisition.clock}};
}

}  // namespace

Acquired acquire_waiting(Backend& backend,
                         std::string_view key,
                         milliseconds ttl,
                         const Acquisition& acquisition,
                         const std::stop_token& stop) {
    check(acquisition, ttl);
    return Waiter(backend, key, ttl, acquisition, stop).wait();
}

LockScope::LockScope(Backend& backend, const WithLock& options)
    : throw_if_lost_(options.throw_if_lost), handle_(acquire_or_throw(backend, options)) {
    if (!options.auto_extend) {
        return;
    }
    Keeper* keeper = options.keeper;
    if (keeper == nullptr) {
        const Clock* clock = options.acquisition.clock;
        own_keeper_ = std::make_unique<Keeper>(clock != nullptr ? *clock : system_clock());
        keeper = own_keeper_.get();
    }
    keeper->keep(handle_, options.ttl, *options.auto_extend);
}

LockScope::~LockScope() {
    end();
}

bool LockScope::end() noexcept {
    if (!std::exchange(ended_, true)) {
        handle_.dispose();
        if (handle_.gone_at_release()) {
            handle_.state_->lose(LostReason::refused);
        }
    }
    return handle_.lost_reason().has_value();
}

void LockScope::finish() {
    if (end() && throw_if_lost_) {
        throw LockError(LockCode::internal, "lock lost while the function ran");
    }
}

}  // namespace holdfast::lock
