#include <holdfast/flow/client.hpp>

#include <algorithm>

#include "client/reset.hpp"
#include "name_check.hpp"
#include "runtime/local_bus.hpp"
#include <fmt/core.h>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/cron.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/uuid.hpp>
#include <holdfast/flow_engine/limits.hpp>
#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::flow {
namespace {

using std::chrono::steady_clock;

// How often a reset is planned again because the workflow has taken a turn meanwhile.
constexpr int reset_tries_max = 16;

// A waiting call polls, because changes by other processes do not wake it. The pause grows, and a
// local change ends it at once.
class LookInterval {
public:
    // An instance that a runtime of this process holds needs no fast polling.
    explicit LookInterval(bool in_hand = false) : pause_(in_hand ? longest : first) {}
    [[nodiscard]] Steady next(Steady until) {
        const Steady then = steady_clock::now() + pause_;
        pause_ = std::min(pause_ * 2, longest);
        return std::min(then, until);
    }

private:
    static constexpr std::chrono::milliseconds first{5};
    static constexpr std::chrono::milliseconds longest{100};
    std::chrono::milliseconds pause_;
};

// At most a year, because adding the longest duration would overflow.
Steady until_after(milliseconds timeout) {
    constexpr milliseconds longest = std::chrono::years{1};
    return steady_clock::now() + std::min(timeout, longest);
}

// How long a client waits for the first turn of the code.
constexpr milliseconds first_turn_patience{1'000};
constexpr std::size_t id_bytes_max = 256;

[[noreturn]] void unknown_instance(std::string_view id) {
    throw Error(Code::not_found,
                holdfast::Outcome::not_applied,
                fmt::format("there is no workflow instance '{}'", id));
}

[[noreturn]] void too_late(std::string_view id, milliseconds timeout, std::string_view what) {
    throw Error(Code::deadline,
                holdfast::Outcome::not_applied,
                fmt::format("'{}' {} within {} ms", id, what, timeout.count()));
}

// A payload that is not valid JSON would make the whole stored message unreadable.
void require_storable(std::string_view what, const Payload& payload) {
    if (!is_json(payload.json)) {
        throw InvalidArgument(fmt::format("{} is not valid JSON", what));
    }
    if (payload.json.size() > payload_bytes_max) {
        throw Error(Code::limit_exceeded,
                    holdfast::Outcome::not_applied,
                    fmt::format("{} has {} bytes; at most {}: keep it elsewhere and pass its "
                                "address",
                                what,
                                payload.json.size(),
                                payload_bytes_max));
    }
}

struct Bounded {
    template <class T>
    void operator()(const T&) const {}
    void operator()(const ChannelMessage& message) const {
        require_name(message.channel, "the name of a channel");
        require_storable("the message", message.data);
    }
    void operator()(const SignalMessage& message) const {
        require_name(message.name, "the name of a signal");
        require_storable("the signal", message.data);
    }
    void operator()(const UpdateMessage& message) const {
        require_name(message.name, "the name of an update");
        require_storable("the input", message.input);
    }
    void operator()(const QueryMessage& message) const {
        require_name(message.name, "the name of a query");
        require_storable("the input", message.input);
    }
};

std::optional<std::string> cron_of(const StartOptions& options) {
    return options.cron.empty() ? std::nullopt : std::optional(options.cron);
}

// Until the first run, by the database's clock.
milliseconds delay_of(const StartOptions& options, Provider& provider) {
    if (options.cron.empty()) {
        constexpr milliseconds longest = std::chrono::years{100};
        return std::min(options.delay, longest);
    }
    const Cron cron(options.cron);
    const Moment now = provider.now();
    return cron.next(now + options.delay, now + options.delay) - now;
}

// The keys that an execution began with: those that the earlier ones left. Empty if one of them was
// removed. An execution that was reset leaves none; the next one begins with the same keys as it.
std::map<std::string, Payload> keys_before(Provider& provider,
                                           std::string_view id,
                                           ExecutionId execution,
                                           const std::vector<ExecutionInfo>& executions) {
    std::map<std::string, Payload> keys;
    ExecutionId expected = 1;
    for (const ExecutionInfo& info : executions) {
        if (info.execution >= execution) {
            break;
        }
        if (info.execution != expected++) {
            return {};
        }
        if (info.status == Status::reset) {
            continue;
        }
        for (const Event& event : provider.load_history(id, info.execution).events) {
            if (const auto* set = std::get_if<KvSet>(&event.body)) {
                keys.insert_or_assign(set->key, set->value);
            } else if (const auto* erased = std::get_if<KvErased>(&event.body)) {
                keys.erase(erased->key);
            } else if (std::holds_alternative<KvCleared>(event.body)) {
                keys.clear();
            }
        }
    }
    return keys;
}

}  // namespace

Client::Client(std::shared_ptr<Store> store) : owned_(std::move(store)), store_(owned_.get()) {}

Client::Client(Store& store) : store_(&store) {}

Provider& Client::provider() noexcept {
    return store_->provider();
}

bool Client::start_with_first_turn(const StartOptions& options,
                                   std::string_view workflow,
                                   const std::string& id,
                                   const Payload& input) {
    if (options.delay.count() != 0 || !options.cron.empty() || !options.version.empty() ||
        options.duplicate == DuplicatePolicy::restart || id.empty() || id.size() > id_bytes_max) {
        return false;
    }
    const auto turn = std::make_shared<detail::FirstTurn>(
        id,
        StartMessage{
            .name = std::string(workflow), .version = {}, .input = input, .parent = std::nullopt});
    return store_->bus().take_first_turn(turn) &&
           turn->wait(first_turn_patience) == detail::FirstTurn::Answer::created;
}

bool Client::start_by_name(const StartOptions& options,
                           std::string_view workflow,
                           std::string id,
                           Payload input) {
    require_storable("the input", input);
    if (!options.version.empty()) {
        (void)Version::parse(options.version);  // No worker could ever run it.
    }
    if (start_with_first_turn(options, workflow, id, input)) {
        return true;
    }
    const milliseconds delay = delay_of(options, provider());
    StartInstance request{.instance = std::move(id),
                          .start = StartMessage{.name = std::string(workflow),
                                                .version = options.version,
                                                .input = std::move(input),
                                                .parent = std::nullopt,
                                                .cron = cron_of(options)},
                          .delay = delay,
                          .duplicate = options.duplicate,
                          .notify = !store_->bus().runs(workflow),
                          .token = Uuid::v4()};
    detail::LocalBus& bus = store_->bus();
    bus.expect(workflow, request.instance, request.token);
    Started started;
    try {
        started = provider().start(request);
    } catch (...) {
        bus.call_off(request.instance);
        throw;
    }
    if (!started.created) {
        bus.call_off(request.instance);
        if (options.duplicate == DuplicatePolicy::reject) {
            throw Error(Code::already_exists,
                        holdfast::Outcome::not_applied,
                        fmt::format("there is a workflow instance '{}' already; choose another id "
                                    "or a duplicate policy",
                                    request.instance));
        }
        return false;
    }
    if (delay.count() == 0) {
        bus.started(workflow, request.instance, started.token);
    } else {
        bus.call_off(request.instance);
    }
    return true;
}

InstanceInfo Client::wait(std::string_view id, milliseconds timeout) {
    return wait_for_end(id, timeout, true);
}

InstanceInfo Client::wait_for_end(std::string_view id, milliseconds timeout, bool fully) {
    const std::string instance(id);
    detail::LocalBus::Watch watch(store_->bus(), instance);
    const Steady until = until_after(timeout);
    bool in_hand = store_->bus().has(instance);
    LookInterval interval(in_hand);
    for (;; in_hand = false) {
        if (!in_hand) {
            std::optional<InstanceInfo> found = provider().info(id);
            if (!found) {
                unknown_instance(id);
            }
            if (is_final(found->status)) {
                return std::move(*found);
            }
            if (steady_clock::now() >= until) {
                too_late(id, timeout, "has not ended");
            }
        }
        watch.wait(interval.next(until));
        if (std::optional<detail::EndOfInstance> ended = fully ? std::nullopt : watch.ended()) {
            InstanceInfo info;
            info.instance = instance;
            info.status = ended->status;
            info.output = std::move(ended->output);
            return info;
        }
    }
}

InstanceInfo Client::wait_for_status(std::string_view id, std::int64_t seen, milliseconds timeout) {
    detail::LocalBus::Watch watch(store_->bus(), std::string(id));
    const Steady until = until_after(timeout);
    LookInterval interval;
    for (;;) {
        std::optional<InstanceInfo> found = provider().info(id);
        if (!found) {
            unknown_instance(id);
        }
        if (is_final(found->status) || found->status_version > seen) {
            return std::move(*found);
        }
        if (steady_clock::now() >= until) {
            too_late(id, timeout, "has no newer status");
        }
        watch.wait(interval.next(until));
    }
}

Payload Client::wait_for_key(std::string_view id, std::string_view key, milliseconds timeout) {
    const Steady until = until_after(timeout);
    detail::LocalBus::Watch watch(store_->bus(), std::string(id));
    LookInterval interval;
    for (;;) {
        const std::optional<InstanceInfo> found = provider().info(id);
        if (!found) {
            unknown_instance(id);
        }
        if (std::optional<Payload> value = provider().kv_value(id, key)) {
            return std::move(*value);
        }
        if (is_final(found->status)) {
            throw Error(Code::condition_failed,
                        holdfast::Outcome::not_applied,
                        fmt::format("'{}' has ended and has no key '{}'", id, key));
        }
        if (steady_clock::now() >= until) {
            too_late(id, timeout, fmt::format("has not set the key '{}'", key));
        }
        watch.wait(interval.next(until));
    }
}

FailureInfo Client::failure_of(const InstanceInfo& info) {
    return decode_failure(info.output);
}

Delivery Client::send(std::string_view id, MessageBody message) {
    std::visit(Bounded{}, message);
    const std::string instance(id);
    const Delivery delivery = provider().send(
        OutgoingMessage{.instance = instance,
                        .message = Message{.execution = 0, .body = std::move(message)},
                        .visible_at_ms = 0,
                        .notify = !store_->bus().has(instance)});
    if (delivery == Delivery::delivered) {
        store_->bus().mailed(instance);
    }
    return delivery;
}

Delivery Client::cancel(std::string_view id, std::string reason, milliseconds grace) {
    return send(id, CancelMessage{std::move(reason), false, grace.count()});
}

Delivery Client::terminate(std::string_view id, std::string reason) {
    return send(id, CancelMessage{std::move(reason), true, 0});
}

Delivery Client::fail(std::string_view id, std::string reason) {
    return send(id, CancelMessage{std::move(reason), true, 0, true});
}

Delivery Client::suspend(std::string_view id, std::string reason) {
    return send(id, SuspendMessage{std::move(reason)});
}

bool Client::resume(std::string_view id) {
    return provider().resume(id) && send(id, ResumeMessage{}) == Delivery::delivered;
}

ResetPlan Client::plan(std::string_view id, const ResetOptions& options) {
    const auto runs = [&](const std::string& child) {
        const std::optional<InstanceInfo> found = provider().info(child);
        return found && !is_final(found->status);
    };
    const std::optional<InstanceInfo> found = provider().info(id);
    if (!found) {
        unknown_instance(id);
    }
    return plan_reset(std::string(id),
                      found->execution,
                      history(id, found->execution),
                      options,
                      runs,
                      provider().now());
}

ExecutionId Client::reset(std::string_view id, const ResetOptions& options) {
    for (int tries = 0; tries < reset_tries_max; ++tries) {
        const ResetInstance request = plan(id, options).reset;
        if (provider().reset(request)) {
            store_->bus().mailed(request.instance);
            store_->bus().changed(request.instance);
            return request.next.execution;
        }
    }
    throw Error(Code::conflict,
                holdfast::Outcome::not_applied,
                fmt::format("'{}' keeps running while it is being reset; suspend it first", id));
}

Payload Client::ask(
    std::string_view id, milliseconds timeout, bool update, std::string_view name, Payload input) {
    const std::string request = make_token();
    detail::LocalBus::Watch watch(store_->bus(), request);
    const Steady until = until_after(timeout);
    MessageBody message;
    if (update) {
        message = UpdateMessage{request, std::string(name), std::move(input)};
    } else {
        message = QueryMessage{request, std::string(name), std::move(input)};
    }
    if (send(id, std::move(message)) != Delivery::delivered) {
        throw Error(Code::not_found,
                    holdfast::Outcome::not_applied,
                    fmt::format("'{}' is not running, so it answers nothing", id));
    }
    LookInterval interval;
    for (;;) {
        if (const std::optional<Reply> reply = provider().take_reply(request)) {
            if (reply->failed) {
                throw Failure(decode_failure(reply->body));
            }
            return Payload{reply->body};
        }
        if (steady_clock::now() >= until) {
            too_late(id, timeout, "has not answered");
        }
        watch.wait(interval.next(until));
    }
}

std::optional<InstanceInfo> Client::info(std::string_view id) {
    return provider().info(id);
}

std::map<std::string, KvEntry> Client::kv_all(std::string_view id) {
    return provider().kv_all(id);
}

InstancePage Client::list(const ListInstances& ask) {
    return provider().list(ask);
}

std::vector<Event> Client::history(std::string_view id, ExecutionId execution) {
    if (execution == 0) {
        const std::optional<InstanceInfo> found = provider().info(id);
        if (!found) {
            unknown_instance(id);
        }
        execution = found->execution;
    }
    LoadedHistory loaded = provider().load_history(id, execution);
    if (!loaded.error.empty()) {
        throw Error(Code::internal, holdfast::Outcome::not_applied, loaded.error);
    }
    return std::move(loaded.events);
}

std::vector<ExecutionInfo> Client::executions(std::string_view id) {
    return provider().executions(id);
}

std::vector<std::string> Client::tree(std::string_view id) {
    return provider().tree(id);
}

SystemStats Client::stats() {
    return provider().stats();
}

std::string Client::export_history(std::string_view id, ExecutionId execution) {
    const std::optional<InstanceInfo> found = provider().info(id);
    if (!found) {
        unknown_instance(id);
    }
    ExportedHistory exported;
    exported.instance = id;
    exported.execution = execution == 0 ? found->execution : execution;
    exported.events = history(id, exported.execution);
    if (exported.events.empty()) {
        throw Error(Code::condition_failed,
                    holdfast::Outcome::not_applied,
                    fmt::format("execution {} of '{}' has not begun, or was removed; there is "
                                "nothing to export",
                                exported.execution,
                                id));
    }
    exported.kv = exported.execution == found->execution
                      ? provider().load_history(id, found->execution, found->last_event).kv
                      : keys_before(provider(), id, exported.execution, executions(id));
    return encode(exported);
}

void Client::import_history(std::string_view id, std::string_view lines) {
    ExportedHistory history;
    try {
        history = decode_export(lines);
    } catch (const Undecodable& error) {
        throw InvalidArgument(error.what());
    }
    provider().import_history(id, history);
}

DeleteCounts Client::remove(std::string_view id, bool force) {
    return provider().delete_tree(id, force);
}

DeleteCounts Client::remove_ended(const DeleteFilter& filter) {
    return provider().delete_ended(filter);
}

DeleteCounts Client::prune(std::string_view id, const PruneOptions& options) {
    return provider().prune(id, options);
}

DeleteCounts Client::prune_ended(Moment before, int limit) {
    return provider().prune_ended(before, limit);
}

}  // namespace holdfast::flow
