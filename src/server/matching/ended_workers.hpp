// Workers that have said that they end, by their instance keys.
#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>

#include <holdfast/base/clock.hpp>

namespace holdfast::server::matching {

// Safe to share between threads; its lock is taken last.
class EndedWorkers {
public:
    static constexpr std::chrono::nanoseconds kept = std::chrono::seconds{30};
    static constexpr std::size_t keys_max = 10'000;  // Above it the oldest are forgotten.

    void add(const std::string& worker_instance_key, Steady now);
    // False for the empty key, which workers send that have none.
    [[nodiscard]] bool has(const std::string& worker_instance_key, Steady now) const;

private:
    struct Ended {
        std::string key;
        Steady until;
    };

    void forget_first();

    mutable std::mutex mutex_;
    std::list<Ended> by_time_;
    std::unordered_map<std::string, std::list<Ended>::iterator> by_key_;
};

}  // namespace holdfast::server::matching
