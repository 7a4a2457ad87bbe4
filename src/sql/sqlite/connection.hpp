// One SQLite handle with its prepared statements.
//
// It works for one attempt at a time: the attempt's deadline and stop token end a wait for another
// process's lock, and a statement that runs too long.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "driver.hpp"
#include "sqlite/settings.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace holdfast::sql::sqlite {

struct Counters {
    std::atomic<std::int64_t> commits{0};
    std::atomic<std::int64_t> statements{0};
};

// How a transaction begins, ends and is divided.
enum class Control : std::uint8_t {
    begin_read,
    begin_write,
    commit,
    rollback,
    savepoint,
    release,
    rollback_to_savepoint,
};

enum class Role : std::uint8_t { writer, reader };

// Used by one thread at a time; `interrupt` by any.
class Connection {
public:
    // A writer checks what lies at the path and brings it into the mode that Settings ask for; a
    // reader comes after it.
    Connection(const Settings& settings, Role role, Counters& counters);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    // The deadline and stop token that count from now on. Null: none, and nothing is waited for.
    void serve(const AttemptOptions* attempt) noexcept { attempt_ = attempt; }
    // Throws if the attempt that is served has been cancelled or has no time left.
    void check_served() const;

    // SQLite's result code.
    [[nodiscard]] int step(Control control) noexcept;
    [[nodiscard]] bool in_transaction() const noexcept;
    [[nodiscard]] bool has_deferred_violations() const noexcept;

    // Requires: `call.statement` lives as long as this connection, which keeps it prepared unless
    // it is for once; `call.args` has all arguments but those that `clocks` has.
    // A writing statement is refused if the attempt is read only.
    Result execute(const Call& call, std::span<const std::int64_t> clocks, bool keep_rows);
    void run_script(const std::string& text);
    // True if what is served must not write.
    [[nodiscard]] bool serves_reader() const noexcept {
        return attempt_ != nullptr && attempt_->read_only;
    }

    // The error for a result code that another caller got from this connection.
    [[nodiscard]] DatabaseError error(int result_code,
                                      std::string_view doing,
                                      Outcome outcome = Outcome::not_applied) const;

    // True while a wait for another process's lock goes on.
    [[nodiscard]] bool waits_for_lock() const noexcept {
        return waits_for_lock_.load(std::memory_order_relaxed);
    }
    // Ends whatever is served, now and later: the connection is about to be closed.
    void interrupt() noexcept { interrupted_.store(true, std::memory_order_relaxed); }
    // Moves what is in the log into the database file, as far as readers allow it.
    void checkpoint() noexcept;

private:
    struct Prepared {
        sqlite3_stmt* handle = nullptr;
        bool writes = false;
    };

    void open(const Settings& settings, Role role);
    void configure(const Settings& settings, Role role);
    void pragma(const char* text);
    [[noreturn]] void throw_opening(int code) const;
    void switch_to_wal();
    void prepare_controls();
    void close() noexcept;

    [[nodiscard]] Prepared prepare(const Rendered& statement, unsigned flags) const;
    const Prepared& prepared(const Rendered& statement);
    Result execute(const Prepared& statement,
                   const Call& call,
                   std::span<const std::int64_t> clocks,
                   bool keep_rows);
    void refuse_if_read_only(std::string_view statement) const;
    void bind(sqlite3_stmt* handle, const Call& call, std::span<const std::int64_t> clocks) const;
    void bind_one(sqlite3_stmt* handle, int index, const Param& param, const Call& call) const;
    [[nodiscard]] bool over() const;

    static int on_authorize(
        void* self, int action, const char*, const char*, const char*, const char*);
    static int on_progress(void* self);
    static int on_busy(void* self, int tries);
    bool wait_for_lock(int tries);

    Counters& counters_;
    std::string path_;
    std::optional<std::chrono::milliseconds> busy_timeout_;
    sqlite3* db_ = nullptr;
    std::array<sqlite3_stmt*, 7> controls_{};
    std::unordered_map<const Rendered*, Prepared> prepared_;
    bool controls_allowed_ = false;
    const AttemptOptions* attempt_ = nullptr;
    Steady lock_wanted_since_;
    bool gave_up_ = false;  // The last wait for a lock ended without it.
    std::atomic<bool> waits_for_lock_{false};
    std::atomic<bool> interrupted_{false};
};

}  // namespace holdfast::sql::sqlite
