#include "sqlite/readers.hpp"

#include <fmt/core.h>
#include <sqlite3.h>

#include <holdfast/base/assert.hpp>

namespace holdfast::sql::sqlite {

// A reader in use. Its transaction, if one began, ends here.
class Readers::Loan {
public:
    Loan(Readers& readers, const AttemptOptions& options)
        : readers_(readers), reader_(readers.lend(options)) {
        reader_.connection.serve(&options);
    }
    ~Loan() {
        if (reader_.connection.in_transaction()) {
            static_cast<void>(reader_.connection.step(Control::rollback));
        }
        reader_.connection.serve(nullptr);
        readers_.give_back(reader_);
    }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

    Connection& connection() noexcept { return reader_.connection; }
    SqliteSession& session() noexcept { return reader_.session; }

private:
    Readers& readers_;
    Reader& reader_;
};

Readers::Readers(const Settings& settings, DatabaseClock& clock, Counters& counters)
    : settings_(settings), clock_(clock), counters_(counters) {
    ready_.reserve(connections_max);
}

void Readers::attempt(const AttemptOptions& options, const std::function<void(Session&)>& body) {
    Loan loan(*this, options);
    loan.connection().check_served();
    if (const int code = loan.connection().step(Control::begin_read); code != SQLITE_OK) {
        throw loan.connection().error(code, "the beginning of a transaction");
    }
    loan.session().start();
    body(loan.session());
    loan.session().settle();
}

Readers::Reader& Readers::lend(const AttemptOptions& options) {
    std::unique_lock lock(mutex_);
    const auto open = [this] { return static_cast<int>(readers_.size()) + opening_; };
    ++waiting_;
    const bool served = changed_.wait_until(lock, options.stop, options.deadline.when(), [&] {
        return closed_ || !ready_.empty() || open() < connections_max;
    });
    --waiting_;
    if (closed_) {
        throw DatabaseError(SqlState{"57P01"}, Outcome::not_applied, "the database is closed");
    }
    if (!served) {
        const bool stopped = options.stop.stop_requested();
        throw DatabaseError(
            stopped ? ErrorClass::cancelled : ErrorClass::deadline,
            SqlState{"57014"},
            Outcome::not_applied,
            stopped ? "the transaction was cancelled by its caller before it began"
                    : fmt::format("the transaction's deadline passed while {} others were reading; "
                                  "give it a later one",
                                  connections_max));
    }
    if (!ready_.empty()) {
        Reader* const reader = ready_.back();
        ready_.pop_back();
        return *reader;
    }
    return open_another(lock);
}

Readers::Reader& Readers::open_another(std::unique_lock<std::mutex>& lock) {
    ++opening_;
    lock.unlock();
    std::unique_ptr<Reader> reader;
    std::exception_ptr failure;
    try {
        reader = std::make_unique<Reader>(settings_, clock_, counters_);
    } catch (...) {
        failure = std::current_exception();
    }
    lock.lock();
    --opening_;
    if (failure) {
        changed_.notify_all();  // Another waiter may try.
        std::rethrow_exception(failure);
    }
    readers_.push_back(std::move(reader));
    return *readers_.back();
}

void Readers::give_back(Reader& reader) noexcept {
    const std::lock_guard lock(mutex_);
    ready_.push_back(&reader);
    if (closed_) {
        changed_.notify_all();
    } else {
        changed_.notify_one();
    }
}

PoolStats Readers::stats() const {
    const std::lock_guard lock(mutex_);
    const auto open = static_cast<int>(readers_.size());
    const auto ready = static_cast<int>(ready_.size());
    return {.opening = opening_,
            .ready = ready,
            .in_use = open - ready,
            .waiting = waiting_,
            .opened = open + closed_count_,
            .closed = closed_count_};
}

void Readers::close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
}

bool Readers::drain(Deadline deadline) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_until(lock, deadline.when(), [this] { return idle(); })) {
        return true;
    }
    for (const std::unique_ptr<Reader>& reader : readers_) {
        reader->connection.interrupt();
    }
    return false;
}

void Readers::wait_until_idle() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return idle(); });
}

void Readers::close_connections() {
    const std::lock_guard lock(mutex_);
    HOLDFAST_ASSERT(idle());
    closed_count_ += static_cast<std::int64_t>(readers_.size());
    ready_.clear();
    readers_.clear();
}

}  // namespace holdfast::sql::sqlite
