// The workers that polled a queue lately.
#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <string>
#include <unordered_map>
#include <vector>

#include "matching/matching.hpp"

#include <holdfast/base/clock.hpp>

namespace holdfast::server::matching {

class Pollers {
public:
    static constexpr std::size_t identities_max = 1'000;  // Above it the oldest are forgotten.

    explicit Pollers(std::chrono::nanoseconds kept) noexcept : kept_(kept) {}

    void saw(const PollInfo& info, Steady now, Wall wall);
    void forget_worker(const std::string& worker_instance_key);
    void clear();

    [[nodiscard]] bool any(Steady now) const;
    // The last one first.
    [[nodiscard]] std::vector<PollerView> view(Steady now) const;

private:
    struct Seen {
        PollerView poller;
        std::string worker_instance_key;
        Steady at;
    };
    using ByTime = std::list<Seen>;

    std::chrono::nanoseconds kept_;
    ByTime by_time_;
    std::unordered_map<std::string, ByTime::iterator> by_identity_;
};

}  // namespace holdfast::server::matching
