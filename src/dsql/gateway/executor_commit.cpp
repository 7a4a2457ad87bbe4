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

// The types of a statement that locks rows, which is run again and again: asked for once.
const std::string& Executor::known_types_of(const Call& call) {
    const auto key = std::pair(call.statement, call.types);
    if (const auto found = known_types_.find(key); found != known_types_.end()) {
        return found->second.types;
    }
    if (known_types_.size() >= known_types_max) {
        known_types_.clear();
    }
    return known_types_.emplace(key, KnownTypes{call.script, types_of(call)}).first->second.types;
}

// PostgreSQL forgets a row lock at commit; the service judges FOR UPDATE as a write. So the row is
// written as it is, all of them in one exchange. Requires: our turn.
void Executor::touch_locked_rows() {
    std::string bytes;
    for (const Call& call : log_) {
        for (const RowLock& lock : call.statement->row_locks) {
            if (!lock.for_update || lock.touch.empty()) {
                continue;
            }
            Call touch = call;
            touch.types = known_types_of(call);
            append_call(bytes, touch, lock.touch, false);
        }
    }
    if (bytes.empty()) {
        return;
    }
    append_message(bytes, 'S', {});
    doomed_ = !exchange(bytes, {}).ok();
}

// What must be true before COMMIT may be sent. Requires: our turn.
std::optional<Ending> Executor::prepare_commit() {
    replay();
    if (!doomed_) {
        touch_locked_rows();
    }
    if (doomed_) {
        return conflict_at_commit();
    }
    const std::int64_t limit = cluster_.options().limits.bytes;
    if (bytes_ <= limit) {
        return std::nullopt;
    }
    const std::int64_t size = bytes_;
    must(backend_->run({"ROLLBACK"}));
    end();
    return Ending::failed(
        {.code = "54000",
         .message = fmt::format("transaction size limit {}mb exceeded", limit / mebibyte),
         .detail = fmt::format("Current transaction size {}mb > {}mb",
                               (size + mebibyte - 1) / mebibyte,
                               limit / mebibyte)});
}

Ending Executor::commit_plain() {
    const Answer answer = backend_->run({"COMMIT"});
    end();
    if (answer.ok()) {
        ++cluster_.counters.commits;
    }
    return answer.ok() ? Ending{.completion = answer.completion, .error = {}} : failed_with(answer);
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
        rollback(hold);
        schema_seen_ = cluster_.version();
        return Ending::failed(schema_conflict());
    }
    if (log_.empty() && !doomed_) {
        return commit_plain();
    }
    Turn turn(*this, hold);
    if (auto ending = prepare_commit()) {
        return *ending;
    }
    backend_->send(steps_of({"COMMIT"}));
    turn.give_up();  // From here on it waits for the disk only, or for its deferred checks.
    const Answer answer = exchange({}, {});
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
