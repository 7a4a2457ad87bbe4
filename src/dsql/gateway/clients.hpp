// The connections of a gateway, each with a thread, and the limit for those before their login.
//
// A connection is a stranger until its token is verified. A stranger costs a descriptor, a thread
// and a few kilobytes, has little time, and never keeps others out: when there are too many of
// them, or no descriptor is left, the oldest one is closed.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include <holdfast/base/unique_fd.hpp>
#include <holdfast/dsql/gateway.hpp>

namespace holdfast::dsql {

// Safe to share between threads.
class Clients {
public:
    struct Client {
        UniqueFd fd;  // Open while it is served.
        std::string cluster;
        bool known = false;    // Not a stranger any more.
        bool leaving = false;  // A stranger that is being closed.
        std::atomic<bool> ended = false;
        std::jthread thread;
    };
    // Serves one connection; returns when it is over.
    using Serve = std::function<void(Client&)>;

    // `ended` is called, from any thread, when a descriptor is free again.
    Clients(std::size_t strangers_max,
            GatewayOptions::ThreadMaker make_thread,
            Serve serve,
            std::function<void()> ended);

    // False while many strangers are being closed: a new one would only be one more.
    [[nodiscard]] bool has_room();
    // False if there is no thread for it; the connection is closed then.
    bool take(UniqueFd fd);
    void know(Client& client, const std::string& cluster);
    [[nodiscard]] std::size_t strangers();
    // Closes the oldest stranger; false if there is none, also none that is being closed.
    bool dismiss_stranger();
    // Joins the threads that have ended.
    void reap();
    // Ends the connections of a cluster, or all.
    void hang_up(std::string_view cluster);
    // Waits until all have ended.
    void join();

private:
    void run(Client& client) noexcept;
    bool dismiss_oldest();

    const std::size_t strangers_max_;
    const GatewayOptions::ThreadMaker make_thread_;
    const Serve serve_;
    const std::function<void()> ended_;

    std::mutex mutex_;
    std::list<Client> clients_;  // In order of arrival.
};

}  // namespace holdfast::dsql
