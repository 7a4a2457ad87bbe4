// LISTEN on a connection of its own.
//
// One thread per database, started by the first subscription. While the connection is down,
// notifications are missed; after it is back every subscriber is woken once with an empty payload.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "postgres/connection.hpp"

#include <holdfast/base/clock.hpp>
#include <holdfast/base/log.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/sql/source.hpp>

namespace holdfast::sql::postgres {

// Safe to share between threads.
class Listener {
public:
    // Opens a connection for the listener; throws Error.
    using Open = std::function<std::unique_ptr<Connection>(Deadline, const std::stop_token&)>;

    Listener(Open open, Logger& logger);
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    // Returns once the server listens, or after a bounded wait if it is away.
    // Requires: the subscription ends before the listener does.
    [[nodiscard]] std::unique_ptr<Subscription> subscribe(
        std::string_view channel, std::function<void(std::string_view)> wake);

    // No subscriber is woken any more. Idempotent; subscriptions may end afterwards.
    void stop();

private:
    struct Entry {
        std::string channel;
        std::function<void(std::string_view)> wake;
        bool listening = false;
    };
    class Handle;

    void work(const std::stop_token& stop);
    // One connection's life. Returns when it broke or the listener stops.
    void serve(Connection& connection, const std::stop_token& stop);
    void listen_to_new(Connection& connection);
    void dispatch(Connection& connection);
    void wake(std::string_view channel, std::string_view payload);
    void wake_everybody();
    void remove(std::list<Entry>::iterator entry);

    Open open_;
    Logger& logger_;
    StopSignal signal_;  // Raised when subscriptions change or the listener stops.

    std::mutex mutex_;
    std::condition_variable changed_;
    std::list<Entry> entries_;
    bool stopped_ = false;
    std::mutex calling_;  // Held while callbacks run, so that removal can wait for them.
    std::jthread thread_;
};

}  // namespace holdfast::sql::postgres
