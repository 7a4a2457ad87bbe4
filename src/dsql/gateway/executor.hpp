// Runs one client's statements on one backend, and lets others pass.
//
// PostgreSQL locks rows; the service does not. So a transaction runs behind a savepoint that fixes
// its snapshot, and everything it wrote or locked is kept in a log. When another transaction
// would have to wait for it, it is rolled back to that savepoint, unknown to its client: its locks
// are released, its snapshot stays. It is then *detached*. Its next statement replays the log; if
// that fails, a rival has committed first and it is *doomed*: it may go on reading, and fails when
// it commits. Decision 0006 says why.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gateway/cluster.hpp"
#include "gateway/occupancy.hpp"

namespace holdfast::dsql {

// One statement with its arguments, so that it can be run again.
struct Call {
    std::shared_ptr<const Script> script;  // Owns the statement.
    const CheckedStatement* statement = nullptr;
    std::string types = std::string(2, '\0');      // As in Parse: how many, and which.
    std::string arguments = std::string(6, '\0');  // As in Bind: formats, values, result formats.
    bool simple = true;                            // Came as a Query: its rows need a description.

    // An estimate of what it writes.
    [[nodiscard]] std::int64_t size() const {
        return static_cast<std::int64_t>(arguments.size() + (simple ? statement->text.size() : 0));
    }
};

// Statements that leave the rows as they were: they need no turn and no place in the log.
[[nodiscard]] constexpr bool only_reads(Kind kind) noexcept {
    return kind == Kind::read || kind == Kind::show || kind == Kind::copy_out ||
           kind == Kind::empty || kind == Kind::unparsed || kind == Kind::deallocate;
}

// How a statement ended: the answer for the client. Exactly one is not empty.
struct Ending {
    std::string completion;  // CommandComplete or its like, whole.
    std::string error;       // ErrorResponse, whole.

    [[nodiscard]] bool ok() const noexcept { return error.empty(); }
    [[nodiscard]] static Ending done(std::string_view tag);
    [[nodiscard]] static Ending failed(const ErrorResponse& response) {
        return {{}, response.bytes()};
    }
};

// A client's step that shares an exchange with others, or an answer of the gateway in its place
// among theirs.
struct Part {
    char type = 0;               // As in the protocol: P, B, D, E, C.
    std::string bytes{};         // For the backend; none if the gateway answers.
    std::optional<Call> call{};  // Of an E,
    std::int64_t rows = 0;       // and how many it changes at most.
    std::string heard{};         // The answer for the client,
    std::string completion{};    // and, of an E, how it ended.

    // False if more messages must come before the step is answered.
    [[nodiscard]] bool hear(const Message& message);
};

// Used by one session. Whatever changes its transaction needs a Hold, which the session gives up
// while it waits for its client; then others may call make_way().
class Executor {
public:
    using Hold = std::unique_lock<Occupancy>;
    using Sink = std::function<void(const Message&)>;

    // Requires: the backend has logged in as `role`.
    Executor(Cluster& cluster,
             std::unique_ptr<Backend> backend,
             std::string role,
             bool early_abort);

    [[nodiscard]] Hold hold() { return Hold(busy_); }
    [[nodiscard]] Backend& backend() noexcept { return *backend_; }

    [[nodiscard]] bool idle() const noexcept { return state_ == State::idle; }
    [[nodiscard]] bool failed() const noexcept { return state_ == State::failed; }
    // A transaction that the gateway has begun for statements outside of any.
    [[nodiscard]] bool wrapped() const noexcept { return !idle() && wrapped_; }
    [[nodiscard]] bool has_written() const noexcept { return doomed_ || !log_.empty(); }
    [[nodiscard]] char status() const noexcept;  // As in ReadyForQuery.

    // Requires for the three: idle(), or not idle().
    void begin(const Hold& hold, bool read_only, bool wrapped);
    void rollback(const Hold& hold);
    // Rolls back if it fails. Idle afterwards.
    [[nodiscard]] Ending commit(Hold& hold);
    // A wrapped transaction becomes the client's own, by a BEGIN in the middle of a script.
    void unwrap() noexcept { wrapped_ = false; }

