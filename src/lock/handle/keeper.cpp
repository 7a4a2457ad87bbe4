#include <holdfast/lock/keeper.hpp>

#include <algorithm>
#include <array>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "handle/handle_state.hpp"

namespace holdfast::lock {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// However long the lease: a connection that hangs must not hold up the extensions of the others.
constexpr std::chrono::seconds attempt_max{5};
constexpr milliseconds retry_max{500};

milliseconds interval_of(const AutoExtend& settings, milliseconds ttl) {
    return settings.interval.value_or(std::max(ttl / 3, milliseconds{1}));
}

// What extensions took lately.
class Latencies {
public:
    void add(nanoseconds latency) {
        latest_[next_++ % latest_.size()] = latency;
        const std::size_t count = std::min(next_, latest_.size());
        std::array<nanoseconds, 128> sorted = latest_;
        const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(count);
        const auto ninety_ninth =
            sorted.begin() + static_cast<std::ptrdiff_t>((count * 99 - 1) / 100);
        std::nth_element(sorted.begin(), ninety_ninth, end);
        p99_ = *ninety_ninth;
    }
    [[nodiscard]] nanoseconds p99() const noexcept { return p99_; }

private:
    std::array<nanoseconds, 128> latest_{};
    std::size_t next_ = 0;
    nanoseconds p99_{0};
};

}  // namespace

void check_auto_extend(const AutoExtend& settings, milliseconds ttl) {
    const milliseconds interval = interval_of(settings, ttl);
    if (interval.count() < 1 || interval > ttl / 2) {
        throw LockError(LockCode::invalid_argument,
                        "extend at least twice per lease: the interval is 1 ms to ttl / 2");
    }
    if (settings.safety_margin &&
        (settings.safety_margin->count() < 0 || interval + *settings.safety_margin >= ttl)) {
        throw LockError(LockCode::invalid_argument,
                        "the safety margin must leave time between the interval and the ttl");
    }
    if (settings.max_lifetime && settings.max_lifetime->count() <= 0) {
        throw LockError(LockCode::invalid_argument, "the lifetime must be positive");
    }
}

class Keeper::Work {
public:
    explicit Work(const Clock& clock) : clock_(clock) {}
    ~Work();
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

    void keep(std::shared_ptr<Handle::State> lock, milliseconds ttl, const AutoExtend& settings);
    [[nodiscard]] std::size_t kept() const;

private:
    struct Entry {
        std::shared_ptr<Handle::State> lock;
        milliseconds ttl;
        milliseconds interval;
        std::optional<milliseconds> margin;
        std::optional<Steady> last_day;
        std::optional<Steady> retry_at{};
    };
    using EntryPtr = std::shared_ptr<Entry>;

    void send_all();
    void watch_all();
    // The next one to extend, and when; the mutex must be held for all of these.
    [[nodiscard]] std::pair<EntryPtr, Steady> first_due() const;
    [[nodiscard]] Steady due(const Entry& entry) const;
    [[nodiscard]] Steady give_up(const Entry& entry) const;
    [[nodiscard]] bool lifetime_over(const Entry& entry, Steady now) const;
    void send(const EntryPtr& entry, Steady give_up_at);
    [[nodiscard]] nanoseconds longest_nap() const;
    void sleep(std::unique_lock<std::mutex>& lock, Steady until, const std::stop_token& changed);
    void wake(std::unique_lock<std::mutex>& lock);

    const Clock& clock_;
    std::stop_source end_;

    mutable std::mutex mutex_;
    std::vector<EntryPtr> entries_;
    Latencies latencies_;
    std::stop_source changed_;  // A new one for each change; those asleep have the old one's token.
    std::jthread sender_;
    std::jthread watcher_;
};

Keeper::Work::~Work() {
    end_.request_stop();
    std::unique_lock lock(mutex_);
    wake(lock);
    // The threads join.
}

void Keeper::Work::keep(std::shared_ptr<Handle::State> lock,
                        milliseconds ttl,
                        const AutoExtend& settings) {
    auto entry = std::make_shared<Entry>(Entry{.lock = std::move(lock),
                                               .ttl = ttl,
                                               .interval = interval_of(settings, ttl),
                                               .margin = settings.safety_margin,
                                               .last_day = std::nullopt});
    if (settings.max_lifetime) {
        entry->last_day = clock_.steady_now() + *settings.max_lifetime;
    }
    std::unique_lock guard(mutex_);
    if (entries_.size() >= locks_max) {
        throw LockError(LockCode::rate_limited, "this keeper has as many locks as it can extend");
    }
    entries_.push_back(std::move(entry));
    if (!sender_.joinable()) {
        sender_ = std::jthread([this] { send_all(); });
        watcher_ = std::jthread([this] { watch_all(); });
    }
    wake(guard);
}

std::size_t Keeper::Work::kept() const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::ranges::count_if(
        entries_, [](const EntryPtr& entry) { return !entry->lock->over(); }));
}

