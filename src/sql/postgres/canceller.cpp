#include "postgres/canceller.hpp"

#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>

namespace holdfast::sql::postgres {

struct Canceller::Queue {
    ~Queue() {
        for (PGcancel* request : waiting) {
            libpq().PQfreeCancel(request);
        }
    }

    std::mutex mutex;
    std::condition_variable changed;
    std::deque<PGcancel*> waiting;
    bool stop = false;
    bool ended = false;
};

Canceller::Canceller() : queue_(std::make_shared<Queue>()) {}

Canceller::~Canceller() {
    if (!thread_.joinable()) {
        return;
    }
    std::unique_lock lock(queue_->mutex);
    queue_->stop = true;
    queue_->changed.notify_all();
    if (queue_->changed.wait_for(lock, patience, [this] { return queue_->ended; })) {
        lock.unlock();
        thread_.join();
    } else {
        thread_.detach();
    }
}

void Canceller::cancel(PGconn* connection) {
    PGcancel* const request = libpq().PQgetCancel(connection);
    if (request == nullptr) {
        return;
    }
    const std::lock_guard lock(queue_->mutex);
    if (queue_->waiting.size() >= waiting_max) {
        libpq().PQfreeCancel(request);
        return;
    }
    queue_->waiting.push_back(request);
    if (!thread_.joinable()) {
        thread_ = std::thread([queue = queue_] { work(*queue); });
    }
    queue_->changed.notify_all();
}

void Canceller::work(Queue& queue) {
    std::unique_lock lock(queue.mutex);
    while (true) {
        queue.changed.wait(lock, [&] { return queue.stop || !queue.waiting.empty(); });
        if (queue.stop) {
            break;
        }
        PGcancel* const request = queue.waiting.front();
        queue.waiting.pop_front();
        lock.unlock();
        std::array<char, 256> ignored{};  // Not sent, so nothing to wait for.
        libpq().PQcancel(request, ignored.data(), static_cast<int>(ignored.size()));
        libpq().PQfreeCancel(request);
        lock.lock();
    }
    queue.ended = true;
    queue.changed.notify_all();
}

}  // namespace holdfast::sql::postgres
