// Runs one client's statements on one backend, and lets others pass.
//
// PostgreSQL locks rows; the service does not. So a transaction runs behind a savepoint that fixes
// its snapshot, and everything it wrote or locked is kept in a log. When somebody else would have
// to wait for it, it is rolled back to that savepoint, without its client's knowledge: its locks
// go, its snapshot stays. It is then *detached*. When it speaks again its log is replayed; if that
// fails somebody else has committed first and it is *doomed*: it may go on reading, and fails when
// it commits. Decision 0006 tells why.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster.hpp"
#include "occupancy.hpp"

namespace holdfast::dsql {

// One statement with its arguments, so that it can be run again.
struct Call {
    std::shared_ptr<const Script> script;  // Owns the statement.
    const Judged* statement = nullptr;
    std::string types = std::string(2, '\0');      // As in Parse: how many, and which.
    std::string arguments = std::string(6, '\0');  // As in Bind: formats, values, result formats.
    bool simple = true;                            // Came as a Query: its rows need a description.
};

// How a statement ended: what the client gets to hear. Exactly one is not empty.
struct Ending {
    std::string completion;  // CommandComplete or its like, whole.
    std::string error;       // ErrorResponse, whole.

    [[nodiscard]] bool ok() const noexcept { return error.empty(); }
    [[nodiscard]] static Ending done(std::string_view tag);
    [[nodiscard]] static Ending failed(const Trouble& trouble) { return {{}, trouble.bytes()}; }
};

// Used by one session. Whatever changes its transaction needs a Hold, which the session gives up
// while it waits for its client; then others may call make_way().
class Executor {
public:
    using Hold = std::unique_lock<Occupancy>;
    using Sink = std::function<void(const Message&)>;

    Executor(Cluster& cluster, std::unique_ptr<Backend> backend, bool early_abort);

    [[nodiscard]] Hold hold() { return Hold(busy_); }
    [[nodiscard]] Backend& backend() noexcept { return *backend_; }

    [[nodiscard]] bool idle() const noexcept { return state_ == State::idle; }
    [[nodiscard]] bool failed() const noexcept { return state_ == State::failed; }
    // A transaction that the gateway has begun for statements outside of any.
    [[nodiscard]] bool wrapped() const noexcept { return !idle() && wrapped_; }
    [[nodiscard]] bool has_written() const noexcept { return doomed_ || !log_.empty(); }
    [[nodiscard]] char status() const noexcept;  // As ReadyForQuery tells it.

    // Requires for the three: idle(), or not idle().
    void begin(const Hold& hold, bool read_only, bool wrapped);
    void rollback(const Hold& hold);
    // Rolls back if it fails. Idle afterwards.
    [[nodiscard]] Ending commit(Hold& hold);
    // A wrapped transaction becomes the client's own, by a BEGIN in the midst of a script.
    void unwrap() noexcept { wrapped_ = false; }

    // Runs a statement within the transaction: `bytes` are what the backend must be sent for it.
    // Rows and the like go to `sink`, the end comes back. A failure fails the transaction.
    [[nodiscard]] Ending execute(Hold& hold,
                                 const Call& call,
                                 std::string_view bytes,
                                 const Sink& sink);
    // The same outside of any transaction: the statement is a transaction of its own, and ends
    // within the exchange. Requires: idle(), and nothing about it needs a commit of ours.
    [[nodiscard]] Ending execute_alone(const Hold& hold,
                                       const std::vector<TableName>& tables,
                                       std::string_view bytes,
                                       const Sink& sink);
    // What is no statement: parsing, describing. An error fails an open transaction.
    [[nodiscard]] Ending pass(const Hold& hold, std::string_view bytes, const Sink& sink);
    // COPY ... FROM STDIN, whose data have been collected.
    [[nodiscard]] Ending copy_in(Hold& hold, const Call& call, const std::string& data);
    // Fails an open transaction for a reason of the gateway's own.
    [[nodiscard]] Ending refuse(const Hold& hold, const Trouble& trouble);

    // The types of a statement's parameters, whether the client named them or not.
    [[nodiscard]] std::string types_of(const Call& call);

    enum class Way : std::uint8_t { free, busy, blocked };
    // For others, who wait for a lock of ours.
    [[nodiscard]] Way make_way();

private:
    enum class State : std::uint8_t { idle, open, failed };
    // One writer at a time. The order matters: whoever waits for its turn must be movable
    // meanwhile.
    class Turn {
    public:
        Turn(Executor& executor, Hold& hold) : lock_(executor.cluster_.writing(), std::defer_lock) {
            hold.unlock();
            lock_.lock();
            hold.lock();
        }
        void give_up() { lock_.unlock(); }

    private:
        std::unique_lock<std::mutex> lock_;
    };

    [[nodiscard]] std::optional<Trouble> objection(const Judged& statement);
    [[nodiscard]] std::optional<Trouble> objection_to_size(const Call& call);
    [[nodiscard]] std::int64_t stored_size(std::string_view value);
    [[nodiscard]] std::optional<Trouble> objection_to_mixture(const Judged& statement);
    [[nodiscard]] Ending run_in_turn(const Call& call, std::string_view bytes, const Sink& sink);
    [[nodiscard]] Ending completed(const Call& call, const Answer& answer, std::int64_t rows);
    [[nodiscard]] Ending refused(const Call& call, const Answer& answer, const Sink& sink);
    [[nodiscard]] Ending doomed(const Call& call, const Sink& sink);
    [[nodiscard]] bool depends_on_own_writes(const Judged& statement) const;
    [[nodiscard]] Ending told_early();
    [[nodiscard]] Ending answer_as_run(const Call& call, const Sink& sink);
    [[nodiscard]] Answer run_own(std::string text);
    [[nodiscard]] Ending order_job(const Call& call, const Sink& sink, std::string_view failure);
    [[nodiscard]] Ending leave_invalid_index(const Call& call, const Sink& sink);
    [[nodiscard]] Ending failed_with(const Answer& answer);
    [[nodiscard]] Ending conflict_at_commit();
    [[nodiscard]] std::optional<Ending> prepare_commit();
    [[nodiscard]] Ending commit_plain();

    [[nodiscard]] Answer exchange(std::string_view bytes, const Sink& sink);
    void replay();
    void touch_locked_rows();
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
    [[nodiscard]] const std::string& known_types_of(const Call& call);

    struct KnownTypes {
        std::shared_ptr<const Script> script;  // Keeps the statement, by which they are found.
        std::string types;
    };
    static constexpr std::size_t known_types_max = 1'000;

    Cluster& cluster_;
    std::unique_ptr<Backend> backend_;
    const bool early_abort_;
    Occupancy busy_;
    std::uint64_t schema_seen_;
    std::map<std::pair<const Judged*, std::string>, KnownTypes> known_types_;

    // Of the transaction.
    State state_ = State::idle;
    bool wrapped_ = false;
    bool detached_ = false;
    bool doomed_ = false;
    bool movable_ = true;
    bool cancelled_ = false;  // We have cancelled our own statement: somebody cannot make way.
    int ddl_ = 0;
    bool dml_ = false;
    std::int64_t rows_ = 0;
    std::int64_t bytes_ = 0;
    Steady began_{};
    std::uint64_t schema_at_begin_ = 0;
    std::vector<Call> log_;
    std::vector<TableName> tables_;   // Touched.
    std::vector<TableName> changed_;  // By DDL.
};

}  // namespace holdfast::dsql