    // Runs a statement within the transaction: `bytes` are what the backend must be sent for it.
    // Rows and the like go to `sink`; returns how it ended. A failure fails the transaction.
    [[nodiscard]] Ending execute(Hold& hold,
                                 const Call& call,
                                 std::string_view bytes,
                                 const Sink& sink);
    // Whether a statement may share an exchange with those before it: neither the gateway nor the
    // client needs to know how one ends before the next one runs, and no limit can be exceeded
    // meanwhile. Returns how many rows it changes at most.
    [[nodiscard]] std::optional<std::int64_t> rows_if_shared(const Call& call,
                                                             std::span<const Part> before);
    // Whether COMMIT may follow in the same exchange.
    [[nodiscard]] bool may_commit_with(std::span<const Part> parts);
    // How far a row of parts has got. The one after `done` has ended as `stopped` says; if that is
    // not set either, it was not run, and must be tried by itself.
    struct Progress {
        std::size_t done = 0;
        std::optional<Ending> stopped;
        std::optional<Ending> committed;  // How COMMIT ended, if it was reached.
    };
    // Runs them in one exchange, with COMMIT at the end if `commits`. Requires: the statements
    // among them may share it, and may_commit_with(parts) for COMMIT.
    [[nodiscard]] Progress run_together(Hold& hold, std::span<Part> parts, bool commits);
    // Sends the gateway's own pending statements: the snapshot is taken.
    void settle(const Hold&) { backend_->settle(); }
    // The same outside of any transaction: the statement is a transaction of its own, and ends
    // within the exchange. Requires: idle(), and it needs no commit by the gateway.
    [[nodiscard]] Ending execute_alone(const Hold& hold,
                                       const std::vector<TableName>& tables,
                                       std::string_view bytes,
                                       const Sink& sink);
    // The session's settings that the statement check needs.
    struct Settings {
        std::string search_path;  // The schemas in which a bare name is looked for, an array.
        bool sync_create_index = false;
    };
    [[nodiscard]] Settings settings(const Hold& hold);
    // Messages other than statements: parsing, describing. An error fails an open transaction.
    [[nodiscard]] Ending pass(const Hold& hold, std::string_view bytes, const Sink& sink);
    // COPY ... FROM STDIN, whose data have been collected.
    [[nodiscard]] Ending copy_in(Hold& hold, const Call& call, const std::string& data);
    // Fails an open transaction for a reason of the gateway's own.
    [[nodiscard]] Ending refuse(const Hold& hold, const ErrorResponse& response);

    // The types of a statement's parameters, whether the client named them or not.
    [[nodiscard]] std::string types_of(const Call& call);

    enum class Way : std::uint8_t { free, busy, blocked };
    // Called by other executors that wait for a lock of this one.
    [[nodiscard]] Way make_way();

private:
    enum class State : std::uint8_t { idle, open, failed };
    enum class Company : std::uint8_t { alone, shared };
    // The right to write. It releases the hold first: a waiting executor must be movable meanwhile.
    class Turn {
    public:
        Turn() = default;
        Turn(Executor& executor, Hold& hold) { take(executor, hold, Company::alone); }

        void take(Executor& executor, Hold& hold, Company company) {
            hold.unlock();
            if (company == Company::alone) {
                alone_ = std::unique_lock(executor.cluster_.write_mutex());
            } else {
                shared_ = std::shared_lock(executor.cluster_.write_mutex());
            }
            hold.lock();
        }
        void give_up() {
            alone_ = {};
            shared_ = {};
        }
        [[nodiscard]] bool taken() const { return alone_.owns_lock() || shared_.owns_lock(); }

    private:
        std::unique_lock<FairSharedMutex> alone_;
        std::shared_lock<FairSharedMutex> shared_;
    };

    // What is sent in one exchange, and what has come back.
    struct Together {
        std::string bytes;
        bool commits = false;
        int touches = 0;
        int touched = 0;
        std::size_t answered = 0;  // Parts.
    };

