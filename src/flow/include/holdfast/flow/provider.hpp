// What a runtime and a client need from a store. It knows nothing about what workflows do.
//
// The provider stores; it never decides. It creates no events, event ids or outcomes: the runtime
// computes them. Everything a turn did commits in one transaction, or nothing does. Tokens decide
// which writer is accepted: 128 random bits that change with every claim and every commit, so that
// the write of a stale claim is refused.
//
// All methods are safe to call from any thread and any number of processes. They throw Error when
// the database fails; losing a token is an answer, not an error.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/base/uuid.hpp>
#include <holdfast/flow_engine/event.hpp>
#include <holdfast/flow_engine/ids.hpp>
#include <holdfast/flow_engine/message.hpp>
#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::sql {
class Tx;
}

namespace holdfast::flow {

using std::chrono::milliseconds;

// The last two are for executions that were followed by another one.
enum class Status : std::uint8_t {
    pending,
    running,
    completed,
    failed,
    cancelled,
    continued,
    reset,
};
[[nodiscard]] std::string_view to_string(Status status) noexcept;
[[nodiscard]] std::optional<Status> status_named(std::string_view name) noexcept;
[[nodiscard]] constexpr bool is_final(Status status) noexcept {
    return status == Status::completed || status == Status::failed || status == Status::cancelled;
}

// Why no worker could take the turn of an instance that has messages.
enum class BlockKind : std::uint8_t {
    unregistered,    // No worker that looked has its workflow in this version.
    unreadable,      // The build that looked cannot read its history or its messages.
    nondeterminism,  // The code of the build that looked does not do what the history says.
};
[[nodiscard]] std::string_view to_string(BlockKind kind) noexcept;
[[nodiscard]] std::optional<BlockKind> block_kind_named(std::string_view name) noexcept;

// --- instances, while they are advanced
// -------------------------------------------------------------

// Inclusive ranges of engine versions that a dispatcher can replay. No ranges: nothing.
struct ReplayVersions {
    std::vector<std::pair<Version, Version>> ranges{{Version{}, engine_version}};
};

struct InboxMessage {
    std::int64_t position = 0;
    int attempt = 0;
    Message message;
    std::string error{};  // Not empty: the stored text could not be read, and `message` is empty.
};

// An instance that the caller has claimed, with the messages that were waiting.
struct ClaimedInstance {
    std::string instance;
    std::string name;
    std::string version;
    ExecutionId execution = 1;
    Status status = Status::pending;
    EventId last_event = 0;  // Of the current execution; 0 before its first turn.
    Uuid token;
    bool claimed =
        true;  // False: the caller holds it already (ClaimInstances::mine); nothing more is read.
    // It was claimed too often to share a claim (ClaimInstances::attempts_shared_max). Not claimed.
    bool alone = false;
    std::vector<InboxMessage> messages;  // In the order they arrived.
    int attempt = 0;                     // The highest of its messages.
    int blocked_tries = 0;               // How often it was blocked since its last turn.
    Moment now;                          // The database's clock.
};

// Releases an instance whose turn this worker cannot take. Workers of `build` do not claim it for
// `pause`, those of other builds for half of it. The attempt is not counted. Its messages are kept
// in order. A cancel request ends the pause.
struct BlockInstance {
    std::string instance;
    Uuid token;
    std::vector<std::int64_t> positions{};  // Of the messages whose attempts the claim counted.
    BlockKind kind = BlockKind::unregistered;
    std::string reason;
    std::string build{};
    milliseconds pause{0};
};

// Which blocked work a worker that starts can take.
struct RetryBlocked {
    std::function<bool(BlockKind kind,
                       std::string_view workflow,
                       std::string_view version,
                       std::string_view build)>
        fits{};
    std::function<bool(std::string_view activity)> knows{};
};

struct KvEntry {
    Payload value;
    Moment updated;
    friend bool operator==(const KvEntry&, const KvEntry&) = default;
};

struct ClaimInstances {
    milliseconds lease{5000};
    int count = 1;
    std::optional<ReplayVersions> versions{};  // None: any.
    std::string build{};                       // The caller's; see BlockInstance.
    // An instance with a message that was claimed this often before is named, and not claimed.
    int attempts_shared_max = std::numeric_limits<int>::max();
    bool alone = false;  // One instance at most, however often it was claimed before.
    // True for instances that the caller holds with this token: they are named, and not claimed.
    std::function<bool(std::string_view instance, const Uuid& token)> mine{};
};

// What an execution's history says, for replay.
struct LoadedHistory {
    std::vector<Event> events;
    std::int64_t bytes = 0;
    std::string error{};  // Not empty: it cannot be read by this build, and `events` is empty.
    std::map<std::string, Payload> kv;  // As it was when the execution began.
};

// --- activities
// ---------------------------------------------------------------------------------------

struct ActivityKey {
    std::string instance;
    ExecutionId execution = 0;
    EventId event = 0;
    friend auto operator<=>(const ActivityKey&, const ActivityKey&) = default;
};

struct ActivityTask {
    ActivityKey key;
    std::string name;
    Payload input;
    std::string workflow;  // The name and version of the code that asked for it.
    std::string version;
    std::optional<std::string> session{};
    std::optional<std::string> tag{};
    milliseconds ahead{0};                 // Taken before others that are older by up to this.
    bool must_begin = false;               // Its wait is limited: a claim must begin it at once.
    std::optional<ActivityRetry> retry{};  // Empty: the first failure is final.
    // Not nil: already claimed by the runtime that commits the turn that schedules it.
    Uuid claim{};
    milliseconds claim_lease{0};
};

struct ClaimedActivity {
    ActivityTask task;
    Uuid token;
    int attempt = 0;         // Counts every claim, also of processes that died.
    int unserved_tries = 0;  // How often a worker gave it back because it has no such activity.
    std::optional<Payload> heartbeat{};  // What an earlier attempt left.
    Moment now;
    std::optional<Moment> queued{};  // When it was scheduled; empty: just now.
    int failures = 0;                // Attempts that failed before this one.
    std::optional<FailureInfo> last_failure{};
};

// An activity that has not ended, as it is shown.
struct PendingActivity {
    ActivityKey key;
    std::string name;
    std::optional<std::string> tag{};
    std::optional<std::string> session{};
    bool running = false;  // A worker has it, and its lease runs.
    int attempt = 1;       // The one that runs, or comes next.
    Moment due;            // When a worker may take it: the next attempt, or the lease's end.
    Moment queued;
    Moment now;
    std::optional<ActivityRetry> retry{};
    int failures = 0;
    std::optional<FailureInfo> last_failure{};
    std::optional<Payload> heartbeat{};
};

// Which activities a worker takes, by their tags.
struct TagFilter {
    bool untagged = true;
    bool any = false;                 // Everything, whatever its tag.
    std::vector<std::string> tags{};  // At most 5.

