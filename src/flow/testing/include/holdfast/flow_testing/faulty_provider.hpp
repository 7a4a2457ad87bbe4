// A store that misbehaves on demand.
//
//   FaultyProvider faults{provider};
//   faults.lose_reply(Call::commit_turns);          // Committed, but the answer is lost.
//   faults.fail(Call::claim_instances, 3);          // The third from now on never arrives.
//   flow::Store store{database, faults};
//
// Every fault strikes once, at the nth call of a method, counted from when it was set. The store's
// promises must hold whichever call fails.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/flow/provider.hpp>

namespace holdfast::flow::test {

// The methods of a provider.
enum class Call : std::uint8_t {
    claim_instances,
    peek_instance,
    load_history,
    commit_turns,
    abandon_instance,
    block_instance,
    retry_blocked,
    renew_instance,
    claim_activities,
    end_activities,
    end_activity_in_transaction,
    abandon_activity,
    leave_activity,
    renew_activities,
    heartbeat,
    renew_sessions,
    sweep_sessions,
    start,
    send,
    resume,
    reset,
    info,
    kv_value,
    kv_all,
    take_reply,
    list,
    executions,
    children,
    activities,
    tree,
    stats,
    delete_tree,
    delete_exactly,
    delete_ended,
    prune,
    prune_ended,
    sweep,
    import_history,
    now,
    until_next_work,
};
[[nodiscard]] std::string_view to_string(Call call) noexcept;

// Safe to share between threads as far as the provider inside is.
class FaultyProvider final : public Provider {
public:
    // Requires: `inner` outlives this object.
    // `move_clock` moves the database's clock; only delay and expire_leases need it.
    explicit FaultyProvider(Provider& inner, std::function<void(milliseconds)> move_clock = {});

    // --- faults; `nth` counts from 1 and from now
    // The call fails and has no effect: Error unavailable, not_applied.
    void fail(Call call, int nth = 1);
    // The call has its effect and its answer is lost: Error unavailable, unknown.
    void lose_reply(Call call, int nth = 1);
    // The call arrives later by this much on the database's clock. Requires: move_clock; else
    // invalid_argument.
    void delay(Call call, milliseconds by, int nth = 1);
    // The nth message that is sent is sent twice.
    void deliver_twice(int nth = 1);
    // Lets every lease run out just before the call. Requires: as delay does.
    void expire_leases(Call call, int nth = 1);
    // Anything else, just before the call.
    void before(Call call, int nth, std::function<void()> action);
    // From now on what claims find comes in a random order.
    void reorder(std::uint64_t seed);

    [[nodiscard]] int calls(Call call) const;
    // Faults that have not struck yet: a test that leaves some has tested nothing.
    [[nodiscard]] int waiting() const;

    // --- the provider
    [[nodiscard]] std::vector<ClaimedInstance> claim_instances(const ClaimInstances& ask) override;
    [[nodiscard]] std::optional<ClaimedInstance> peek_instance(std::string_view instance,
                                                               const Uuid& token) override;
    [[nodiscard]] LoadedHistory load_history(std::string_view instance,
                                             ExecutionId execution,
                                             EventId after) override;
    [[nodiscard]] std::vector<Committed> commit_turns(std::span<const TurnCommit> turns) override;
    bool abandon_instance(const ClaimedInstance& claim,
                          milliseconds delay,
                          bool ignore_attempt) override;
    bool block_instance(const BlockInstance& block) override;
    int retry_blocked(const RetryBlocked& ask) override;
    bool renew_instance(std::string_view instance, const Uuid& token, milliseconds lease) override;
    [[nodiscard]] std::vector<ClaimedActivity> claim_activities(
        const ClaimActivities& ask) override;
    [[nodiscard]] std::vector<bool> end_activities(std::span<const ActivityEnd> ends) override;
    [[nodiscard]] bool end_activity_in_transaction(
        const ActivityKey& key,
        const Uuid& token,
        const std::function<ActivityAnswer(sql::Tx&)>& body) override;
    bool abandon_activity(const ActivityKey& key,
                          const Uuid& token,
                          milliseconds delay,
                          bool ignore_attempt) override;
    bool leave_activity(const ActivityKey& key, const Uuid& token, milliseconds delay) override;
    [[nodiscard]] std::vector<bool> renew_activities(
        std::span<const std::pair<ActivityKey, Uuid>> held, milliseconds lease) override;
    bool heartbeat(const ActivityKey& key, const Uuid& token, const Payload& progress) override;
    int renew_sessions(std::span<const std::string> owners,
                       milliseconds lease,
                       milliseconds idle) override;
    int sweep_sessions() override;
    [[nodiscard]] Started start(const StartInstance& request) override;
    Delivery send(const OutgoingMessage& message) override;
    bool resume(std::string_view instance) override;
    [[nodiscard]] bool reset(const ResetInstance& request) override;
    [[nodiscard]] std::optional<InstanceInfo> info(std::string_view instance) override;
    [[nodiscard]] std::optional<Payload> kv_value(std::string_view instance,
                                                  std::string_view key) override;
    [[nodiscard]] std::map<std::string, KvEntry> kv_all(std::string_view instance) override;
    [[nodiscard]] std::optional<Reply> take_reply(std::string_view request) override;
    [[nodiscard]] InstancePage list(const ListInstances& ask) override;
    [[nodiscard]] std::vector<ExecutionInfo> executions(std::string_view instance) override;
    [[nodiscard]] std::vector<std::string> children(std::string_view instance) override;
    [[nodiscard]] std::vector<PendingActivity> activities(std::string_view instance,
                                                          int limit) override;
    [[nodiscard]] std::vector<std::string> tree(std::string_view instance) override;
    [[nodiscard]] SystemStats stats() override;
    DeleteCounts delete_tree(std::string_view root, bool force) override;
    DeleteCounts delete_exactly(std::span<const std::string> instances, bool force) override;
    DeleteCounts delete_ended(const DeleteFilter& filter) override;
    DeleteCounts prune(std::string_view instance, const PruneOptions& options) override;
    DeleteCounts prune_ended(Moment before, int limit) override;
    int sweep(milliseconds early_mail_ttl, milliseconds reply_ttl) override;
    void import_history(std::string_view instance, const ExportedHistory& history) override;
    [[nodiscard]] Moment now() override;
    [[nodiscard]] std::optional<milliseconds> until_next_work() override;

private:
    struct Fault {
        Call call;
        int at;  // The count of the call that it strikes.
        enum class What : std::uint8_t { fail, lose_reply, twice, action } what;
        std::function<void()> action{};
    };
    struct Verdict {
        bool lose_reply = false;
        bool twice = false;
    };

    void add(Call call, int nth, Fault::What what, std::function<void()> action = {});
    // Before a call: strikes what is due. Throws the fault that forbids the call.
    [[nodiscard]] Verdict enter(Call call);
    static void leave(Call call, const Verdict& verdict);
    template <class F>
    auto around(Call call, F&& f);
    template <class T>
    void shuffle(std::vector<T>& found);

    Provider& inner_;
    std::function<void(milliseconds)> move_clock_;
    mutable std::mutex mutex_;
    std::map<Call, int> counts_;
    std::vector<Fault> faults_;
    std::optional<std::mt19937_64> order_;
};

}  // namespace holdfast::flow::test
