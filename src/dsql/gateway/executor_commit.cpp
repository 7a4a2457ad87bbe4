// How a transaction of the gateway ends.
#include "gateway/executor.hpp"
#include <fmt/core.h>

namespace holdfast::dsql {

Ending Executor::conflict_at_commit() {
    must(backend_->run({"ROLLBACK"}));
    ++cluster_.counters.conflicts;
    end();
    return Ending::failed(data_conflict());
}

// Closes the statements before they are dropped.
void Executor::forget_touches(std::string& bytes) {
    for (const auto& [key, touches] : touches_) {
        for (const std::string& name : touches.names) {
            append_message(bytes, 'C', BodyWriter().bytes("S").text(name).body());
        }
    }
    touches_.clear();
}

// A statement that locks rows is run again and again, so what it needs at commit is prepared once.
// Null if that was refused, and the transaction below has failed.
const Executor::Touches* Executor::touches_of(const Call& call) {
    const auto key = std::pair(call.statement, call.types);
    if (const auto found = touches_.find(key); found != touches_.end()) {
        return &found->second;
    }
    std::string bytes;
    if (touches_.size() >= touches_max) {
        forget_touches(bytes);
    }
    Touches touches{.script = call.script, .names = {}};
    std::string types;
    for (const RowLock& lock : call.statement->row_locks) {
        if (!lock.for_update || lock.touch.empty()) {
            continue;
        }
        if (types.empty()) {
            types = types_of(call);
        }
        touches.names.push_back(fmt::format("{}_{}", own_name, ++touches_made_));
        append_message(
            bytes,
            'P',
            BodyWriter().text(touches.names.back()).text(lock.touch).bytes(types).body());
    }
    if (!bytes.empty()) {
        append_sync(bytes);
        if (!exchange(bytes, {}).ok()) {
            return nullptr;
        }
    }
    return &touches_.emplace(key, std::move(touches)).first->second;
}

std::optional<int> Executor::append_touches_of(std::string& bytes, const Call& call) {
    if (call.statement->row_locks.empty()) {
        return 0;
    }
    const Touches* touches = touches_of(call);
    if (touches == nullptr) {
        rollback_to_snapshot();
        return std::nullopt;
    }
    for (const std::string& name : touches->names) {
        append_message(bytes, 'C', BodyWriter().bytes("P").text(own_name).body());
        append_message(
            bytes, 'B', BodyWriter().text(own_name).text(name).bytes(call.arguments).body());
        append_message(bytes, 'E', BodyWriter().text(own_name).int32(0).body());
    }
    return static_cast<int>(touches->names.size());
}

// PostgreSQL forgets a row lock at commit; the service checks FOR UPDATE as a write. So the row is
// written as it is. How many statements that takes; empty if one is refused: then the transaction
// is doomed, or a statement that has not run yet is wrong by itself. Requires: our turn.
std::optional<int> Executor::append_touches(std::string& bytes, std::span<const Part> parts) {
    int all = 0;
    for (const Call& call : log_) {
        const auto touches = append_touches_of(bytes, call);
        if (!touches) {
            doomed_ = true;
            return std::nullopt;
        }
        all += *touches;
    }
    for (const Part& part : parts) {
        const auto touches = part.call ? append_touches_of(bytes, *part.call) : 0;
        if (!touches) {
            return std::nullopt;
        }
        all += *touches;
    }
    return all;
}

// A conflict is reported before the size.
Ending Executor::too_large(Hold& hold) {
    const Turn turn(*this, hold);
    replay();
    std::string bytes;
    const bool touched = !doomed_ && append_touches(bytes, {});
    append_sync(bytes);
    if (!touched || !exchange(bytes, {}).ok()) {
        return conflict_at_commit();
    }
    const ErrorResponse response = transaction_too_large(bytes_, cluster_.options().limits.bytes);
    rollback(hold);
    return Ending::failed(response);
}

Ending Executor::schema_conflict_at_commit(const Hold& hold) {
    rollback(hold);
    schema_seen_ = cluster_.version();
    return Ending::failed(schema_conflict());
}

Ending Executor::commit(Hold& hold) {
    if (failed()) {
        rollback(hold);
        return Ending::done("ROLLBACK");
    }
    const CheckedStatement nothing;
    if (const auto response = objection(nothing)) {  // Its age.
        rollback(hold);
        return Ending::failed(*response);
    }
    if (cluster_.changed_since(schema_at_begin_, tables_) && ddl_ == 0) {
        return schema_conflict_at_commit(hold);
    }
    if (bytes_ > cluster_.options().limits.bytes) {
        return too_large(hold);
    }
    for (const Cluster::Work& work : before_commit_) {
        if (std::string error = cluster_.administer(work, Cluster::Mode::perform); !error.empty()) {
            rollback(hold);
            return {.completion = {}, .error = std::move(error)};
        }
    }
    const Progress progress = doomed_ ? Progress{} : run_together(hold, {}, true);
    if (progress.committed) {
        return *progress.committed;
    }
    return doomed_ ? conflict_at_commit() : schema_conflict_at_commit(hold);
}

// Handles the answer to COMMIT, successful or not.
Ending Executor::ended(const Answer& answer) {
    const std::vector<TableName> changed = std::move(changed_);
    const std::vector<std::string> afterwards = std::move(after_commit_);
    const bool ddl = ddl_ > 0;
    const bool given_up = cancelled_ || yielded_;  // Its deferred checks, to let others pass.
    end();
    if (!answer.ok()) {
        const ServerError error = answer.what();
        if (!error.is_conflict() && !(error.code == "57014" && given_up)) {
            return failed_with(answer);
        }
        ++cluster_.counters.conflicts;
        return Ending::failed(data_conflict());
    }
    ++cluster_.counters.commits;
    for (const std::string& text : afterwards) {
        // The job is done; only its record can be missing.
        (void)cluster_.administer({.text = text, .roles = {}}, Cluster::Mode::perform);
    }
    if (ddl) {
        const bool current = schema_seen_ == cluster_.version();
        cluster_.schema_changed(changed);
        if (current) {
            schema_seen_ = cluster_.version();  // The own change is not a conflict.
        }
    }
    return {.completion = answer.completion, .error = {}};
}

}  // namespace holdfast::dsql
