#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "frontend/close_event.hpp"
#include "frontend/frontend.hpp"
#include "frontend/parked_reply.hpp"
#include "frontend/refusals.hpp"
#include "frontend/tokens.hpp"
#include "frontend/workflow_rpc.hpp"
#include "history/workflow_task.hpp"
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::frontend {

namespace {

namespace api = temporal::api::workflowservice::v1;
namespace enums = temporal::api::enums::v1;

using Call = api::GetWorkflowExecutionHistoryRequest;
using Response = api::GetWorkflowExecutionHistoryResponse;
using HistoryReply = rpc::Reply<Response>;
using temporal::api::history::v1::History;
using temporal::api::history::v1::HistoryEvent;

constexpr std::chrono::seconds wait_max{20};
constexpr std::chrono::seconds wait_margin{1};  // Before the caller's deadline.

// One call that reads forward, from turn to turn.
struct Reading {
    Parts parts;
    engine::WorkflowKey workflow;
    const Call* request = nullptr;  // Lives as long as the reply.
    std::string run_id;             // Empty: the current run, until the first turn has found it.
    std::int64_t from = 1;
    bool continued = false;  // By a token.
    Steady until{};          // When it stops waiting.

    [[nodiscard]] bool close_only() const {
        return request->history_event_filter_type() == enums::HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT;
    }
};

// What a turn needs to know of the run, since its state is not valid after a read.
struct RunEnd {
    bool open = false;
    std::int64_t next_event_id = 0;
    History transient;
};

std::string page_token_of(const std::string& run_id, std::int64_t next_event_id, bool waiting) {
    engine::token::HistoryPage page;
    page.set_run_id(run_id);
    page.set_next_event_id(next_event_id);
    page.set_waiting(waiting);
    return page.SerializeAsString();
}

// Tools show a history as it is stored; workers need the events of their attempt.
bool shows_transient(const rpc::CallInfo& info) {
    return info.caller.client_name != "temporal-cli" && info.caller.client_name != "temporal-ui";
}

void append_transient(History& history, const History& transient) {
    if (history.events().empty() || transient.events().empty() ||
        history.events().rbegin()->event_id() + 1 != transient.events(0).event_id()) {
        return;
    }
    history.MergeFrom(transient);
}

void fill_close_event(const Reading& reading,
                      engine::Turn& turn,
                      const rpc::CallInfo& info,
                      Response& response) {
    engine::HistoryPage last = turn.read_back(reading.run_id, 0, 1);
    auto& events = *last.history.mutable_events();
    const auto newest = std::max_element(
        events.begin(), events.end(), [](const HistoryEvent& one, const HistoryEvent& other) {
            return one.event_id() < other.event_id();
        });
    if (newest == events.end()) {
        return;
    }
    *response.mutable_history()->add_events() = follows_next_run(info.caller.supported_features)
                                                    ? std::move(*newest)
                                                    : as_continued(std::move(*newest));
}

void fill_page(const Reading& reading,
               engine::Turn& turn,
               const RunEnd& end,
               const rpc::CallInfo& info,
               Response& response) {
    if (reading.from < end.next_event_id) {
        engine::HistoryPage page = turn.read(
            reading.run_id, reading.from, history_page_size(reading.request->maximum_page_size()));
        *response.mutable_history() = std::move(page.history);
        if (page.next_event_id != 0) {
            response.set_next_page_token(page_token_of(reading.run_id, page.next_event_id, false));
            return;
        }
        if (shows_transient(info)) {
            append_transient(*response.mutable_history(), end.transient);
        }
    }
    if (end.open && reading.request->wait_new_event()) {
        response.set_next_page_token(page_token_of(reading.run_id, end.next_event_id, true));
    }
}

void read_forward(Reading reading, engine::Turn& turn, HistoryReply& reply);

void read_again(Reading reading, HistoryReply reply, std::shared_ptr<void> parked) {
    engine::Turns& turns = reading.parts->turns;
    const engine::WorkflowKey workflow = reading.workflow;
    // The watch ends with `parked`: not while it calls.
    turns.answer(workflow,
                 std::move(reply),
                 [reading = std::move(reading), parked = std::move(parked)](engine::Turn& turn,
                                                                            HistoryReply& kept) {
                     kept.message().Clear();
                     read_forward(reading, turn, kept);
                 });
}

// Until the run has an event that the caller has not, or is closed.
void park_read(Reading reading, std::int64_t next_event_id, HistoryReply& reply) {
    using Parked = ParkedReply<Response>;
    reply.message().mutable_history();
    reply.message().set_next_page_token(page_token_of(reading.run_id, next_event_id, true));

    Alarms& alarms = reading.parts->alarms;
    const auto self = std::make_shared<std::weak_ptr<Parked>>();
    const auto parked =
        std::make_shared<Parked>(alarms, [reading, self](Woken why, HistoryReply kept) {
            if (why == Woken::news) {
                read_again(reading, std::move(kept), self->lock());
            } else if (why == Woken::expired) {
                std::move(kept).send();
            }
        });
    *self = parked;
    // The alarm owns it: it rings, or the reply is gone before.
    parked->set_alarm(alarms.set(reading.until, [parked] { parked->wake(Woken::expired); }));
    reply.on_end([weak = std::weak_ptr(parked)](rpc::Ending ending) {
        if (const auto there = weak.lock()) {
            there->wake(ending == rpc::Ending::stopping ? Woken::expired : Woken::left);
        }
    });
    const std::int64_t awaited =
        reading.close_only() ? std::numeric_limits<std::int64_t>::max() : next_event_id;
    parked->keep(reading.parts->turns.watch(
        reading.workflow, reading.run_id, awaited, [weak = std::weak_ptr(parked)] {
            if (const auto there = weak.lock()) {
                there->wake(Woken::news);
            }
        }));
    parked->put(std::move(reply));
}

void read_forward(Reading reading, engine::Turn& turn, HistoryReply& reply) {
    const auto found = turn.find(reading.run_id);
    if (const auto* refusal = std::get_if<history::Refusal>(&found)) {
        std::move(reply).refuse(wire_refusal(*refusal));
        return;
    }
    const history::state::Run& run = *std::get<const history::state::Run*>(found);
    reading.run_id = run.run_id();
    const RunEnd end{.open = run.phase() != history::state::PHASE_COMPLETED,
                     .next_event_id = run.next_event_id(),
                     .transient = history::transient_events(run)};
    const bool nothing_new =
        reading.close_only() || (reading.continued && reading.from >= end.next_event_id);
    if (end.open && nothing_new && reading.request->wait_new_event()) {
        park_read(std::move(reading), end.next_event_id, reply);
        return;
    }
    reply.message().mutable_history();
    if (!reading.close_only()) {
        fill_page(reading, turn, end, reply.info(), reply.message());
    } else if (!end.open) {
        fill_close_event(reading, turn, reply.info(), reply.message());
    }
    std::move(reply).send();
}

// Sets where the reading begins; or says what is wrong with the page's token.
template <class Request>
Problem page_problem(const Request& request, std::string& run_id, std::int64_t& at) {
    run_id = request.execution().run_id();
    if (request.next_page_token().empty()) {
        return std::nullopt;
    }
    const auto page = page_token(request.next_page_token());
    if (!page) {
        return invalid("Invalid NextPageToken.");
    }
    if (!run_id.empty() && run_id != page->run_id()) {
        return invalid("RunId in the request does not match the NextPageToken.");
    }
    run_id = page->run_id();
    at = page->next_event_id();
    return std::nullopt;
}

Steady end_of_wait(const Clock& clock, const rpc::CallInfo& info) {
    std::chrono::nanoseconds wait = wait_max;
    if (info.deadline) {
        const std::chrono::nanoseconds left = *info.deadline - clock.wall_now();
        wait = std::clamp<std::chrono::nanoseconds>(
            left - wait_margin, std::chrono::nanoseconds{0}, wait_max);
    }
    return clock.steady_now() + wait;
}

void get_history(const Parts& parts, const Call& request, HistoryReply reply) {
    const auto in = parts->namespaces.resolve(request.namespace_(), NamespaceUse::ordinary);
    if (const auto* refusal = std::get_if<rpc::Refusal>(&in)) {
        std::move(reply).refuse(*refusal);
        return;
    }
    const auto* execution = request.has_execution() ? &request.execution() : nullptr;
    if (auto problem = execution_problem(execution, parts->limits)) {
        std::move(reply).refuse(*std::move(problem));
        return;
    }
    Reading reading{.parts = parts,
                    .workflow = {.namespace_id = std::get<ResolvedNamespace>(in).id,
                                 .workflow_id = request.execution().workflow_id()},
                    .request = &request,
                    .run_id = "",
                    .from = 1,
                    .continued = !request.next_page_token().empty(),
                    .until = end_of_wait(parts->clock, reply.info())};
    if (auto problem = page_problem(request, reading.run_id, reading.from)) {
        std::move(reply).refuse(*std::move(problem));
        return;
    }
    const engine::WorkflowKey workflow = reading.workflow;
    parts->turns.answer(workflow,
                        std::move(reply),
                        [reading = std::move(reading)](engine::Turn& turn, HistoryReply& kept) {
                            read_forward(reading, turn, kept);
                        });
}

using ReverseCall = api::GetWorkflowExecutionHistoryReverseRequest;

std::variant<std::string, rpc::Refusal> read_back_target(const FrontendParts& parts,
                                                         const ReverseCall& request) {
    const auto* execution = request.has_execution() ? &request.execution() : nullptr;
    if (auto problem = execution_problem(execution, parts.limits)) {
        return *std::move(problem);
    }
    std::string run_id;
    std::int64_t end = 0;
    if (auto problem = page_problem(request, run_id, end)) {
        return *std::move(problem);
    }
    return request.execution().workflow_id();
}

Problem read_back(const Scene&,
                  engine::Turn& turn,
                  const ReverseCall& request,
                  api::GetWorkflowExecutionHistoryReverseResponse& response) {
    std::string run_id;
    std::int64_t end = 0;
    if (auto problem = page_problem(request, run_id, end)) {
        return problem;
    }
    const auto found = turn.find(run_id);
    if (const auto* refusal = std::get_if<history::Refusal>(&found)) {
        return wire_refusal(*refusal);
    }
    run_id = std::get<const history::state::Run*>(found)->run_id();
    engine::HistoryPage page =
        turn.read_back(run_id, end, history_page_size(request.maximum_page_size()));
    auto& events = *page.history.mutable_events();
    std::sort(events.begin(), events.end(), [](const HistoryEvent& one, const HistoryEvent& other) {
        return one.event_id() > other.event_id();
    });
    *response.mutable_history() = std::move(page.history);
    if (page.next_event_id != 0) {
        response.set_next_page_token(page_token_of(run_id, page.next_event_id, false));
    }
    return std::nullopt;
}

}  // namespace

void add_history_reads(rpc::Dispatch& dispatch, const Parts& parts) {
    dispatch.add<Call, Response>(workflow_service("GetWorkflowExecutionHistory"),
                                 [parts](const Call& request, HistoryReply reply) {
                                     get_history(parts, request, std::move(reply));
                                 });
    add_workflow_rpc<ReverseCall, api::GetWorkflowExecutionHistoryReverseResponse>(
        dispatch,
        parts,
        "GetWorkflowExecutionHistoryReverse",
        NamespaceUse::ordinary,
        read_back_target,
        read_back);
}

}  // namespace holdfast::server::frontend
