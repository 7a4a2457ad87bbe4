#include "postgres/listener.hpp"

#include <exception>
#include <utility>
#include <vector>

#include "subscriber.hpp"
#include <fmt/core.h>

namespace holdfast::sql::postgres {
namespace {

constexpr std::chrono::seconds open_patience{10};
constexpr std::chrono::seconds answer_patience{10};
constexpr std::chrono::seconds subscribe_patience{5};
constexpr std::chrono::minutes nap{1};  // Between looks at a silent socket.
constexpr std::chrono::milliseconds reconnect_first{100};
constexpr std::chrono::milliseconds reconnect_most{5000};

std::string quoted(std::string_view name) {
    std::string text = "\"";
    for (const char c : name) {
        text += c == '"' ? std::string("\"\"") : std::string(1, c);
    }
    return text + "\"";
}

}  // namespace

class Listener::Handle final : public Subscription {
public:
    Handle(Listener& listener, std::list<Entry>::iterator entry)
        : listener_(listener), entry_(entry) {}
    ~Handle() override { listener_.remove(entry_); }

private:
    Listener& listener_;
    std::list<Entry>::iterator entry_;
};

Listener::Listener(Open open, Logger& logger) : open_(std::move(open)), logger_(logger) {}

Listener::~Listener() {
    stop();
}

void Listener::stop() {
    std::jthread thread;
    {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
        thread = std::move(thread_);
    }
    thread.request_stop();
    signal_.raise();
}

std::unique_ptr<Subscription> Listener::subscribe(std::string_view channel,
                                                  std::function<void(std::string_view)> wake) {
    std::unique_lock lock(mutex_);
    if (stopped_) {
        throw Error(Code::unavailable, Outcome::not_applied, "the database is closed");
    }
    const auto entry =
        entries_.insert(entries_.end(), Entry{std::string(channel), std::move(wake), false});
    if (!thread_.joinable()) {
        thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
    }
    signal_.raise();
    changed_.wait_for(lock, subscribe_patience, [&] { return entry->listening; });
    return std::make_unique<Handle>(*this, entry);
}

void Listener::remove(std::list<Entry>::iterator entry) {
    const std::lock_guard running(calling_);
    const std::lock_guard lock(mutex_);
    entries_.erase(entry);
}

void Listener::work(const std::stop_token& stop) {
    std::chrono::milliseconds pause = reconnect_first;
    bool first = true;
    while (!stop.stop_requested()) {
        try {
            const auto connection = open_(Deadline::after(open_patience), stop);
            const std::stop_callback raise(stop, [&] { connection->stop_signal().raise(); });
            if (!connection->keeps_session()) {
                throw ConnectionLost(Outcome::not_applied,
                                     "a proxy now lends one backend to many clients, so LISTEN is "
                                     "lost; connect past it, or set its pool_mode = session");
            }
            pause = reconnect_first;
            listen_to_new(*connection);
            if (!std::exchange(first, false)) {
                wake_everybody();
            }
            serve(*connection, stop);
        } catch (const std::exception& error) {
            if (stop.stop_requested()) {
                return;
            }
            logger_.warn("listener lost its connection", {{"message", error.what()}});
        }
        {
            const std::lock_guard lock(mutex_);
            for (Entry& entry : entries_) {
                entry.listening = false;
            }
        }
        if (!system_clock().sleep_until(system_clock().steady_now() + pause, stop)) {
            return;
        }
        pause = std::min(pause * 2, reconnect_most);
    }
}

void Listener::serve(Connection& connection, const std::stop_token& stop) {
    PGconn* const raw = connection.raw();
    while (!stop.stop_requested()) {
        dispatch(connection);
        const Wait wait =
            wait_for_socket(libpq().PQsocket(raw), false, Deadline::after(nap), signal_);
        if (wait == Wait::stopped) {
            signal_.reset();
            listen_to_new(connection);
        } else if (wait == Wait::ready && libpq().PQconsumeInput(raw) == 0) {
            throw ConnectionLost(Outcome::not_applied,
                                 "the server closed the listener's connection");
        }
    }
}

void Listener::listen_to_new(Connection& connection) {
    std::vector<std::string> channels;
    {
        const std::lock_guard lock(mutex_);
        for (const Entry& entry : entries_) {
            if (!entry.listening) {
                channels.push_back(entry.channel);
            }
        }
    }
    for (const std::string& channel : channels) {
        (void)connection.ask("LISTEN " + quoted(channel),
                             Deadline::after(answer_patience),
                             dialect_of(Product::postgres));
        const std::lock_guard lock(mutex_);
        for (Entry& entry : entries_) {
            if (entry.channel == channel) {
                entry.listening = true;
            }
        }
        changed_.notify_all();
    }
}

void Listener::dispatch(Connection& connection) {
    while (PGnotify* const notice = libpq().PQnotifies(connection.raw())) {
        wake(notice->relname, notice->extra);
        libpq().PQfreemem(notice);
    }
}

void Listener::wake(std::string_view channel, std::string_view payload) {
    const std::lock_guard running(calling_);
    std::vector<Entry> called;
    {
        const std::lock_guard lock(mutex_);
        for (const Entry& entry : entries_) {
            if (channel.empty() || entry.channel == channel) {
                called.push_back(entry);
            }
        }
    }
    for (const Entry& entry : called) {
        call_subscriber(entry.wake, entry.channel, payload, logger_);
    }
}

void Listener::wake_everybody() {
    wake({}, {});
}

}  // namespace holdfast::sql::postgres
