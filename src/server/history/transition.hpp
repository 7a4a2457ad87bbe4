// One step of a run: events and notes that change a copy of its state, and the tasks they make.
//
// A request builds a transition on the committed state, adds events and notes, and ends with
// finish(), whose result the engine commits as a whole or not at all. Nothing here waits, reads a
// clock or draws a random number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "history/event_kind.hpp"
#include "history/limits.hpp"
#include "history/note.hpp"
#include "history/refusal.hpp"
#include "history/times.hpp"
#include <server/history/state.pb.h>
#include <temporal/api/history/v1/message.pb.h>

namespace holdfast::server::history {

// Where ids and chance come from. A test gives the same ones again.
class Source {
public:
    Source() = default;
    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;
    virtual ~Source() = default;

    [[nodiscard]] virtual std::string uuid() = 0;
    [[nodiscard]] virtual std::int64_t task_id() = 0;  // Grows with each call.
    [[nodiscard]] virtual double fraction() = 0;       // At least 0, below 1.
};

// Work that leaves the run. It is done at least once, and is void if the state says so when it is.
struct Task {
    enum class Kind : std::uint8_t {
        workflow_task,
        activity,
        start_child,
        cancel_external,
        signal_external,
        close,
    };
    Kind kind{};
    std::int64_t event_id = 0;  // Scheduled or initiated event; of `close` the last event.
    std::int32_t stamp = 0;

    friend bool operator==(const Task&, const Task&) = default;
};

// The run that follows in the chain, to be started in the same commit.
struct Continuation {
    std::string run_id;
    temporal::api::history::v1::WorkflowExecutionStartedEventAttributes started;
};

// How an update ended that leaves no event: a worker rejected it, or it is aborted.
struct UpdateEnd {
    std::string update_id;
    std::variant<temporal::api::failure::v1::Failure, Refusal> how;
};

struct Result {
    state::Run run;
    std::vector<temporal::api::history::v1::History> batches;
    std::vector<Task> tasks;
    std::optional<Continuation> next;
    std::vector<UpdateEnd> ended_updates;
    bool changed = false;  // False: there is nothing to commit.
    bool touched = false;  // What is in memory only has changed.
};

class Transition {
public:
    // Requires: `before`, `source` and `limits` outlive this object.
    Transition(const state::Run& before, Time now, Source& source, const Limits& limits);

    [[nodiscard]] const state::Run& run() const noexcept { return run_; }
    [[nodiscard]] Time now() const noexcept { return now_; }
    [[nodiscard]] const Limits& limits() const noexcept { return limits_; }
    [[nodiscard]] Source& source() noexcept { return source_; }
    [[nodiscard]] bool open() const noexcept;
    [[nodiscard]] bool workflow_task_started() const noexcept;

    // The run had no events before this transition.
    [[nodiscard]] bool first() const noexcept;

    // An event of this moment, without an id.
    [[nodiscard]] temporal::api::history::v1::HistoryEvent event(EventType type) const;

    // Applies the event and returns its id: the next one of the history, or buffered_event_id for
    // one that goes to the buffer.
    std::int64_t add(temporal::api::history::v1::HistoryEvent event);

    void note(const Note& note);
    // A note about what is in memory only: by itself it does not make a commit.
    void touch(const Note& note);
    // Those who wait for the update are told once this is committed. The run forgets it.
    void end_update(UpdateEnd end);
    void add_task(Task task) { tasks_.push_back(task); }

    // Those that were added so far. finish() may add the workflow task that is asked for, and drops
    // all when the run closes.
    [[nodiscard]] const std::vector<Task>& tasks() const noexcept { return tasks_; }

    // For work that is done in this very step. Requires: the task was added.
    void withdraw_task(Task::Kind kind, std::int64_t event_id);
    void continue_with(Continuation next) { next_ = std::move(next); }

    // The workflow has to see something: finish() schedules a workflow task if none is pending.
    void wake() noexcept { wake_ = true; }
    [[nodiscard]] bool woken() const noexcept { return wake_; }
    [[nodiscard]] bool changed() const noexcept { return changed_; }

    // Moves the buffer into the history: first what closes nothing, then what does, each in the
    // order of arrival. True if there was anything. Requires: no workflow task is started.
    bool flush_buffer();

    // Removes the firing of a timer from the buffer. The id of the event that started the timer, or
    // nothing if it is not there.
    std::optional<std::int64_t> unbuffer_timer(const std::string& timer_id);

    // The next event begins a batch of its own.
    void begin_batch() noexcept { begin_batch_ = true; }

    // Forgets everything that was added.
    void restart();

    // Only finish() calls this (finish.hpp).
    [[nodiscard]] Result take();

private:
    void write(temporal::api::history::v1::HistoryEvent event, bool applied);

    const state::Run& before_;
    const Time now_;
    Source& source_;
    const Limits& limits_;
    state::Run run_;
    std::vector<temporal::api::history::v1::History> batches_;
    std::vector<Task> tasks_;
    std::optional<Continuation> next_;
    std::vector<UpdateEnd> ended_updates_;
    bool begin_batch_ = true;
    bool wake_ = false;
    bool changed_ = false;
    bool touched_ = false;
};

// Whether the first workflow task still waits for a start delay or a backoff.
[[nodiscard]] bool in_first_backoff(const state::Run& run);

}  // namespace holdfast::server::history
