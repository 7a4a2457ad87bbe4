#include "matching/matching.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "matching/queue.hpp"
#include "matching/surroundings.hpp"

namespace holdfast::server::matching {
namespace {

struct QueueKeyHash {
    std::size_t operator()(const QueueKey& key) const noexcept {
        constexpr std::size_t factor = 0x9E3779B97F4A7C15;
        std::size_t hash = std::hash<std::string>()(key.name);
        hash = hash * factor + std::hash<std::string>()(key.namespace_id);
        return hash * factor + static_cast<std::size_t>(key.type);
    }
};

struct QueueShard {
    // Idle queues are forgotten when their number has doubled since that was last done.
    static constexpr std::size_t sweep_min = 16;

    std::mutex mutex;
    std::unordered_map<QueueKey, std::shared_ptr<Queue>, QueueKeyHash> queues;
    std::size_t sweep_at = sweep_min;
};

}  // namespace

OfferId OfferPlaces::add(const std::shared_ptr<Queue>& queue) {
    const std::lock_guard lock(mutex_);
    places_.emplace(++last_id_, queue);
    return OfferId{last_id_};
}

std::shared_ptr<Queue> OfferPlaces::remove(OfferId offer) {
    const std::lock_guard lock(mutex_);
    const auto place = places_.extract(static_cast<std::uint64_t>(offer));
    return place.empty() ? nullptr : place.mapped().lock();
}

struct Matching::State {
    State(const Clock& clock, Alarms& alarms, MatchingLimits limits)
        : around(std::make_shared<Surroundings>(clock, alarms, limits)) {}

    QueueShard& shard_of(const QueueKey& key) {
        // The high bits: the map takes the low ones.
        return shards[(QueueKeyHash()(key) >> 40) % shards.size()];
    }

    // A queue that has another owner than the map is in use, and stays.
    static void sweep(QueueShard& shard) {
        std::erase_if(shard.queues, [](const auto& each) {
            return each.second.use_count() == 1 && each.second->idle();
        });
        shard.sweep_at = std::max(QueueShard::sweep_min, 2 * shard.queues.size());
    }

    std::shared_ptr<Queue> find(const QueueKey& key) {
        QueueShard& shard = shard_of(key);
        const std::lock_guard lock(shard.mutex);
        const auto found = shard.queues.find(key);
        return found == shard.queues.end() ? nullptr : found->second;
    }

    std::shared_ptr<Queue> obtain(const QueueKey& key) {
        QueueShard& shard = shard_of(key);
        const std::lock_guard lock(shard.mutex);
        const auto found = shard.queues.find(key);
        if (found != shard.queues.end()) {
            return found->second;
        }
        if (shard.queues.size() >= shard.sweep_at && !around->stopping) {
            sweep(shard);
        }
        return shard.queues.emplace(key, std::make_shared<Queue>(key, around)).first->second;
    }

    const std::shared_ptr<Surroundings> around;
    std::array<QueueShard, 16> shards;
};

Matching::Matching(const Clock& clock, Alarms& alarms, MatchingLimits limits)
    : state_(std::make_unique<State>(clock, alarms, limits)) {}

Matching::~Matching() {
    stop();
}

void Matching::connect(TaskStarter& starter) {
    state_->around->starter = &starter;
}

void Matching::poll(Poll poll) {
    const std::shared_ptr<Queue> queue = state_->obtain(poll.queue);
    queue->poll(std::move(poll));
}

std::optional<Reservation> Matching::reserve(const QueueKey& queue, int priority) {
    const std::shared_ptr<Queue> found = state_->find(queue);
    return found ? found->reserve(priority) : std::nullopt;
}

void Matching::add(const QueueKey& queue, QueuedTask task) {
    state_->obtain(queue)->add(std::move(task));
}

void Matching::put_back(const QueueKey& queue, QueuedTask task) {
    state_->obtain(queue)->put_back(std::move(task));
}

OfferId Matching::offer(const QueueKey& queue, std::function<void(Reservation)> taken) {
    const std::shared_ptr<Queue> place = state_->obtain(queue);
    const OfferId id = state_->around->offers.add(place);
    place->offer(id, std::move(taken));
    return id;
}

bool Matching::withdraw(OfferId offer) {
    const std::shared_ptr<Queue> queue = state_->around->offers.remove(offer);
    return queue && queue->withdraw(offer);
}

bool Matching::polled_recently(const QueueKey& queue) const {
    const std::shared_ptr<Queue> found = state_->find(queue);
    return found && found->polled_recently();
}

void Matching::unload(const QueueKey& queue) {
    if (const std::shared_ptr<Queue> found = state_->find(queue)) {
        found->unload();
    }
}

void Matching::end_polls(const std::string& worker_instance_key, std::span<const QueueKey> queues) {
    if (worker_instance_key.empty()) {
        return;  // It would mean every worker that has no key.
    }
    // First, so that a poll that comes now sees it, or is seen in its queue.
    state_->around->ended.add(worker_instance_key, state_->around->clock.steady_now());
    for (const QueueKey& queue : queues) {
        if (const std::shared_ptr<Queue> found = state_->find(queue)) {
            found->end_polls(worker_instance_key);
        }
    }
}

void Matching::forget(const std::string& namespace_id) {
    for (QueueShard& shard : state_->shards) {
        std::vector<std::shared_ptr<Queue>> dropped;
        {
            const std::lock_guard lock(shard.mutex);
            for (auto each = shard.queues.begin(); each != shard.queues.end();) {
                if (each->first.namespace_id == namespace_id) {
                    dropped.push_back(std::move(each->second));
                    each = shard.queues.erase(each);
                } else {
                    ++each;
                }
            }
        }
        for (const auto& queue : dropped) {
            queue->unload();
        }
    }
}

QueueView Matching::view(const QueueKey& queue) const {
    const std::shared_ptr<Queue> found = state_->find(queue);
    return found ? found->view()
                 : QueueView{.pollers = {},
                             .backlog_by_priority = std::vector<std::size_t>(priority_levels)};
}

MatchingTotals Matching::totals() const {
    MatchingTotals totals;
    for (QueueShard& shard : state_->shards) {
        std::vector<std::shared_ptr<Queue>> queues;
        {
            const std::lock_guard lock(shard.mutex);
            for (const auto& [key, queue] : shard.queues) {
                queues.push_back(queue);
            }
        }
        for (const auto& queue : queues) {
            queue->add_to(totals);
        }
    }
    return totals;
}

void Matching::limit_rate(const QueueKey& queue, std::optional<double> tasks_per_second) {
    state_->obtain(queue)->limit_rate(tasks_per_second);
}

void Matching::set_weights(const QueueKey& queue, std::map<std::string, double> weights) {
    state_->obtain(queue)->set_weights(std::move(weights));
}

void Matching::stop() {
    state_->around->stopping = true;
    for (QueueShard& shard : state_->shards) {
        std::vector<std::shared_ptr<Queue>> queues;
        {
            const std::lock_guard lock(shard.mutex);
            queues.reserve(shard.queues.size());
            for (const auto& [key, queue] : shard.queues) {
                queues.push_back(queue);
            }
        }
        for (const auto& queue : queues) {
            queue->stop();
        }
    }
}

}  // namespace holdfast::server::matching