    [[nodiscard]] static TagFilter default_only() { return {}; }
    [[nodiscard]] static TagFilter everything() {
        return {.untagged = true, .any = true, .tags = {}};
    }
    [[nodiscard]] static TagFilter none() { return {.untagged = false, .any = false, .tags = {}}; }
    // Throw InvalidArgument unless there are 1 to 5 tags.
    [[nodiscard]] static TagFilter only(std::vector<std::string> tags);
    [[nodiscard]] static TagFilter default_and(std::vector<std::string> tags);
    [[nodiscard]] bool admits(const std::optional<std::string>& tag) const;
};

// The owner that claims sessions, and for how long. Without it, activities of sessions are not
// claimed.
struct SessionClaim {
    std::string owner;
    milliseconds lease{30000};
    int count = 1'000;  // Activities of at most this many sessions are claimed.
};

struct ClaimActivities {
    milliseconds lease{30000};
    int count = 1;
    TagFilter tags{};
    std::optional<SessionClaim> session{};
    int begin_now = 1'000;  // At most this many that must begin at once are claimed.
};

// The attempt after one that failed.
struct NextAttempt {
    milliseconds delay{0};
    FailureInfo failure;
};

// A claimed activity that has ended, or whose attempt has. With neither an answer nor another
// attempt it is dropped: its result is no longer needed.
struct ActivityEnd {
    ActivityKey key;
    Uuid token;  // Nil: only if it has not begun.
    std::optional<ActivityAnswer> answer{};
    std::optional<NextAttempt> again{};  // It stays, and is due again. Requires: no answer.
};

// --- a turn
// ----------------------------------------------------------------------------------------------

struct OutgoingMessage {
    std::string instance;
    Message message;
    std::int64_t visible_at_ms = 0;  // 0: at once. Timers: when they fire.
    bool notify = true;              // False: this process handles it at once.
};

// A start for another instance; `parent` in the message names the instance that waits. If the
// instance exists already, the parent gets a failure of type "AlreadyExists", unless the same
// operation started it.
struct OutgoingStart {
    std::string instance;
    StartMessage start;
    Uuid token{};        // Not nil: the token of the new instance.
    bool notify = true;  // False: this process handles it at once.
};

struct KvChange {
    enum class What : std::uint8_t { set, erase, clear };
    What what = What::set;
    std::string key{};
    Payload value{};
};

struct StatusChange {
    std::optional<Payload> status;  // Empty: cleared.
};

struct AttributeChange {
    std::string name;
    std::optional<Payload> value;  // Empty: removed.
};

struct Reply {
    std::string request;
    bool failed = false;
    std::string body;  // A payload, or a FailureInfo as text.
};

// The execution that follows one that continues as new, is reset, or is due again.
struct NextExecution {
    ExecutionId execution = 0;
    std::string version;
    std::vector<Event> events{};  // WorkflowStarted and the carried messages; or empty, and then
    std::optional<StartMessage> start{};  // this starts it at `start_at_ms`, not before.
    std::int64_t start_at_ms = 0;
};

// All that one turn did. `events` belong to `execution`, their ids rise and lie above `last_event`.
struct TurnCommit {
    std::string instance;
    Uuid token;          // Of the claim, or `next_token` of the previous commit.
    Uuid next_token;     // The token after this commit. New and random.
    bool leased = true;  // The claim's lease must still run. False: only the token decides.
    // The first turn, committed together with the start: lost if the instance exists or already has
    // messages. Requires: no token, no claim, `begun` set, no `next`.
    bool creates = false;
    ExecutionId execution = 1;
    EventId last_event = 0;
    std::vector<Event> events{};

