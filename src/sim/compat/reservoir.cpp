#include "compat/reservoir.hpp"

#include <algorithm>

namespace holdfast::sim {

bool Reservoir::discarded(Time now, const Connection& connection) {
    if (connection.expires <= now) {
        ++counters_.discard_expired;
        return true;
    }
    if (connection.expires - now < guard_) {
        ++counters_.discard_guard;
        return true;
    }
    return false;
}

void Reservoir::append(const Connection& connection) {
    idle_.push_back(connection);
    first_expiry_ = std::min(first_expiry_, connection.expires);
}

std::optional<Reservoir::Connection> Reservoir::check_out(Time now) {
    while (!idle_.empty()) {
        const Connection connection = idle_.front();
        idle_.pop_front();
        if (!discarded(now, connection)) {
            lent_.insert(connection.id);
            ++counters_.checkouts;
            return connection;
        }
    }
    ++counters_.empty;
    return std::nullopt;
}

void Reservoir::give_back(Time now, const Connection& connection) {
    lent_.erase(connection.id);
    if (discarded(now, connection)) {
        return;
    }
    if (idle() >= target_) {
        ++counters_.discard_full;
        return;
    }
    append(connection);
}

bool Reservoir::add(const Connection& connection) {
    if (idle() >= target_) {
        ++counters_.discard_full;
        return false;
    }
    append(connection);
    ++counters_.opens;
    return true;
}

int Reservoir::scan(Time now) {
    if (first_expiry_ > now && first_expiry_ - now >= guard_) {
        return 0;
    }
    first_expiry_ = Time::max();
    return static_cast<int>(std::erase_if(idle_, [&](const Connection& connection) {
        if (discarded(now, connection)) {
            return true;
        }
        first_expiry_ = std::min(first_expiry_, connection.expires);
        return false;
    }));
}

void Reservoir::drop_all() {
    counters_.dropped += idle() + lent();
    idle_.clear();
    lent_.clear();
}

void Reservoir::drop_fraction(double fraction) {
    const int wanted = std::max(1, static_cast<int>(idle() * fraction));
    const int dropped = std::min(wanted, idle());
    idle_.erase(idle_.begin(), idle_.begin() + dropped);
    counters_.dropped += dropped;
}

}  // namespace holdfast::sim
