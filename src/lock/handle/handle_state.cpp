#include "handle/handle_state.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include <holdfast/base/log.hpp>

namespace holdfast::lock {
namespace {

// Two clocks are never read at once, so a few milliseconds are noise: `safe_until` has more to
// spare.
std::chrono::nanoseconds slept(std::chrono::nanoseconds before, std::chrono::nanoseconds after) {
    constexpr std::chrono::milliseconds noise{5};
    return after - before < noise ? std::chrono::nanoseconds{0} : after - before;
}

}  // namespace

Acquired acquire_once(Backend& backend,
                      std::string_view key,
                      std::chrono::milliseconds ttl,
                      const AcquireOptions& options) {
    const std::chrono::nanoseconds before = time_suspended();
    Acquired acquired = backend.acquire(key, ttl, options);
    if (Grant* grant = std::get_if<Grant>(&acquired)) {
        grant->safe_until -= slept(before, time_suspended());
    }
    return acquired;
}

// A release that runs on a thread of its own, because its caller cannot wait for ever.
struct Handle::State::Disposal {
    std::stop_source cancel;
    std::stop_source ended;
    std::mutex mutex;
    bool given_up = false;  // Reported already; a later answer is ignored.
    bool done = false;
    std::optional<LockError> error;
};

Handle::State::State(Backend& backend, std::string key, Grant grant, HandleOptions options)
    : backend_(backend),
      key_(std::move(key)),
      options_([&] {
          if (!options.suspended) {
              options.suspended = time_suspended;
          }
          return std::move(options);
      }()),
      clock_(options_.clock != nullptr ? *options_.clock : system_clock()),
      grant_(std::move(grant)),
      suspended_at_(options_.suspended()) {}

Grant Handle::State::grant() const {
    const std::lock_guard lock(mutex_);
    return grant_;
}

Steady Handle::State::safe_until() const {
    const std::chrono::nanoseconds suspended = options_.suspended();
    const std::lock_guard lock(mutex_);
    return grant_.safe_until - slept(suspended_at_, suspended);
}

std::optional<LostReason> Handle::State::lost_reason() const {
    const std::lock_guard lock(mutex_);
    return lost_reason_;
}

std::optional<Released> Handle::State::released() const {
    const std::lock_guard lock(mutex_);
    return released_;
}

LockError::Context Handle::State::context() const {
    return {.key = key_, .lock_id = grant_.lock_id.reveal()};
}

void Handle::State::begin_release() {
    phase_ = Phase::releasing;
    releaser_ = std::this_thread::get_id();
    release_ended_ = std::stop_source{};
}

void Handle::State::end_release(Phase next, std::optional<Released> answer) noexcept {
    const std::stop_source ended = [&] {
        const std::lock_guard lock(mutex_);
        phase_ = next;
        releaser_ = {};
        if (answer) {
            released_ = answer;
        }
        return release_ended_;
    }();
    changed_.notify_all();
    ended.request_stop();
}

Released Handle::State::release(const CallOptions& options) {
    {
        const std::lock_guard lock(mutex_);
        if (phase_ != Phase::active) {
            return {};
        }
        begin_release();
    }
    try {
        const Released answer = backend_.release(grant_.lock_id, options);
        end_release(Phase::disposed, answer);
        return answer;
    } catch (const LockError& error) {
        // A release can be repeated safely, so a transient failure is worth another call.
        end_release(error.retryable() ? Phase::active : Phase::disposed);
        throw;
    } catch (...) {
        end_release(Phase::disposed);
        throw to_lock_error(std::current_exception(), context());
    }
}

// True if the release is the caller's to make.
bool Handle::State::begin_disposal() {
    std::unique_lock lock(mutex_);
    while (phase_ == Phase::releasing) {
        if (releaser_ == std::this_thread::get_id()) {
            return false;  // From inside the release itself: waiting would never end.
        }
        if (!options_.dispose_timeout) {
            changed_.wait(lock, [&] { return phase_ != Phase::releasing; });
            continue;
        }
        const std::stop_token ended = release_ended_.get_token();
        lock.unlock();
        if (clock_.sleep_until(clock_.steady_now() + *options_.dispose_timeout, ended)) {
            report(LockError(LockCode::network_timeout, "disposal timed out"));
            return false;
        }
        lock.lock();
    }
    if (phase_ == Phase::disposed) {
        return false;
    }
    begin_release();
    return true;
}

std::optional<LockError> Handle::State::release_for_disposal(const CallOptions& options) noexcept {
    std::optional<Released> answer;
    std::optional<LockError> failure;
    try {
        answer = backend_.release(grant_.lock_id, options);
    } catch (...) {
        failure = to_lock_error(std::current_exception(), context());
    }
    end_release(Phase::disposed, answer);
    return failure;
}

void Handle::State::dispose() noexcept {
    if (!begin_disposal()) {
        return;
    }
    if (options_.dispose_timeout && dispose_within(*options_.dispose_timeout)) {
        return;
    }
    if (const std::optional<LockError> failure = release_for_disposal({})) {
        report(*failure);
    }
}

// False if no thread could be started: then nothing has happened.
bool Handle::State::dispose_within(std::chrono::milliseconds timeout) {
    const auto disposal = std::make_shared<Disposal>();
    const Steady until = clock_.steady_now() + timeout;
    try {
        std::thread([self = shared_from_this(), disposal] {
            {
                const std::lock_guard lock(self->mutex_);
                self->releaser_ = std::this_thread::get_id();
            }
            std::optional<LockError> failure =
                self->release_for_disposal({.stop = disposal->cancel.get_token()});
            {
                const std::lock_guard lock(disposal->mutex);
                disposal->done = true;
                disposal->error = std::move(failure);
            }
            disposal->ended.request_stop();
        }).detach();
    } catch (const std::system_error&) {
        return false;
    }
    clock_.sleep_until(until, disposal->ended.get_token());
    {
        const std::lock_guard lock(disposal->mutex);
        disposal->given_up = !disposal->done;
    }
    if (disposal->given_up) {
        disposal->cancel.request_stop();
        end_release(Phase::disposed);
        report(LockError(LockCode::network_timeout, "disposal timed out"));
    } else if (const std::optional<LockError>& error = disposal->error; error) {
        report(*error);
    }
    return true;
}

void Handle::State::report(const LockError& error) noexcept {
    try {
        if (options_.on_release_error) {
            options_.on_release_error({.error = error, .key = key_, .lock_id = grant_.lock_id});
        } else if (options_.logger != nullptr) {
            // Neither key nor id: they are secrets, and the log is widely read.
            options_.logger->warn("lock release failed",
                                  {{"message", error.what()},
                                   {"error", to_string(error.lock_code())},
                                   {"source", "disposal"}});
        }
    } catch (...) {  // NOLINT(bugprone-empty-catch): there is no caller left to tell.
    }
}

Extended Handle::State::extend(std::chrono::milliseconds ttl, const CallOptions& options) {
    {
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, options.stop, [&] { return !extending_; })) {
            throw LockError(LockCode::aborted, "the operation was aborted by its stop token");
        }
        extending_ = true;
    }
    const std::chrono::nanoseconds before = options_.suspended();
    Extended answer;
    try {
        answer = backend_.extend(grant_.lock_id, ttl, options);
    } catch (const LockError&) {
        end_extension();
        throw;
    } catch (...) {
        end_extension();
        throw to_lock_error(std::current_exception(), context());
    }
    end_extension(answer, ExtendMode::replace, before);
    if (!answer.ok) {
        lose_if_held(LostReason::refused);
    }
    return answer;
}

