#include <holdfast/flow_testing/faulty_provider.hpp>

#include <algorithm>
#include <array>
#include <type_traits>

#include <fmt/core.h>

#include <holdfast/base/error.hpp>

namespace holdfast::flow::test {
namespace {

constexpr std::array<std::string_view, 40> call_names{"claim_instances",
                                                      "peek_instance",
                                                      "load_history",
                                                      "commit_turns",
                                                      "abandon_instance",
                                                      "block_instance",
                                                      "retry_blocked",
                                                      "renew_instance",
                                                      "claim_activities",
                                                      "end_activities",
                                                      "end_activity_in_transaction",
                                                      "abandon_activity",
                                                      "leave_activity",
                                                      "renew_activities",
                                                      "heartbeat",
                                                      "renew_sessions",
                                                      "sweep_sessions",
                                                      "start",
                                                      "send",
                                                      "resume",
                                                      "reset",
                                                      "info",
                                                      "kv_value",
                                                      "kv_all",
                                                      "take_reply",
                                                      "list",
                                                      "executions",
                                                      "children",
                                                      "activities",
                                                      "tree",
                                                      "stats",
                                                      "delete_tree",
                                                      "delete_exactly",
                                                      "delete_ended",
                                                      "prune",
                                                      "prune_ended",
                                                      "sweep",
                                                      "import_history",
                                                      "now",
                                                      "until_next_work"};
static_assert(call_names.size() == static_cast<std::size_t>(Call::until_next_work) + 1);

// Longer than any lease of a test.
constexpr milliseconds beyond_every_lease = std::chrono::hours{24};

}  // namespace

std::string_view to_string(Call call) noexcept {
    return call_names[static_cast<std::size_t>(call)];
}

FaultyProvider::FaultyProvider(Provider& inner, std::function<void(milliseconds)> move_clock)
    : inner_(inner), move_clock_(std::move(move_clock)) {}

// --- faults
// ------------------------------------------------------------------------------------------

void FaultyProvider::add(Call call, int nth, Fault::What what, std::function<void()> action) {
    if (nth < 1) {
        throw InvalidArgument("calls are counted from 1");
    }
    const std::lock_guard lock(mutex_);
    faults_.push_back(
        Fault{.call = call, .at = counts_[call] + nth, .what = what, .action = std::move(action)});
}

void FaultyProvider::fail(Call call, int nth) {
    add(call, nth, Fault::What::fail);
}

void FaultyProvider::lose_reply(Call call, int nth) {
    add(call, nth, Fault::What::lose_reply);
}

void FaultyProvider::deliver_twice(int nth) {
    add(Call::send, nth, Fault::What::twice);
}

void FaultyProvider::delay(Call call, milliseconds by, int nth) {
    if (!move_clock_) {
        throw InvalidArgument("delays are by the database's clock: give the provider a move_clock");
    }
    before(call, nth, [this, by] { move_clock_(by); });
}

void FaultyProvider::expire_leases(Call call, int nth) {
    delay(call, beyond_every_lease, nth);
}

void FaultyProvider::before(Call call, int nth, std::function<void()> action) {
    add(call, nth, Fault::What::action, std::move(action));
}

void FaultyProvider::reorder(std::uint64_t seed) {
    const std::lock_guard lock(mutex_);
    order_.emplace(seed);
}

int FaultyProvider::calls(Call call) const {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(call);
    return found == counts_.end() ? 0 : found->second;
}

int FaultyProvider::waiting() const {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(faults_.size());
}

FaultyProvider::Verdict FaultyProvider::enter(Call call) {
    std::vector<Fault> due;
    {
        const std::lock_guard lock(mutex_);
        const int count = ++counts_[call];
        const auto strikes = [&](const Fault& f) { return f.call == call && f.at == count; };
        std::ranges::copy_if(faults_, std::back_inserter(due), strikes);
        std::erase_if(faults_, strikes);
    }
    Verdict verdict;
    for (const Fault& fault : due) {
        switch (fault.what) {
            case Fault::What::fail:
                throw Error(Code::unavailable,
                            holdfast::Outcome::not_applied,
                            fmt::format("{} was made to fail by a test", to_string(call)));
            case Fault::What::lose_reply:
                verdict.lose_reply = true;
                break;
            case Fault::What::twice:
                verdict.twice = true;
                break;
            case Fault::What::action:
                fault.action();
                break;
        }
    }
    return verdict;
}

void FaultyProvider::leave(Call call, const Verdict& verdict) {
    if (verdict.lose_reply) {
        throw Error(Code::unavailable,
                    holdfast::Outcome::unknown,
                    fmt::format("the reply of {} was lost by a test", to_string(call)));
    }
}

template <class F>
auto FaultyProvider::around(Call call, F&& f) {
    const Verdict verdict = enter(call);
    if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
        f();
        leave(call, verdict);
    } else {
        auto result = f();
        leave(call, verdict);
        return result;
    }
}

