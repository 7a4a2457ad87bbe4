// Future events in order of time; at one instant in the order in which they were scheduled. That
// rule is part of the models: it decides which service gets the last permit of a second.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <holdfast/sim/scenario.hpp>

namespace holdfast::sim {

template <class What>
class EventQueue {
public:
    explicit EventQueue(Time end) : end_(end) {}

    // Requires: not in the past.
    void at(Time when, What what) {
        heap_.push_back({when, scheduled_++, std::move(what)});
        std::push_heap(heap_.begin(), heap_.end(), later);
    }
    void after(Time wait, What what) { at(now_ + wait, std::move(what)); }

    // Moves the clock to the next event and gives it out; nothing if there is none up to the end.
    // An event exactly at the end still happens.
    [[nodiscard]] std::optional<What> next() {
        if (heap_.empty() || heap_.front().when > end_) {
            return std::nullopt;
        }
        std::pop_heap(heap_.begin(), heap_.end(), later);
        Entry entry = std::move(heap_.back());
        heap_.pop_back();
        now_ = entry.when;
        ++executed_;
        return std::move(entry.what);
    }

    [[nodiscard]] Time now() const noexcept { return now_; }
    [[nodiscard]] Time end() const noexcept { return end_; }
    [[nodiscard]] std::uint64_t executed() const noexcept { return executed_; }
    [[nodiscard]] std::size_t waiting() const noexcept { return heap_.size(); }

private:
    struct Entry {
        Time when{};
        std::uint64_t number = 0;
        What what;
    };
    static bool later(const Entry& a, const Entry& b) noexcept {
        return a.when != b.when ? a.when > b.when : a.number > b.number;
    }

    std::vector<Entry> heap_;
    Time now_{};
    Time end_;
    std::uint64_t scheduled_ = 0;
    std::uint64_t executed_ = 0;
};

}  // namespace holdfast::sim
