// A turn on the store. See turn.hpp for what it promises.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/draft.hpp"
#include "engine/engine_state.hpp"
#include "engine/turn.hpp"

namespace holdfast::server::engine {

class Errand;

// One run's part of a commit, until it is known whether the commit landed.
struct Attempt {
    Draft draft{};
    RunMeta meta{};                     // As the commit leaves it.
    std::optional<std::int64_t> row{};  // The transfer row that lists the tasks of the draft.
    std::vector<std::int64_t> done{};   // Transfer rows that it removes.
    store::Wake wake{};
};

// What a write without an answer leaves to be found out.
struct Unresolved {
    store::ShardLease lease{};
    std::vector<Attempt> attempts{};
};

class StoreTurn final : public Turn {
public:
    StoreTurn(Engine::State& engine, WorkflowKey workflow);
    ~StoreTurn() override;
    StoreTurn(const StoreTurn&) = delete;
    StoreTurn& operator=(const StoreTurn&) = delete;

    [[nodiscard]] Or<const history::state::Run*> find(const std::string& run_id) override;
    [[nodiscard]] std::optional<Refusal> change(const std::string& run_id,
                                                const Change& change) override;
    [[nodiscard]] std::optional<Refusal> change_and_take(
        const std::string& run_id,
        const std::string& identity,
        const Change& change,
        temporal::api::workflowservice::v1::PollWorkflowTaskQueueResponse& task) override;
    [[nodiscard]] std::variant<StartAnswer, AlreadyStarted, Refusal> start(
        StartRequest request) override;
    void task_of(const std::string& run_id,
                 temporal::api::workflowservice::v1::PollWorkflowTaskQueueResponse& task) override;
    void activity_of(
        const std::string& run_id,
        std::int64_t scheduled_event_id,
        temporal::api::workflowservice::v1::PollActivityTaskQueueResponse& task) override;
    [[nodiscard]] HistoryPage read(const std::string& run_id,
                                   std::int64_t first_event_id,
                                   int batches_max) override;
    [[nodiscard]] HistoryPage read_back(const std::string& run_id,
                                        std::int64_t end_event_id,
                                        int batches_max) override;
    [[nodiscard]] UpdateNews update(const std::string& run_id,
                                    const std::string& update_id) override;
    [[nodiscard]] Watch await_update(const std::string& run_id,
                                     const std::string& update_id,
                                     history::UpdateStage stage,
                                     std::function<void(UpdateNews)> told) override;
    [[nodiscard]] std::optional<Refusal> buffer_query(
        const std::string& run_id, std::shared_ptr<BufferedQuery> query) override;
    void bring_query_results(const QueryResults& results) override;
    [[nodiscard]] std::optional<Refusal> query_task_of(
        const std::string& run_id,
        const std::string& queue,
        temporal::api::workflowservice::v1::PollWorkflowTaskQueueResponse& task) override;
    [[nodiscard]] Or<std::string> reset(const ResetRequest& request) override;
    [[nodiscard]] std::optional<Refusal> remove(const std::string& run_id) override;

    // Gives a task that waited to a poll. False if it is void: then its row is gone.
    [[nodiscard]] bool start_waiting(const std::string& run_id,
                                     const history::Task& task,
                                     const std::string& queue,
                                     matching::Reservation poller);

    // An event of the run, in the batch that begins with `batch_event_id`. Requires: it is there.
    [[nodiscard]] temporal::api::history::v1::HistoryEvent event(const std::string& run_id,
                                                                 std::int64_t batch_event_id,
                                                                 std::int64_t event_id);
    // The last step of an errand is done, which began in this workflow.
    void finish(const Errand& errand);

    // Takes the shard again, and tells of the attempts that turn out to be committed. If it throws,
    // it has to be called again.
    void resolve(Unresolved& unresolved);

    // What is due in the run now.
    void fire_due(const std::string& run_id);

    // The row that wakes the run is due.
    void wake(const std::string& run_id, const store::TaskKey& row);

private:
    [[nodiscard]] Or<CachedRun*> load(const std::string& run_id);
    [[nodiscard]] const std::optional<store::CurrentRun>& current();
    [[nodiscard]] history::Time now_for(const CachedRun& run) const;

    [[nodiscard]] Draft draft_of(CachedRun& cached,
                                 const Change& change,
                                 std::optional<Refusal>& refusal);
    // A draft that ends the current run, because another one takes its place.
    [[nodiscard]] Draft ended_for(CachedRun& cached, const std::string& new_run_id);
    [[nodiscard]] Draft started_draft(const std::string& run_id,
                                      StartRequest& request,
                                      bool& eager);
    // The update of update-with-start, of a run that is there already.
    [[nodiscard]] std::optional<Refusal> ask_existing(const std::string& run_id,
                                                      const StartRequest& request);
    // What a start does to a run that it uses.
    [[nodiscard]] std::optional<Refusal> use_existing(const std::string& run_id,
                                                      const StartRequest& request);
    [[nodiscard]] Draft follower_of(const Draft& closed);
    [[nodiscard]] Draft first_draft(const std::string& run_id,
                                    history::Time now,
                                    const std::function<void(history::Transition&)>& begin);

