// The tasks of one priority that wait for a poll: fair between their keys.
//
// Stride scheduling: each key has a pass, which grows with every task of it by a stride that is
// smaller the heavier the key is, and the task with the smallest pass goes first. So a key with
// many tasks does not hold up one with few, and of two keys with many the one of weight 2 gets
// twice as much. Tasks of one key, and so all tasks without one, are first in, first out.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "matching/task.hpp"

namespace holdfast::server::matching {

class FairLevel {
public:
    // Requires: `weight` is positive.
    void add(QueuedTask task, double weight);
    // As the next of its key, after those of it that are older and were put back as well.
    void put_back(QueuedTask task);

    [[nodiscard]] bool empty() const noexcept { return heads_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    // These require that it is not empty.
    [[nodiscard]] const QueuedTask& first() const;
    [[nodiscard]] QueuedTask take();

    // When the first task of a key was made, and of these the earliest. Looks at all keys.
    [[nodiscard]] std::optional<Time> oldest() const;
    // How many keys it knows.
    [[nodiscard]] std::size_t keys() const noexcept { return keys_.size(); }

private:
    struct Waiting {
        QueuedTask task;
        std::int64_t pass = 0;
        std::int64_t order = 0;  // Between tasks of one pass.
    };
    struct Key {
        std::list<Waiting> tasks;
        std::int64_t last = 0;  // The pass of the task that came last.
    };
    using Keys = std::unordered_map<std::string, Key>;
    // The first task of each key that has one.
    struct Head {
        std::int64_t pass = 0;
        std::int64_t order = 0;
        Keys::pointer key = nullptr;

        friend bool operator<(const Head& a, const Head& b) noexcept {
            return a.pass != b.pass ? a.pass < b.pass : a.order < b.order;
        }
    };

    static Head head_of(Keys::value_type& key);

    Keys keys_;
    std::set<Head> heads_;
    // Keys without a task, by the pass of their last one, until the others have come as far.
    std::set<std::pair<std::int64_t, Keys::pointer>> resting_;
    std::size_t size_ = 0;
    std::int64_t base_ = 0;  // The pass of the task that was taken last.
    std::int64_t last_order_ = 0;
    std::int64_t first_order_ = 0;
};

}  // namespace holdfast::server::matching