Handle::State::Beat Handle::State::heartbeat(std::chrono::milliseconds ttl,
                                             const CallOptions& options) noexcept {
    {
        const std::lock_guard lock(mutex_);
        if (phase_ != Phase::active || extending_) {
            return Beat::again;
        }
        extending_ = true;
    }
    try {
        const std::chrono::nanoseconds before = options_.suspended();
        const Extended answer = backend_.extend(grant_.lock_id, ttl, options, ExtendMode::at_least);
        end_extension(answer, ExtendMode::at_least, before);
        return answer.ok ? Beat::extended : Beat::refused;
    } catch (const LockError& error) {
        end_extension();
        return error.retryable() || error.lock_code() == LockCode::aborted ? Beat::again
                                                                           : Beat::failed;
    } catch (...) {
        end_extension();
        return Beat::failed;
    }
}

void Handle::State::end_extension(const Extended& answer,
                                  ExtendMode mode,
                                  std::chrono::nanoseconds suspended_before) {
    {
        const std::lock_guard lock(mutex_);
        extending_ = false;
        // Both by the steady clock of now, so that they can be compared.
        const Steady had = grant_.safe_until - slept(suspended_at_, suspended_before);
        if (answer.ok && (mode == ExtendMode::replace || answer.safe_until > had)) {
            grant_.expires_at = answer.expires_at;
            grant_.safe_until = answer.safe_until;
            suspended_at_ = suspended_before;
        }
    }
    changed_.notify_all();
}

void Handle::State::end_extension() noexcept {
    {
        const std::lock_guard lock(mutex_);
        extending_ = false;
    }
    changed_.notify_all();
}

bool Handle::State::over() const {
    const std::lock_guard lock(mutex_);
    return phase_ == Phase::disposed || lost_reason_.has_value();
}

void Handle::State::lose(LostReason reason) noexcept {
    {
        const std::lock_guard lock(mutex_);
        if (lost_reason_) {
            return;
        }
        lost_reason_ = reason;
    }
    tell_lost(reason);
}

void Handle::State::lose_if_held(LostReason reason) noexcept {
    {
        const std::lock_guard lock(mutex_);
        if (lost_reason_ || phase_ != Phase::active) {
            return;
        }
        lost_reason_ = reason;
    }
    tell_lost(reason);
}

void Handle::State::tell_lost(LostReason reason) noexcept {
    lost_.request_stop();
    try {
        if (options_.on_lost) {
            options_.on_lost(reason);
        }
    } catch (...) {  // NOLINT(bugprone-empty-catch): the keeper must go on for the others.
    }
}

}  // namespace holdfast::lock