    [[nodiscard]] std::optional<ErrorResponse> objection(const CheckedStatement& statement);
    [[nodiscard]] std::optional<ErrorResponse> objection_to_size(const Call& call);
    [[nodiscard]] std::optional<ErrorResponse> objection_to_mixture(
        const CheckedStatement& statement);
    [[nodiscard]] Ending run_in_turn(const Call& call, std::string_view bytes, const Sink& sink);
    [[nodiscard]] Ending completed(const Call& call, const Answer& answer, std::int64_t rows);
    [[nodiscard]] Ending refused(const Call& call, const Answer& answer, const Sink& sink);
    [[nodiscard]] Ending doomed(const Call& call, const Sink& sink);
    [[nodiscard]] bool depends_on_own_writes(const CheckedStatement& statement) const;
    [[nodiscard]] Ending told_early();
    [[nodiscard]] Ending answer_as_run(const Call& call, const Sink& sink);
    // Work of the gateway for the client, because an ordinary role cannot do it.
    [[nodiscard]] std::optional<Cluster::Work> work_of(const CheckedStatement& statement) const;
    [[nodiscard]] Ending administer(const Hold& hold,
                                    const CheckedStatement& statement,
                                    Cluster::Work work);
    [[nodiscard]] Answer run_own(std::string text);
    [[nodiscard]] Ending order_job(const Call& call, const Sink& sink, std::string_view failure);
    [[nodiscard]] Ending leave_invalid_index(const Call& call, const Sink& sink);
    [[nodiscard]] Ending failed_with(const Answer& answer);
    [[nodiscard]] Ending conflict_at_commit();
    [[nodiscard]] Ending too_large(Hold& hold);
    [[nodiscard]] Ending schema_conflict_at_commit(const Hold& hold);
    [[nodiscard]] Ending ended(const Answer& answer);
    [[nodiscard]] std::chrono::seconds age() const;
    [[nodiscard]] bool knows_schema_of(std::span<const Part> parts, bool commits);
    // Empty if this executor has given way, and has to try again.
    [[nodiscard]] std::optional<Progress> try_together(Hold& hold,
                                                       std::span<Part> parts,
                                                       bool commits,
                                                       Company company);
    [[nodiscard]] std::optional<Progress> conclude(Hold& hold,
                                                   Turn& turn,
                                                   std::span<Part> parts,
                                                   const Together& together,
                                                   const Answer& answer);
    [[nodiscard]] std::optional<Together> gather(std::span<const Part> parts, bool commits);
    [[nodiscard]] Progress run_in_failed(Hold& hold, std::span<Part> parts);
    [[nodiscard]] std::optional<Progress> log_statements(std::span<const Part> parts);
    void give_way(std::span<Part> parts, std::size_t answered);
    [[nodiscard]] Ending stopped(Part& part, const Answer& answer);

    [[nodiscard]] Answer exchange(std::string_view bytes, const Sink& sink);
    [[nodiscard]] Answer converse(std::string_view bytes, const Sink& sink);
    [[nodiscard]] std::function<void()> watch();
    void replay();
    [[nodiscard]] std::optional<int> append_touches(std::string& bytes,
                                                    std::span<const Part> parts);
    [[nodiscard]] std::optional<int> append_touches_of(std::string& bytes, const Call& call);
    void rollback_to_snapshot();
    void end();
    bool let_blockers_make_way();
    [[nodiscard]] bool conflicts(const ServerError& error);
    [[nodiscard]] static std::optional<std::string_view> key_values(const ServerError& error);
    [[nodiscard]] bool row_is_visible(const ServerError& error);
    [[nodiscard]] bool parent_is_visible(const ServerError& error);
    [[nodiscard]] bool has_row(std::string_view table,
                               std::string_view columns,
                               std::string_view values);
    [[nodiscard]] std::int64_t rows_changed_so_far();
    static void append_call(std::string& bytes,
                            const Call& call,
                            std::string_view text,
                            bool describe);
    [[nodiscard]] static std::string bytes_of(const Call& call,
                                              std::string_view text,
                                              bool describe);

    // What writes the rows that a statement has only locked, prepared under these names.
    struct Touches {
        std::shared_ptr<const Script> script;  // Keeps the statement, by which they are found.
        std::vector<std::string> names;
    };
    static constexpr std::size_t touches_max = 1'000;
    [[nodiscard]] const Touches* touches_of(const Call& call);
    void forget_touches(std::string& bytes);

    Cluster& cluster_;
    std::unique_ptr<Backend> backend_;
    const std::string role_;
    const bool early_abort_;
    Occupancy busy_;
    std::uint64_t schema_seen_;
    std::map<std::pair<const CheckedStatement*, std::string>, Touches> touches_;
    std::uint64_t touches_made_ = 0;

    // Of the transaction.
    State state_ = State::idle;
    bool wrapped_ = false;
    bool detached_ = false;
    bool doomed_ = false;
    bool movable_ = true;
    bool cancelled_ = false;  // The own statement was cancelled: a blocker cannot make way,
    bool yielded_ = false;    // or waits for this executor in turn.
    bool may_yield_ = false;
    int ddl_ = 0;
    bool dml_ = false;
    std::int64_t rows_ = 0;
    std::int64_t bytes_ = 0;
    Steady began_{};
    std::uint64_t schema_at_begin_ = 0;
    std::vector<Call> log_;
    std::vector<TableName> tables_;             // Touched.
    std::vector<TableName> changed_;            // By DDL.
    std::vector<Cluster::Work> before_commit_;  // Rehearsed; done when the transaction commits.
    std::vector<std::string> after_commit_;     // The gateway's statements, for its own role.
};

}  // namespace holdfast::dsql
