// The line in front of a key, and how those in it are called.
//
// Rows in the database are the line; this class only wakes the threads of this process whose turn
// has come. A call can be lost, so nobody sleeps on it for long.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "forms.hpp"

namespace holdfast::lock {

// Safe to share between threads.
class WaitingLine {
public:
    // Requires: all outlive it.
    WaitingLine(sql::Database& db,
                const sql::TableNames& tables,
                Forms& forms,
                std::chrono::milliseconds call_timeout);
    ~WaitingLine();
    WaitingLine(const WaitingLine&) = delete;
    WaitingLine& operator=(const WaitingLine&) = delete;

    // Requires: the place goes before the line does.
    [[nodiscard]] std::unique_ptr<Place> line_up(std::string key,
                                                 const LockId& lock_id,
                                                 Deadline patience);

    // Its turn has come. Empty: somebody's may have. Without effect if it does not wait here.
    void call(std::string_view waiter);

private:
    class Standing;

    void listen();

    sql::Database& db_;
    const sql::TableNames& tables_;
    Forms& forms_;
    std::chrono::milliseconds call_timeout_;
    std::chrono::milliseconds longest_sleep_;

    std::mutex mutex_;
    std::map<std::string, Standing*, std::less<>> standing_;
    std::unique_ptr<sql::Subscription> subscription_;  // Last: it calls us.
};

}  // namespace holdfast::lock
