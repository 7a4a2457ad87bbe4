// The implementation of Pool and Loan: the machine under one mutex, the connections, the threads.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "threaded/adaptive_mutex.hpp"
#include "threaded/meters.hpp"

#include <holdfast/pool/machine.hpp>
#include <holdfast/pool/open_phases.hpp>
#include <holdfast/pool/pool.hpp>
#include <holdfast/pool/workers.hpp>

namespace holdfast::pool {

// Safe to share between threads. A waiting thread sleeps by the pool's clock until its deadline,
// and a stop source of its own cuts the sleep short: so only the thread that is served wakes up,
// and tests move time by hand.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): what is hot begins at a cache line.
class ThreadedPool {
public:
    ThreadedPool(const Config& config,
                 Opener& opener,
                 const Clock& clock,
                 Metrics* metrics,
                 Logger& logger,
                 std::string name,
                 std::uint64_t seed);

    [[nodiscard]] Loan acquire(Deadline deadline, const std::stop_token& stop, Lane lane);
    [[nodiscard]] std::optional<Loan> try_acquire();
    // By reference: the parts of a loan are written one by one, and to copy them whole right after
    // that stalls the processor for longer than the mutex takes.
    void give_back(const ConnectionId& id, const std::optional<Reason>& bad);

    [[nodiscard]] bool wait_ready(int n, Deadline deadline, const std::stop_token& stop);
    [[nodiscard]] WarmUp warm_up(const std::stop_token& stop);
    [[nodiscard]] Stats stats() const;
    void shed(int connections);
    void resize(int target);
    void stop(Deadline deadline);

    // The pool is destroyed: ends all threads. Lent connections are closed where their loans end,
    // and nothing the pool refers to is used any more. `self` is this object, which lives while
    // there are loans.
    void abandon(const std::shared_ptr<ThreadedPool>& self);

private:
    class Turn;
    struct Waiter;
    struct Watcher;

    struct Lent {
        ConnectionId id;
        Connection* connection = nullptr;
        std::chrono::nanoseconds idle{};  // How long it was not used.
    };

    struct Held {
        std::unique_ptr<Connection> connection;
        Steady opened{};
        Reason reason = Reason::bad;  // Why it is being closed.
    };

    [[nodiscard]] std::optional<Lent> lend_at_once();
    [[nodiscard]] bool take_back_at_once(const ConnectionId& id);
    [[nodiscard]] bool works(const Lent& lent) const;
    [[nodiscard]] Steady early_now() const;
    [[nodiscard]] Steady now(Steady read);

    [[nodiscard]] Loan acquire_in_turn(std::optional<Lent> dead,
                                       Deadline deadline,
                                       const std::stop_token& stop,
                                       Lane lane);
    [[nodiscard]] std::optional<Lent> borrow(Waiter& waiter,
                                             Borrow what,
                                             const std::stop_token& stop);
    void wait_in_line(Waiter& waiter, Deadline deadline, const std::stop_token& stop);
    [[nodiscard]] Lent lent(const Lend& lend) const;
    void note_wait(std::chrono::nanoseconds time);
    [[nodiscard]] Error refusal(const Waiter& waiter) const;

    void open(ConnectionId id, const std::stop_token& stop);
    void open_failed(ConnectionId id, const OpenError& error, const OpenPhases& phases);
    void note_phases(const OpenPhases& phases);
    void close(ConnectionId id);
    void keep(const std::stop_token& stop);
    [[nodiscard]] std::uint64_t closed_for_age() const;
    void look_at_idle(const std::stop_token& stop);
    void note_created();
    void note_oldest(Steady now);
    void note_shortage(Steady now);

    void publish();

    void sleep(Deadline deadline, const std::stop_token& stop, std::stop_source wake) const;
    [[nodiscard]] bool wait_for(std::function<bool()> done,
                                Deadline deadline,
                                const std::stop_token& stop);

    const Config config_;
    Opener& opener_;
    const Clock& clock_;
    const bool clock_lasts_;  // Longer than any loan.
    Logger& logger_;
    const std::string name_;

    // Guards all below, up to the threads. What every borrow writes stands in its cache line.
    alignas(64) mutable AdaptiveMutex mutex_;
    Steady latest_ = Steady::min();  // The time, as last told to the machine.
    std::uint64_t lent_ = 0;         // For the stats.
    Machine machine_;
    Meters meters_;
    Actions actions_;
    Stats stats_;
    std::vector<Held> held_;                        // By slot.
    std::optional<OpenError> last_open_error_;      // Empty after a success.
    std::array<Steady, failure_classes> logged_{};  // When a failure of the class was last logged.
    std::vector<Watcher*> watchers_;
    std::stop_source keeper_wake_;
    Steady keeper_until_ = Steady::max();
    std::vector<Lent> looked_at_;  // Of the latest check.
    bool abandoned_ = false;
    int abandoned_loans_ = 0;             // Those that are still out,
    std::shared_ptr<ThreadedPool> self_;  // and what keeps this object until the last ends.

    Refresher refresher_;  // Publishes when the metrics are read; until the pool goes away.
    Workers<ConnectionId> openers_;
    Workers<ConnectionId> closers_;
    Steady warned_{};        // Of overage. The keeper's.
    bool was_full_ = false;  // As many were open as are wanted, since the last dip. The keeper's.
    Steady empty_noted_{};   // The keeper's.
    std::jthread keeper_;    // Last: it uses all of the above from its first moment.
};

}  // namespace holdfast::pool
