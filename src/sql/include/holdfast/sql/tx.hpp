// One transaction, while its body runs.
//
// A body may run more than once and, on SQLite, on another thread than its caller's; it must have
// no effect outside the transaction. Statements are sent together where the database allows it:
// `exec` is queued and its errors show at the next answer or at commit, as the error of that
// statement.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/sql/dialect.hpp>
#include <holdfast/sql/error.hpp>
#include <holdfast/sql/statement.hpp>
#include <holdfast/sql/value.hpp>

namespace holdfast::sql {

class Engine;
class Session;
class Tx;

// A query that has been queued. `rows` waits for the answer, once.
class Answer {
public:
    [[nodiscard]] Rows rows();

private:
    friend class Tx;
    Answer(Session& session, std::size_t ticket) noexcept : session_(&session), ticket_(ticket) {}
    Session* session_;
    std::size_t ticket_;
};

// A read of one row that locks it, queued by `Tx::ask_locked`. Its leading columns are the row's
// tokens.
class LockedRow {
public:
    // The row, or none if it does not exist. The first call waits for the answer.
    [[nodiscard]] const Rows& rows();
    // Checks that the row holds `tokens`; else throws ConditionFailed. Returns the guard for the
    // writes of this row, which count as verified from here on: see `Tx::fenced`.
    Guard verify(std::vector<Owned> tokens);

private:
    friend class Tx;
    LockedRow(Tx& tx, std::size_t ticket, std::string what, std::vector<Owned> key) noexcept
        : tx_(&tx), ticket_(ticket), what_(std::move(what)), key_(std::move(key)) {}

    Tx* tx_;
    std::size_t ticket_;
    std::string what_;
    std::vector<Owned> key_;
    std::optional<Rows> rows_;
};

// A write under a guard that has been queued. `held` waits for the answer, once: false if the guard
// is lost, and then the transaction goes on. A guard whose answer is not read is checked at the
// end, and then a lost one forbids the commit.
class FenceAnswer {
public:
    [[nodiscard]] bool held();

private:
    friend class Tx;
    FenceAnswer(Tx& tx, std::size_t ticket) noexcept : tx_(&tx), ticket_(ticket) {}
    Tx* tx_;
    std::size_t ticket_;
};

// Lent to the body; not safe to share between threads, and useless after the body returns.
class Tx {
public:
    Tx(Engine& engine, Session& session, bool read_only) noexcept
        : engine_(engine), session_(session), read_only_(read_only) {}
    Tx(const Tx&) = delete;
    Tx& operator=(const Tx&) = delete;

    // Queues a statement whose result is not needed.
    template <class... A>
    void exec(const Statement& statement, const A&... args) {
        const std::array<Param, sizeof...(A)> params{Param(args)...};
        (void)send(statement, params, Reply::discarded);
    }
    // The same with as many arguments as there are, for statements of many rows.
    void exec(const Statement& statement, std::span<const Param> args) {
        (void)send(statement, args, Reply::discarded);
    }
    // Runs a statement and says how many rows it changed.
    template <class... A>
    [[nodiscard]] std::int64_t count(const Statement& statement, const A&... args) {
        const std::array<Param, sizeof...(A)> params{Param(args)...};
        return wait_count(send(statement, params, Reply::kept));
    }
    template <class... A>
    [[nodiscard]] Rows query(const Statement& statement, const A&... args) {
        return ask(statement, args...).rows();
    }
    // Queues a query, so that several share one round trip.
    template <class... A>
    [[nodiscard]] Answer ask(const Statement& statement, const A&... args) {
        const std::array<Param, sizeof...(A)> params{Param(args)...};
        return Answer(session_, send(statement, params, Reply::kept));
    }

