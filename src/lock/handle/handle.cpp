#include <holdfast/lock/handle.hpp>

#include <ctime>

#include "handle/handle_state.hpp"

#include <holdfast/base/assert.hpp>

namespace holdfast::lock {
namespace {

std::chrono::nanoseconds read_clock(clockid_t which) noexcept {
    timespec now{};
    HOLDFAST_ASSERT(clock_gettime(which, &now) == 0);
    return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}

}  // namespace

std::string_view to_string(LostReason reason) noexcept {
    switch (reason) {
        case LostReason::refused:
            return "refused";
        case LostReason::out_of_time:
            return "out_of_time";
        case LostReason::failed:
            return "failed";
        case LostReason::lifetime_over:
            return "lifetime_over";
    }
    return "";
}

std::chrono::nanoseconds time_suspended() noexcept {
    const std::chrono::nanoseconds boot = read_clock(CLOCK_BOOTTIME);
    return boot - read_clock(CLOCK_MONOTONIC);
}

Handle::Handle(Backend& backend, std::string key, Acquired acquired, HandleOptions options)
    : key_(std::move(key)) {
    if (options.dispose_timeout && options.dispose_timeout->count() <= 0) {
        throw LockError(LockCode::invalid_argument, "the dispose timeout must be positive");
    }
    if (const Busy* busy = std::get_if<Busy>(&acquired)) {
        busy_ = *busy;
        return;
    }
    state_ = std::make_shared<State>(
        backend, key_, std::get<Grant>(std::move(acquired)), std::move(options));
}

Handle::~Handle() {
    dispose();
}

Handle::Handle(Handle&& other) noexcept = default;

Handle& Handle::operator=(Handle&& other) noexcept {
    if (this != &other) {
        dispose();
        key_ = std::move(other.key_);
        busy_ = other.busy_;
        state_ = std::move(other.state_);
    }
    return *this;
}

Grant Handle::grant() const {
    HOLDFAST_ASSERT(ok());
    return state_->grant();
}

Fence Handle::fence() const {
    return grant().fence;
}

ServerTime Handle::expires_at() const {
    return grant().expires_at;
}

Steady Handle::safe_until() const {
    HOLDFAST_ASSERT(ok());
    return state_->safe_until();
}

std::chrono::nanoseconds Handle::remaining() const {
    if (!ok()) {
        return std::chrono::nanoseconds{0};
    }
    return Deadline::at(state_->safe_until()).remaining(state_->clock().steady_now());
}

std::stop_token Handle::lost() const {
    return ok() ? state_->lost() : std::stop_token{};
}

std::optional<LostReason> Handle::lost_reason() const {
    return ok() ? state_->lost_reason() : std::nullopt;
}

Released Handle::release(const CallOptions& options) {
    return ok() ? state_->release(options) : Released{};
}

Extended Handle::extend(std::chrono::milliseconds ttl, const CallOptions& options) {
    return ok() ? state_->extend(ttl, options) : Extended{};
}

void Handle::dispose() noexcept {
    if (ok()) {
        state_->dispose();
    }
}

std::optional<Released> Handle::released() const {
    return ok() ? state_->released() : std::nullopt;
}

bool Handle::gone_at_release() const {
    const std::optional<Released> answer = released();
    return answer && !answer->ok && !(answer->indeterminate && remaining().count() > 0);
}

Handle acquire_handle(Backend& backend,
                      std::string_view key,
                      std::chrono::milliseconds ttl,
                      const AcquireOptions& options,
                      HandleOptions handle_options) {
    return {backend,
            std::string(key),
            acquire_once(backend, key, ttl, options),
            std::move(handle_options)};
}

}  // namespace holdfast::lock
