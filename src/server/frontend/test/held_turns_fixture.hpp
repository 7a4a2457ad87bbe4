// Turns over runs in memory: the histories are real, the store is a map.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/turns.hpp"

namespace holdfast::server::frontend::tests {

// Ids in a row, shaped like UUIDs.
class NumberedSource final : public history::Source {
public:
    std::string uuid() override;
    std::int64_t task_id() override { return ++tasks_; }
    double fraction() override { return 0; }

private:
    int uuids_ = 0;
    std::int64_t tasks_ = 0;
};

// Everything happens at once, on the thread of the caller. One run for each workflow id.
class HeldTurns final : public engine::Turns {
public:
    struct HeldRun {
        history::state::Run run;
        std::vector<temporal::api::history::v1::History> batches;
    };

    void in_turn(const engine::WorkflowKey& workflow, engine::TurnWork work) override;
    [[nodiscard]] engine::Watch watch(const engine::WorkflowKey& workflow,
                                      const std::string& run_id,
                                      std::int64_t next_event_id,
                                      std::function<void()> told) override;

    // Gives the pending workflow task to a worker. Returns its token.
    std::string poll_task(const engine::WorkflowKey& workflow);

    [[nodiscard]] HeldRun* run_of(const engine::WorkflowKey& workflow);
    std::optional<history::Refusal> apply(HeldRun& held, const engine::Change& change);
    void tell();

    NumberedSource source;
    history::Limits limits;
    history::Time now{std::chrono::sys_days{std::chrono::year{2026} / 3 / 1}};
    std::map<engine::WorkflowKey, HeldRun> runs;
    std::size_t turns = 0;
    engine::StartRequest last_start;
    std::shared_ptr<engine::BufferedQuery> buffered_query;  // The last one.
    engine::ResetRequest last_reset;

private:
    struct Watching {
        engine::WorkflowKey workflow;
        std::int64_t next_event_id = 0;
        std::function<void()> told;
    };
    std::vector<std::weak_ptr<Watching>> watches_;
};

}  // namespace holdfast::server::frontend::tests
