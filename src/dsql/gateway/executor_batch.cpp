// Several statements of a client in one exchange.
#include <algorithm>
#include <utility>

#include "gateway/executor.hpp"

namespace holdfast::dsql {

namespace {

constexpr std::size_t header_size = 5;  // A message's type and length.

}  // namespace

bool Part::hear(const Message& message) {
    if (ends_statement(message.type)) {
        completion = message.bytes;
        return true;
    }
    heard += message.bytes;
    switch (type) {
        case 'P':
            return message.type == '1';
        case 'B':
            return message.type == '2';
        case 'C':
            return message.type == '3';
        case 'D':
            return message.type == 'T' || message.type == 'n';
        default:
            return false;
    }
}

std::optional<std::int64_t> Executor::rows_if_shared(const Call& call,
                                                     std::span<const Part> before) {
    const CheckedStatement& statement = *call.statement;
    const GatewayLimits& limits = cluster_.options().limits;
    if (state_ != State::open || doomed_ || ddl_ > 0 || statement.refusal ||
        call.arguments.size() > static_cast<std::size_t>(limits.value_bytes) ||
        age() > limits.transaction_age || cluster_.has_faults()) {
        return std::nullopt;
    }
    if (statement.kind == Kind::read || statement.kind == Kind::lock) {
        return 0;
    }
    const auto rows = statement.kind == Kind::write ? cluster_.rows_at_most(statement)
                                                    : std::optional<std::int64_t>{};
    if (!rows) {
        return std::nullopt;
    }
    std::int64_t all = rows_ + *rows;
    for (const Part& part : before) {
        all += part.rows;
    }
    return all <= limits.rows ? rows : std::nullopt;
}

bool Executor::may_commit_with(std::span<const Part> parts) {
    const GatewayLimits& limits = cluster_.options().limits;
    std::int64_t bytes = bytes_;
    for (const Part& part : parts) {
        const bool writes = part.call && part.call->statement->kind == Kind::write;
        bytes += writes ? part.call->size() : 0;
    }
    return state_ == State::open && !doomed_ && ddl_ == 0 && bytes <= limits.bytes &&
           age() <= limits.transaction_age && !cluster_.has_faults();
}

// False if one of the tables has changed, and the client must be told.
bool Executor::knows_schema_of(std::span<const Part> parts, bool commits) {
    const auto changed = [&](const Part& part) {
        return part.call && (cluster_.changed_since(schema_seen_, part.call->statement->tables) ||
                             (commits && cluster_.changed_since(schema_at_begin_,
                                                                part.call->statement->tables)));
    };
    return std::none_of(parts.begin(), parts.end(), changed) &&
           !(commits && ddl_ == 0 && cluster_.changed_since(schema_at_begin_, tables_));
}

// Empty if they cannot go together after all. Requires: our turn for what changes rows.
std::optional<Executor::Together> Executor::gather(std::span<const Part> parts, bool commits) {
    if (!backend_->settled()) {
        schema_at_begin_ = cluster_.version();  // The snapshot is yet to be taken.
    }
    if (!knows_schema_of(parts, commits)) {
        return std::nullopt;
    }
    Together together{.bytes = {}, .commits = commits};
    for (const Part& part : parts) {
        together.bytes += part.bytes;
        if (part.call) {
            const CheckedStatement& statement = *part.call->statement;
            tables_.insert(tables_.end(), statement.tables.begin(), statement.tables.end());
            dml_ = dml_ || statement.kind == Kind::write;
        }
    }
    if (commits) {
        const auto touches = append_touches(together.bytes, parts);
        if (!touches) {
            return std::nullopt;
        }
        together.touches = *touches;
        append_message(together.bytes, 'H', {});  // The answers must arrive before the commit.
        append_own(together.bytes, "COMMIT");
    }
    append_sync(together.bytes);
    return together;
}

Executor::Progress Executor::run_together(Hold& hold, std::span<Part> parts, bool commits) {
    if (failed()) {
        return run_in_failed(hold, parts);
    }
    // A transaction that cannot be undone cannot give way either.
    std::optional<Progress> progress;
    if (ddl_ == 0 && (movable_ || log_.empty())) {
        progress = try_together(hold, parts, commits, Company::shared);
    }
    if (!progress) {
        progress = try_together(hold, parts, commits, Company::alone);
    }
    return std::move(progress).value_or(Progress{});
}

// A failed transaction runs nothing. It may still close statements: clients close what they no
// longer need with the next message, which may be their ROLLBACK.
Executor::Progress Executor::run_in_failed(Hold& hold, std::span<Part> parts) {
    const auto has_bytes = [](const Part& part) { return !part.bytes.empty(); };
    const auto refused = std::find_if(parts.begin(), parts.end(), [&](const Part& part) {
        return has_bytes(part) && part.type != 'C';
    });
    const auto closed = parts.first(static_cast<std::size_t>(refused - parts.begin()));
    Progress progress{.done = closed.size(), .stopped = {}, .committed = {}};
    if (std::any_of(closed.begin(), closed.end(), has_bytes)) {
        progress = try_together(hold, closed, false, Company::shared).value_or(Progress{});
    }
    if (refused != parts.end()) {
        progress.stopped = refuse(hold, in_failed_transaction());
    }
    return progress;
}

std::optional<Executor::Progress> Executor::try_together(Hold& hold,
                                                         std::span<Part> parts,
                                                         bool commits,
                                                         Company company) {
    const bool runs = commits || std::any_of(parts.begin(), parts.end(), [](const Part& part) {
                          return part.call.has_value();
                      });
    const bool changes = std::any_of(parts.begin(), parts.end(), [](const Part& part) {
        return part.call && !only_reads(part.call->statement->kind);
    });
    Turn turn;
    if (changes || (runs && !log_.empty() && (detached_ || commits))) {
        turn.take(*this, hold, company);
        if (detached_ && !log_.empty() && company == Company::shared) {
            return std::nullopt;
        }
        replay();
    }
    auto together = runs && doomed_ ? std::nullopt : gather(parts, commits);
    if (!together) {
        return Progress{};
    }
    const auto pass_ours = [&] {
        while (together->answered < parts.size() && parts[together->answered].bytes.empty()) {
            ++together->answered;
        }
        // From here on it waits for the disk only, or for its deferred checks. A changed schema
        // keeps its turn until it is published.
        if (commits && together->answered == parts.size() &&
            together->touched == together->touches && ddl_ == 0) {
            turn.give_up();
            may_yield_ = false;
        }
    };
    may_yield_ = turn.taken() && company == Company::shared;
    pass_ours();
    const Answer answer = converse(together->bytes, [&](const Message& message) {
        if (together->answered < parts.size()) {
            together->answered += parts[together->answered].hear(message) ? 1 : 0;
        } else if (message.type == 'C') {
            ++together->touched;
        }
        pass_ours();
    });
    may_yield_ = false;
    return conclude(hold, turn, parts, *together, answer);
}

std::optional<Executor::Progress> Executor::conclude(
    Hold& hold, Turn& turn, std::span<Part> parts, const Together& together, const Answer& answer) {
    const std::size_t answered = together.answered;
    const bool commit_reached = together.commits && answered == parts.size();
    // Unless a late cancellation came before it, which leaves the transaction as it was.
    const bool committed =
        commit_reached && together.touched >= together.touches && answer.status != 'E';
    if (committed) {
        return Progress{.done = answered, .stopped = {}, .committed = ended(answer)};
    }
    if (!answer.ok() && yielded_) {
        give_way(parts, answered);
        return std::nullopt;
    }
    if (commit_reached) {
        return Progress{.done = answered, .stopped = {}, .committed = conflict_at_commit()};
    }
    if (auto beyond_limit = log_statements(parts.first(answered))) {
        return beyond_limit;
    }
    if (answer.ok()) {
        return Progress{.done = answered, .stopped = {}, .committed = {}};
    }
    if (turn.taken()) {
        turn.give_up();
        turn.take(*this, hold, Company::alone);  // What follows may have to replay.
    }
    return Progress{.done = answered, .stopped = stopped(parts[answered], answer), .committed = {}};
}

// The client has no answer yet, so everything can be undone.
void Executor::give_way(std::span<Part> parts, std::size_t answered) {
    rollback_to_snapshot();
    std::string bytes;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        Part& part = parts[i];
        if (part.bytes.empty()) {
            continue;
        }
        part.heard.clear();
        part.completion.clear();
        if (i < answered && part.type == 'P') {  // It outlives what is undone.
            const std::string_view name =
                BodyReader(std::string_view(part.bytes).substr(header_size)).text();
            append_message(bytes, 'C', BodyWriter().bytes("S").text(name).body());
        }
    }
    append_sync(bytes);
    must(exchange(bytes, {}));
}

// Where it stops if there were more rows than could be known beforehand.
std::optional<Executor::Progress> Executor::log_statements(std::span<const Part> parts) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const Part& part = parts[i];
        if (!part.call || only_reads(part.call->statement->kind)) {
            continue;
        }
        const Answer answer{.error = {}, .completion = part.completion};
        const bool writes = part.call->statement->kind == Kind::write;
        Ending ending = completed(*part.call, answer, writes ? answer.rows() : 0);
        if (!ending.ok()) {
            return Progress{.done = i, .stopped = std::move(ending), .committed = {}};
        }
    }
    return std::nullopt;
}

// Requires: the part is the one that has failed, and our turn if its statement changes rows.
Ending Executor::stopped(Part& part, const Answer& answer) {
    if (!part.call || only_reads(part.call->statement->kind)) {
        return failed_with(answer);
    }
    part.heard.clear();  // If it is answered as run, then from the beginning.
    return refused(
        *part.call, answer, [&part](const Message& message) { part.heard += message.bytes; });
}

}  // namespace holdfast::dsql
