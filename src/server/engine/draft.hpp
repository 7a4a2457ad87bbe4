// What a turn is about to commit: the result of one or more transitions of one run.
//
// A task that a transition makes is matched with a waiting poll before it is committed: the start
// of the task is a second transition on the uncommitted result of the first. Both go into one
// commit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "history/transition.hpp"
#include "matching/matching.hpp"
#include <temporal/api/history/v1/message.pb.h>

namespace holdfast::server::engine {

// A poll that gets a task of the draft once it is committed.
struct Match {
    matching::Reservation poll;
    history::Task task;
};

struct Draft {
    history::state::Run run{};
    std::vector<temporal::api::history::v1::History> batches{};
    std::vector<history::Task> tasks{};  // Those that found no poll.
    std::optional<history::Continuation> next{};
    std::vector<Match> matches{};
    std::vector<history::UpdateEnd> ended_updates{};
    bool changed = false;
    bool touched = false;  // If nothing else: there is nothing to commit.

    [[nodiscard]] bool empty() const noexcept { return !changed && !touched; }
};

// Adds the result of one more transition, which began with the run of the draft.
void absorb(Draft& draft, history::Result result);

// The queue on which a task of the run is offered; a sticky queue without its worker gives way to
// the normal one. Requires: `task` is one of the two kinds that have a queue, and stands.
[[nodiscard]] matching::QueueKey queue_of(const history::state::Run& run,
                                          const history::Task& task,
                                          const matching::Matching& matching);
[[nodiscard]] int priority_of(const history::state::Run& run, const history::Task& task);
// The key between whose tasks its queue is fair. None on a sticky queue, which has one worker.
struct Fairness {
    std::string key{};
    float weight = 0;  // 0 where none was given.
};
[[nodiscard]] Fairness fairness_of(const history::state::Run& run,
                                   const history::Task& task,
                                   const matching::QueueKey& queue);

// Starts a task for a poll in a transition of its own. False if the poll gets nothing: the run
// refused, and the draft is as it was; or the start made it outgrow a limit, and the draft ends it.
[[nodiscard]] bool start_task(Draft& draft,
                              const history::Task& task,
                              const matching::PollInfo& poll,
                              const std::string& queue,
                              history::Time now,
                              history::Source& source,
                              const history::Limits& limits);

// Gives the tasks of the draft to polls that wait for them.
void match_tasks(Draft& draft,
                 matching::Matching& matching,
                 history::Time now,
                 history::Source& source,
                 const history::Limits& limits);

}  // namespace holdfast::server::engine
