// Work of the server itself that leads through the turns of several workflows.
//
// A step runs in the turn of its workflow, and may add others behind it. A step that throws is
// tried again after a pause, from the first step on: all steps find out for themselves what is done
// already. So an errand that a crash cut off begins anew from its row.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "engine/engine_state.hpp"
#include "engine/store_turn.hpp"

namespace holdfast::server::engine {

class Errand : public std::enable_shared_from_this<Errand> {
public:
    using Work = std::function<void(StoreTurn&, Errand&)>;

    Errand(Engine::State& engine, RunName run, history::Task task, std::int64_t row);

    void begin();

    // Behind the steps that there are.
    void then(WorkflowKey workflow, Work work);
    // In a turn of the run whose task this is.
    void then_at_home(Work work);

    [[nodiscard]] const RunName& run() const noexcept { return run_; }
    [[nodiscard]] const history::Task& task() const noexcept { return task_; }
    [[nodiscard]] std::int64_t row() const noexcept { return row_; }
    [[nodiscard]] Engine::State& engine() noexcept { return engine_; }

private:
    struct Step {
        WorkflowKey workflow;
        Work work;
    };

    void next();
    void again();

    Engine::State& engine_;
    const RunName run_;
    const history::Task task_;
    const std::int64_t row_;
    const std::shared_ptr<void> work_;  // Lives as long as this is under way.
    std::deque<Step> steps_;
};

}  // namespace holdfast::server::engine