Steady Keeper::Work::due(const Entry& entry) const {
    // Counted from the end of the lease: if it was made longer, there is time.
    return entry.retry_at.value_or(entry.lock->safe_until() - (entry.ttl - entry.interval));
}

Steady Keeper::Work::give_up(const Entry& entry) const {
    if (entry.margin) {
        return entry.lock->safe_until() - *entry.margin;
    }
    const nanoseconds wanted = std::max<nanoseconds>(entry.ttl / 10, 2 * latencies_.p99());
    // A slow spell must not end a lock before it could even be extended.
    const nanoseconds bound = (nanoseconds{entry.ttl} - entry.interval) / 2;
    return entry.lock->safe_until() - std::min(wanted, bound);
}

bool Keeper::Work::lifetime_over(const Entry& entry, Steady now) const {
    return entry.last_day && now >= *entry.last_day;
}

std::pair<Keeper::Work::EntryPtr, Steady> Keeper::Work::first_due() const {
    const Steady now = clock_.steady_now();
    EntryPtr first;
    Steady when = Steady::max();
    for (const EntryPtr& entry : entries_) {
        if (!entry->lock->over() && !lifetime_over(*entry, now) && due(*entry) < when) {
            first = entry;
            when = due(*entry);
        }
    }
    return {first, when};
}

void Keeper::Work::send_all() {
    std::unique_lock lock(mutex_);
    while (!end_.stop_requested()) {
        const std::stop_token changed = changed_.get_token();
        const auto [entry, when] = first_due();
        const Steady now = clock_.steady_now();
        if (!entry || when > now) {
            sleep(lock, std::min(when, now + longest_nap()), changed);
            continue;
        }
        const Steady give_up_at = give_up(*entry);
        if (now >= give_up_at) {
            // The process may have been stopped for longer than its lease: no extension after that.
            entry->retry_at = now + nap_max;  // If a release is under way, it may yet fail.
            lock.unlock();
            entry->lock->lose_if_held(LostReason::out_of_time);
        } else {
            lock.unlock();
            send(entry, give_up_at);
        }
        lock.lock();
    }
}

void Keeper::Work::send(const EntryPtr& entry, Steady give_up_at) {
    using Beat = Handle::State::Beat;
    const Steady before = clock_.steady_now();
    const Beat beat = entry->lock->heartbeat(
        entry->ttl,
        {.stop = end_.get_token(),
         .deadline = Deadline::at(std::min(give_up_at, before + attempt_max))});
    const Steady after = clock_.steady_now();
    {
        const std::lock_guard lock(mutex_);
        entry->retry_at.reset();
        if (beat == Beat::extended) {
            latencies_.add(after - before);
        } else if (beat == Beat::again) {
            entry->retry_at =
                after + std::min<nanoseconds>(nanoseconds{entry->interval} / 4, retry_max);
        }
    }
    if (beat == Beat::refused || beat == Beat::failed) {
        entry->lock->lose_if_held(beat == Beat::refused ? LostReason::refused : LostReason::failed);
    }
}

void Keeper::Work::watch_all() {
    std::unique_lock lock(mutex_);
    while (!end_.stop_requested()) {
        const std::stop_token changed = changed_.get_token();
        std::erase_if(entries_, [](const EntryPtr& entry) { return entry->lock->over(); });
        const Steady now = clock_.steady_now();
        Steady next = now + longest_nap();
        std::vector<std::pair<EntryPtr, LostReason>> lost;
        for (const EntryPtr& entry : entries_) {
            const Steady when = give_up(*entry);
            if (when <= now) {
                lost.emplace_back(entry,
                                  lifetime_over(*entry, now) ? LostReason::lifetime_over
                                                             : LostReason::out_of_time);
            } else {
                next = std::min(next, when);
            }
        }
        lock.unlock();
        for (const auto& [entry, reason] : lost) {
            entry->lock->lose_if_held(reason);
        }
        lock.lock();
        sleep(lock, next, changed);
    }
}

nanoseconds Keeper::Work::longest_nap() const {
    constexpr std::chrono::hours idle{1};
    return entries_.empty() ? nanoseconds{idle} : nanoseconds{nap_max};
}

void Keeper::Work::sleep(std::unique_lock<std::mutex>& lock,
                         Steady until,
                         const std::stop_token& changed) {
    lock.unlock();
    clock_.sleep_until(until, changed);
    lock.lock();
}

// Releases the mutex.
void Keeper::Work::wake(std::unique_lock<std::mutex>& lock) {
    const std::stop_source before = std::exchange(changed_, std::stop_source{});
    lock.unlock();
    before.request_stop();
}

Keeper::Keeper(const Clock& clock) : work_(std::make_unique<Work>(clock)) {}

Keeper::~Keeper() = default;

void Keeper::keep(const Handle& handle, milliseconds ttl, AutoExtend settings) {
    check_auto_extend(settings, ttl);
    if (handle.ok()) {
        work_->keep(handle.state_, ttl, settings);
    }
}

std::size_t Keeper::kept() const {
    return work_->kept();
}

}  // namespace holdfast::lock
