#include "engine/wakes.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace holdfast::server::engine {

namespace {

// The wall clock may be set: no alarm is further away than this, and then it looks again.
constexpr std::chrono::seconds look_again = std::chrono::seconds{10};

}  // namespace

Wakes::Wakes(const Clock& clock,
             Alarms& alarms,
             std::function<void(const store::TaskKey&, const RunName&)> due,
             std::function<void()> load)
    : clock_(clock), alarms_(alarms), due_(std::move(due)), load_(std::move(load)) {}

Wakes::~Wakes() {
    stop();
}

Wall Wakes::horizon() const {
    const std::lock_guard lock(mutex_);
    return horizon_;
}

void Wakes::extend(Wall horizon) {
    const std::lock_guard lock(mutex_);
    horizon_ = std::max(horizon_, horizon);
    loading_ = false;
    arm_locked();
}

void Wakes::add(const store::TaskKey& key, const RunName& run) {
    const std::lock_guard lock(mutex_);
    if (stopped_ || key.fire >= horizon_) {
        return;
    }
    rows_.emplace(key, run);
    arm_locked();
}

void Wakes::remove(const store::TaskKey& key) {
    const std::lock_guard lock(mutex_);
    rows_.erase(key);
}

void Wakes::look() {
    {
        const std::lock_guard lock(mutex_);
        if (alarm_) {
            alarms_.cancel(*std::exchange(alarm_, std::nullopt));
        }
    }
    ring();
}

void Wakes::stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    if (alarm_) {
        alarms_.cancel(*std::exchange(alarm_, std::nullopt));
    }
    rows_.clear();
}

std::size_t Wakes::size() const {
    const std::lock_guard lock(mutex_);
    return rows_.size();
}

void Wakes::ring() {
    std::vector<std::pair<store::TaskKey, RunName>> due;
    bool load = false;
    {
        const std::lock_guard lock(mutex_);
        alarm_.reset();
        if (stopped_) {
            return;
        }
        const Wall now = clock_.wall_now();
        while (!rows_.empty() && rows_.begin()->first.fire <= now) {
            due.emplace_back(*rows_.begin());
            rows_.erase(rows_.begin());
        }
        if (!loading_ && horizon_ - now < 2 * look_again) {
            loading_ = true;
            load = true;
        }
        arm_locked();
    }
    if (load) {
        load_();
    }
    for (const auto& [key, run] : due) {
        due_(key, run);
    }
}

void Wakes::arm_locked() {
    if (stopped_) {
        return;
    }
    const Wall now = clock_.wall_now();
    Wall next = now + look_again;
    if (!rows_.empty()) {
        next = std::min(next, rows_.begin()->first.fire);
    }
    if (alarm_) {
        if (armed_for_ <= next) {
            return;
        }
        alarms_.cancel(*std::exchange(alarm_, std::nullopt));
    }
    armed_for_ = next;
    const auto wait = std::max(next - now, Wall::duration::zero());
    alarm_ = alarms_.set(clock_.steady_now() + wait, [this] { ring(); });
}

}  // namespace holdfast::server::engine