    // Set in the turn that writes event 1.
    struct Begun {
        std::string name;
        std::string version;
        std::optional<ParentLink> parent;
        Version engine = engine_version;
    };
    std::optional<Begun> begun{};
    Status status = Status::running;
    std::string output{};  // Of a final status: the result, or the failure as text.
    std::optional<NextExecution> next{};
    std::optional<StatusChange> custom_status{};
    std::optional<bool> suspended{};
    std::vector<KvChange> kv{};
    std::vector<AttributeChange> attributes{};
    int status_changes = 0;  // How many times the custom status changed in this turn.

    std::vector<std::int64_t> consumed{};  // Positions of the messages this turn has taken.
    std::vector<ActivityEnd> finished{};   // Claimed activities whose answers it has taken.
    std::vector<ActivityTask> activities{};
    std::vector<ActivityKey> cancelled_activities{};
    // Of a final status. True: the instance has no activities left but those named here.
    bool names_all_activities = false;
    std::vector<EventId> cancelled_timers{};  // Events of timers of this execution.
    std::vector<OutgoingMessage> messages{};
    std::vector<OutgoingStart> starts{};
    std::vector<Reply> replies{};
};

enum class Committed : std::uint8_t {
    yes,
    lost,       // The token is not the current one, the lease has run out, or the instance is gone.
    rejected,   // An event id is zero, does not rise, or is taken. The claim is still held.
    too_large,  // More than the database takes in one transaction. The claim is still held.
};

// --- clients
// ---------------------------------------------------------------------------------------------

enum class DuplicatePolicy : std::uint8_t { reject, use_existing, restart };

struct StartInstance {
    std::string instance;
    StartMessage start;
    milliseconds delay{0};
    DuplicatePolicy duplicate = DuplicatePolicy::reject;
    bool notify = true;  // False: this process handles it at once.
    Uuid token{};        // Not nil: the token of the new instance.
};
struct Started {
    bool created = false;  // False: it was there already (use_existing), or refused (reject).
    Uuid token;            // If created: the token a local runtime may take its first turn with.
};

// Continues an instance in a new execution that begins with events of the current one. Everything
// the current one waits for is given up.
struct ResetInstance {
    std::string instance;
    ExecutionId execution = 0;  // As the caller has read it; nothing is reset if it has changed.
    EventId last_event = 0;
    NextExecution next;
    std::optional<Payload> custom_status{};
    std::vector<KvChange> kv{};  // On top of the keys that the current execution began with.
    std::vector<AttributeChange> attributes{};
    std::vector<ActivityTask> activities{};
    std::vector<OutgoingMessage> messages{};
};

enum class Delivery : std::uint8_t {
    delivered,
    early,  // No such instance yet: kept for a while, in case it is about to start.
    ended,  // The instance has ended; the message was not kept.
};

struct Blocked {
    BlockKind kind = BlockKind::unregistered;
    std::string reason;
    std::string build{};  // Of the worker that tried last; may be empty.
    Moment since;
    Moment until;  // When that build tries again; another may do so earlier.
    int tries = 0;
};

struct InstanceInfo {
    std::string instance;
    std::string name;
    std::string version;
    ExecutionId execution = 1;
    Status status = Status::pending;
    bool suspended = false;
    std::string output{};  // Of a final status.
    std::optional<Payload> custom_status{};
    std::int64_t status_version = 0;
    std::optional<ParentLink> parent{};
    EventId last_event = 0;
    std::int64_t history_bytes = 0;
    Moment created;
    Moment updated;
    std::optional<Moment> completed{};
    std::optional<std::string> cron{};
    std::optional<Moment> due{};  // Of a pending one: it does not start before.
    std::optional<Blocked> blocked{};
    std::optional<std::string> unserved_activity{};  // One that it waits for and no worker has.
};

struct ExecutionInfo {
    ExecutionId execution = 1;
    std::string version;
    Status status = Status::running;
    std::string output{};
    EventId last_event = 0;
    std::optional<Moment> started{};
    std::optional<Moment> completed{};
};

// All conditions hold together. Newest first.
struct ListInstances {
    std::optional<Status> status{};
    bool blocked = false;    // Only those that are blocked. Requires: no status.
    bool suspended = false;  // Only those that are suspended. Requires: no status.
    std::string name{};      // Of the workflow; empty: any.
    std::string version{};   // Likewise.
    std::string id_prefix{};
    std::optional<Moment> created_after{};
    std::optional<Moment> created_before{};
    std::map<std::string, Payload> attributes{};
    int limit = 100;
    std::string page{};  // From the page before; empty: the first.
};
struct InstancePage {
    std::vector<InstanceInfo> instances;
    std::string next{};  // Empty: this was the last.
};

struct SystemStats {
    std::int64_t instances = 0;
    std::int64_t pending = 0;
    std::int64_t running = 0;
    std::int64_t completed = 0;
    std::int64_t failed = 0;
    std::int64_t cancelled = 0;
    std::int64_t executions = 0;
    std::int64_t events = 0;      // Of all executions that are kept.
    std::int64_t messages = 0;    // Waiting, also those not visible yet.
    std::int64_t activities = 0;  // Waiting or running.
    std::int64_t early_mailboxes = 0;
    std::int64_t blocked = 0;              // Instances whose code or history does not fit.
    std::int64_t unserved = 0;             // Instances whose workflow no worker has.
    std::int64_t unserved_activities = 0;  // Activities that no worker has.
    milliseconds oldest_mail{0};           // How long the oldest visible message has waited.
};

struct DeleteCounts {
    std::int64_t instances = 0;
    std::int64_t executions = 0;
    std::int64_t events = 0;
    std::int64_t messages = 0;
};
struct DeleteFilter {
    std::vector<std::string> ids{};  // Empty: any.
    std::optional<Moment> completed_before{};
    int limit = 1000;
};
struct PruneOptions {
    int keep_last = 1;  // Executions to keep; the current one always is.
    std::optional<Moment> completed_before{};
};

class Provider {
public:
    virtual ~Provider() = default;

