// The connection pool: threads around the machine of machine.hpp.
//
// Borrowers queue until their deadline; a Loan returns its connection by itself. Opening and
// closing happen on a few background threads, never on the thread that borrows. A borrow that finds
// a connection, and its return, take the mutex once each and allocate nothing.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <stop_token>
#include <string>
#include <utility>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/log.hpp>
#include <holdfast/base/metrics.hpp>
#include <holdfast/base/random.hpp>
#include <holdfast/pool/config.hpp>
#include <holdfast/pool/machine.hpp>

namespace holdfast::pool {

class OpenPhases;
class ThreadedPool;  // Machine, connections and threads; lives until the pool and all loans are
                     // gone.

// One physical connection. Its destructor closes it, on a background thread.
class Connection {
public:
    virtual ~Connection() = default;

    // Whether the server still seems to be there. Looks at the socket without a round trip, because
    // it is on the borrower's path.
    [[nodiscard]] virtual bool usable() noexcept = 0;
};

// An opening that failed, with the class that decides how long the pool pauses. Borrowers get a
// copy of it as the cause, so a subclass would lose what it adds.
class OpenError : public Error {
public:
    OpenError(FailureClass failure,
              Code code,
              std::string message,
              std::source_location where = std::source_location::current())
        : Error(code, Outcome::not_applied, std::move(message), where), failure_(failure) {}

    [[nodiscard]] FailureClass failure() const noexcept { return failure_; }

    // The server's SQLSTATE, if a server refused; for the log.
    [[nodiscard]] const std::string& sqlstate() const noexcept { return sqlstate_; }
    void set_sqlstate(std::string sqlstate) { sqlstate_ = std::move(sqlstate); }

private:
    FailureClass failure_;
    std::string sqlstate_;
};

// Opens connections; called from several threads at once.
class Opener {
public:
    virtual ~Opener() = default;

    // Throws OpenError, or another Error, whose code then determines the class. Requires: it
    // returns soon after the deadline has passed or the token has fired, because ~Pool waits for
    // it. It may report which phases it enters.
    [[nodiscard]] virtual std::unique_ptr<Connection> open(Deadline deadline,
                                                           std::stop_token stop,
                                                           OpenPhases& phases) = 0;
};

// A connection that is lent until the loan ends. It may outlive its Pool; the connection is then
// closed where the loan ends.
class Loan {
public:
    Loan(Loan&& other) noexcept
        : threaded_(std::exchange(other.threaded_, nullptr)),
          id_(other.id_),
          connection_(std::exchange(other.connection_, nullptr)),
          bad_(other.bad_) {}
    Loan& operator=(Loan&& other) noexcept;  // What was held before is given back.
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ~Loan() {
        if (threaded_ != nullptr) {
            give_back();
        }
    }

    // Requires: not moved from.
    [[nodiscard]] Connection& operator*() const noexcept { return *connection_; }
    [[nodiscard]] Connection* operator->() const noexcept { return connection_; }

    // It will be closed instead of lent again.
    void mark_bad(Reason reason = Reason::bad) noexcept { bad_ = reason; }

private:
    friend class ThreadedPool;
    Loan(ThreadedPool& threaded, ConnectionId id, Connection& connection) noexcept
        : threaded_(&threaded), id_(id), connection_(&connection) {}
    void give_back() noexcept;  // Requires: not moved from.

    ThreadedPool* threaded_;  // Null: moved from. It lives until its last loan has ended.
    ConnectionId id_;
    Connection* connection_ = nullptr;
    std::optional<Reason> bad_;
};

struct Stats {
    Counts now;
    std::chrono::nanoseconds oldest_age{};  // Zero if nothing is open.
    std::uint64_t lent = 0;                 // Times a connection was handed out.
    std::uint64_t waited = 0;               // Borrowers that had to wait, whatever the result.
    std::uint64_t empty = 0;                // Borrowers that found no connection free.
    std::uint64_t timed_out = 0;  // Refused at their deadline; includes a failed try_acquire.
    std::uint64_t opened = 0;
    std::array<std::uint64_t, failure_classes> open_failures{};
    std::array<std::uint64_t, reasons> closed{};
    int abandoned = 0;  // Loans that were out when stop() ran into its deadline.
};

// The result of the warm-up.
struct WarmUp {
    int open = 0;
    std::uint64_t failures = 0;  // Openings that failed meanwhile; each was tried again.
    std::chrono::nanoseconds elapsed{};
    bool reached = false;  // Whether `warm` connections were open in time.
};

// Safe to share between threads.
class Pool {
public:
    // Starts filling up to `min_ready`, in the background. `name` is the label `db` of the metrics
    // and the name people read in messages. `metrics` may be null.
    // Requires: what is referred to outlives the pool; check(config) accepts it.
    Pool(const Config& config,
         Opener& opener,
         const Clock& clock,
         Metrics* metrics,
         Logger& logger,
         std::string name,
         std::uint64_t seed = secure_seed());
    // Stops without waiting for loans; waits for openings and closings under way.
    ~Pool();
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    // The oldest usable connection; if none is free, waits for one. Throws
    // `deadline` when the wait ran out, `cancelled` when the token fired,
    // `unavailable` after stop(), and with fail_fast the code of the failed opening, which is the
    // cause. The deadline is by the pool's clock.
    [[nodiscard]] Loan acquire(Deadline deadline,
                               const std::stop_token& stop,
                               Lane lane = Lane::normal);

    // A connection that is free now, or nothing; never opens one and never throws because none is
    // free.
    [[nodiscard]] std::optional<Loan> try_acquire();

    // Waits until at least `n` connections are ready or in use; false if the deadline passed, the
    // token fired or the pool was stopped first. It opens nothing: with n > min_ready, borrowers
    // must.
    [[nodiscard]] bool wait_ready(int n, Deadline deadline, const std::stop_token& stop);

    // Waits until `warm` connections are open, `warm_up_max` has passed or the token has fired. The
    // rest is filled in the background. Missing connections are a warning in the log, not an error.
    WarmUp warm_up(const std::stop_token& stop);

    [[nodiscard]] Stats stats() const;

    // The number of connections to close: idle ones now, the others when they are returned. Those
    // being closed count. Replaces the earlier number; 0 cancels it.
    void shed(int connections);

    // Requires: target >= 1. Else invalid_argument.
    void resize(int target);

    // Refuses borrowers, also those that wait; cancels openings; closes idle connections, and the
    // rest when they are returned. Returns when all are closed or at the deadline; a repeat waits
    // again.
    void stop(Deadline deadline);

private:
    std::shared_ptr<ThreadedPool> threaded_;
};

}  // namespace holdfast::pool
