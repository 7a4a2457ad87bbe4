#include "sqlite/connection.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <thread>
#include <utility>

#include "sqlite/gathered_log.hpp"
#include "sqlite/sqlite_errors.hpp"
#include <fmt/core.h>
#include <sqlite3.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/random.hpp>

namespace holdfast::sql::sqlite {
namespace {

// Far above any catalogue. Beyond it everything is prepared anew.
constexpr std::size_t prepared_max = 4096;

// Two tries for another process's lock are this far apart. It is held for some hundred
// microseconds.
constexpr std::uint64_t lock_pause_us_min = 50;
constexpr std::uint64_t lock_pause_us_max = 500;

// Ends a statement's run, whichever way it is left. What it had bound is lent and must not be
// looked at again; every argument is bound anew before the next run.
class Reset {
public:
    explicit Reset(sqlite3_stmt* handle) noexcept : handle_(handle) {}
    ~Reset() { sqlite3_reset(handle_); }
    Reset(const Reset&) = delete;
    Reset& operator=(const Reset&) = delete;

private:
    sqlite3_stmt* handle_;
};

Cell read_cell(sqlite3_stmt* handle, int column) {
    switch (sqlite3_column_type(handle, column)) {
        case SQLITE_INTEGER:
            return sqlite3_column_int64(handle, column);
        case SQLITE_FLOAT:
            return sqlite3_column_double(handle, column);
        case SQLITE_TEXT: {
            const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(handle, column));
            if (text == nullptr) {
                throw std::bad_alloc();
            }
            return std::string(text,
                               static_cast<std::size_t>(sqlite3_column_bytes(handle, column)));
        }
        case SQLITE_BLOB: {
            const auto* bytes = static_cast<const std::byte*>(sqlite3_column_blob(handle, column));
            const auto size = static_cast<std::size_t>(sqlite3_column_bytes(handle, column));
            if (bytes == nullptr && size > 0) {
                throw std::bad_alloc();
            }
            return size == 0 ? Bytes{} : Bytes(bytes, bytes + size);
        }
        default:
            return std::monostate{};
    }
}

std::string quoted(const Rendered& statement) {
    return fmt::format("statement '{}'", statement.name);
}

}  // namespace

bool Connection::over() const {
    return attempt_ != nullptr && (attempt_->stop.stop_requested() || attempt_->deadline.passed() ||
                                   interrupted_.load(std::memory_order_relaxed));
}

void Connection::check_served() const {
    if (over()) {
        throw error(SQLITE_INTERRUPT, "the transaction");
    }
}

int Connection::step(Control control) noexcept {
    sqlite3_stmt* handle = controls_[static_cast<std::size_t>(control)];
    std::optional<GatherFrames> gather;
    if (control == Control::commit) {
        gather.emplace(db_);
    }
    controls_allowed_ = true;  // SQLite may have to prepare it anew.
    sqlite3_step(handle);
    const int code = sqlite3_reset(handle);
    controls_allowed_ = false;
    waits_for_lock_.store(false, std::memory_order_relaxed);
    return code;
}

bool Connection::in_transaction() const noexcept {
    return sqlite3_get_autocommit(db_) == 0;
}

bool Connection::has_deferred_violations() const noexcept {
    int current = 0;
    int highest = 0;
    sqlite3_db_status(db_, SQLITE_DBSTATUS_DEFERRED_FKS, &current, &highest, 0);
    return current != 0;
}

Result Connection::execute(const Call& call, std::span<const std::int64_t> clocks, bool keep_rows) {
    if (!call.statement->once) {
        return execute(prepared(*call.statement), call, clocks, keep_rows);
    }
    const Prepared statement = prepare(*call.statement, 0);
    const std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> owner(statement.handle,
                                                                           &sqlite3_finalize);
    return execute(statement, call, clocks, keep_rows);
}

