// The way to the turns of workflows, for callers that need not know what runs them.
#pragma once

#include <compare>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "engine/turn.hpp"
#include "executor/job.hpp"
#include "rpc/refusal.hpp"

namespace holdfast::server::engine {

using TurnWork = Once<Turn&>;

struct WorkflowKey {
    std::string namespace_id;  // A UUID in text.
    std::string workflow_id;

    friend auto operator<=>(const WorkflowKey&, const WorkflowKey&) = default;
};

// Safe to share between threads.
class Turns {
public:
    Turns() = default;
    Turns(const Turns&) = delete;
    Turns& operator=(const Turns&) = delete;
    virtual ~Turns() = default;

    // Calls `work` in a turn of the workflow, from a thread of the executor. Never blocks. It must
    // not throw: see answer().
    virtual void in_turn(const WorkflowKey& workflow, TurnWork work) = 0;

    // Calls `told` once: when the run has an event with this id or a later one, or is closed; at
    // once if it is so. `told` must not block.
    [[nodiscard]] virtual Watch watch(const WorkflowKey& workflow,
                                      const std::string& run_id,
                                      std::int64_t next_event_id,
                                      std::function<void()> told) = 0;

    // Calls `handle(turn, reply)` in a turn of the workflow. Whatever `handle` throws becomes the
    // answer. `handle` may send or refuse the reply, or keep it by moving from it.
    template <class Reply, class Handle>
    void answer(const WorkflowKey& workflow, Reply reply, Handle handle) {
        in_turn(workflow,
                [reply = std::optional<Reply>(std::move(reply)),
                 handle = std::move(handle)](Turn& turn) mutable {
                    try {
                        handle(turn, *reply);
                    } catch (...) {
                        std::move(*reply).refuse(rpc::refusal_of(std::current_exception()));
                    }
                });
    }
};

}  // namespace holdfast::server::engine
