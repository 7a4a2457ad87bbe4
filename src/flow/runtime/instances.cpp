#include "runtime/instances.hpp"

#include <algorithm>

#include <holdfast/base/assert.hpp>

namespace holdfast::flow {

Instance& InstanceTable::find_or_add(const std::string& id) {
    std::unique_ptr<Instance>& place = instances_[id];
    if (!place) {
        place = std::make_unique<Instance>();
        place->id = id;
        place->used = used_.insert(used_.end(), place.get());
    }
    return *place;
}

void InstanceTable::queue(Instance& instance) {
    if (!instance.busy && !instance.queued) {
        instance.queued = true;
        ready_.push_back(&instance);
        work_.notify_one();
    }
}

void InstanceTable::expect(const std::string& id, const Uuid& token) {
    const std::lock_guard lock(mutex_);
    expected_[id] = token;
}

void InstanceTable::call_off(const std::string& id) {
    const std::lock_guard lock(mutex_);
    expected_.erase(id);
}

bool InstanceTable::add_started(const std::string& id, const Uuid& token) {
    const std::lock_guard lock(mutex_);
    expected_.erase(id);
    if (instances_.contains(id)) {
        return false;
    }
    Instance& instance = find_or_add(id);
    instance.token = token;
    instance.waiting.mail = true;
    queue(instance);
    return true;
}

bool InstanceTable::add_first_turn(const std::shared_ptr<detail::FirstTurn>& turn) {
    const std::lock_guard lock(mutex_);
    const std::string& id = turn->instance();
    if (instances_.contains(id) || expected_.contains(id)) {
        return false;
    }
    Instance& instance = find_or_add(id);
    instance.waiting.first = detail::FirstTurnDuty(turn);
    queue(instance);
    return true;
}

void InstanceTable::add_claim(ClaimedInstance claim) {
    const std::lock_guard lock(mutex_);
    Instance& instance = find_or_add(claim.instance);
    instance.waiting.claim = std::move(claim);
    note_claim(instance, true);
    queue(instance);
}

void InstanceTable::note_claim(Instance& instance, bool claimed) {
    if (instance.claimed != claimed) {
        instance.claimed = claimed;
        claimed ? ++claims_ : --claims_;
    }
}

bool InstanceTable::add_mail(const std::string& id) {
    const std::lock_guard lock(mutex_);
    const auto found = instances_.find(id);
    if (found == instances_.end()) {
        return false;
    }
    found->second->waiting.mail = true;
    queue(*found->second);
    return true;
}

bool InstanceTable::add_found_mail(const std::string& id) {
    const std::lock_guard lock(mutex_);
    const auto found = instances_.find(id);
    if (found == instances_.end()) {
        return true;  // Evicted meanwhile: the next poll finds it again.
    }
    Instance& instance = *found->second;
    const bool idle = !instance.busy && !instance.queued;
    instance.waiting.mail = true;
    queue(instance);
    return idle;
}

bool InstanceTable::add_answer(const ActivityEnd& end) {
    const std::lock_guard lock(mutex_);
    const auto found = instances_.find(end.key.instance);
    if (found == instances_.end()) {
        return false;
    }
    found->second->waiting.answers.push_back(end);
    queue(*found->second);
    return true;
}

bool InstanceTable::holds(std::string_view id, const Uuid& token) const {
    const std::lock_guard lock(mutex_);
    const std::string key(id);
    const auto expected = expected_.find(key);
    if (expected != expected_.end() && expected->second == token) {
        return true;
    }
    const auto found = instances_.find(key);
    // The turn of a busy one changes its token.
    return found != instances_.end() && (found->second->busy || found->second->token == token);
}

bool InstanceTable::has(const std::string& id) const {
    const std::lock_guard lock(mutex_);
    return instances_.contains(id);
}

Instance* InstanceTable::take(TurnInput& input) {
    if (ready_.empty()) {
        return nullptr;
    }
    Instance* const instance = ready_.front();
    ready_.pop_front();
    instance->queued = false;
    instance->busy = true;
    ++busy_;
    used_.erase(instance->used);
    bytes_ -= instance->bytes;
    instance->bytes = 0;
    input = std::exchange(instance->waiting, TurnInput{});
    return instance;
}

Instance* InstanceTable::next(const std::stop_token& stop, TurnInput& input) {
    std::unique_lock lock(mutex_);
    if (!work_.wait(lock, stop, [this] { return !ready_.empty(); })) {
        return nullptr;
    }
    return take(input);
}

Instance* InstanceTable::try_next(TurnInput& input) {
    const std::lock_guard lock(mutex_);
    return take(input);
}

void InstanceTable::done(Instance& instance, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    instance.busy = false;
    left_turn();
    instance.lease.reset();
    note_claim(instance, instance.waiting.claim.has_value());
    instance.bytes = bytes;
    bytes_ += bytes;
    instance.used = used_.insert(used_.end(), &instance);
    if (!instance.waiting.empty()) {
        queue(instance);
    }
    make_room();
}

void InstanceTable::left_turn() {
    --busy_;
    if (busy_ == 0 && ready_.empty()) {
        idle_.notify_all();
    }
}

// Evicts the coroutines that were unused for longest; their instances continue in the process that
// claims them next.
void InstanceTable::make_room() {
    for (auto oldest = used_.begin();
         oldest != used_.end() &&
         (instances_.size() > options_.instances_max || bytes_ > options_.bytes_max);) {
        Instance& instance = **oldest;
        ++oldest;
        if (!instance.queued) {
            erase(instance);
        }
    }
}

void InstanceTable::erase(Instance& instance) {
    used_.erase(instance.used);
    bytes_ -= instance.bytes;
    const auto found = instances_.find(instance.id);
    HOLDFAST_ASSERT(found != instances_.end());
    instances_.erase(found);
}

TurnInput InstanceTable::forget(Instance& instance) {
    std::unique_ptr<Instance> gone;
    const std::lock_guard lock(mutex_);
    HOLDFAST_ASSERT(instance.busy);
    left_turn();
    note_claim(instance, false);
    TurnInput left = std::move(instance.waiting);
    const auto found = instances_.find(instance.id);
    HOLDFAST_ASSERT(found != instances_.end());
    gone = std::move(found->second);
    instances_.erase(found);
    return left;
}

void InstanceTable::hold_lease(Instance& instance, const Uuid& token, Steady now) {
    const std::lock_guard lock(mutex_);
    instance.lease = token;
    instance.claimed_at = now;
}

void InstanceTable::drop_lease(Instance& instance) {
    const std::lock_guard lock(mutex_);
    instance.lease.reset();
}

std::vector<InstanceTable::Lease> InstanceTable::leases_older_than(Steady when) {
    const std::lock_guard lock(mutex_);
    std::vector<Lease> old;
    for (const auto& [id, instance] : instances_) {
        if (instance->lease && instance->claimed_at < when) {
            old.push_back({.id = id, .token = *instance->lease, .since = instance->claimed_at});
        }
    }
    return old;
}

void InstanceTable::renewed(const std::string& id, Steady when) {
    const std::lock_guard lock(mutex_);
    const auto found = instances_.find(id);
    if (found != instances_.end()) {
        found->second->claimed_at = when;
    }
}

std::size_t InstanceTable::backlog() const {
    const std::lock_guard lock(mutex_);
    return ready_.size() + busy_;
}

void InstanceTable::wait_idle(std::chrono::nanoseconds most) {
    std::unique_lock lock(mutex_);
    idle_.wait_for(lock, most, [this] { return busy_ == 0 && ready_.empty(); });
}

std::size_t InstanceTable::claims() const {
    const std::lock_guard lock(mutex_);
    return claims_;
}

std::size_t InstanceTable::size() const {
    const std::lock_guard lock(mutex_);
    return instances_.size();
}

std::vector<ClaimedInstance> InstanceTable::take_waiting_claims() {
    const std::lock_guard lock(mutex_);
    std::vector<ClaimedInstance> claims;
    for (const auto& [id, instance] : instances_) {
        if (instance->waiting.claim) {
            claims.push_back(std::move(*instance->waiting.claim));
            instance->waiting.claim.reset();
            note_claim(*instance, instance->busy && instance->claimed);
        }
    }
    return claims;
}

void InstanceTable::wake_all() {
    work_.notify_all();
}

}  // namespace holdfast::flow
