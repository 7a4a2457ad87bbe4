#include <holdfast/pool/pool.hpp>

#include <utility>

#include "shell.hpp"

namespace holdfast::pool {

Loan::Loan(std::shared_ptr<Shell> shell, ConnectionId id, Connection& connection) noexcept
    : shell_(std::move(shell)), id_(id), connection_(&connection) {}

Loan::Loan(Loan&& other) noexcept
    : shell_(std::move(other.shell_)),
      id_(other.id_),
      connection_(std::exchange(other.connection_, nullptr)),
      bad_(other.bad_) {}

Loan& Loan::operator=(Loan&& other) noexcept {
    if (this == &other) {
        return *this;
    }
    give_back();
    shell_ = std::move(other.shell_);
    id_ = other.id_;
    connection_ = std::exchange(other.connection_, nullptr);
    bad_ = other.bad_;
    return *this;
}

Loan::~Loan() {
    give_back();
}

void Loan::give_back() noexcept {
    if (const auto shell = std::exchange(shell_, nullptr)) {
        shell->give_back(id_, bad_);
    }
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
    shell_->abandon();
}

Loan Pool::acquire(Deadline deadline, const std::stop_token& stop, Lane lane) {
    const auto lent = shell_->acquire(deadline, stop, lane);
    return Loan(shell_, lent.id, *lent.connection);
}

std::optional<Loan> Pool::try_acquire() {
    const auto lent = shell_->try_acquire();
    if (!lent) {
        return std::nullopt;
    }
    return Loan(shell_, lent->id, *lent->connection);
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
