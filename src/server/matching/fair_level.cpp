#include "matching/fair_level.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <holdfast/base/assert.hpp>

namespace holdfast::server::matching {

namespace {

constexpr double stride_of_one = 1000;
constexpr double weight_min = 0.001;

std::int64_t stride_of(double weight) {
    const double stride = std::trunc(stride_of_one / std::max(weight, weight_min));
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(stride));
}

}  // namespace

FairLevel::Head FairLevel::head_of(Keys::value_type& key) {
    const Waiting& first = key.second.tasks.front();
    return {.pass = first.pass, .order = first.order, .key = &key};
}

void FairLevel::add(QueuedTask task, double weight) {
    Keys::value_type& key = *keys_.try_emplace(task.fairness_key).first;
    Key& its = key.second;
    const bool first = its.tasks.empty();
    if (first) {
        resting_.erase({its.last, &key});
    }
    its.last = std::max(base_, its.last) + stride_of(weight);  // A new key has no lead, either.
    its.tasks.push_back({.task = std::move(task), .pass = its.last, .order = ++last_order_});
    if (first) {
        heads_.insert(head_of(key));
    }
    ++size_;
}

void FairLevel::put_back(QueuedTask task) {
    // Only tasks that were put back too can be before it. The bound is for a queue whose tasks were
    // added in another order.
    constexpr int steps_max = 16;
    Keys::value_type& key = *keys_.try_emplace(task.fairness_key).first;
    std::list<Waiting>& tasks = key.second.tasks;
    if (tasks.empty()) {
        resting_.erase({key.second.last, &key});
    } else {
        heads_.erase(head_of(key));
    }
    auto place = tasks.begin();
    for (int step = 0; step < steps_max; ++step) {
        if (place == tasks.end() || place->task.created >= task.created) {
            break;
        }
        ++place;
    }
    tasks.insert(place, {.task = std::move(task), .pass = base_, .order = --first_order_});
    heads_.insert(head_of(key));
    ++size_;
}

const QueuedTask& FairLevel::first() const {
    HOLDFAST_ASSERT(!heads_.empty());
    return heads_.begin()->key->second.tasks.front().task;
}

QueuedTask FairLevel::take() {
    HOLDFAST_ASSERT(!heads_.empty());
    Keys::value_type& key = *heads_.begin()->key;
    heads_.erase(heads_.begin());
    std::list<Waiting>& tasks = key.second.tasks;
    base_ = std::max(base_, tasks.front().pass);
    QueuedTask task = std::move(tasks.front().task);
    tasks.pop_front();
    if (tasks.empty()) {
        resting_.insert({key.second.last, &key});
    } else {
        heads_.insert(head_of(key));
    }
    --size_;
    // Such a key has no lead that it could lose.
    while (!resting_.empty() && resting_.begin()->first < base_) {
        const Keys::pointer gone = resting_.begin()->second;
        resting_.erase(resting_.begin());
        keys_.erase(keys_.find(gone->first));
    }
    return task;
}

std::optional<Time> FairLevel::oldest() const {
    std::optional<Time> oldest;
    for (const Head& head : heads_) {
        const Time created = head.key->second.tasks.front().task.created;
        oldest = oldest ? std::min(*oldest, created) : created;
    }
    return oldest;
}

}  // namespace holdfast::server::matching
