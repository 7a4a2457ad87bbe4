#include "postgres/canceller.hpp"

#include <array>

namespace holdfast::sql::postgres {

Canceller::~Canceller() {
    if (thread_.joinable()) {
        thread_.request_stop();
        thread_.join();
    }
    for (PGcancel* request : waiting_) {
        PQfreeCancel(request);
    }
}

void Canceller::cancel(PGconn* connection) {
    PGcancel* const request = PQgetCancel(connection);
    if (request == nullptr) {
        return;
    }
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= waiting_max) {
        PQfreeCancel(request);
        return;
    }
    waiting_.push_back(request);
    if (!thread_.joinable()) {
        thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
    }
    wake_.notify_one();
}

void Canceller::work(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (wake_.wait(lock, stop, [this] { return !waiting_.empty(); })) {
        PGcancel* const request = waiting_.front();
        waiting_.pop_front();
        lock.unlock();
        std::array<char, 256> ignored{};  // A server that cannot be asked will not be waited for.
        PQcancel(request, ignored.data(), static_cast<int>(ignored.size()));
        PQfreeCancel(request);
        lock.lock();
    }
}

}  // namespace holdfast::sql::postgres