    // --- for dispatchers
    // Claims instances that have visible messages and are free, or whose lease has run out, oldest
    // first; counts the attempt on each message it returns. Empty: there is no eligible work.
    [[nodiscard]] virtual std::vector<ClaimedInstance> claim_instances(
        const ClaimInstances& ask) = 0;
    // Messages for an instance whose token the caller believes to hold, without claiming it.
    // Empty optional: the token is not the current one, a lease is held, or it is suspended.
    [[nodiscard]] virtual std::optional<ClaimedInstance> peek_instance(std::string_view instance,
                                                                       const Uuid& token) = 0;
    // Events after `after`, in order, and the KV seeds. An unknown instance has none.
    [[nodiscard]] virtual LoadedHistory load_history(std::string_view instance,
                                                     ExecutionId execution,
                                                     EventId after = 0) = 0;
    // Each turn commits or not by itself; they may share a transaction. If the database's
    // answer is lost, the token tells what happened, so `yes` and `lost` are always true.
    [[nodiscard]] virtual std::vector<Committed> commit_turns(
        std::span<const TurnCommit> turns) = 0;
    // Gives a claim back; its messages become visible after `delay`. False: the token is stale.
    virtual bool abandon_instance(const ClaimedInstance& claim,
                                  milliseconds delay,
                                  bool ignore_attempt) = 0;
    // False: the token is not current, and nothing was done.
    virtual bool block_instance(const BlockInstance& block) = 0;
    // Makes the blocked instances and unserved activities that fit due now. Returns how many.
    virtual int retry_blocked(const RetryBlocked& ask) = 0;
    // Sets the lease to `lease` from now. False: it was lost or has run out, and stays so.
    virtual bool renew_instance(std::string_view instance,
                                const Uuid& token,
                                milliseconds lease) = 0;

