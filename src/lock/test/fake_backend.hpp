// A lock store without a store, for tests of what is built on one: it answers as it is told, and
// remembers what it was asked.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/lock/backend.hpp>
#include <holdfast/lock/error.hpp>

namespace holdfast::lock::tests {

// By the machine's clock; only a test that fails waits for it.
inline Deadline soon() {
    return Deadline::after(std::chrono::seconds{20});
}

// Sleeping moves the time and does not wait. Remembers how long each sleep was.
class SleepwalkingClock final : public Clock {
public:
    [[nodiscard]] Steady steady_now() const override {
        const std::lock_guard lock(mutex_);
        return now_;
    }
    [[nodiscard]] Wall wall_now() const override {
        return Wall{std::chrono::microseconds{1'704'067'200'000'000}};
    }
    [[nodiscard]] std::string boot_id() const override { return "fake"; }
    [[nodiscard]] std::chrono::microseconds boot_now() const override {
        return std::chrono::floor<std::chrono::microseconds>(steady_now().time_since_epoch());
    }
    // NOLINTNEXTLINE(modernize-use-nodiscard)
    bool sleep_until(Steady until, const std::stop_token& stop) const override {
        if (stop.stop_requested()) {
            return false;
        }
        const std::lock_guard lock(mutex_);
        sleeps_.push_back(until - now_);
        now_ = std::max(now_, until);
        return true;
    }
    void advance(std::chrono::nanoseconds by) {
        const std::lock_guard lock(mutex_);
        now_ += by;
    }
    [[nodiscard]] std::vector<std::chrono::nanoseconds> sleeps() const {
        const std::lock_guard lock(mutex_);
        return sleeps_;
    }

private:
    mutable std::mutex mutex_;
    mutable Steady now_{std::chrono::hours{1}};
    mutable std::vector<std::chrono::nanoseconds> sleeps_;
};

// A gate that stays shut until the test opens it, and counts the threads that wait at it.
class Gate {
public:
    void pass() {
        std::unique_lock lock(mutex_);
        ++arrived_;
        changed_.notify_all();
        changed_.wait(lock, [&] { return open_; });
    }
    void open() {
        const std::lock_guard lock(mutex_);
        open_ = true;
        changed_.notify_all();
    }
    // False if too few arrive.
    [[nodiscard]] bool wait_for_arrival(int count = 1) {
        std::unique_lock lock(mutex_);
        return changed_.wait_until(lock, soon().when(), [&] { return arrived_ >= count; });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int arrived_ = 0;
    bool open_ = false;
};

struct AcquireCall {
    std::string key;
    std::chrono::milliseconds ttl;
    AcquireOptions options;
};

struct ReleaseCall {
    LockId lock_id;
    CallOptions options;
};

struct ExtendCall {
    LockId lock_id;
    std::chrono::milliseconds ttl;
    CallOptions options;
    ExtendMode mode;
};

struct AbandonCall {
    LockId lock_id;
    std::chrono::milliseconds ttl;
};

// A call that only reads: what it was asked for, as text.
struct FindCall {
    std::string what;
    std::string about;
    CallOptions options;
};

// Safe to share between threads; the scripts are set before.
class FakeBackend final : public Backend {
public:
    explicit FakeBackend(const Clock& clock = system_clock()) : clock_(clock) {}
    // A release that was given up may still be running.
    ~FakeBackend() override { (void)wait_until_idle(); }
    FakeBackend(const FakeBackend&) = delete;
    FakeBackend& operator=(const FakeBackend&) = delete;

    // What each does instead of succeeding. The number counts the calls of its kind from 1.
    std::function<Acquired(int number, const AcquireCall&)> on_acquire;
    std::function<Released(int number, const ReleaseCall&)> on_release;
    std::function<Extended(int number, const ExtendCall&)> on_extend;
    std::function<std::unique_ptr<WaitTicket>(const LockId&, Deadline)> on_line_up;
    bool locked = false;
    std::optional<LockInfo> info;
    std::optional<RawLockInfo> raw_info;

    [[nodiscard]] std::vector<AcquireCall> acquires() const { return copy(acquires_); }
    [[nodiscard]] std::vector<ReleaseCall> releases() const { return copy(releases_); }
    [[nodiscard]] std::vector<ExtendCall> extends() const { return copy(extends_); }
    [[nodiscard]] std::vector<FindCall> finds() const { return copy(finds_); }
    [[nodiscard]] std::vector<AbandonCall> abandoned() const { return copy(abandoned_); }
    // False if there are not as many in time.
    [[nodiscard]] bool wait_for_extends(std::size_t count) const {
        std::unique_lock lock(mutex_);
        return changed_.wait_until(lock, soon().when(), [&] { return extends_.size() >= count; });
    }
    // Waits until no call is running; false if one stays.
    [[nodiscard]] bool wait_until_idle() const {
        std::unique_lock lock(mutex_);
        return changed_.wait_until(lock, soon().when(), [&] { return inside_ == 0; });
    }

    [[nodiscard]] Grant grant(const AcquireCall& call) {
        const std::lock_guard lock(mutex_);
        return {.lock_id = call.options.lock_id.value_or(LockId::fresh()),
                .fence = Fence{++fence_},
                .expires_at = server_now() + call.ttl,
                .safe_until = clock_.steady_now() + call.ttl};
    }
    [[nodiscard]] Extended extension(std::chrono::milliseconds ttl) const {
        return {
            .ok = true, .expires_at = server_now() + ttl, .safe_until = clock_.steady_now() + ttl};
    }

    Acquired acquire(std::string_view key,
                     std::chrono::milliseconds ttl,
                     const AcquireOptions& options) override {
        const AcquireCall call{.key = std::string(key), .ttl = ttl, .options = options};
        const Visit visit(*this);
        const int number = note(acquires_, call);
        return on_acquire ? on_acquire(number, call) : Acquired{grant(call)};
    }
    Released release(const LockId& lock_id, const CallOptions& options) override {
        const ReleaseCall call{.lock_id = lock_id, .options = options};
        const Visit visit(*this);
        const int number = note(releases_, call);
        return on_release ? on_release(number, call) : Released{.ok = true};
    }
    Extended extend(const LockId& lock_id,
                    std::chrono::milliseconds ttl,
                    const CallOptions& options,
                    ExtendMode mode) override {
        const ExtendCall call{.lock_id = lock_id, .ttl = ttl, .options = options, .mode = mode};
        const Visit visit(*this);
        const int number = note(extends_, call);
        return on_extend ? on_extend(number, call) : extension(ttl);
    }
    [[nodiscard]] bool is_locked(std::string_view key, const CallOptions& options) override {
        note(finds_, {.what = "is_locked", .about = std::string(key), .options = options});
        return locked;
    }
    [[nodiscard]] std::optional<LockInfo> find(std::string_view key,
                                               const CallOptions& options) override {
        note(finds_, {.what = "find", .about = std::string(key), .options = options});
        return info;
    }
    [[nodiscard]] std::optional<LockInfo> find_by_id(const LockId& lock_id,
                                                     const CallOptions& options) override {
        note(finds_, {.what = "find_by_id", .about = lock_id.reveal(), .options = options});
        return info;
    }
    [[nodiscard]] std::optional<RawLockInfo> find_raw(std::string_view key,
                                                      const CallOptions& options) override {
        note(finds_, {.what = "find_raw", .about = std::string(key), .options = options});
        return raw_info;
    }
    [[nodiscard]] std::optional<RawLockInfo> find_raw_by_id(const LockId& lock_id,
                                                            const CallOptions& options) override {
        note(finds_, {.what = "find_raw_by_id", .about = lock_id.reveal(), .options = options});
        return raw_info;
    }
    [[nodiscard]] std::unique_ptr<WaitTicket> line_up(std::string_view /*key*/,
                                                      const LockId& lock_id,
                                                      Deadline patience) override {
        return on_line_up ? on_line_up(lock_id, patience) : nullptr;
    }
    void abandon(const LockId& lock_id, std::chrono::milliseconds ttl) noexcept override {
        note(abandoned_, {.lock_id = lock_id, .ttl = ttl});
    }
    [[nodiscard]] const Capabilities& capabilities() const noexcept override {
        return capabilities_;
    }

private:
    class Visit {
    public:
        explicit Visit(FakeBackend& backend) : backend_(backend) { count(1); }
        ~Visit() { count(-1); }
        Visit(const Visit&) = delete;
        Visit& operator=(const Visit&) = delete;

    private:
        void count(int by) {
            const std::lock_guard lock(backend_.mutex_);
            backend_.inside_ += by;
            backend_.changed_.notify_all();
        }
        FakeBackend& backend_;
    };

    [[nodiscard]] ServerTime server_now() const {
        return std::chrono::floor<std::chrono::milliseconds>(clock_.wall_now());
    }
    template <class Call>
    int note(std::vector<Call>& calls, Call call) {
        const std::lock_guard lock(mutex_);
        calls.push_back(std::move(call));
        changed_.notify_all();
        return static_cast<int>(calls.size());
    }
    template <class Call>
    [[nodiscard]] std::vector<Call> copy(const std::vector<Call>& calls) const {
        const std::lock_guard lock(mutex_);
        return calls;
    }

    const Clock& clock_;
    const Capabilities capabilities_{.backend = "fake"};
    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    int inside_ = 0;
    std::uint64_t fence_ = 0;
    std::vector<AcquireCall> acquires_;
    std::vector<ReleaseCall> releases_;
    std::vector<ExtendCall> extends_;
    std::vector<FindCall> finds_;
    std::vector<AbandonCall> abandoned_;
};

// The LockError that `body` throws; anything else fails the test by passing through.
template <class Body>
[[nodiscard]] std::optional<LockError> lock_error_of(Body&& body) {
    try {
        std::forward<Body>(body)();
        return std::nullopt;
    } catch (const LockError& error) {
        return error;
    }
}

}  // namespace holdfast::lock::tests
