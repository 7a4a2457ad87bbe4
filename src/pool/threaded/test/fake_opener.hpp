// A server made of counters: tests say what it does next, and wait for what happens to it.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <thread>

#include <holdfast/pool/open_phases.hpp>
#include <holdfast/pool/pool.hpp>

namespace holdfast::pool {

// Safe to share between threads. Must outlive its connections.
class FakeOpener final : public Opener {
public:
    struct Connection final : pool::Connection {
        explicit Connection(FakeOpener& server) : server_(server) {}
        ~Connection() override {
            server_.change([&](State& state) {
                ++state.closed;
                --state.open;
                state.closing_threads.insert(std::this_thread::get_id());
            });
        }
        [[nodiscard]] bool usable() noexcept override { return alive; }

        std::atomic<bool> alive = true;

    private:
        FakeOpener& server_;
    };

    struct State {
        int calls = 0;    // Of open().
        int blocked = 0;  // Inside open(), held up.
        int blocked_max = 0;
        int open = 0;
        int open_max = 0;
        int opened = 0;
        int closed = 0;
        int hold_up =
            0;  // So many of the next calls are held up until release(), stop or deadline.
        int releases = 0;
        std::function<void()> fail;  // If set, throws.
        std::set<std::thread::id> opening_threads;
        std::set<std::thread::id> closing_threads;
    };

    [[nodiscard]] std::unique_ptr<pool::Connection> open(Deadline deadline,
                                                         std::stop_token stop,
                                                         OpenPhases& phases) override {
        phases.enter(OpenPhase::tcp);
        std::unique_lock lock(mutex_);
        ++state_.calls;
        state_.opening_threads.insert(std::this_thread::get_id());
        deadline_ = deadline;
        changed_.notify_all();
        if (state_.hold_up > 0) {
            --state_.hold_up;
            hold(lock, stop);
        }
        if (const auto fail = state_.fail) {
            fail();
        }
        ++state_.opened;
        state_.open_max = std::max(state_.open_max, ++state_.open);
        changed_.notify_all();
        return std::make_unique<Connection>(*this);
    }

    template <class Change>
    void change(Change&& apply) {
        const std::lock_guard lock(mutex_);
        apply(state_);
        changed_.notify_all();
    }

    [[nodiscard]] State state() const {
        const std::lock_guard lock(mutex_);
        return state_;
    }

    // False if it did not happen in 20 s of the machine's clock: the test has failed.
    template <class Condition>
    [[nodiscard]] bool wait(Condition&& condition) const {
        std::unique_lock lock(mutex_);
        return changed_.wait_until(lock, Deadline::after(std::chrono::seconds{20}).when(), [&] {
            return condition(state_);
        });
    }

    void hold_up(int calls) {
        change([&](State& state) { state.hold_up = calls; });
    }
    void release(int calls) {
        change([&](State& state) { state.releases += calls; });
    }
    void fail_with(std::function<void()> fail) {
        change([&](State& state) { state.fail = std::move(fail); });
    }
    [[nodiscard]] Deadline last_deadline() const {
        const std::lock_guard lock(mutex_);
        return deadline_;
    }

private:
    void hold(std::unique_lock<std::mutex>& lock, const std::stop_token& stop) {
        state_.blocked_max = std::max(state_.blocked_max, ++state_.blocked);
        changed_.notify_all();
        const bool released = changed_.wait(lock, stop, [&] { return state_.releases > 0; });
        --state_.blocked;
        changed_.notify_all();
        if (!released) {
            throw Error(Code::cancelled, Outcome::not_applied, "connecting was cancelled");
        }
        --state_.releases;
    }

    mutable std::mutex mutex_;
    mutable std::condition_variable_any changed_;
    State state_;
    Deadline deadline_ = Deadline::at(Steady{});
};

}  // namespace holdfast::pool
