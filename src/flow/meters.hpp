// What a runtime counts.
#pragma once

#include <atomic>
#include <cstdint>

namespace holdfast::flow {

struct Meters {
    std::atomic<std::int64_t> turns = 0;
    std::atomic<std::int64_t> from_cache = 0;
    std::atomic<std::int64_t> lost = 0;
    std::atomic<std::int64_t> events_replayed = 0;
    std::atomic<std::int64_t> commits = 0;
    std::atomic<std::int64_t> activities = 0;
    std::atomic<std::int64_t> shadow_replays = 0;
    std::atomic<std::int64_t> poisoned = 0;
};

}  // namespace holdfast::flow
