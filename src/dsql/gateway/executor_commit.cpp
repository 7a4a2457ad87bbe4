// How a transaction of the gateway ends.
#include "executor.hpp"
#include <fmt/core.h>

namespace holdfast::dsql {

namespace {

constexpr std::int64_t mebibyte = std::int64_t{1} << 20U;

}  // namespace

Ending Executor::conflict_at_commit() {
    must(backend_->run({"ROLLBACK"}));
    ++cluster_.counters.conflicts;
    end();
    return Ending::failed(data_conflict());
}

// What is forgotten must be closed.
void Executor::forget_touches(std::string& bytes) {
    for (const auto& [key, touches] : touches_) {
        for (const std::string& name : touches.names) {
            append_message(bytes, 'C', BodyWriter().bytes("S").text(name).body());
        }
    }
    touches_.clear();
}

// A statement that locks rows is run again and again, so what it needs at commit is prepared once.
// Null if that was refused, and the transaction is doomed.
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
        doomed_ = !exchange(bytes, {}).ok();
    }
    return doomed_ ? nullptr : &touches_.emplace(key, std::move(touches)).first->second;
}

int Executor::append_touches_of(std::string& bytes, const Call& call) {
    const Touches* touches =
        doomed_ || call.statement->row_locks.empty() ? nullptr : touches_of(call);
    if (touches == nullptr) {
        return 0;
    }
    for (const std::string& name : touches->names) {
        append_message(bytes, 'C', BodyWriter().bytes("P").text(own_name).body());
        append_message(
            bytes, 'B', BodyWriter().text(own_name).text(name).bytes(call.arguments).body());
        append_message(bytes, 'E', BodyWriter().text(own_name).int32(0).body());
    }
    return static_cast<int>(touches->names.size());
}

// PostgreSQL forgets a row lock at commit; the service judges FOR UPDATE as a write. So the row is
// written as it is. How many statements that takes. Requires: our turn.
int Executor::append_touches(std::string& bytes, std::span<const Part> parts) {
    int touches = 0;
    for (const Call& call : log_) {
        touches += append_touches_of(bytes, call);
    }
    for (const Part& part : parts) {
        touches += part.call ? append_touches_of(bytes, *part.call) : 0;
    }
    return touches;
}

// Whoever has lost hears of that first.
Ending Executor::too_large(Hold& hold) {
    const Turn turn(*this, hold);
    replay();
    std::string bytes;
    append_touches(bytes, {});
    append_sync(bytes);
    if (doomed_ || !exchange(bytes, {}).ok()) {
        return conflict_at_commit();
    }
    const std::int64_t limit = cluster_.options().limits.bytes;
    const std::int64_t size = bytes_;
    rollback(hold);
    return Ending::failed(
        {.code = "54000",
         .message = fmt::format("transaction size limit {}mb exceeded", limit / mebibyte),
         .detail = fmt::format("Current transaction size {}mb > {}mb",
                               (size + mebibyte - 1) / mebibyte,
                               limit / mebibyte)});
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
    const Judged nothing;
    if (const auto trouble = objection(nothing)) {  // Its age.
        rollback(hold);
        return Ending::failed(*trouble);
    }
    if (cluster_.changed_since(schema_at_begin_, tables_) && ddl_ == 0) {
        return schema_conflict_at_commit(hold);
    }
    if (bytes_ > cluster_.options().limits.bytes) {
        return too_large(hold);
    }
    const Progress progress = doomed_ ? Progress{} : run_together(hold, {}, true);
    if (progress.committed) {
        return *progress.committed;
    }
    return doomed_ ? conflict_at_commit() : schema_conflict_at_commit(hold);
}

// What COMMIT has answered, whatever it was.
Ending Executor::ended(const Answer& answer) {
    const std::vector<TableName> changed = std::move(changed_);
    const bool ddl = ddl_ > 0;
    end();
    if (!answer.ok()) {
        if (!answer.what().is_conflict()) {
            return failed_with(answer);
        }
        ++cluster_.counters.conflicts;
        return Ending::failed(data_conflict());
    }
    ++cluster_.counters.commits;
    if (ddl) {
        const bool current = schema_seen_ == cluster_.version();
        cluster_.schema_changed(changed);
        if (current) {
            schema_seen_ = cluster_.version();  // One need not be told what one has done oneself.
        }
    }
    return {.completion = answer.completion, .error = {}};
}

}  // namespace holdfast::dsql