    // A write under a guard: the transaction commits only if it changed exactly one row. Else
    // everything is rolled back and ConditionFailed says what was expected and what was found.
    // Under a guard that this transaction has verified, the row is locked and the check travels
    // with the commit. Another number of rows is then a defect of the statement, not a lost guard,
    // and the process stops. This holds for all three forms.
    template <class... A>
    void fenced(const Guard& guard, const FencedStatement& statement, const A&... args) {
        const std::array<Param, sizeof...(A)> params{Param(args)...};
        send_fenced(guard, statement, params);
    }
    // The same, as an answer: false if the guard is lost, and then the transaction goes on.
    template <class... A>
    [[nodiscard]] bool try_fenced(const Guard& guard,
                                  const FencedStatement& statement,
                                  const A&... args) {
        const std::array<Param, sizeof...(A)> params{Param(args)...};
        return wait_fenced(guard, statement, params);
    }
    // The same, queued, so that several share one round trip. Once `held` was asked, the row is
    // locked and checked: what the body writes after that may travel with the commit.
    template <class... A>
    [[nodiscard]] FenceAnswer ask_fenced(const Guard& guard,
                                         const FencedStatement& statement,
                                         const A&... args) {
        const std::array<Param, sizeof...(A)> params{Param(args)...};
        return FenceAnswer(*this, queue_fenced(guard, statement, params));
    }
    // Reads the guard's tokens with `locked_read` (a SELECT of the tokens by the key, with
    // {for_update}) and throws ConditionFailed unless they are as expected. Writes under the same
    // guard then need no round trip of their own to be checked: the row is locked.
    void verify(const Guard& guard, const Statement& locked_read);
    // The same in two steps, so that several share one round trip and the body can see the row
    // before it decides. `what` and `key` are those of the guard.
    [[nodiscard]] LockedRow ask_locked(std::string what,
                                       std::vector<Owned> key,
                                       const Statement& locked_read);

    // Wakes the waiters of `channel` once this transaction has committed. A hint: it can be
    // lost, and some databases have none, so a waiter also looks for itself from time to time.
    void notify(std::string_view channel, std::string_view payload = {});

    [[nodiscard]] const Dialect& dialect() const noexcept;
    // The database's clock, by a round trip.
    [[nodiscard]] Timestamp now();

private:
    friend class Engine;
    friend class FenceAnswer;
    friend class LockedRow;
    friend class SchemaSteps;

    enum class Reply : std::uint8_t { discarded, kept };
    struct Fence {
        std::size_t ticket;
        Guard guard;
        const FencedStatement* statement;
        bool verified;  // Its row was locked and checked by this transaction.
    };

    std::size_t send(const Statement& statement, std::span<const Param> args, Reply reply);
    std::int64_t clock_offset_us();
    std::int64_t wait_count(std::size_t ticket);
    void send_fenced(const Guard& guard,
                     const FencedStatement& statement,
                     std::span<const Param> args);
    bool wait_fenced(const Guard& guard,
                     const FencedStatement& statement,
                     std::span<const Param> args);
    std::size_t queue_fenced(const Guard& guard,
                             const FencedStatement& statement,
                             std::span<const Param> args);
    bool take_fenced(std::size_t ticket);
    Fence send_guarded(const Guard& guard,
                       const FencedStatement& statement,
                       std::span<const Param> args);
    [[nodiscard]] bool is_verified(const Guard& guard) const noexcept;
    void add_verified(const Guard& guard, const Rows& rows);
    // Whether the guard held. Stops the process if `changed` shows a defective statement.
    [[nodiscard]] static bool held(std::int64_t changed, const Fence& fence);
    // From here on the transaction cannot commit, even if the body swallows the exception.
    [[noreturn]] void lose(const Guard& guard, std::string found);
    void require_held(std::int64_t changed, const Fence& fence);
    // After the body: checks the fences, so that a commit may follow. Returns those whose check can
    // travel with the commit.
    std::vector<Fence> settle();

    Engine& engine_;
    Session& session_;
    bool read_only_;
    std::vector<Fence> pending_;
    std::vector<Guard> verified_;
    std::optional<ConditionFailed> lost_;
    std::size_t writes_ = 0;
    std::optional<std::int64_t> clock_offset_us_;  // The test's, see DatabaseOptions.
};

}  // namespace holdfast::sql