template <class T>
void FaultyProvider::shuffle(std::vector<T>& found) {
    const std::lock_guard lock(mutex_);
    if (order_) {
        std::ranges::shuffle(found, *order_);
    }
}

// --- for dispatchers
// -----------------------------------------------------------------------------------

std::vector<ClaimedInstance> FaultyProvider::claim_instances(const ClaimInstances& ask) {
    std::vector<ClaimedInstance> found =
        around(Call::claim_instances, [&] { return inner_.claim_instances(ask); });
    shuffle(found);
    return found;
}

std::optional<ClaimedInstance> FaultyProvider::peek_instance(std::string_view instance,
                                                             const Uuid& token) {
    return around(Call::peek_instance, [&] { return inner_.peek_instance(instance, token); });
}

LoadedHistory FaultyProvider::load_history(std::string_view instance,
                                           ExecutionId execution,
                                           EventId after) {
    return around(Call::load_history,
                  [&] { return inner_.load_history(instance, execution, after); });
}

std::vector<Committed> FaultyProvider::commit_turns(std::span<const TurnCommit> turns) {
    return around(Call::commit_turns, [&] { return inner_.commit_turns(turns); });
}

bool FaultyProvider::abandon_instance(const ClaimedInstance& claim,
                                      milliseconds delay,
                                      bool ignore_attempt) {
    return around(Call::abandon_instance,
                  [&] { return inner_.abandon_instance(claim, delay, ignore_attempt); });
}

bool FaultyProvider::block_instance(const BlockInstance& block) {
    return around(Call::block_instance, [&] { return inner_.block_instance(block); });
}

int FaultyProvider::retry_blocked(const RetryBlocked& ask) {
    return around(Call::retry_blocked, [&] { return inner_.retry_blocked(ask); });
}

bool FaultyProvider::renew_instance(std::string_view instance,
                                    const Uuid& token,
                                    milliseconds lease) {
    return around(Call::renew_instance,
                  [&] { return inner_.renew_instance(instance, token, lease); });
}

// --- for workers
// -----------------------------------------------------------------------------------------

std::vector<ClaimedActivity> FaultyProvider::claim_activities(const ClaimActivities& ask) {
    std::vector<ClaimedActivity> found =
        around(Call::claim_activities, [&] { return inner_.claim_activities(ask); });
    shuffle(found);
    return found;
}

std::vector<bool> FaultyProvider::end_activities(std::span<const ActivityEnd> ends) {
    return around(Call::end_activities, [&] { return inner_.end_activities(ends); });
}

bool FaultyProvider::end_activity_in_transaction(
    const ActivityKey& key,
    const Uuid& token,
    const std::function<ActivityAnswer(sql::Tx&)>& body) {
    return around(Call::end_activity_in_transaction,
                  [&] { return inner_.end_activity_in_transaction(key, token, body); });
}

bool FaultyProvider::abandon_activity(const ActivityKey& key,
                                      const Uuid& token,
                                      milliseconds delay,
                                      bool ignore_attempt) {
    return around(Call::abandon_activity,
                  [&] { return inner_.abandon_activity(key, token, delay, ignore_attempt); });
}

bool FaultyProvider::leave_activity(const ActivityKey& key, const Uuid& token, milliseconds delay) {
    return around(Call::leave_activity, [&] { return inner_.leave_activity(key, token, delay); });
}

std::vector<bool> FaultyProvider::renew_activities(
    std::span<const std::pair<ActivityKey, Uuid>> held, milliseconds lease) {
    return around(Call::renew_activities, [&] { return inner_.renew_activities(held, lease); });
}

bool FaultyProvider::heartbeat(const ActivityKey& key, const Uuid& token, const Payload& progress) {
    return around(Call::heartbeat, [&] { return inner_.heartbeat(key, token, progress); });
}

