// What all queues share. Nothing here holds a queue, so that queues may hold it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "matching/ended_workers.hpp"
#include "matching/matching.hpp"

namespace holdfast::server::matching {

// Where each offer waits. Its lock is taken last.
class OfferPlaces {
public:
    [[nodiscard]] OfferId add(const std::shared_ptr<Queue>& queue);
    // The queue, once; empty if the offer is gone.
    [[nodiscard]] std::shared_ptr<Queue> remove(OfferId offer);

private:
    std::mutex mutex_;
    std::uint64_t last_id_ = 0;
    std::unordered_map<std::uint64_t, std::weak_ptr<Queue>> places_;
};

struct Surroundings {
    Surroundings(const Clock& of_clock, Alarms& of_alarms, MatchingLimits of_limits)
        : clock(of_clock), alarms(of_alarms), limits(of_limits) {}

    // Not used once `stopping` is set: they may be gone.
    const Clock& clock;
    Alarms& alarms;

    const MatchingLimits limits;
    std::atomic<TaskStarter*> starter = nullptr;
    std::atomic<bool> stopping = false;
    EndedWorkers ended;
    OfferPlaces offers;
};

}  // namespace holdfast::server::matching
