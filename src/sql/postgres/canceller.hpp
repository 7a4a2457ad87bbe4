// Asks servers to stop what they are doing.
//
// A cancel request is a connection of its own, which libpq opens blocking and waits on without a
// limit. It is made on one background thread, so that a caller whose deadline has passed does not
// wait for it; a server that accepts the connection and says nothing keeps that thread for itself.
#pragma once

#include <chrono>
#include <memory>
#include <thread>

#include "postgres/libpq.hpp"

namespace holdfast::sql::postgres {

// Safe to share between threads.
class Canceller {
public:
    Canceller();
    // Leaves a request behind that is not answered within `patience`; its thread ends with the
    // answer, or with the process.
    ~Canceller();
    Canceller(const Canceller&) = delete;
    Canceller& operator=(const Canceller&) = delete;

    // Requires: called by the connection's user. Does nothing if too many requests wait already.
    void cancel(PGconn* connection);

private:
    static constexpr std::size_t waiting_max = 256;
    static constexpr std::chrono::milliseconds patience{500};

    struct Queue;  // Shared with the thread, which may outlive us.
    static void work(Queue& queue);

    std::shared_ptr<Queue> queue_;
    std::thread thread_;  // Started by the first request.
};

}  // namespace holdfast::sql::postgres
