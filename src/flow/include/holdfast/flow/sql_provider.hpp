// The provider that keeps everything in an SQL database.
//
// The same SQL serves SQLite, PostgreSQL and DSQL. A commit of turns costs two round trips: the
// first changes every row that decides something (instances, mailboxes, claimed activities), always
// in the same order, so that two commits cannot deadlock; the second sends the remaining writes,
// together with COMMIT.
#pragma once

#include <atomic>
#include <chrono>
#include <string_view>

#include <holdfast/flow/provider.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/sql/retry.hpp>
#include <holdfast/sql/schema.hpp>
#include <holdfast/sql/statement.hpp>

namespace holdfast::flow {

// The notification after a commit that made work ready at once: "w" for messages to workflows, "a"
// for activities.
inline constexpr std::string_view wake_channel = "holdfast_flow";
inline constexpr std::string_view wake_workflows = "w";
inline constexpr std::string_view wake_activities = "a";

struct SqlProviderOptions {
    bool notify = true;  // Wake other processes after a commit. On a server it costs a statement.
    std::chrono::milliseconds deadline{30000};  // Of each call.
    // How many rows one transaction deletes at most; larger deletes take several. Below the 3,000
    // that Aurora DSQL accepts.
    int rows_per_delete = 2000;
    // For Aurora DSQL, where transactions do not wait for rows and a lost race costs a whole
    // transaction: a claim reads this many rows more than it wants, and takes consecutive ones from
    // a random position among them. It takes few at first, fewer after a lost race and more after a
    // won one. With 0 it takes the oldest, as many as it wants.
    int spare_candidates = 32;
    sql::RetryPolicy retry{.max_retries = 8,
                           .base_delay = std::chrono::milliseconds{5},
                           .max_delay = std::chrono::milliseconds{200},
                           .jitter_factor = 0.5};
};

class SqlProvider final : public Provider {
public:
    // Requires: `db` outlives this object, and its schema holds `schema_part()`.
    explicit SqlProvider(sql::Database& db, SqlProviderOptions options = {});

    [[nodiscard]] std::vector<ClaimedInstance> claim_instances(const ClaimInstances& ask) override;
    [[nodiscard]] std::optional<ClaimedInstance> peek_instance(std::string_view instance,
                                                               const Uuid& token) override;
    [[nodiscard]] LoadedHistory load_history(std::string_view instance,
                                             ExecutionId execution,
                                             EventId after = 0) override;
    [[nodiscard]] std::vector<Committed> commit_turns(std::span<const TurnCommit> turns) override;
    bool abandon_instance(const ClaimedInstance& claim,
                          milliseconds delay,
                          bool ignore_attempt) override;
    bool block_instance(const BlockInstance& block) override;
    int retry_blocked(const RetryBlocked& ask) override;
    bool renew_instance(std::string_view instance, const Uuid& token, milliseconds lease) override;

    [[nodiscard]] std::vector<ClaimedActivity> claim_activities(
        const ClaimActivities& ask) override;
    // If the answer to a commit is lost, an activity that is gone counts as ended here; one that is
    // still there does not, even if another worker has it by then.
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
    [[nodiscard]] sql::TxOptions writing(
        sql::Durability durability = sql::Durability::flushed) const;
    [[nodiscard]] sql::TxOptions reading() const;
    void wake(sql::Tx& tx, std::string_view whom) const;

    [[nodiscard]] std::vector<bool> end_together(std::span<const ActivityEnd> ends);
    [[nodiscard]] bool looks_first() const;
    [[nodiscard]] bool claims_are_spread() const;
    [[nodiscard]] Started start_once(const StartInstance& request,
                                     const Uuid& origin,
                                     const Uuid& token);

    sql::Database& db_;
    SqlProviderOptions options_;
    // How many rows a claim takes at once on Aurora DSQL; it follows what was lost and won.
    std::atomic<int> instances_at_once_;
    std::atomic<int> activities_at_once_;
};

// The tables of this floor.
[[nodiscard]] const sql::SchemaPart& schema_part();

// The statements that this floor runs, for the checks that read them all.
[[nodiscard]] const sql::Catalogue& catalogue() noexcept;

}  // namespace holdfast::flow
