// Runs turns: from their input to what is to be committed.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/instances.hpp"

#include <holdfast/flow/provider.hpp>
#include <holdfast/flow/registry.hpp>
#include <holdfast/flow/runtime.hpp>
#include <holdfast/flow_engine/left_open.hpp>

namespace holdfast::flow {

class ActivityPool;
class DatabaseClock;
class Meters;
class Unserved;

// What a turn sees: its instance, its mail, the clock.
struct TurnContext {
    std::string name;
    std::string version;
    ExecutionId execution = 1;
    EventId last_event = 0;
    Uuid token;
    bool leased = false;
    int attempt = 0;
    int blocked_tries = 0;
    Moment now;
    std::vector<InboxMessage> mail;
    bool creates = false;  // There is nothing in the store yet.
};

// A turn that has run and waits for its commit.
struct PreparedTurn {
    Instance* instance = nullptr;
    TurnCommit commit;
    std::vector<ActivityEnd> answers;    // The activities whose answers it has read.
    std::vector<ActivityEnd> left;       // Those whose answers are for the next turn.
    bool goes_on = false;                // There is mail that it has left for the next turn.
    std::vector<ClaimedActivity> local;  // Activities this process has claimed with it.
    // To be announced once it is committed.
    std::vector<std::pair<std::string, Uuid>> started;  // Child instances, and their workflows
    std::vector<std::string> started_workflows;         // in the same order.
    bool activities_waiting = false;
    std::size_t bytes = 0;
    detail::FirstTurnDuty first{};  // The waiting client, if this turn is a start.
    TurnContext turn_context{};     // What it has seen.
};

// The deadline message of an activity that must begin within a limit, to its own workflow.
[[nodiscard]] OutgoingMessage start_deadline(const ActivityKey& key,
                                             std::int64_t limit_ms,
                                             Moment now);

// Why a turn cannot be taken here.
struct Obstacle {
    BlockKind kind = BlockKind::unregistered;
    std::string reason;
};

class TurnRunner {
public:
    TurnRunner(Provider& provider,
               const Registry& registry,
               const RuntimeOptions& options,
               InstanceTable& instances,
               ActivityPool& activities,
               DatabaseClock& clock,
               Meters& meters,
               Unserved& unserved,
               std::function<void()> look_for_mail);

    // Empty: there was nothing to commit, and the instance has been given back to the table.
    // `unwanted` receives answers that no turn waits for.
    [[nodiscard]] std::optional<PreparedTurn> run(Instance& instance,
                                                  TurnInput input,
                                                  std::vector<ActivityEnd>& unwanted);

    // What is committed instead of a turn that exceeds what the database accepts at once: the
    // workflow's failure. Takes over the waiting client, if the turn was a start.
    [[nodiscard]] PreparedTurn too_large(PreparedTurn& turn);

private:
    bool look(Instance& instance, TurnInput& input, TurnContext& turn_context);
    // Brings the coroutine to the state in the store, or returns why it cannot.
    [[nodiscard]] std::optional<Obstacle> load(Instance& instance, const TurnContext& turn_context);
    [[nodiscard]] std::optional<Obstacle> begin(Instance& instance,
                                                const TurnContext& turn_context);
    [[nodiscard]] Obstacle unregistered(std::string_view name,
                                        std::string_view version,
                                        const TurnContext& turn_context);
    // The turn is not committed. The instance is blocked, unless a forced cancel request is in its
    // mail: then its end is committed.
    [[nodiscard]] std::optional<PreparedTurn> stop_at(Instance& instance,
                                                      const TurnContext& turn_context,
                                                      const Obstacle& obstacle,
                                                      TurnInput&& input,
                                                      std::vector<ActivityEnd>& unwanted);
    // Of the execution that the instance is at.
    [[nodiscard]] std::unique_ptr<Execution> make_execution(const Instance& instance,
                                                            detail::Program program) const;
    std::vector<std::pair<EventId, OutgoingMessage>> fail_what_nobody_began(
        const Instance& instance, const TurnContext& turn_context);
    [[nodiscard]] std::vector<LeftOpen> open_in_store(const Instance& instance,
                                                      const TurnContext& turn_context);
    // This process cannot take the turn: what it holds goes back to the store.
    void lose(Instance& instance, TurnInput&& input, std::vector<ActivityEnd>& unwanted);
    void forget(Instance& instance, TurnInput&& input, std::vector<ActivityEnd>& unwanted);
    PreparedTurn fail(Instance& instance, const TurnContext& turn_context, FailureInfo why);
    PreparedTurn poison(Instance& instance, const TurnContext& turn_context);
    PreparedTurn prepare(Instance& instance,
                         const TurnContext& turn_context,
                         Turn turn,
                         std::vector<ActivityEnd> finished);
    void add_activities(PreparedTurn& prepared, const TurnContext& turn_context, Turn& turn);
    void add_ending(PreparedTurn& prepared, const TurnContext& turn_context, Turn& turn);
    Turn checked(Instance& instance,
                 const TurnContext& turn_context,
                 std::span<const Message> messages);
    Provider& provider_;
    const Registry& registry_;
    const RuntimeOptions& options_;
    InstanceTable& instances_;
    ActivityPool& activities_;
    DatabaseClock& clock_;
    Meters& meters_;
    Unserved& unserved_;
    std::function<void()> look_for_mail_;
};

}  // namespace holdfast::flow
