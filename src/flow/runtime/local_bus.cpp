#include "runtime/local_bus.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::flow::detail {

// --- FirstTurn
// --------------------------------------------------------------------------------------

FirstTurn::Answer FirstTurn::wait(milliseconds patience) {
    std::unique_lock lock(mutex_);
    const auto decided = [this] { return answer_.has_value() || error_.has_value(); };
    if (!told_.wait_for(lock, patience, [&] { return decided() || committing_; })) {
        answer_ = Answer::declined;
    }
    told_.wait(lock, decided);  // A commit ends: by success, by a refusal, or by an error.
    if (error_) {
        throw Error(*error_);
    }
    return answer_.value_or(Answer::declined);
}

bool FirstTurn::begin_commit() {
    const std::lock_guard lock(mutex_);
    committing_ = !answer_.has_value();
    return committing_;
}

void FirstTurn::settle(Answer answer) {
    const std::lock_guard lock(mutex_);
    if (!answer_ && !error_) {
        answer_ = answer;
        told_.notify_all();
    }
}

void FirstTurn::fail(const Error& error) {
    const std::lock_guard lock(mutex_);
    if (!answer_ && !error_) {
        error_.emplace(error.code(), error.outcome(), error.what(), error.where());
        told_.notify_all();
    }
}

// --- LocalBus
// ---------------------------------------------------------------------------------------

void LocalBus::join(LocalRuntime& runtime) {
    const std::lock_guard lock(runtimes_mutex_);
    runtimes_.push_back(&runtime);
}

void LocalBus::leave(LocalRuntime& runtime) {
    const std::lock_guard lock(runtimes_mutex_);
    std::erase(runtimes_, &runtime);
}

bool LocalBus::runs(std::string_view workflow) {
    const std::lock_guard lock(runtimes_mutex_);
    return std::any_of(runtimes_.begin(), runtimes_.end(), [&](const LocalRuntime* runtime) {
        return runtime->runs(workflow);
    });
}

bool LocalBus::has(const std::string& instance) {
    const std::lock_guard lock(runtimes_mutex_);
    return std::any_of(runtimes_.begin(), runtimes_.end(), [&](const LocalRuntime* runtime) {
        return runtime->has(instance);
    });
}

void LocalBus::expect(std::string_view workflow, const std::string& instance, const Uuid& token) {
    const std::lock_guard lock(runtimes_mutex_);
    for (LocalRuntime* runtime : runtimes_) {
        if (runtime->runs(workflow)) {
            runtime->expect(instance, token);
            return;
        }
    }
}

void LocalBus::call_off(const std::string& instance) {
    const std::lock_guard lock(runtimes_mutex_);
    for (LocalRuntime* runtime : runtimes_) {
        runtime->call_off(instance);
    }
}

void LocalBus::started(std::string_view workflow, const std::string& instance, const Uuid& token) {
    const std::lock_guard lock(runtimes_mutex_);
    for (LocalRuntime* runtime : runtimes_) {
        if (runtime->offer_start(workflow, instance, token)) {
            return;
        }
    }
}

bool LocalBus::take_first_turn(const std::shared_ptr<FirstTurn>& turn) {
    const std::lock_guard lock(runtimes_mutex_);
    return std::any_of(runtimes_.begin(), runtimes_.end(), [&](LocalRuntime* runtime) {
        return runtime->offer_first_turn(turn);
    });
}

void LocalBus::mailed(const std::string& instance) {
    const std::lock_guard lock(runtimes_mutex_);
    for (LocalRuntime* runtime : runtimes_) {
        if (runtime->offer_mail(instance)) {
            return;
        }
    }
    for (LocalRuntime* runtime : runtimes_) {
        runtime->look_for_mail();
    }
}

void LocalBus::activities_waiting() {
    const std::lock_guard lock(runtimes_mutex_);
    for (LocalRuntime* runtime : runtimes_) {
        runtime->look_for_activities();
    }
}

void LocalBus::notified(std::string_view payload) {
    const std::lock_guard lock(runtimes_mutex_);
    for (LocalRuntime* runtime : runtimes_) {
        if (payload != "a") {
            runtime->look_for_mail();
        }
        if (payload != "w") {
            runtime->look_for_activities();
        }
    }
}

void LocalBus::changed(const std::string& key) {
    tell(key, nullptr);
}

void LocalBus::ended(const std::string& instance, const EndOfInstance& how) {
    tell(instance, &how);
}

void LocalBus::tell(const std::string& key, const EndOfInstance* how) {
    const std::lock_guard lock(watches_mutex_);
    const auto [first, last] = watches_.equal_range(key);
    for (auto watch = first; watch != last; ++watch) {
        watch->second->changed_ = true;
        if (how != nullptr) {
            watch->second->ended_ = *how;
        }
        watch->second->told_.notify_one();
    }
}

LocalBus::Watch::Watch(LocalBus& bus, std::string key) : bus_(bus), key_(std::move(key)) {
    const std::lock_guard lock(bus_.watches_mutex_);
    bus_.watches_.emplace(key_, this);
}

LocalBus::Watch::~Watch() {
    const std::lock_guard lock(bus_.watches_mutex_);
    const auto [first, last] = bus_.watches_.equal_range(key_);
    const auto mine =
        std::find_if(first, last, [this](const auto& entry) { return entry.second == this; });
    bus_.watches_.erase(mine);
}

std::optional<EndOfInstance> LocalBus::Watch::ended() const {
    const std::lock_guard lock(bus_.watches_mutex_);
    return ended_;
}

bool LocalBus::Watch::wait(Steady until) {
    std::unique_lock lock(bus_.watches_mutex_);
    told_.wait_until(lock, until, [this] { return changed_; });
    return std::exchange(changed_, false);
}

}  // namespace holdfast::flow::detail
