// What is wrong with a history.
//
// Reads the events of one run in order and says in words where they contradict each other: ids,
// times, references, pairs of what was opened and closed, attributes that must be there. It judges
// events alone, so it works on a history of this server as well as on one of another.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "history/event_kind.hpp"
#include "history/times.hpp"
#include <temporal/api/history/v1/message.pb.h>

namespace holdfast::server::history {

class Checker {
public:
    // Takes the next event. A problem is told once; the rest is judged as if it was meant well.
    void see(const temporal::api::history::v1::HistoryEvent& event);

    // "event 7 WORKFLOW_TASK_COMPLETED: ...". Empty for a history that is right; at most
    // problems_max of them.
    [[nodiscard]] const std::vector<std::string>& problems() const noexcept { return problems_; }

    static constexpr std::size_t problems_max = 100;

private:
    using Event = temporal::api::history::v1::HistoryEvent;

    // Something that an event opened and another one will close.
    struct Open {
        std::string name;  // Id that the workflow gave it.
        Time begun;
        std::int64_t started_event_id = 0;  // 0: not yet.
        std::int64_t cancel_event_id = 0;   // 0: not asked for.
    };
    using Opened = std::map<std::int64_t, Open>;

    void problem(const Event& event, const std::string& text);
    void check_place(const Event& event);
    void check_task_id(const Event& event);
    void check_time(const Event& event);
    void check_command(const Event& event);
    void check_workflow_task(const Event& event);
    void check_activity(const Event& event);
    void check_timer(const Event& event);
    void check_child(const Event& event);
    void check_external(const Event& event);
    void check_nexus(const Event& event);
    void check_update(const Event& event);
    void open(const Event& event, Opened& opened, const std::string& name);
    Open* find(const Event& event, Opened& opened, const char* field);
    void start(const Event& event, Open* one);
    void close(const Event& event, Opened& opened, const char* field, bool may_be_unstarted);
    void answer(const Event& event, Opened& opened);

    std::vector<std::string> problems_;
    std::int64_t last_event_id_ = 0;
    std::int64_t last_task_id_ = 0;
    bool unstored_ = false;  // Only shown, as a transient workflow task is.
    bool closed_ = false;
    bool cancel_requested_ = false;
    Time newest_{Time::min()};          // Of all events so far.
    Time newest_arrival_{Time::min()};  // Of those that may have waited in the buffer,
    Time newest_closing_{Time::min()};  // and of those that leave it last.

    std::int64_t task_scheduled_ = 0;  // The pending workflow task; 0: none.
    std::int64_t task_started_ = 0;
    std::int64_t task_completed_ = 0;  // Newest event 7.
    Opened activities_;
    Opened timers_;
    Opened children_;
    Opened cancels_;
    Opened signals_;
    Opened operations_;
    Opened updates_;  // By their event 41.
    std::set<std::string> admitted_;
    std::set<std::string> accepted_;
};

// All problems of a whole history.
[[nodiscard]] std::vector<std::string> problems_of(
    std::span<const temporal::api::history::v1::History> batches);

}  // namespace holdfast::server::history
