// What a pool logs about itself, besides what happens to single connections.
#include <algorithm>

#include "durations.hpp"
#include "threaded/threaded_pool.hpp"

namespace holdfast::pool {
namespace {

constexpr std::chrono::minutes warn_every{1};   // Of connections that are too old.
constexpr std::chrono::seconds empty_every{1};  // Of borrowers that find no connection.
constexpr int dip_divisor = 2;                  // Less than half of what is wanted is a dip.

}  // namespace

// Of a reservoir only: another pool opens nothing before it is needed.
void ThreadedPool::note_created() {
    if (config_.min_ready == 0) {
        return;
    }
    logger_.info("pool.created",
                 {{"db", name_},
                  {"profile", "reservoir"},
                  {"target", config_.target},
                  {"ready", config_.min_ready},
                  {"low", config_.warm},
                  {"base_seconds", in_seconds(config_.life)},
                  {"jitter_seconds", in_seconds(config_.life_jitter)},
                  {"guard_seconds", in_seconds(config_.guard)},
                  {"inflight", config_.limits.opening_max}});
}

void ThreadedPool::note_oldest(Steady now) {
    std::optional<Steady> oldest;
    {
        const std::lock_guard lock(mutex_);
        oldest = machine_.oldest();
    }
    meters_.oldest_age_seconds.set(oldest ? in_seconds(now - *oldest) : 0);
    if (oldest && now - *oldest > config_.limits.overage && now - warned_ >= warn_every) {
        warned_ = now;
        logger_.warn("conn.overage", {{"db", name_}, {"age_seconds", in_seconds(now - *oldest)}});
    }
}

// A dip is logged once, until the reservoir has been full again; emptiness once a second, while
// there are waiters.
void ThreadedPool::note_shortage(Steady now) {
    const int wanted = std::min(config_.min_ready, config_.target);
    if (wanted == 0) {
        return;
    }
    Counts counts;
    std::string cause;
    {
        const std::lock_guard lock(mutex_);
        counts = machine_.counts();
        cause = last_open_error_ ? last_open_error_->what() : "";
    }
    const int open = counts.ready + counts.in_use;
    if (was_full_ && open < (wanted + 1) / dip_divisor) {
        was_full_ = false;
        logger_.warn("pool.dip",
                     {{"db", name_}, {"size", open}, {"target", wanted}, {"cause", cause}});
    }
    was_full_ = was_full_ || open >= wanted;
    if (counts.waiting > 0 && counts.ready == 0 && now - empty_noted_ >= empty_every) {
        empty_noted_ = now;
        logger_.warn("pool.empty",
                     {{"db", name_},
                      {"waiters", counts.waiting},
                      {"opening", counts.opening},
                      {"cause", cause}});
    }
}

}  // namespace holdfast::pool
