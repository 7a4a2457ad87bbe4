// Resets: the current run ends, and a new one goes on from a point of an earlier history, in one
// commit.
#include <algorithm>
#include <utility>

#include "engine/store_turn.hpp"
#include "history/finish.hpp"
#include "history/outside.hpp"
#include "history/reset/reset.hpp"

#include <holdfast/base/assert.hpp>

namespace holdfast::server::engine {

namespace {

namespace state = history::state;
using temporal::api::history::v1::History;

constexpr int page_batches = 256;

bool is_open(const state::Run& run) {
    return run.phase() != state::PHASE_COMPLETED;
}

std::optional<Refusal> reapply_batches(history::Transition& transition,
                                       const std::vector<History>& batches,
                                       const history::ResetOptions& options,
                                       bool of_base) {
    for (const History& batch : batches) {
        for (const auto& event : batch.events()) {
            if (auto refusal = history::reapply_event(transition, event, options, of_base)) {
                return refusal;
            }
        }
    }
    return std::nullopt;
}

// The run that a continue-as-new command made.
std::string continued_in(const state::Run& run) {
    return run.status() == temporal::api::enums::v1::WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
               ? run.new_execution_run_id()
               : "";
}

}  // namespace

StoreTurn::Kept StoreTurn::stored_batches(const CachedRun& cached,
                                          std::int64_t first,
                                          std::int64_t end) {
    Kept kept;
    store::ReadRequest request{.shard = shard_.id(),
                               .branch = cached.meta.branch,
                               .min_event = first,
                               .max_event = end,
                               .page_size = page_batches};
    do {
        store::HistoryPage page = engine_.histories.read(request);
        for (const store::Node& node : page.nodes) {
            decode(node.events, kept.batches.emplace_back());
            kept.last_txn_id = node.txn_id;
        }
        request.after = page.next;
    } while (request.after);
    return kept;
}

// From run to run, as long as each was continued as new. What the end of the current run flushed
// comes last.
std::optional<Refusal> StoreTurn::reapply(history::Transition& transition,
                                          const Reset& reset,
                                          const history::ResetOptions& options) {
    CachedRun* run = &reset.base;
    std::int64_t first = options.finish_event_id;
    while (true) {
        const bool of_base = run == &reset.base;
        const Kept stored = stored_batches(*run, first, run->run.next_event_id());
        if (auto refusal = reapply_batches(transition, stored.batches, options, of_base)) {
            return refusal;
        }
        if (of_base || run == reset.current) {
            const Draft& ended = of_base ? reset.base_draft : reset.current_draft;
            if (auto refusal = reapply_batches(transition, ended.batches, options, of_base)) {
                return refusal;
            }
        }
        const std::string next = continued_in(run->run);
        if (next.empty()) {
            return std::nullopt;
        }
        const Or<CachedRun*> loaded = load(next);
        if (std::holds_alternative<Refusal>(loaded)) {
            return std::nullopt;  // Deleted.
        }
        run = std::get<CachedRun*>(loaded);
        first = store::first_event;
    }
}

void StoreTurn::commit_reset(Reset reset, std::int64_t first_event_id, std::int64_t last_txn_id) {
    store::ResetRequest request;
    std::vector<Attempt> attempts;
    attempts.push_back({.draft = std::move(reset.base_draft), .meta = reset.base.meta});
    request.base = mutation_of(reset.base, attempts[0], request.history, nullptr);
    if (reset.current != nullptr) {
        attempts.push_back({.draft = std::move(reset.current_draft), .meta = reset.current->meta});
        request.current = mutation_of(*reset.current, attempts[1], request.history, nullptr);
    }
    attempts.push_back({.draft = std::move(reset.made)});
    Attempt& made = attempts.back();
    made.meta.branch = store::History::fork_of(reset.base.meta.branch, first_event_id);
    made.meta.last_txn_id = last_txn_id;
    const std::size_t own = request.history.size();
    request.new_run = snapshot_of(made, request.history);
    request.history.at(own).forked_from = reset.base.meta.branch.id;
    if (current()) {
        request.expected_current = current()->run;
    }
    write(
        [&](const store::ShardLease& lease) {
            request.lease = lease;
            engine_.executions.reset(request);
        },
        attempts);
    workflow_->current = request.new_run.current;
    workflow_->current_known = true;
    publish(reset.base, std::move(attempts[0]));
    if (reset.current != nullptr) {
        publish(*reset.current, std::move(attempts[1]));
    }
    CachedRun& next = workflow_->runs[request.new_run.current.run.text()];
    publish(next, std::move(attempts.back()));
}

// Drafts of the base, which is marked, and of the current run, which is ended.
StoreTurn::Reset StoreTurn::ended_by_reset(CachedRun& base,
                                           CachedRun* current,
                                           const std::string& new_run_id,
                                           const std::string& reason) {
    const auto end = [&](history::Transition& transition) -> std::optional<Refusal> {
        if (!transition.open()) {
            return std::nullopt;
        }
        transition.note(history::note::ClosedByReset{});
        return history::terminate_run(transition, history::reset_termination(reason));
    };
    std::optional<Refusal> refusal;
    Reset reset{.base = base};
    reset.base_draft = draft_of(
        base,
        [&](history::Transition& transition) {
            transition.note(history::note::WasReset{new_run_id});
            return current == &base ? end(transition) : std::nullopt;
        },
        refusal);
    if (current != nullptr && current != &base && is_open(current->run)) {
        reset.current = current;
        reset.current_draft = draft_of(*current, end, refusal);
    }
    HOLDFAST_ASSERT(!refusal);  // What is open can be ended.
    return reset;
}

Or<std::string> StoreTurn::reset(const ResetRequest& request) {
    const history::ResetOptions& options = request.options;
    const Or<CachedRun*> loaded = load(request.base_run_id);
    if (const auto* refusal = std::get_if<Refusal>(&loaded)) {
        return *refusal;
    }
    CachedRun& base = *std::get<CachedRun*>(loaded);
    if (auto refusal = history::refuse_reset_point(base.run, options.finish_event_id)) {
        return *std::move(refusal);
    }
    CachedRun* current_run = nullptr;
    if (const auto& row = current()) {
        if (!request.request_id.empty() && row->create_request_id == request.request_id) {
            return row->run.text();
        }
        const Or<CachedRun*> found = load(row->run.text());
        if (const auto* refusal = std::get_if<Refusal>(&found)) {
            return *refusal;
        }
        current_run = std::get<CachedRun*>(found);
    }
    const std::string run_id = source_.uuid();
    const Kept kept = stored_batches(base, store::first_event, options.finish_event_id);
    const Or<state::Run> rebuilt = history::rebuild_until(base.run, kept.batches, options, run_id);
    if (const auto* refusal = std::get_if<Refusal>(&rebuilt)) {
        return *refusal;
    }
    Reset reset = ended_by_reset(base, current_run, run_id, options.reason);
    const history::Time now =
        std::max(now_for(base), current_run != nullptr ? now_for(*current_run) : now_for(base));
    history::Transition transition(std::get<state::Run>(rebuilt), now, source_, engine_.limits.run);
    history::begin_reset(transition, base.run, options);
    std::optional<Refusal> refusal = reapply(transition, reset, options);
    if (!refusal) {
        refusal = history::end_reset(transition, options);
    }
    if (refusal) {
        return *std::move(refusal);
    }
    history::Finished finished = history::finish(transition);
    if (finished.refusal) {
        return *std::move(finished.refusal);
    }
    absorb(reset.made, std::move(finished.result));
    match_tasks(reset.made, engine_.parts.matching, now, source_, engine_.limits.run);
    commit_reset(std::move(reset), options.finish_event_id, kept.last_txn_id);
    return run_id;
}

}  // namespace holdfast::server::engine
