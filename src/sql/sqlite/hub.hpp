// Wake-ups inside one process: the listeners of each channel, and one thread that calls them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <holdfast/base/log.hpp>
#include <holdfast/sql/database.hpp>

namespace holdfast::sql::sqlite {

struct Notice {
    std::string channel;
    std::string payload;

    friend bool operator==(const Notice&, const Notice&) = default;
};

// Safe to share between threads. A subscription may outlive the hub; then it is never called.
class Hub {
public:
    // Beyond it notices are dropped, and all listeners are called with an empty payload.
    static constexpr std::size_t pending_max = 1024;

    explicit Hub(Logger& logger);
    // Waits for a callback that is running; what is still pending is dropped.
    ~Hub();
    Hub(const Hub&) = delete;
    Hub& operator=(const Hub&) = delete;

    // Callbacks run on the hub's thread, one at a time. One that throws is logged.
    [[nodiscard]] std::unique_ptr<Subscription> subscribe(
        std::string_view channel, std::function<void(std::string_view payload)> wake);

    // Never blocks for a callback. Equal notices that are still undelivered are one.
    void publish(Notice notice);

private:
    class State;
    class Listener;

    std::shared_ptr<State> state_;
};

}  // namespace holdfast::sql::sqlite
