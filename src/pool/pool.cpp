#include <holdfast/pool/pool.hpp>

#include <utility>

#include "shell.hpp"

namespace holdfast::pool {

Loan& Loan::operator=(Loan&& other) noexcept {
    if (this == &other) {
        return *this;
    }
    if (shell_ != nullptr) {
        give_back();
    }
    shell_ = std::exchange(other.shell_, nullptr);
    id_ = other.id_;
    connection_ = std::exchange(other.connection_, nullptr);
    bad_ = other.bad_;
    return *this;
}

void Loan::give_back() noexcept {
    std::exchange(shell_, nullptr)->give_back(id_, bad_);
}

Pool::Pool(const Config& config,
           Opener& opener,
           const Clock& clock,
           Metrics* metrics,
           Logger& logger,
           std::string name,
           std::uint64_t seed)
    : shell_(
          std::make_shared<Shell>(config, opener, clock, metrics, logger, std::move(name), seed)) {}

Pool::~Pool() {
    shell_->abandon(shell_);
}

Loan Pool::acquire(Deadline deadline, const std::stop_token& stop, Lane lane) {
    return shell_->acquire(deadline, stop, lane);
}

std::optional<Loan> Pool::try_acquire() {
    return shell_->try_acquire();
}

bool Pool::wait_ready(int n, Deadline deadline, const std::stop_token& stop) {
    return shell_->wait_ready(n, deadline, stop);
}

WarmUp Pool::warm_up(const std::stop_token& stop) {
    return shell_->warm_up(stop);
}

Stats Pool::stats() const {
    return shell_->stats();
}

void Pool::shed(int connections) {
    shell_->shed(connections);
}

void Pool::resize(int target) {
    shell_->resize(target);
}

void Pool::stop(Deadline deadline) {
    shell_->stop(deadline);
}

}  // namespace holdfast::pool
