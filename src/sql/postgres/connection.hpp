// One physical connection to a PostgreSQL-speaking server.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <vector>

#include "postgres/codec.hpp"
#include "postgres/libpq.hpp"

#include <holdfast/base/clock.hpp>
#include <holdfast/pool/pool.hpp>
#include <holdfast/sql/error.hpp>
#include <holdfast/sql/source.hpp>
#include <holdfast/sql/statement.hpp>

namespace holdfast::sql::postgres {

struct ResultDeleter {
    void operator()(PGresult* result) const noexcept { libpq().PQclear(result); }
};
using ResultPtr = std::unique_ptr<PGresult, ResultDeleter>;

// Why a wait on the socket ended.
enum class Wait : std::uint8_t { ready, deadline, stopped };

// A descriptor that becomes readable when a stop token fires, for poll(). Reusable.
class StopSignal {
public:
    StopSignal();
    ~StopSignal();
    StopSignal(const StopSignal&) = delete;
    StopSignal& operator=(const StopSignal&) = delete;

    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
    void raise() const noexcept;
    void reset() const noexcept;

private:
    int descriptor_;
};

// Waits until `descriptor` is readable (and writable, if asked for), the deadline passes, or the
// signal is raised.
[[nodiscard]] Wait wait_for_socket(int descriptor,
                                   bool writing,
                                   Deadline deadline,
                                   const StopSignal& signal);

// In pipeline mode from its first transaction on. Used by one thread at a time.
class Connection final : public pool::Connection {
public:
    // Throws DatabaseError with the server's SQLSTATE, or ConnectionLost if no server answered.
    // Hosts should be addresses (Resolver): names are asked for without regard to the deadline.
    [[nodiscard]] static std::unique_ptr<Connection> open(const ConnectParams& params,
                                                          Deadline deadline,
                                                          const std::stop_token& stop,
                                                          pool::OpenPhases& phases,
                                                          std::function<void()> on_close);
    ~Connection() override;

    // Looks at the socket: a server that has closed the connection has said so by now.
    [[nodiscard]] bool usable() noexcept override;

    [[nodiscard]] PGconn* raw() const noexcept { return raw_; }
    [[nodiscard]] const StopSignal& stop_signal() const noexcept { return signal_; }
    [[nodiscard]] Bound& bound() noexcept { return bound_; }

    // Runs one statement by itself, outside of any transaction, and waits for its answer. Throws
    // DatabaseError, or ConnectionLost. Requires: it has had no PgSession yet.
    [[nodiscard]] ResultPtr ask(const std::string& text, Deadline deadline, const Dialect& dialect);

    // Whether one backend serves this connection from its first transaction to its last, so that
    // prepared statements and settings are found again. If not, each transaction brings its own:
    // its statements have no name, and `settings` runs after BEGIN (empty: there are none).
    [[nodiscard]] bool keeps_session() const noexcept { return keeps_session_; }
    [[nodiscard]] const std::string& transaction_settings() const noexcept { return settings_; }
    void lose_session() noexcept { keeps_session_ = false; }
    void set_transaction_settings(std::string settings) { settings_ = std::move(settings); }

    // The server's name for a statement with these argument types, and whether it must be prepared
    // first. `prepared` makes it known once the server has said yes. The name is a digest of the
    // text and the types: whichever client has prepared it, it is this statement.
    struct Prepared {
        std::string name;
        std::vector<Oid> types;
        bool ready = false;
    };
    [[nodiscard]] Prepared& prepared(const Rendered* statement, std::span<const Param> args);
    // From now on statements are prepared again, under other names.
    void forget_statements() noexcept {
        prepared_.clear();
        by_name_.clear();
        ++generation_;
    }

private:
    Connection(PGconn* raw, std::function<void()> on_close);

    PGconn* raw_;
    std::function<void()> on_close_;
    StopSignal signal_;
    Bound bound_;
    std::unordered_map<const Rendered*, std::vector<Prepared*>> prepared_;
    // Owns them. Statements of one text, rendered for different objects, share one.
    std::unordered_map<std::string, Prepared> by_name_;
    int generation_ = 0;
    bool keeps_session_ = true;
    std::string settings_;
};

// The pool's view of a failed opening; the database's error is its cause.
[[nodiscard]] pool::OpenError to_open_error(const DatabaseError& error);

// What the server said. `where` names the statement or the step.
[[nodiscard]] DatabaseError server_error(const PGresult* result,
                                         const Dialect& dialect,
                                         const std::string& where,
                                         bool at_commit);

}  // namespace holdfast::sql::postgres
