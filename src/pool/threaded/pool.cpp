#include <holdfast/pool/pool.hpp>

#include <utility>

#include "threaded/threaded_pool.hpp"

namespace holdfast::pool {

Loan& Loan::operator=(Loan&& other) noexcept {
    if (this == &other) {
        return *this;
    }
    if (threaded_ != nullptr) {
        give_back();
    }
    threaded_ = std::exchange(other.threaded_, nullptr);
    id_ = other.id_;
    connection_ = std::exchange(other.connection_, nullptr);
    bad_ = other.bad_;
    return *this;
}

void Loan::give_back() noexcept {
    std::exchange(threaded_, nullptr)->give_back(id_, bad_);
}

Pool::Pool(const Config& config,
           Opener& opener,
           const Clock& clock,
           Metrics* metrics,
           Logger& logger,
           std::string name,
           std::uint64_t seed)
    : threaded_(std::make_shared<ThreadedPool>(
          config, opener, clock, metrics, logger, std::move(name), seed)) {}

Pool::~Pool() {
    threaded_->abandon(threaded_);
}

Loan Pool::acquire(Deadline deadline, const std::stop_token& stop, Lane lane) {
    return threaded_->acquire(deadline, stop, lane);
}

std::optional<Loan> Pool::try_acquire() {
    return threaded_->try_acquire();
}

bool Pool::wait_ready(int n, Deadline deadline, const std::stop_token& stop) {
    return threaded_->wait_ready(n, deadline, stop);
}

WarmUp Pool::warm_up(const std::stop_token& stop) {
    return threaded_->warm_up(stop);
}

Stats Pool::stats() const {
    return threaded_->stats();
}

void Pool::shed(int connections) {
    threaded_->shed(connections);
}

void Pool::resize(int target) {
    threaded_->resize(target);
}

void Pool::stop(Deadline deadline) {
    threaded_->stop(deadline);
}

}  // namespace holdfast::pool
