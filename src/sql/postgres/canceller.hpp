// Asks servers to stop what they are doing.
//
// A cancel request is a connection of its own, which libpq opens blocking. It is made on one
// background thread, so that a caller whose deadline has passed does not wait for it.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include <libpq-fe.h>

namespace holdfast::sql::postgres {

// Safe to share between threads.
class Canceller {
public:
    Canceller() = default;
    ~Canceller();
    Canceller(const Canceller&) = delete;
    Canceller& operator=(const Canceller&) = delete;

    // Requires: called by the connection's user. Does nothing if too many requests wait already.
    void cancel(PGconn* connection);

private:
    static constexpr std::size_t waiting_max = 256;

    void work(const std::stop_token& stop);

    std::mutex mutex_;
    std::condition_variable_any wake_;
    std::deque<PGcancel*> waiting_;
    std::jthread thread_;  // Started by the first request.
};

}  // namespace holdfast::sql::postgres
