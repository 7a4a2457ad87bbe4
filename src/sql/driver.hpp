// The interface between the engine and a database.
//
// A driver runs one attempt: begin, body, commit. It knows nothing of retries, names or metrics;
// the engine knows nothing of sockets and files.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stop_token>

#include <holdfast/base/clock.hpp>
#include <holdfast/sql/database.hpp>

namespace holdfast::sql {

// One statement with its arguments, ready to be bound. `args` ends with the readings of the clocks
// that the statement asks for.
struct Call {
    const Rendered* statement;
    std::span<const Param> args;
};

struct AttemptOptions {
    Deadline deadline;
    std::stop_token stop;
    bool read_only = false;
    Durability durability = Durability::flushed;
    bool urgent = false;
};

// Refuses text that is not UTF-8 or has a zero byte, as argument `number` of a statement: SQLite
// would store it and PostgreSQL would not. Called by every driver for every text and JSON argument.
void require_text(std::string_view text, const Rendered& statement, int number);

// One transaction in progress. Every method throws DatabaseError; after that only the end follows.
class Session {
public:
    virtual ~Session() = default;

    // Queues (or runs) a statement. The ticket is for `take`; a discarded reply has none, but its
    // error still shows at the next `take` or at commit.
    virtual std::size_t send(const Call& call, bool keep_reply) = 0;
    // Waits for the reply; each ticket once.
    virtual Result take(std::size_t ticket) = 0;
    // Runs text that is not a catalogue statement: a migration's step.
    virtual void run_script(const std::string& text) = 0;
    virtual void notify(std::string_view channel, std::string_view payload) = 0;
    // What a clock's hole needs as its parameter, given the test's offset.
    virtual std::int64_t clock_parameter(ClockReading reading, std::int64_t offset_us) = 0;
    // True if a reply costs a wait, so that checking a fence early is not free.
    [[nodiscard]] virtual bool replies_cost() const noexcept = 0;
    // The reply to `ticket` is checked after the commit that travels with it: if it did not change
    // exactly one row, the attempt ends with FenceMissed instead of success. Requires: it is the
    // transaction's only write, so that a miss has applied nothing, or its row was verified, so
    // that there is no miss.
    virtual void check_at_commit(std::size_t ticket) = 0;
};

// The attempt ended because a fence changed no row.
struct FenceMissed {
    std::size_t ticket;
};

// Safe to share between threads.
class Driver {
public:
    virtual ~Driver() = default;

    [[nodiscard]] virtual const Dialect& dialect() const noexcept = 0;

    // One attempt. The body's own exceptions roll back and come out unchanged. Everything else is a
    // DatabaseError, with the outcome, or FenceMissed.
    virtual void attempt(const AttemptOptions& options,
                         const std::function<void(Session&)>& body) = 0;

    // One statement as its own transaction. `args` must not include the clocks' readings: the
    // driver appends them, with the offset.
    virtual Result run(const AttemptOptions& options,
                       const Call& call,
                       std::int64_t clock_offset_us) = 0;

    [[nodiscard]] virtual std::unique_ptr<Subscription> subscribe(
        std::string_view channel, std::function<void(std::string_view)> wake) = 0;
    [[nodiscard]] virtual PoolStats pool_stats() const = 0;
    [[nodiscard]] virtual DriverStats driver_stats() const = 0;
    virtual void stop(Deadline deadline) = 0;
};

}  // namespace holdfast::sql