    void commit(CachedRun& cached, Draft draft, const store::TaskKey* fired = nullptr);
    void commit_first(Draft draft, const std::optional<store::CurrentRun>& previous);
    // Closes the current run and starts the new one in one commit.
    void commit_instead(CachedRun& cached,
                        Draft ended,
                        Draft started,
                        const store::TaskKey* fired = nullptr);

    // What the new run of a reset has of its base: whole batches, and the transaction of the last.
    struct Kept {
        std::vector<temporal::api::history::v1::History> batches;
        std::int64_t last_txn_id = 0;
    };
    // The stored batches that begin at `first` or later and before `end`.
    [[nodiscard]] Kept stored_batches(const CachedRun& cached,
                                      std::int64_t first,
                                      std::int64_t end);
    // The runs that a reset writes, as it leaves them.
    struct Reset {
        CachedRun& base;
        Draft base_draft{};
        CachedRun* current = nullptr;  // If it is open and another than `base`.
        Draft current_draft{};
        Draft made{};
    };
    [[nodiscard]] Reset ended_by_reset(CachedRun& base,
                                       CachedRun* current,
                                       const std::string& new_run_id,
                                       const std::string& reason);
    // What came after the point, along the chain of runs.
    [[nodiscard]] std::optional<Refusal> reapply(history::Transition& transition,
                                                 const Reset& reset,
                                                 const history::ResetOptions& options);
    void commit_reset(Reset reset, std::int64_t first_event_id, std::int64_t last_txn_id);

    void prepare(Attempt& attempt,
                 store::RunWrite& write,
                 std::vector<store::AppendRequest>& nodes,
                 const store::TaskKey* fired);
    [[nodiscard]] store::Wake wake_of(const history::state::Run& run,
                                      RunMeta& meta,
                                      const store::TaskKey* fired);
    [[nodiscard]] store::Mutation mutation_of(CachedRun& cached,
                                              Attempt& attempt,
                                              std::vector<store::AppendRequest>& nodes,
                                              const store::TaskKey* fired);
    [[nodiscard]] store::Snapshot snapshot_of(Attempt& attempt,
                                              std::vector<store::AppendRequest>& nodes);

    // Calls `write(lease)`. After a failure that is not about the database's health nothing of the
    // workflow is in memory any more; after one without an answer the attempts are resolved, now or
    // as soon as the database answers.
    using Write = std::function<void(const store::ShardLease&)>;
    void write(const Write& write, std::vector<Attempt>& attempts);
    // The same for rows beside a run.
    void write_rows(const Write& write);
    void forget();

    // As commit(), for a draft that changes nothing that is stored.
    void keep(CachedRun& cached, Draft draft);
    // A speculative workflow task for updates that wait for one; empty if none does.
    [[nodiscard]] Draft speculative_draft(CachedRun& cached);
    void offer_updates(CachedRun& cached);
    // Starts it for the caller. Its queue, or nothing if the caller does not get one.
    [[nodiscard]] std::string take_updates(CachedRun& cached, const matching::PollInfo& caller);
    void tell_of_updates(const CachedRun& cached, const std::vector<history::UpdateEnd>& ended);
    void watch_speculative(const CachedRun& cached);

    void publish(CachedRun& cached, Attempt attempt);
    // Tells everyone of what is committed.
    void announce(CachedRun& cached, Attempt& attempt);
    void tell_query_results(CachedRun& cached);
    void settle_queries();
    void deliver(CachedRun& cached, Match match);
    void fill_workflow_task(
        CachedRun& cached,
        const std::string& queue,
        temporal::api::workflowservice::v1::PollWorkflowTaskQueueResponse& task);
    void fill_activity(CachedRun& cached,
                       std::int64_t scheduled_event_id,
                       temporal::api::workflowservice::v1::PollActivityTaskQueueResponse& task);
    [[nodiscard]] HistoryPage read_run(CachedRun& cached,
                                       std::int64_t first_event_id,
                                       int batches_max);
    void complete_rows(const std::string& run_id, const std::vector<std::int64_t>& rows);

    Engine::State& engine_;
    const WorkflowKey key_;
    Shard& shard_;
    ShardSource source_;
    std::shared_ptr<CachedWorkflow> workflow_;
    const QueryResults* query_results_ = nullptr;  // Of the change under way.
};

// Adds the updates that go with the started workflow task.
void add_update_messages(const history::state::Run& run,
                         temporal::api::workflowservice::v1::PollWorkflowTaskQueueResponse& task);
// Where the next page of a history begins, as its reader hands it back.
[[nodiscard]] std::string page_token_of(const std::string& run_id, std::int64_t next_event_id);

}  // namespace holdfast::server::engine
