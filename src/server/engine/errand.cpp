#include "engine/errand.hpp"

#include <optional>
#include <utility>

#include "engine/run_observer.hpp"
#include "history/child/child.hpp"
#include "history/outside.hpp"
#include "history/start.hpp"
#include "history/start/first_run.hpp"
#include "history/start/policy.hpp"

#include <holdfast/base/error.hpp>
#include <holdfast/base/log.hpp>

namespace holdfast::server::engine {

namespace {

namespace state = history::state;
using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 20 names of it.
using Kind = history::Task::Kind;
using temporal::api::history::v1::HistoryEvent;

// The state of a run in this turn; null if there is none.
const state::Run* run_in(StoreTurn& turn, const std::string& run_id) {
    const auto found = turn.find(run_id);
    const auto* run = std::get_if<const state::Run*>(&found);
    return run == nullptr ? nullptr : *run;
}

// The run that goes on where this one was reset, and again; itself if it was not.
std::string successor_of(StoreTurn& turn, std::string run_id) {
    constexpr int resets_max = 100;
    for (int resets = 0; resets < resets_max; ++resets) {
        const state::Run* run = run_in(turn, run_id);
        if (run == nullptr || run->phase() != state::PHASE_COMPLETED ||
            run->reset_run_id().empty()) {
            break;
        }
        run_id = run->reset_run_id();
    }
    return run_id;
}

// A refusal that passes: the errand comes again.
void require_not_busy(const std::optional<Refusal>& refusal) {
    if (refusal && refusal->kind == history::Refused::busy) {
        throw Error(Code::unavailable, Outcome::not_applied, refusal->message);
    }
}

// ---- The end of a run
// ------------------------------------------------------------------------------

void tell_parent(Errand& errand, history::ChildReport report) {
    const WorkflowKey parent{report.parent_namespace_id, report.parent_workflow_id};
    errand.then(parent, [report = std::move(report)](StoreTurn& turn, Errand&) {
        // A parent that is gone or closed, or has heard of it, needs nothing.
        (void)turn.change(successor_of(turn, report.parent_run_id),
                          [&](history::Transition& transition) {
                              return history::child_closed(transition, report);
                          });
    });
}

void end_child(Errand& errand, const state::Run& parent, const history::ChildEnd& child) {
    errand.then(
        {parent.namespace_id(), child.workflow_id},
        [child, cancel = history::parent_close_cancel(parent)](StoreTurn& turn, Errand&) {
            const state::Run* run = run_in(turn, "");
            if (run == nullptr || run->started().first_execution_run_id() != child.first_run_id) {
                return;
            }
            (void)turn.change("", [&](history::Transition& transition) {
                if (child.policy == PARENT_CLOSE_POLICY_REQUEST_CANCEL) {
                    history::request_cancel(transition, cancel);
                    return std::optional<Refusal>{};
                }
                return history::terminate_run(transition, history::parent_close_termination());
            });
        });
}

void close(StoreTurn& turn, Errand& errand) {
    const state::Run* run = run_in(turn, errand.run().run_id);
    if (run != nullptr) {
        const state::Run closed = *run;
        const HistoryEvent closing =
            turn.event(closed.run_id(), closed.completion_event_batch_id(), errand.task().event_id);
        if (auto report = history::report_to_parent(closed, closing)) {
            tell_parent(errand, *std::move(report));
        }
        for (const history::ChildEnd& child : history::children_to_end(closed)) {
            end_child(errand, closed, child);
        }
    }
    errand.then_at_home([](StoreTurn& home, Errand& self) { home.finish(self); });
}

// ---- A child
// ---------------------------------------------------------------------------------------

void give_first_task(Errand& errand, const WorkflowKey& child, const std::string& run_id) {
    errand.then(child, [run_id](StoreTurn& turn, Errand&) {
        (void)turn.change(run_id, [](history::Transition& transition) {
            history::schedule_first_task(transition);
            return std::optional<Refusal>{};
        });
    });
    errand.then_at_home([](StoreTurn& home, Errand& self) { home.finish(self); });
}

// The parent closed before it knew of its child, which has done nothing yet. One that a reset has
// closed leaves the child to live by itself, or to be adopted.
void give_up_child(StoreTurn& turn,
                   Errand& errand,
                   const WorkflowKey& child,
                   const std::string& request_id) {
    const state::Run* parent = run_in(turn, errand.run().run_id);
    const bool lives = parent != nullptr && parent->closed_by_reset();
    errand.then(child, [request_id, lives](StoreTurn& there, Errand&) {
        const state::Run* run = run_in(there, "");
        if (run != nullptr && run->request_ids().contains(request_id) &&
            run->phase() == state::PHASE_CREATED) {
            (void)there.change("", [&](history::Transition& transition) {
                if (lives) {
                    history::schedule_first_task(transition);
                    return std::optional<Refusal>{};
                }
                return history::terminate_run(transition, history::parent_close_termination());
            });
        }
    });
    errand.then_at_home([](StoreTurn& home, Errand& self) { home.finish(self); });
}

void report_start(Errand& errand,
                  const WorkflowKey& child,
                  const std::string& run_id,
                  const std::string& request_id) {
    errand.then_at_home([=](StoreTurn& home, Errand& self) {
        const auto refusal = home.change(self.run().run_id, [&](history::Transition& transition) {
            return history::child_started(transition, self.task().event_id, run_id);
        });
        if (refusal) {
            return give_up_child(home, self, child, request_id);
        }
        give_first_task(self, child, run_id);
    });
}

void report_failed_start(Errand& errand, StartChildWorkflowExecutionFailedCause cause) {
    errand.then_at_home([cause](StoreTurn& home, Errand& self) {
        (void)home.change(self.run().run_id, [&](history::Transition& transition) {
            return history::child_start_failed(transition, self.task().event_id, cause);
        });
        home.finish(self);
    });
}

void start_in(StoreTurn& turn,
              Errand& errand,
              const WorkflowKey& child,
              const state::Run& parent,
              StartRequest request) {
    const std::string request_id = request.request_id;
    const state::Run* running = parent.bases().empty() ? nullptr : run_in(turn, "");
    if (running != nullptr && history::adopts(parent, errand.task().event_id, *running)) {
        return report_start(errand, child, running->started().first_execution_run_id(), request_id);
    }
    const auto answer = turn.start(std::move(request));
    if (const auto* started = std::get_if<StartAnswer>(&answer)) {
        return report_start(errand, child, started->run_id, request_id);
    }
    report_failed_start(errand,
                        START_CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE_WORKFLOW_ALREADY_EXISTS);
}

void start_child(StoreTurn& turn, Errand& errand) {
    const state::Run* parent = run_in(turn, errand.run().run_id);
    const std::int64_t initiated = errand.task().event_id;
    if (parent == nullptr || !parent->children().contains(initiated)) {
        return turn.finish(errand);
    }
    const state::Child& pending = parent->children().at(initiated);
    const WorkflowKey child{pending.initiated().namespace_id().empty()
                                ? parent->namespace_id()
                                : pending.initiated().namespace_id(),
                            pending.initiated().workflow_id()};
    const std::string request_id = history::child_request_id(*parent, initiated);
    switch (history::child_step(*parent, initiated)) {
        case history::ChildStep::nothing:
            return give_up_child(turn, errand, child, request_id);
        case history::ChildStep::schedule:
            return give_first_task(errand, child, pending.started_run_id());
        case history::ChildStep::start:
            break;
    }
    const state::Run copy = *parent;
    const HistoryEvent event =
        turn.event(copy.run_id(), pending.initiated_batch_event_id(), initiated);
    const auto& attributes = event.start_child_workflow_execution_initiated_event_attributes();
    const auto policies = history::normalise_policies(history::StartKind::start,
                                                      attributes.workflow_id_reuse_policy(),
                                                      WORKFLOW_ID_CONFLICT_POLICY_UNSPECIFIED);
    if (std::holds_alternative<Refusal>(policies)) {
        return report_failed_start(
            errand, START_CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE_WORKFLOW_ALREADY_EXISTS);
    }
    StartRequest request;
    request.started =
        history::child_run(copy,
                           errand.engine().parts.namespaces.name_of(copy.namespace_id()),
                           event,
                           errand.engine().now());
    request.request_id = request_id;
    request.reuse = std::get<history::StartPolicies>(policies).reuse;
    request.conflict = std::get<history::StartPolicies>(policies).conflict;
    if (event.has_user_metadata()) {
        request.extras.user_metadata = event.user_metadata();
    }
    request.extras.withhold_first_task = true;
    errand.then(child, [child, copy, request](StoreTurn& there, Errand& self) {
        start_in(there, self, child, copy, request);
    });
}

// ---- Signals and cancels of other runs
// -------------------------------------------------------------

// Where a request goes to; nothing if that is the run itself, which counts as not found.
std::optional<WorkflowKey> target_of(const state::Run& sender, const state::External& pending) {
    const WorkflowKey target{
        pending.namespace_id().empty() ? sender.namespace_id() : pending.namespace_id(),
        pending.workflow_execution().workflow_id()};
    const bool itself =
        target.namespace_id == sender.namespace_id() && target.workflow_id == sender.workflow_id();
    return itself ? std::nullopt : std::optional(target);
}

void report_signal(Errand& errand, std::optional<Refusal> refusal) {
    errand.then_at_home([refusal = std::move(refusal)](StoreTurn& home, Errand& self) {
        const bool full = refusal && refusal->kind == history::Refused::invalid_argument;
        const auto cause =
            full
                ? SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_SIGNAL_COUNT_LIMIT_EXCEEDED
                : SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND;
        (void)home.change(self.run().run_id, [&](history::Transition& transition) {
            return refusal
                       ? history::external_signal_failed(transition, self.task().event_id, cause)
                       : history::external_signaled(transition, self.task().event_id);
        });
    });
}

void report_cancel(Errand& errand, bool found) {
    errand.then_at_home([found](StoreTurn& home, Errand& self) {
        (void)home.change(self.run().run_id, [&](history::Transition& transition) {
            return found
                       ? history::external_cancel_requested(transition, self.task().event_id)
                       : history::external_cancel_failed(
                             transition,
                             self.task().event_id,
                             CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND);
        });
    });
}

// Refuses a request for a child only that does not come from its parent.
std::optional<Refusal> refuse_stranger(const state::Run& run,
                                       const state::Run& sender,
                                       bool child_only) {
    if (!child_only) {
        return std::nullopt;
    }
    return history::refuse_other_parent(run, sender);
}

void signal_external(StoreTurn& turn, Errand& errand) {
    const state::Run* run = run_in(turn, errand.run().run_id);
    const std::int64_t initiated = errand.task().event_id;
    if (run == nullptr || !run->external_signals().contains(initiated)) {
        return;
    }
    const state::Run sender = *run;
    const state::External& pending = sender.external_signals().at(initiated);
    const HistoryEvent event =
        turn.event(sender.run_id(), pending.initiated_batch_event_id(), initiated);
    const bool child_only =
        event.signal_external_workflow_execution_initiated_event_attributes().child_workflow_only();
    const auto target = target_of(sender, pending);
    if (!target) {
        return report_signal(errand, Refusal{history::Refused::not_found, ""});
    }
    errand.then(*target,
                [sender, child_only, signal = history::external_signal(sender, event), pending](
                    StoreTurn& there, Errand& self) {
                    const std::string& run_id = pending.workflow_execution().run_id();
                    auto refusal = there.change(run_id, [&](history::Transition& transition) {
                        if (auto stranger = refuse_stranger(transition.run(), sender, child_only)) {
                            return std::optional(*std::move(stranger));
                        }
                        return history::signal_run(transition, signal);
                    });
                    require_not_busy(refusal);
                    report_signal(self, std::move(refusal));
                });
}

void cancel_external(StoreTurn& turn, Errand& errand) {
    const state::Run* run = run_in(turn, errand.run().run_id);
    const std::int64_t initiated = errand.task().event_id;
    if (run == nullptr || !run->external_cancels().contains(initiated)) {
        return;
    }
    const state::Run sender = *run;
    const state::External& pending = sender.external_cancels().at(initiated);
    const HistoryEvent event =
        turn.event(sender.run_id(), pending.initiated_batch_event_id(), initiated);
    const bool child_only =
        event.request_cancel_external_workflow_execution_initiated_event_attributes()
            .child_workflow_only();
    const auto target = target_of(sender, pending);
    if (!target) {
        return report_cancel(errand, false);
    }
    errand.then(*target,
                [sender, child_only, cancel = history::external_cancel(sender, event), pending](
                    StoreTurn& there, Errand& self) {
                    const std::string& run_id = pending.workflow_execution().run_id();
                    const auto refusal = there.change(run_id, [&](history::Transition& transition) {
                        if (auto stranger = refuse_stranger(transition.run(), sender, child_only)) {
                            return std::optional(*std::move(stranger));
                        }
                        history::request_cancel(transition, cancel);
                        return std::optional<Refusal>{};
                    });
                    report_cancel(self, !refusal);
                });
}

}  // namespace

Errand::Errand(Engine::State& engine, RunName run, history::Task task, std::int64_t row)
    : engine_(engine),
      run_(std::move(run)),
      task_(task),
      row_(row),
      work_(engine.parts.observer != nullptr ? engine.parts.observer->work() : nullptr) {}

void Errand::then(WorkflowKey workflow, Work work) {
    steps_.push_back({std::move(workflow), std::move(work)});
}

void Errand::then_at_home(Work work) {
    then({run_.namespace_id, run_.workflow_id}, std::move(work));
}

void Errand::begin() {
    steps_.clear();
    then_at_home([](StoreTurn& turn, Errand& self) {
        switch (self.task().kind) {
            case Kind::start_child:
                return start_child(turn, self);
            case Kind::cancel_external:
                return cancel_external(turn, self);
            case Kind::signal_external:
                return signal_external(turn, self);
            case Kind::close:
                return close(turn, self);
            default:
                return;
        }
    });
    next();
}

void Errand::next() {
    if (steps_.empty()) {
        return;
    }
    Step step = std::move(steps_.front());
    steps_.pop_front();
    const WorkflowKey workflow = step.workflow;
    engine_.engine.in_turn(
        workflow, [self = shared_from_this(), work = std::move(step.work)](Turn& turn) {
            try {
                work(static_cast<StoreTurn&>(turn), *self);
            } catch (const std::exception& error) {
                self->engine_.parts.log.warn(
                    "work between runs failed; trying again",
                    {{"workflow", self->run_.workflow_id}, {"error", error.what()}});
                return self->again();
            }
            self->next();
        });
}

void Errand::again() {
    constexpr std::chrono::seconds pause{1};
    engine_.parts.alarms.set(engine_.parts.clock.steady_now() + pause,
                             [self = shared_from_this()] { self->begin(); });
}

}  // namespace holdfast::server::engine