int FaultyProvider::renew_sessions(std::span<const std::string> owners,
                                   milliseconds lease,
                                   milliseconds idle) {
    return around(Call::renew_sessions, [&] { return inner_.renew_sessions(owners, lease, idle); });
}

int FaultyProvider::sweep_sessions() {
    return around(Call::sweep_sessions, [&] { return inner_.sweep_sessions(); });
}

// --- for clients
// -----------------------------------------------------------------------------------------

Started FaultyProvider::start(const StartInstance& request) {
    return around(Call::start, [&] { return inner_.start(request); });
}

Delivery FaultyProvider::send(const OutgoingMessage& message) {
    const Verdict verdict = enter(Call::send);
    Delivery delivery = inner_.send(message);
    if (verdict.twice) {
        delivery = inner_.send(message);
    }
    leave(Call::send, verdict);
    return delivery;
}

bool FaultyProvider::resume(std::string_view instance) {
    return around(Call::resume, [&] { return inner_.resume(instance); });
}

bool FaultyProvider::reset(const ResetInstance& request) {
    return around(Call::reset, [&] { return inner_.reset(request); });
}

std::optional<InstanceInfo> FaultyProvider::info(std::string_view instance) {
    return around(Call::info, [&] { return inner_.info(instance); });
}

std::optional<Payload> FaultyProvider::kv_value(std::string_view instance, std::string_view key) {
    return around(Call::kv_value, [&] { return inner_.kv_value(instance, key); });
}

std::map<std::string, KvEntry> FaultyProvider::kv_all(std::string_view instance) {
    return around(Call::kv_all, [&] { return inner_.kv_all(instance); });
}

std::optional<Reply> FaultyProvider::take_reply(std::string_view request) {
    return around(Call::take_reply, [&] { return inner_.take_reply(request); });
}

// --- administration
// --------------------------------------------------------------------------------------

InstancePage FaultyProvider::list(const ListInstances& ask) {
    return around(Call::list, [&] { return inner_.list(ask); });
}

std::vector<ExecutionInfo> FaultyProvider::executions(std::string_view instance) {
    return around(Call::executions, [&] { return inner_.executions(instance); });
}

std::vector<std::string> FaultyProvider::children(std::string_view instance) {
    return around(Call::children, [&] { return inner_.children(instance); });
}

std::vector<PendingActivity> FaultyProvider::activities(std::string_view instance, int limit) {
    return around(Call::activities, [&] { return inner_.activities(instance, limit); });
}

std::vector<std::string> FaultyProvider::tree(std::string_view instance) {
    return around(Call::tree, [&] { return inner_.tree(instance); });
}

SystemStats FaultyProvider::stats() {
    return around(Call::stats, [&] { return inner_.stats(); });
}

DeleteCounts FaultyProvider::delete_tree(std::string_view root, bool force) {
    return around(Call::delete_tree, [&] { return inner_.delete_tree(root, force); });
}

DeleteCounts FaultyProvider::delete_exactly(std::span<const std::string> instances, bool force) {
    return around(Call::delete_exactly, [&] { return inner_.delete_exactly(instances, force); });
}

DeleteCounts FaultyProvider::delete_ended(const DeleteFilter& filter) {
    return around(Call::delete_ended, [&] { return inner_.delete_ended(filter); });
}

DeleteCounts FaultyProvider::prune(std::string_view instance, const PruneOptions& options) {
    return around(Call::prune, [&] { return inner_.prune(instance, options); });
}

DeleteCounts FaultyProvider::prune_ended(Moment before, int limit) {
    return around(Call::prune_ended, [&] { return inner_.prune_ended(before, limit); });
}

int FaultyProvider::sweep(milliseconds early_mail_ttl, milliseconds reply_ttl) {
    return around(Call::sweep, [&] { return inner_.sweep(early_mail_ttl, reply_ttl); });
}

void FaultyProvider::import_history(std::string_view instance, const ExportedHistory& history) {
    around(Call::import_history, [&] { inner_.import_history(instance, history); });
}

Moment FaultyProvider::now() {
    return around(Call::now, [&] { return inner_.now(); });
}

std::optional<milliseconds> FaultyProvider::until_next_work() {
    return around(Call::until_next_work, [&] { return inner_.until_next_work(); });
}

}  // namespace holdfast::flow::test
