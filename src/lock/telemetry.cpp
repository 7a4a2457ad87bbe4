#include <holdfast/lock/telemetry.hpp>

#include <utility>

#include <holdfast/lock/key.hpp>

namespace holdfast::lock {
namespace {

std::string_view text_of(std::optional<Missing> why) noexcept {
    if (!why) {
        return {};
    }
    return *why == Missing::expired ? "expired" : "not-found";
}

// Empty for a key that is not valid text: the call was refused, but still gets its event.
std::string hash_of(const std::optional<std::string>& value, std::string_view secret) {
    if (!value) {
        return {};
    }
    try {
        return hashed_name(*value, secret);
    } catch (const LockError&) {
        return {};
    }
}

EventResult result_of(bool ok) noexcept {
    return ok ? EventResult::ok : EventResult::fail;
}

}  // namespace

// The raw key or id of a call.
struct Observed::Subject {
    std::optional<std::string> key{};
    std::optional<std::string> lock_id{};
};

std::string_view to_string(EventType type) noexcept {
    switch (type) {
        case EventType::acquire:
            return "acquire";
        case EventType::release:
            return "release";
        case EventType::extend:
            return "extend";
        case EventType::is_locked:
            return "is_locked";
        case EventType::find:
            return "find";
    }
    return "";
}

std::string_view to_string(EventResult result) noexcept {
    switch (result) {
        case EventResult::ok:
            return "ok";
        case EventResult::fail:
            return "fail";
        case EventResult::error:
            return "error";
    }
    return "";
}

Observed::Observed(Backend& backend, ObservedOptions options)
    : backend_(backend),
      options_(std::move(options)),
      clock_(options_.clock != nullptr ? *options_.clock : system_clock()) {}

bool Observed::wants_raw(const Event& event) const noexcept {
    if (const bool* always = std::get_if<bool>(&options_.include_raw)) {
        return *always;
    }
    try {
        const auto& predicate = std::get<RawPredicate>(options_.include_raw);
        return predicate && predicate(event);
    } catch (...) {
        return false;
    }
}

void Observed::emit(Event event, const Subject& subject) const noexcept {
    try {
        event.key_hash = hash_of(subject.key, options_.hash_secret);
        event.lock_id_hash = hash_of(subject.lock_id, options_.hash_secret);
        if (wants_raw(event)) {
            event.key = subject.key;
            event.lock_id = subject.lock_id;
        }
        options_.on_event(event);
    } catch (...) {  // NOLINT(bugprone-empty-catch): a failing callback must not fail the call.
    }
}

// `tell` adds what the answer says to the event and to its subject.
template <class Call, class Tell>
auto Observed::observe(Event event, const Subject& subject, Call call, Tell tell) {
    if (!options_.on_event) {
        return call();
    }
    const Steady before = clock_.steady_now();
    try {
        auto answer = call();
        event.duration = clock_.steady_now() - before;
        Subject about = subject;
        tell(answer, event, about);
        emit(std::move(event), about);
        return answer;
    } catch (...) {
        event.duration = clock_.steady_now() - before;
        event.result = EventResult::error;
        event.code = to_lock_error(std::current_exception()).lock_code();
        emit(std::move(event), subject);
        throw;
    }
}

Acquired Observed::acquire(std::string_view key,
                           std::chrono::milliseconds ttl,
                           const AcquireOptions& options) {
    return observe(
        {.type = EventType::acquire, .attempt = options.attempt},
        {.key = std::string(key)},
        [&] { return backend_.acquire(key, ttl, options); },
        [](const Acquired& answer, Event& event, Subject& subject) {
            const Grant* grant = std::get_if<Grant>(&answer);
            event.result = result_of(grant != nullptr);
            if (grant == nullptr) {
                event.reason = "locked";
                return;
            }
            event.fence = grant->fence;
            subject.lock_id = grant->lock_id.reveal();
        });
}

Released Observed::release(const LockId& lock_id, const CallOptions& options) {
    return observe(
        {.type = EventType::release},
        {.lock_id = lock_id.reveal()},
        [&] { return backend_.release(lock_id, options); },
        [](const Released& answer, Event& event, Subject&) {
            event.result = result_of(answer.ok);
            event.reason = answer.ok ? std::string_view{} : text_of(answer.why);
        });
}

Extended Observed::extend(const LockId& lock_id,
                          std::chrono::milliseconds ttl,
                          const CallOptions& options,
                          ExtendMode mode) {
    return observe(
        {.type = EventType::extend},
        {.lock_id = lock_id.reveal()},
        [&] { return backend_.extend(lock_id, ttl, options, mode); },
        [](const Extended& answer, Event& event, Subject&) {
            event.result = result_of(answer.ok);
            event.reason = answer.ok ? std::string_view{} : text_of(answer.why);
        });
}

bool Observed::is_locked(std::string_view key, const CallOptions& options) {
    return observe(
        {.type = EventType::is_locked},
        {.key = std::string(key)},
        [&] { return backend_.is_locked(key, options); },
        [](bool answer, Event& event, Subject&) { event.result = result_of(answer); });
}

namespace {

constexpr auto tell_found = [](const auto& answer, Event& event, auto& /*subject*/) {
    event.result = result_of(answer.has_value());
    if (answer) {
        if constexpr (requires { answer->info; }) {
            event.fence = answer->info.fence;
        } else {
            event.fence = answer->fence;
        }
    }
};

}  // namespace

std::optional<LockInfo> Observed::find(std::string_view key, const CallOptions& options) {
    return observe(
        {.type = EventType::find},
        {.key = std::string(key)},
        [&] { return backend_.find(key, options); },
        tell_found);
}

std::optional<LockInfo> Observed::find_by_id(const LockId& lock_id, const CallOptions& options) {
    return observe(
        {.type = EventType::find},
        {.lock_id = lock_id.reveal()},
        [&] { return backend_.find_by_id(lock_id, options); },
        tell_found);
}

std::optional<RawLockInfo> Observed::find_raw(std::string_view key, const CallOptions& options) {
    return observe(
        {.type = EventType::find},
        {.key = std::string(key)},
        [&] { return backend_.find_raw(key, options); },
        tell_found);
}

std::optional<RawLockInfo> Observed::find_raw_by_id(const LockId& lock_id,
                                                    const CallOptions& options) {
    return observe(
        {.type = EventType::find},
        {.lock_id = lock_id.reveal()},
        [&] { return backend_.find_raw_by_id(lock_id, options); },
        tell_found);
}

std::unique_ptr<WaitTicket> Observed::line_up(std::string_view key,
                                              const LockId& lock_id,
                                              Deadline patience) {
    return backend_.line_up(key, lock_id, patience);
}

void Observed::abandon(const LockId& lock_id, std::chrono::milliseconds ttl) noexcept {
    backend_.abandon(lock_id, ttl);
}

const Capabilities& Observed::capabilities() const noexcept {
    return backend_.capabilities();
}

}  // namespace holdfast::lock