Result Connection::execute(const Prepared& statement,
                           const Call& call,
                           std::span<const std::int64_t> clocks,
                           bool keep_rows) {
    if (statement.writes) {
        refuse_if_read_only(call.statement->name);
    }
    sqlite3_stmt* handle = statement.handle;
    const Reset reset(handle);
    bind(handle, call, clocks);
    counters_.statements.fetch_add(1, std::memory_order_relaxed);

    const std::int64_t changes_before = sqlite3_total_changes64(db_);
    std::vector<Cell> cells;
    std::size_t rows = 0;
    int code = sqlite3_step(handle);
    const int columns = sqlite3_column_count(handle);
    for (; code == SQLITE_ROW; code = sqlite3_step(handle)) {
        for (int column = 0; keep_rows && column < columns; ++column) {
            cells.push_back(read_cell(handle, column));
        }
        ++rows;
    }
    if (code != SQLITE_DONE) {
        throw error(code, quoted(*call.statement));
    }
    Result result;
    if (keep_rows) {
        result.rows = Rows(std::move(cells), static_cast<std::size_t>(columns), rows);
    }
    // SQLite's count stays what the last write made it.
    if (statement.writes && sqlite3_total_changes64(db_) != changes_before) {
        result.changed = sqlite3_changes64(db_);
    }
    return result;
}

void Connection::refuse_if_read_only(std::string_view statement) const {
    if (serves_reader()) {
        throw InvalidArgument(fmt::format(
            "statement '{}' writes, but its transaction is read only; drop read_only", statement));
    }
}

void Connection::run_script(const std::string& text) {
    refuse_if_read_only("script");
    const char* rest = text.c_str();
    const char* const end = rest + text.size();
    while (rest != end) {
        sqlite3_stmt* handle = nullptr;
        int code = sqlite3_prepare_v2(db_, rest, static_cast<int>(end - rest), &handle, &rest);
        if (code == SQLITE_OK && handle != nullptr) {
            counters_.statements.fetch_add(1, std::memory_order_relaxed);
            while (sqlite3_step(handle) == SQLITE_ROW) {
            }
            code = sqlite3_finalize(handle);  // Of the last step, too.
        }
        if (code != SQLITE_OK) {
            throw error(code, "a step of a script");
        }
    }
}

const Connection::Prepared& Connection::prepared(const Rendered& statement) {
    if (const auto known = prepared_.find(&statement); known != prepared_.end()) {
        return known->second;
    }
    if (prepared_.size() >= prepared_max) {
        for (const auto& [ignored, old] : prepared_) {
            sqlite3_finalize(old.handle);
        }
        prepared_.clear();
    }
    return prepared_.emplace(&statement, prepare(statement, SQLITE_PREPARE_PERSISTENT))
        .first->second;
}

Connection::Prepared Connection::prepare(const Rendered& statement, unsigned flags) const {
    Prepared fresh;
    const int code = sqlite3_prepare_v3(db_,
                                        statement.text.c_str(),
                                        static_cast<int>(statement.text.size()),
                                        flags,
                                        &fresh.handle,
                                        nullptr);
    if (code != SQLITE_OK || fresh.handle == nullptr) {
        if (code != SQLITE_ERROR && code != SQLITE_OK) {
            throw error(code, quoted(statement));
        }
        throw DatabaseError(SqlState{"42601"},
                            Outcome::not_applied,
                            fmt::format("{} cannot be prepared: {}",
                                        quoted(statement),
                                        code == SQLITE_OK ? "it is empty" : sqlite3_errmsg(db_)));
    }
    fresh.writes = sqlite3_stmt_readonly(fresh.handle) == 0;
    return fresh;
}

void Connection::bind(sqlite3_stmt* handle,
                      const Call& call,
                      std::span<const std::int64_t> clocks) const {
    int index = 0;
    for (const Param& param : call.args) {
        bind_one(handle, ++index, param, call);
    }
    for (const std::int64_t clock : clocks) {
        sqlite3_bind_int64(handle, ++index, clock);
    }
    HOLDFAST_ASSERT(index == sqlite3_bind_parameter_count(handle));
}

