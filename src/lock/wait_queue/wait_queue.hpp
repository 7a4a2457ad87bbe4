// The wait queue of a key, and how waiters are notified.
//
// Between processes, the queue consists of rows in the database. Within a process, threads queue in
// memory, and only the first of them asks the database: passing a key on within a process then
// takes a release and an acquisition, and neither a row nor a notification. A notification can be
// lost, so no waiter relies on it for long.
#pragma once

#include <chrono>
#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "statements/lock_sql.hpp"

namespace holdfast::lock {

// Safe to share between threads.
class WaitQueue {
public:
    // Requires: all outlive it.
    WaitQueue(sql::Database& db,
              const sql::TableNames& tables,
              LockSql& lock_sql,
              std::chrono::milliseconds call_timeout,
              std::chrono::milliseconds neighbourly);
    ~WaitQueue();
    WaitQueue(const WaitQueue&) = delete;
    WaitQueue& operator=(const WaitQueue&) = delete;

    // Requires: the ticket is destroyed before the queue.
    [[nodiscard]] std::unique_ptr<WaitTicket> line_up(std::string key,
                                                      const LockId& lock_id,
                                                      Deadline patience);

    // Tells the waiters of this process about a release.
    void pass_on(const Freed& freed);

private:
    class Standing;

    // Its turn has come. Empty: any waiter's may have. No effect if it does not wait here.
    void call(std::string_view waiter);
    void listen();

    sql::Database& db_;
    const sql::TableNames& tables_;
    LockSql& lock_sql_;
    std::chrono::milliseconds call_timeout_;
    std::chrono::milliseconds longest_sleep_;
    std::chrono::milliseconds neighbourly_;

    std::mutex mutex_;
    std::map<std::string, std::list<Standing*>> neighbours_;  // By key, in order of arrival.
    std::map<std::string, Standing*, std::less<>> standing_;  // In the database, by waiter.
    std::unique_ptr<sql::Subscription> subscription_;         // Last: it calls us.
};

}  // namespace holdfast::lock