    // --- for workers
    [[nodiscard]] virtual std::vector<ClaimedActivity> claim_activities(
        const ClaimActivities& ask) = 0;
    // Removes the activity and sends its answer, in one transaction; or keeps it, with its
    // heartbeat, for another attempt. False: it was cancelled, stolen, or the lease has run out;
    // then nothing was done.
    [[nodiscard]] virtual std::vector<bool> end_activities(std::span<const ActivityEnd> ends) = 0;
    // The same around a function that writes to the user's own tables in the same transaction. The
    // function may run more than once. False: the claim was lost, and nothing was applied.
    [[nodiscard]] virtual bool end_activity_in_transaction(
        const ActivityKey& key,
        const Uuid& token,
        const std::function<ActivityAnswer(sql::Tx&)>& body) = 0;
    virtual bool abandon_activity(const ActivityKey& key,
                                  const Uuid& token,
                                  milliseconds delay,
                                  bool ignore_attempt) = 0;
    // Gives it back because its worker has no such activity; the attempt does not count.
    virtual bool leave_activity(const ActivityKey& key, const Uuid& token, milliseconds delay) = 0;
    // Renews the leases of several; false for each that was lost: so cancellation is noticed.
    [[nodiscard]] virtual std::vector<bool> renew_activities(
        std::span<const std::pair<ActivityKey, Uuid>> held, milliseconds lease) = 0;
    virtual bool heartbeat(const ActivityKey& key, const Uuid& token, const Payload& progress) = 0;
    virtual int renew_sessions(std::span<const std::string> owners,
                               milliseconds lease,
                               milliseconds idle) = 0;
    virtual int sweep_sessions() = 0;

    // --- for clients
    [[nodiscard]] virtual Started start(const StartInstance& request) = 0;
    // A cancel request makes an instance claimable at once, also one not due yet or suspended.
    virtual Delivery send(const OutgoingMessage& message) = 0;
    // Lifts a suspension and makes the instance claimable. False: no such instance.
    virtual bool resume(std::string_view instance) = 0;
    // False: it has changed since the caller read it. not_found: no such instance.
    [[nodiscard]] virtual bool reset(const ResetInstance& request) = 0;
    // One row; never the history.
    [[nodiscard]] virtual std::optional<InstanceInfo> info(std::string_view instance) = 0;
    [[nodiscard]] virtual std::optional<Payload> kv_value(std::string_view instance,
                                                          std::string_view key) = 0;
    [[nodiscard]] virtual std::map<std::string, KvEntry> kv_all(std::string_view instance) = 0;
    // Takes the answer away.
    [[nodiscard]] virtual std::optional<Reply> take_reply(std::string_view request) = 0;

    // --- administration
    [[nodiscard]] virtual InstancePage list(const ListInstances& ask) = 0;
    [[nodiscard]] virtual std::vector<ExecutionInfo> executions(std::string_view instance) = 0;
    [[nodiscard]] virtual std::vector<std::string> children(std::string_view instance) = 0;
    // Those that have not ended, at most `limit`, by their events.
    [[nodiscard]] virtual std::vector<PendingActivity> activities(std::string_view instance,
                                                                  int limit) = 0;
    // The instance and everything below it, parents first. Empty: no such instance.
    [[nodiscard]] virtual std::vector<std::string> tree(std::string_view instance) = 0;
    [[nodiscard]] virtual SystemStats stats() = 0;
    // Refuses (condition_failed) an instance that has not ended unless `force`, a child (delete its
    // root), and a list that leaves out a child of one of its members. not_found: no such instance.
    virtual DeleteCounts delete_tree(std::string_view root, bool force) = 0;
    virtual DeleteCounts delete_exactly(std::span<const std::string> instances, bool force) = 0;
    virtual DeleteCounts delete_ended(const DeleteFilter& filter) = 0;
    virtual DeleteCounts prune(std::string_view instance, const PruneOptions& options) = 0;
    // Earlier executions that ended before then, of at most `limit` instances.
    virtual DeleteCounts prune_ended(Moment before, int limit) = 0;
    // Removes early messages whose instance never started, and old replies.
    virtual int sweep(milliseconds early_mail_ttl, milliseconds reply_ttl) = 0;
    // For import and tests: an instance with this history, which must not exist yet.
    virtual void import_history(std::string_view instance, const ExportedHistory& history) = 0;

    // --- time
    // The database's clock.
    [[nodiscard]] virtual Moment now() = 0;
    // When the next message or activity becomes visible; empty if there is none.
    [[nodiscard]] virtual std::optional<milliseconds> until_next_work() = 0;
};

}  // namespace holdfast::flow