void Connection::bind_one(sqlite3_stmt* handle,
                          int index,
                          const Param& param,
                          const Call& call) const {
    int code = SQLITE_OK;
    const std::string_view view = param.view();
    // A null pointer would bind NULL, which is not the same as nothing of something.
    const char* const data = view.empty() ? "" : view.data();
    if (param.is_null()) {
        code = sqlite3_bind_null(handle, index);
    } else {
        switch (param.kind()) {
            case Kind::int64:
            case Kind::boolean:
            case Kind::timestamp:
                code = sqlite3_bind_int64(handle, index, param.number());
                break;
            case Kind::real:
                if (std::isnan(param.real())) {  // SQLite would store NULL instead.
                    throw InvalidArgument(
                        fmt::format("argument {} of {} is not a number, which SQLite cannot store",
                                    index,
                                    quoted(*call.statement)));
                }
                code = sqlite3_bind_double(handle, index, param.real());
                break;
            case Kind::text:
            case Kind::json:
                require_text(view, *call.statement, index);
                code = sqlite3_bind_text64(
                    handle, index, data, view.size(), SQLITE_STATIC, SQLITE_UTF8);
                break;
            case Kind::bytes:
                code = sqlite3_bind_blob64(handle, index, data, view.size(), SQLITE_STATIC);
                break;
            case Kind::uuid:
                code = sqlite3_bind_blob64(handle,
                                           index,
                                           param.uuid().bytes.data(),
                                           param.uuid().bytes.size(),
                                           SQLITE_STATIC);
                break;
        }
    }
    if (code != SQLITE_OK) {
        throw error(code, fmt::format("argument {} of {}", index, quoted(*call.statement)));
    }
}

DatabaseError Connection::error(int result_code, std::string_view doing, Outcome outcome) const {
    const int primary = result_code & 0xff;
    const bool gave_up = primary == SQLITE_INTERRUPT || (result_code == SQLITE_BUSY && gave_up_);
    if (gave_up && attempt_ != nullptr && attempt_->stop.stop_requested()) {
        return {ErrorClass::cancelled,
                SqlState{"57014"},
                outcome,
                fmt::format("{} was cancelled by its caller", doing)};
    }
    if (primary == SQLITE_INTERRUPT && attempt_ != nullptr && attempt_->deadline.passed()) {
        return {ErrorClass::deadline,
                SqlState{"57014"},
                outcome,
                fmt::format("{} did not end by its deadline; give it a later one", doing)};
    }
    if (primary == SQLITE_INTERRUPT) {
        return {SqlState{"57P01"},
                outcome,
                fmt::format("{} was interrupted, because the database is being closed", doing)};
    }
    if (gave_up) {
        return {SqlState{"55P03"},
                outcome,
                fmt::format("{} gave up, because another process holds the lock of '{}'; try "
                            "again later",
                            doing,
                            path_)};
    }
    return {
        sql_state(result_code), outcome, fmt::format("{} failed: {}", doing, sqlite3_errmsg(db_))};
}

void Connection::checkpoint() noexcept {
    sqlite3_wal_checkpoint_v2(db_, "main", SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
}

// A body's own COMMIT would commit the work of other bodies, which are then told otherwise.
int Connection::on_authorize(
    void* self, int action, const char*, const char*, const char*, const char*) {
    const bool control = action == SQLITE_TRANSACTION || action == SQLITE_SAVEPOINT;
    return control && !static_cast<const Connection*>(self)->controls_allowed_ ? SQLITE_DENY
                                                                               : SQLITE_OK;
}

int Connection::on_progress(void* self) {
    return static_cast<const Connection*>(self)->over() ? 1 : 0;
}

int Connection::on_busy(void* self, int tries) {
    auto& connection = *static_cast<Connection*>(self);
    connection.gave_up_ = !connection.wait_for_lock(tries);
    return connection.gave_up_ ? 0 : 1;
}

bool Connection::wait_for_lock(int tries) {
    if (attempt_ == nullptr) {
        return false;
    }
    const Steady now = std::chrono::steady_clock::now();
    if (tries == 0) {
        // A snapshot that grew old while the lock was taken. It is released.
        lock_wanted_since_ = now;
        waits_for_lock_.store(true, std::memory_order_relaxed);
        return !over();
    }
    Steady end = attempt_->deadline.when();
    if (busy_timeout_) {
        end = std::min(end, lock_wanted_since_ + *busy_timeout_);
    }
    if (now >= end || over()) {
        return false;
    }
    const auto pause =
        lock_pause_us_min + thread_random().below(lock_pause_us_max - lock_pause_us_min);
    const Steady until = now + std::chrono::microseconds{pause};
    return system_clock().sleep_until(std::min(until, end), attempt_->stop);
}

}  // namespace holdfast::sql::sqlite
