// One transaction on one connection, in as few round trips as it allows.
//
// Statements are queued in libpq's pipeline. A flush sends them with a Sync behind and reads all
// answers up to it: that is one round trip. BEGIN travels with the first statement and COMMIT with
// the last writes, so a transaction without questions costs one trip.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <vector>

#include "driver.hpp"
#include "postgres/canceller.hpp"
#include "postgres/connection.hpp"

namespace holdfast::sql::postgres {

// Counted by all sessions of a driver.
struct Counters {
    std::atomic<std::int64_t> commits{0};
    std::atomic<std::int64_t> statements{0};
    std::atomic<std::int64_t> round_trips{0};
};

// The server refused a prepared statement, and so applied nothing: repeat without it. Its plan is
// older than a change of schema, or the backend is not the one that prepared it.
struct StaleStatement {
    DatabaseError error;
    bool other_backend;
};

// The connection was dead before it answered anything, and nothing that commits had been sent.
struct DeadOnArrival {
    DatabaseError error;
};

class PgSession final : public Session {
public:
    enum class Mode : std::uint8_t { transaction, autocommit };

    PgSession(Connection& connection,
              const Dialect& dialect,
              const AttemptOptions& options,
              Mode mode,
              Canceller& canceller,
              Counters& counters);
    ~PgSession() override;

    std::size_t send(const Call& call, bool keep_reply) override;
    Result take(std::size_t ticket) override;
    void run_script(const std::string& text) override;
    void notify(std::string_view channel, std::string_view payload) override;
    std::int64_t clock_parameter(ClockReading, std::int64_t offset_us) override {
        return offset_us;
    }
    [[nodiscard]] bool replies_cost() const noexcept override { return true; }
    void check_at_commit(std::size_t ticket) override { checked_.push_back(ticket); }

    // Ends the transaction. Throws the first error of what was queued, or FenceMissed.
    void commit();
    // Ends a failed transaction, if the connection allows it.
    void rollback() noexcept;
    // False if the connection must be given up.
    [[nodiscard]] bool reusable() const noexcept;

private:
    enum class StepKind : std::uint8_t { prepare, control, statement, commit };
    // One queued command, whose answer will come in this order.
    struct Step {
        StepKind kind;
        const Rendered* statement = nullptr;
        Connection::Prepared* prepared = nullptr;
        bool was_ready = false;  // Prepared by an earlier transaction.
        std::size_t ticket = 0;
        bool keep = false;
    };

    // Whether the transaction has a BEGIN and a COMMIT of its own.
    [[nodiscard]] bool in_block() const;
    void begin_if_needed();
    void queue_control(const char* text, StepKind kind);
    void queue_once(const Call& call, std::size_t ticket, bool keep);
    void queue_prepared(const Call& call, std::size_t ticket, bool keep);
    // One round trip, if the caller's time is not over. Throws the first error among the answers.
    void flush();
    void exchange();
    // Whether the caller has stopped or has no time left.
    [[nodiscard]] bool over() const;
    void refuse_if_over() const;
    void write_out();
    void read_answers();
    void read_answer(const Step& step);
    void accept(const Step& step, PGresult* result);
    void reject(const Step& step, const PGresult* result);
    ResultPtr next_result();
    void wait_readable();
    // The deadline passed or the token fired: asks the server to stop, and waits a little for its
    // answer.
    void interrupt(Wait why);
    [[noreturn]] void lost(std::string_view doing);
    void throw_failure();

    Connection& connection_;
    PGconn* raw_;
    const Dialect& dialect_;
    const AttemptOptions& options_;
    const Mode mode_;
    Canceller& canceller_;
    Counters& counters_;
    std::optional<std::stop_callback<std::function<void()>>> on_stop_;

    std::vector<Step> steps_;  // Queued and not yet answered.
    std::vector<std::pair<std::size_t, Result>> replies_;
    std::vector<std::size_t> checked_;
    std::size_t tickets_ = 0;
    Deadline patience_;  // The caller's deadline; once interrupted, the end of the grace.
    Wait interrupted_ = Wait::ready;
    bool begun_ = false;
    bool answered_ = false;     // The server has answered something in this transaction.
    bool commit_sent_ = false;  // From here on a lost connection leaves the outcome unknown.
    bool broken_ = false;
    bool ended_ = false;
    std::optional<DatabaseError> failure_;  // The first error.
    bool stale_ = false;  // The first error is about a prepared statement, not about its work.
    bool other_backend_ = false;
};

}  // namespace holdfast::sql::postgres
