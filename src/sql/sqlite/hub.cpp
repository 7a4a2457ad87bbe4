#include "sqlite/hub.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "subscriber.hpp"

namespace holdfast::sql::sqlite {

class Hub::Listener {
public:
    Listener(std::string_view channel, Wake wake) : channel_(channel), wake_(std::move(wake)) {}

    [[nodiscard]] const std::string& channel() const noexcept { return channel_; }

    void call(std::string_view payload, Logger& logger) const noexcept {
        call_subscriber(wake_, channel_, payload, logger);
    }

private:
    std::string channel_;
    Wake wake_;
};

// Shared by the hub, its thread and the subscriptions; lives as long as the last of them.
class Hub::State {
public:
    explicit State(Logger& logger) : logger_(logger) {}

    void add(std::shared_ptr<Listener> listener) {
        const std::lock_guard lock(mutex_);
        listeners_.push_back(std::move(listener));
        if (!thread_.joinable()) {
            thread_ = std::thread([this] { deliver(); });
        }
    }

    // Waits for the listener's callback, unless it is the callback that removes its own listener.
    void remove(const std::shared_ptr<Listener>& listener) {
        std::unique_lock lock(mutex_);
        std::erase(listeners_, listener);
        if (std::this_thread::get_id() != thread_.get_id()) {
            called_.wait(lock, [&] { return calling_ != listener.get(); });
        }
    }

    void publish(Notice notice) {
        const std::lock_guard lock(mutex_);
        const auto listens = [&](const auto& l) { return l->channel() == notice.channel; };
        if (std::none_of(listeners_.begin(), listeners_.end(), listens) ||
            std::find(pending_.begin(), pending_.end(), notice) != pending_.end()) {
            return;
        }
        if (pending_.size() == pending_max) {
            missed_ = true;
        } else {
            pending_.push_back(std::move(notice));
        }
        work_.notify_one();
    }

    void close() {
        std::thread thread;
        {
            const std::lock_guard lock(mutex_);
            closed_ = true;
            work_.notify_one();
            thread = std::move(thread_);
        }
        if (thread.joinable()) {
            thread.join();
        }
    }

private:
    void deliver() {
        std::unique_lock lock(mutex_);
        for (;;) {
            work_.wait(lock, [this] { return closed_ || missed_ || !pending_.empty(); });
            if (closed_) {
                return;
            }
            deliver_next(lock);
        }
    }

    void deliver_next(std::unique_lock<std::mutex>& lock) {
        const bool to_all = std::exchange(missed_, false);
        Notice notice;
        if (to_all) {
            pending_.clear();  // The empty payload stands for all of them.
        } else {
            notice = std::move(pending_.front());
            pending_.pop_front();
        }
        const std::vector<std::shared_ptr<Listener>> candidates = listeners_;
        for (const std::shared_ptr<Listener>& listener : candidates) {
            const bool meant = to_all || listener->channel() == notice.channel;
            // The callback before this one may have taken long, and the listener may have left.
            const bool listens =
                std::find(listeners_.begin(), listeners_.end(), listener) != listeners_.end();
            if (!meant || !listens || closed_) {
                continue;
            }
            calling_ = listener.get();
            lock.unlock();
            listener->call(notice.payload, logger_);
            lock.lock();
            calling_ = nullptr;
            called_.notify_all();
        }
    }

    Logger& logger_;
    std::mutex mutex_;
    std::condition_variable work_;
    std::condition_variable called_;
    std::vector<std::shared_ptr<Listener>> listeners_;
    std::deque<Notice> pending_;
    bool missed_ = false;
    bool closed_ = false;
    const Listener* calling_ = nullptr;
    std::thread thread_;  // Started by the first listener.
};

Hub::Hub(Logger& logger) : state_(std::make_shared<State>(logger)) {}

Hub::~Hub() {
    state_->close();
}

std::unique_ptr<Subscription> Hub::subscribe(std::string_view channel,
                                             std::function<void(std::string_view)> wake) {
    class Listening final : public Subscription {
    public:
        Listening(std::shared_ptr<State> state, std::shared_ptr<Listener> listener) noexcept
            : state_(std::move(state)), listener_(std::move(listener)) {}
        ~Listening() override { state_->remove(listener_); }

    private:
        std::shared_ptr<State> state_;
        std::shared_ptr<Listener> listener_;
    };
    auto listener = std::make_shared<Listener>(channel, std::move(wake));
    auto listening = std::make_unique<Listening>(state_, listener);
    state_->add(std::move(listener));
    return listening;
}

void Hub::publish(Notice notice) {
    state_->publish(std::move(notice));
}

}  // namespace holdfast::sql::sqlite
