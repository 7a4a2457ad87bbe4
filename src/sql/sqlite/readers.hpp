// Read-only transactions. Each has a connection of its own and sees one snapshot of the log: no
// writer waits for it, and it sees a batch of writers whole or not at all.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "driver.hpp"
#include "sqlite/connection.hpp"
#include "sqlite/session.hpp"

namespace holdfast::sql::sqlite {

// Safe to share between threads. Bodies run on their callers' threads.
class Readers {
public:
    static constexpr int connections_max = 8;

    Readers(const Settings& settings, DatabaseClock& clock, Counters& counters);
    Readers(const Readers&) = delete;
    Readers& operator=(const Readers&) = delete;

    void attempt(const AttemptOptions& options, const std::function<void(Session&)>& body);

    [[nodiscard]] PoolStats stats() const;

    // Refuses newcomers from now on.
    void close();
    // After `close`: waits for running transactions. At the deadline their statements are
    // interrupted; false if one runs on even so.
    [[nodiscard]] bool drain(Deadline deadline);
    // Waits for what runs on after `drain`.
    void wait_until_idle();
    // Requires: nothing runs.
    void close_connections();

private:
    struct Reader {
        Reader(const Settings& settings, DatabaseClock& clock, Counters& counters)
            : connection(settings, Role::reader, counters), session(connection, clock) {}
        Connection connection;
        SqliteSession session;
    };
    class Loan;

    Reader& lend(const AttemptOptions& options);
    Reader& open_another(std::unique_lock<std::mutex>& lock);
    void give_back(Reader& reader) noexcept;
    [[nodiscard]] bool idle() const noexcept {
        return opening_ == 0 && ready_.size() == readers_.size();
    }

    const Settings settings_;
    DatabaseClock& clock_;
    Counters& counters_;

    mutable std::mutex mutex_;
    std::condition_variable_any changed_;
    std::vector<std::unique_ptr<Reader>> readers_;  // Opened when they are first needed.
    std::vector<Reader*> ready_;                    // The last one given back is lent first.
    int opening_ = 0;
    int waiting_ = 0;
    std::int64_t closed_count_ = 0;
    bool closed_ = false;
};

}  // namespace holdfast::sql::sqlite
