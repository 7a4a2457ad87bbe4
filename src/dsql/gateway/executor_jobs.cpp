// Asynchronous jobs of a cluster: here they are done at once, and reported as running for a while.
#include <algorithm>
#include <cctype>

#include "gateway/executor.hpp"
#include "gateway/job_id.hpp"
#include <fmt/core.h>

namespace holdfast::dsql {

namespace {

// Where a word of the statement's beginning stands, whatever its case.
std::size_t find_word(std::string_view text, std::string_view word) {
    const auto found = std::search(
        text.begin(), text.end(), word.begin(), word.end(), [](unsigned char a, unsigned char b) {
            return std::tolower(a) == b;
        });
    return found == text.end() ? std::string::npos : static_cast<std::size_t>(found - text.begin());
}

}  // namespace

// A statement of the gateway as part of the transaction, so that a replay repeats it.
Answer Executor::run_own(std::string text) {
    auto script = std::make_shared<Script>(1);
    script->front().kind = Kind::call;
    script->front().text = std::move(text);
    Call call{.script = script, .statement = &script->front()};
    Answer answer = exchange(bytes_of(call, call.statement->text, false), {});
    if (answer.ok()) {
        log_.push_back(std::move(call));
    }
    return answer;
}

// A unique index over rows that are not unique: the statement succeeds, the job fails, and leaves
// an index that is not valid.
Ending Executor::leave_invalid_index(const Call& call, const Sink& sink) {
    const CheckedStatement& statement = *call.statement;
    rollback_to_snapshot();
    replay();
    std::string plain = statement.text;
    plain.replace(find_word(plain, "unique"), std::string_view("unique").size(), "");
    if (const Answer answer = run_own(std::move(plain)); !answer.ok()) {
        return failed_with(answer);
    }
    // An index lies in the schema of its table.
    after_commit_.push_back(fmt::format(
        "SELECT holdfast_gateway_owner.invalidate({})",
        oid_of(statement.target ? statement.target->schema : std::string{}, statement.index_name)));
    changed_.insert(changed_.end(), statement.tables.begin(), statement.tables.end());
    return order_job(call, sink, "Found duplicate key while validating index for UCVs");
}

// CREATE INDEX ASYNC and ALTER TABLE ASYNC answer with the id of a job.
Ending Executor::order_job(const Call& call, const Sink& sink, std::string_view failure) {
    const CheckedStatement& statement = *call.statement;
    const std::string id = new_job_id();
    const bool index = find_word(statement.text, "index") != std::string::npos;
    const std::string object = !statement.index_name.empty() ? statement.index_name
                               : statement.target            ? statement.target->name
                                                             : std::string{};
    after_commit_.push_back(
        fmt::format("INSERT INTO holdfast_gateway.jobs SELECT {0}, {1}, 'pg_class'::regclass, {2},"
                    " {3}, {4}, {5}, now(), now() + {6} * interval '1 millisecond'",
                    quoted_text(id),
                    quoted_text(index ? "INDEX_BUILD" : "VALIDATE_CONSTRAINT"),
                    oid_of(statement.target ? statement.target->schema : std::string{}, object),
                    quoted_text(object),
                    quoted_text(failure),
                    !failure.empty(),
                    cluster_.options().job_duration.count()));
    std::string bytes;
    if (call.simple) {
        append_message(bytes, 'T', job_description());
        sink({.type = 'T', .body = {}, .bytes = bytes});
        bytes.clear();
    }
    append_message(
        bytes,
        'D',
        BodyWriter().int16(1).int32(static_cast<std::int32_t>(id.size())).bytes(id).body());
    sink({.type = 'D', .body = {}, .bytes = bytes});
    return Ending::done(index ? "CREATE INDEX" : "ALTER TABLE");
}

}  // namespace holdfast::dsql
