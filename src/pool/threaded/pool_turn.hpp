// What happens under the pool's mutex, and the waiters.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "threaded/threaded_pool.hpp"

#include <holdfast/pool/coarse_clock.hpp>

namespace holdfast::pool {

inline constexpr WaiterId looker{0};  // No waiter has this address,
inline constexpr WaiterId nobody{1};  // nor this one.

// The machine's own clock is read before the mutex is taken, to hold that for less. Another clock
// may be destroyed with the pool, and only under the mutex is that known.
inline Steady ThreadedPool::early_now() const {
    return clock_lasts_ ? coarse_steady_now() : Steady::min();
}

// Never goes back, though a thread may have read the clock before one that took the mutex first.
// Requires: the mutex is held, and the pool has not been destroyed.
inline Steady ThreadedPool::now(Steady read) {
    latest_ = std::max(latest_, read == Steady::min() ? clock_.steady_now() : read);
    return latest_;
}

// Requires: the mutex is held.
inline ThreadedPool::Lent ThreadedPool::lent(const Lend& lend) const {
    return {.id = lend.connection,
            .connection = held_[lend.connection.slot].connection.get(),
            .idle = lend.idle};
}

// A borrower, on its thread's stack. Read and written under the pool's mutex.
struct ThreadedPool::Waiter {
    std::optional<Lent> lent{};
    std::stop_source wake{std::nostopstate};  // Made only when it must wait,
    std::optional<Steady> began{};            // and that was when.
    std::optional<Refuse> refused{};
    Counts counts{};                    // When it was refused.
    std::optional<OpenError> failed{};  // The opening that had failed before that.

    [[nodiscard]] bool answered() const noexcept { return lent || refused; }

    // The machine forgets a waiter before its stack frame ends, so the address can be the name.
    [[nodiscard]] WaiterId id() const noexcept { return std::bit_cast<WaiterId>(this); }
    [[nodiscard]] static Waiter& of(WaiterId id) noexcept { return *std::bit_cast<Waiter*>(id); }
};

// A thread that waits for a certain state of the pool.
struct ThreadedPool::Watcher {
    std::function<bool()> done;
    std::stop_source wake;
    bool met = false;
};

// One critical section: steps of the machine and their effects. Threads are woken after the mutex
// is released.
class ThreadedPool::Turn {
public:
    explicit Turn(ThreadedPool& threaded) : threaded_(threaded), lock_(threaded.mutex_) {}
    ~Turn() {
        lock_.unlock();
        for (const std::stop_source& sleeper : wake_) {
            sleeper.request_stop();
        }
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    void step(const Event& event) {
        now_ = threaded_.now(threaded_.clock_.steady_now());
        Actions& actions = threaded_.actions_;
        threaded_.machine_.step(now_, event, actions);
        for (std::size_t i = 0; i < actions.size(); ++i) {  // Applying one can add more.
            const Action action = actions[i];
            std::visit([&](const auto& what) { apply(what); }, action);
        }
        actions.clear();
        follow_up();
    }

    [[nodiscard]] Steady now() const noexcept { return now_; }  // Of the latest step.

private:
    void apply(const Open& open) {
        if (threaded_.openers_.push(open.connection)) {
            return;
        }
        threaded_.last_open_error_.emplace(
            FailureClass::other,
            Code::unavailable,
            "no thread can be started to open a connection; raise the process's limit");
        const OpenFailed failed{.connection = open.connection, .failure = FailureClass::other};
        threaded_.machine_.step(now_, failed, threaded_.actions_);
    }

    void apply(const Close& close) {
        ++threaded_.stats_.closed[static_cast<std::size_t>(close.reason)];
        threaded_.meters_.closed[static_cast<std::size_t>(close.reason)].add();
        Held& held = threaded_.held_[close.connection.slot];
        held.reason = close.reason;
        if (threaded_.closers_.push(close.connection)) {
            return;
        }
        unclosed_.push_back(std::move(held.connection));  // No thread: this one closes it.
        threaded_.machine_.step(now_, Closed{close.connection}, threaded_.actions_);
    }

    void apply(const Lend& lend) {
        if (lend.waiter == looker) {
            threaded_.looked_at_.push_back(threaded_.lent(lend));
            return;
        }
        ++threaded_.lent_;
        Waiter& waiter = Waiter::of(lend.waiter);
        waiter.lent = threaded_.lent(lend);
        wake(waiter);
    }

    void apply(const Refuse& refuse) {
        if (refuse.why == Refusal::timeout) {
            ++threaded_.stats_.timed_out;
        }
        Waiter& waiter = Waiter::of(refuse.waiter);
        waiter.refused = refuse;
        waiter.counts = threaded_.machine_.counts();
        if (refuse.last_failure) {
            waiter.failed = threaded_.last_open_error_;
        }
        wake(waiter);
    }

    void wake(const Waiter& waiter) {
        if (waiter.wake.stop_possible()) {
            wake_.push_back(waiter.wake);
        }
    }

    void follow_up() {
        if (threaded_.machine_.next_wake() < threaded_.keeper_until_) {
            threaded_.keeper_until_ = threaded_.machine_.next_wake();
            wake_.push_back(threaded_.keeper_wake_);
        }
        for (Watcher* watcher : threaded_.watchers_) {
            if (watcher->met || !watcher->done()) {
                continue;
            }
            watcher->met = true;
            wake_.push_back(watcher->wake);
        }
    }

    ThreadedPool& threaded_;
    std::unique_lock<AdaptiveMutex> lock_;
    Steady now_{};
    std::vector<std::stop_source> wake_;
    std::vector<std::unique_ptr<Connection>> unclosed_;
};

}  // namespace holdfast::pool
