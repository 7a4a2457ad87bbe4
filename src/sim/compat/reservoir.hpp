// The reservoir of the older model: a queue of idle connections, and those that are lent.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_set>

#include <holdfast/sim/result.hpp>
#include <holdfast/sim/scenario.hpp>

namespace holdfast::sim {

class Reservoir {
public:
    struct Connection {
        std::uint64_t id = 0;
        Time expires{};
    };

    Reservoir(int target, Time guard, Counters& counters)
        : target_(target), guard_(guard), counters_(counters) {}

    // The first in the queue that is still good; expired ones before it are discarded.
    [[nodiscard]] std::optional<Connection> check_out(Time now);
    // Also takes back what was lent before everything was dropped, as the model does.
    void give_back(Time now, const Connection& connection);
    // False, and thrown away, if it is full.
    bool add(const Connection& connection);
    // Throws away what is expired or within the guard; says how many.
    int scan(Time now);
    void drop_all();
    // The oldest idle ones: trunc(length * fraction), but at least one if there is one.
    void drop_fraction(double fraction);

    [[nodiscard]] int idle() const noexcept { return static_cast<int>(idle_.size()); }
    [[nodiscard]] int lent() const noexcept { return static_cast<int>(lent_.size()); }

private:
    // Whether it had to be thrown away.
    bool discarded(Time now, const Connection& connection);
    void append(const Connection& connection);

    int target_;
    Time guard_;
    Counters& counters_;
    std::deque<Connection> idle_;
    std::unordered_set<std::uint64_t> lent_;
    Time first_expiry_ = Time::max();  // None of the idle expires before.
};

}  // namespace holdfast::sim
