// The extended protocol: steps are collected up to a Sync or a Flush, since clients expect no
// answer before.
#include <algorithm>
#include <span>
#include <utility>

#include "gateway/job_id.hpp"
#include "gateway/wire/wire_session.hpp"

namespace holdfast::dsql {

namespace {

// A server that is sending answers does not read, so sending a batch must not depend on that.
constexpr std::size_t parts_bytes_max = std::size_t{64} << 10U;

void append_empty(std::string& out, char type) {
    append_message(out, type, {});
}

// Whether the gateway describes the result, because the server below does not know it or would
// describe another one.
bool is_answered_here(const CheckedStatement* statement) {
    return statement != nullptr && (is_control(statement->kind) || statement->async);
}

}  // namespace

WireSession::Prepared WireSession::prepared(const Hold& hold,
                                            std::string_view text,
                                            std::string_view types) {
    return {checked(hold, text), std::string(types)};
}

const WireSession::Prepared* WireSession::find_statement(std::string_view name) const {
    const auto found = statements_.find(name);
    return found == statements_.end() ? nullptr : &found->second;
}

const WireSession::Portal* WireSession::find_portal(std::string_view name) const {
    const auto found = portals_.find(name);
    return found == portals_.end() ? nullptr : &found->second;
}

void WireSession::process(bool synced) {
    Hold hold = executor_->hold();
    settings_.reset();  // They may have been made within a transaction that has ended.
    if (!skipping_ && synced && executor_->idle() && may_run_alone(hold)) {
        run_alone(hold);
        steps_.clear();
        ready();
        return;
    }
    next_step_ = 0;
    while (!skipping_) {
        if (next_step_ < steps_.size()) {
            const Step& step = steps_[next_step_++];
            take(hold, step);
            continue;
        }
        const bool commits = synced && executor_->wrapped() && may_commit_with_parts();
        Ending committed;
        if (!flush_parts(hold, commits ? &committed : nullptr)) {
            continue;
        }
        if (commits) {
            portals_.clear();
        }
        if (!committed.ok()) {
            held_.clear();
            put(committed.error);
        }
        break;
    }
    steps_.clear();
    if (synced) {
        synchronise(hold);
    } else {
        put(std::string_view{});
    }
    executor_->settle(hold);
}

// True if all steps together are at most one statement, which needs nothing from us.
bool WireSession::may_run_alone(const Hold& hold) {
    int executed = 0;
    std::map<std::string_view, Prepared> parsed;
    std::map<std::string_view, const Prepared*> bound;
    const auto find = [&](std::string_view name) {
        const auto own = parsed.find(name);
        return own != parsed.end() ? &own->second : find_statement(name);
    };
    const auto fits = [this](const Prepared* statement) {
        return statement != nullptr && statement->single() != nullptr &&
               can_run_alone(*statement->single());
    };
    for (const Step& step : steps_) {
        BodyReader body(step.body);
        switch (step.type) {
            case 'P': {
                const std::string_view name = body.text();
                const std::string_view text = body.text();
                Prepared& statement = parsed[name];
                statement = prepared(hold, text, body.rest());
                if (!fits(&statement)) {
                    return false;
                }
                break;
            }
            case 'B': {
                const std::string_view portal = body.text();
                const Prepared* statement = find(body.text());
                if (!fits(statement) ||
                    body.rest().size() >
                        static_cast<std::size_t>(cluster_.options().limits.value_bytes)) {
                    return false;  // Its size has to be checked.
                }
                bound[portal] = statement;
                break;
            }
            case 'D':
                if (body.bytes(1) == "S") {
                    const Prepared* statement = find(body.text());
                    if (statement != nullptr && is_answered_here(statement->single())) {
                        return false;
                    }
                }
                break;
            case 'E':
                ++executed;
                if (!bound.contains(body.text())) {
                    return false;
                }
                break;
            default:
                break;
        }
    }
    return executed <= 1;
}

// Requires: may_run_alone(hold).
void WireSession::run_alone(const Hold& hold) {
    std::string bytes;
    std::vector<TableName> tables;
    bool shows = false;
    // Changes of the prepared statements, one for each Parse and Close; applied when that is done.
    struct Change {
        std::optional<std::string> name{};  // None for a portal.
        std::optional<Prepared> statement{};
    };
    std::vector<Change> changes;
    for (const Step& step : steps_) {
        BodyReader body(step.body);
        if (step.type == 'P') {
            const std::string_view name = body.text();
            const std::string_view text = body.text();
            Prepared statement = prepared(hold, text, body.rest());
            append_message(
                bytes,
                'P',
                BodyWriter().text(name).text(statement.single()->text).bytes(body.rest()).body());
            changes.push_back({std::string(name), std::move(statement)});
            continue;
        }
        if (step.type == 'B') {
            (void)body.text();
            const std::string_view name = body.text();
            const auto own =
                std::find_if(changes.rbegin(), changes.rend(), [&](const Change& change) {
                    return change.statement && change.name == name;
                });
            const Prepared* known =
                own != changes.rend() && own->statement ? &*own->statement : find_statement(name);
            if (const CheckedStatement* statement = known != nullptr ? known->single() : nullptr) {
                tables = statement->tables;
                shows = statement->kind == Kind::show;
                ran(*statement);  // No further check follows before it has run.
            }
        } else if (step.type == 'C') {
            Change& change = changes.emplace_back();
            if (body.bytes(1) == "S") {
                change.name = body.text();
            }
        }
        append_message(bytes, step.type, step.body);
    }
    append_sync(bytes);
    std::size_t done = 0;
    const auto hear = [&](const Message& message) {
        if (message.type == '1' || message.type == '3') {
            Change& change = changes[done++];
            if (change.name) {
                name_statement(*change.name, std::move(change.statement));
            }
        }
        put(message.bytes);
    };
    const Ending ending = executor_->execute_alone(hold, tables, bytes, hear);
    put(ending.ok() && shows ? Ending::done("SHOW") : ending);
}

void WireSession::take(Hold& hold, const Step& step) {
    switch (step.type) {
        case 'P':
            return parse(hold, step);
        case 'B':
            return bind(hold, step);
        case 'D':
            return describe(step);
        case 'E':
            return execute(hold, step);
        default:
            return close(step);
    }
}

void WireSession::fail(const Ending& ending) {
    put(ending.error);
    skipping_ = true;
}

// ---- Steps that wait to be sent together
// -----------------------------------------------------------------------------

void WireSession::append_part(Part part) {
    parts_bytes_ += part.bytes.size();
    parts_.push_back(std::move(part));
    waiting_.emplace_back().step = next_step_ - 1;
}

void WireSession::append_step(const Step& step) {
    Part part{.type = step.type};
    append_message(part.bytes, step.type, step.body);
    append_part(std::move(part));
}

// Keeps its place among the other answers.
void WireSession::append_own_answer(std::string_view bytes) {
    if (parts_.empty()) {
        return put(bytes);
    }
    append_part({.heard = std::string(bytes)});
}

// Takes effect at the last appended step. Without a statement the name is removed.
void WireSession::name_statement(std::string_view name, std::optional<Prepared> statement) {
    const auto found = statements_.find(name);
    if (!waiting_.empty()) {
        waiting_.back().name = name;
        if (found != statements_.end()) {
            waiting_.back().before = std::move(found->second);
        }
    }
    if (statement) {
        statements_.insert_or_assign(std::string(name), std::move(*statement));
    } else if (found != statements_.end()) {
        statements_.erase(found);
    }
}

bool WireSession::may_commit_with_parts() {
    return !parts_.empty() && !one_by_one_ && executor_->may_commit_with(parts_);
}

bool WireSession::flush_parts(Hold& hold, Ending* committed) {
    return flush_first(hold, parts_.size(), committed);
}

// Sends the first `count` parts to the server below, in one exchange, with COMMIT if `committed` is
// given. False if they did not all succeed: then the error is reported, or the next step has
// changed.
bool WireSession::flush_first(Hold& hold, std::size_t count, Ending* committed) {
    if (count == 0) {
        return true;
    }
    const std::span<Part> parts(parts_.data(), count);
    const Executor::Progress progress = executor_->run_together(hold, parts, committed != nullptr);
    for (const Part& part : parts.first(progress.done)) {
        put(part.heard);
        held_ = part.completion;
    }
    if (progress.done < count) {
        one_by_one_ = true;
        if (progress.stopped && progress.stopped->ok()) {
            put(parts[progress.done].heard);
            put(*progress.stopped);
        } else if (progress.stopped) {
            fail(*progress.stopped);
        }
        step_back(progress.done, !progress.stopped);
        return false;
    }
    if (committed != nullptr && progress.committed) {
        *committed = *progress.committed;
    }
    const auto gone = static_cast<std::ptrdiff_t>(count);
    parts_.erase(parts_.begin(), parts_.begin() + gone);
    waiting_.erase(waiting_.begin(), waiting_.begin() + gone);
    parts_bytes_ = 0;
    return true;
}

// The next step is the part after those that are done, or with `again` false the one behind it.
void WireSession::step_back(std::size_t done, bool again) {
    next_step_ = waiting_[done].step + (again ? 0 : 1);
    // Undoes the changes of steps that were not reached or have failed.
    for (; waiting_.size() > done; waiting_.pop_back()) {
        Waiting& undone = waiting_.back();
        if (!undone.name) {
            continue;
        }
        if (undone.before) {
            statements_.insert_or_assign(*undone.name, std::move(*undone.before));
        } else {
            statements_.erase(*undone.name);
        }
    }
    waiting_.clear();
    parts_.clear();
    parts_bytes_ = 0;
}

// ---- One step
// -----------------------------------------------------------------------------

void WireSession::parse(Hold& hold, const Step& step) {
    BodyReader body(step.body);
    const std::string_view name = body.text();
    const std::string_view text = body.text();
    Prepared statement = prepared(hold, text, body.rest());
    const CheckedStatement* single = statement.single();
    const bool control = single != nullptr && is_control(single->kind) && !single->refusal;
    const bool refused = single != nullptr && (single->refusal || single->kind == Kind::copy_in);
    const bool aborted = executor_->failed() && (!control || single->kind == Kind::begin);
    if (aborted || refused) {
        if (!flush_parts(hold)) {
            return;
        }
        if (aborted) {
            return fail(executor_->refuse(hold, in_failed_transaction()));
        }
        return fail(executor_->refuse(
            hold,
            single->refusal ? ErrorResponse{.code = std::string(single->refusal->code),
                                            .message = single->refusal->message}
                            : unsupported("COPY FROM STDIN needs the simple query protocol here")));
    }
    if (control) {
        std::string bytes;
        append_empty(bytes, '1');
        append_own_answer(bytes);
    } else {
        Part part{.type = 'P'};
        append_message(part.bytes,
                       'P',
                       BodyWriter()
                           .text(name)
                           .text(single != nullptr ? std::string_view(single->text) : text)
                           .bytes(statement.types)
                           .body());
        append_part(std::move(part));
    }
    name_statement(name, std::move(statement));
}

void WireSession::bind(Hold& hold, const Step& step) {
    BodyReader body(step.body);
    const std::string portal(body.text());
    const Prepared* statement = find_statement(body.text());
    const CheckedStatement* single = statement != nullptr ? statement->single() : nullptr;
    if (executor_->failed() && (single == nullptr || !is_control(single->kind))) {
        if (flush_parts(hold)) {
            fail(executor_->refuse(hold, in_failed_transaction()));
        }
        return;
    }
    if (single != nullptr && is_control(single->kind)) {
        std::string bytes;
        append_empty(bytes, '2');
        append_own_answer(bytes);
    } else {
        if (statement != nullptr && executor_->idle()) {
            executor_->begin(hold, false, true);  // A portal lives as long as its transaction.
        }
        append_step(step);
    }
    if (statement != nullptr) {
        portals_.insert_or_assign(portal, Portal{*statement, std::string(body.rest())});
    }
}

void WireSession::describe(const Step& step) {
    BodyReader body(step.body);
    const bool of_statement = body.bytes(1) == "S";
    const std::string_view name = body.text();
    const Portal* portal = of_statement ? nullptr : find_portal(name);
    const Prepared* statement = of_statement        ? find_statement(name)
                                : portal != nullptr ? &portal->statement
                                                    : nullptr;
    const CheckedStatement* single = statement != nullptr ? statement->single() : nullptr;
    if (!is_answered_here(single)) {
        return append_step(step);
    }
    std::string bytes;
    if (of_statement) {
        append_message(bytes, 't', BodyWriter().int16(0).body());
    }
    if (single->async) {
        append_message(bytes, 'T', job_description());
    } else {
        append_empty(bytes, 'n');
    }
    append_own_answer(bytes);
}

void WireSession::execute(Hold& hold, const Step& step) {
    const Portal* portal = find_portal(BodyReader(step.body).text());
    const CheckedStatement* single = portal != nullptr ? portal->statement.single() : nullptr;
    if (single == nullptr) {
        append_step(step);  // The server makes the answer.
        (void)flush_parts(hold);
        return;
    }
    if (is_control(single->kind)) {
        return execute_control(hold, *single);
    }
    if (executor_->idle()) {
        executor_->begin(hold, false, true);
    }
    Call call{.script = portal->statement.script,
              .statement = single,
              .types = portal->statement.types,
              .arguments = portal->arguments,
              .simple = false};
    const auto rows = one_by_one_ ? std::nullopt : executor_->rows_if_shared(call, parts_);
    if (!rows) {
        return execute_by_itself(hold, step, call);
    }
    append_step(step);
    parts_.back().call = std::move(call);
    parts_.back().rows = *rows;
    if (parts_bytes_ > parts_bytes_max) {
        (void)flush_parts(hold);
    }
}

// It is sent with its own Bind and Describe only: earlier steps are answered first.
void WireSession::execute_by_itself(Hold& hold, const Step& step, const Call& call) {
    const auto before = std::find_if(parts_.rbegin(), parts_.rend(), [](const Part& part) {
        return part.call || part.bytes.empty() || part.type == 'P' || part.type == 'C';
    });
    if (!flush_first(hold, static_cast<std::size_t>(parts_.rend() - before))) {
        return;
    }
    std::string bytes;
    for (const Part& part : parts_) {
        bytes += part.bytes;
    }
    parts_.clear();
    waiting_.clear();
    parts_bytes_ = 0;
    append_message(bytes, 'E', step.body);
    append_sync(bytes);
    const Ending ending = run_statement(hold, call, bytes);
    if (!ending.ok()) {
        return fail(ending);
    }
    put(ending);
}

void WireSession::execute_control(Hold& hold, const CheckedStatement& statement) {
    const bool commits =
        statement.kind == Kind::commit && !executor_->idle() && may_commit_with_parts();
    Ending ending;
    if (!flush_parts(hold, commits ? &ending : nullptr)) {
        return;
    }
    if (!commits) {
        ending = control(hold, statement);
    }
    portals_.clear();  // Portals end with their transaction.
    if (!ending.ok()) {
        return fail(ending);
    }
    put(ending);
}

void WireSession::close(const Step& step) {
    BodyReader body(step.body);
    const bool of_statement = body.bytes(1) == "S";
    const std::string_view name = body.text();
    append_step(step);  // Closing what does not exist is not an error.
    if (of_statement) {
        name_statement(name, std::nullopt);
    } else {
        portals_.erase(std::string(name));
    }
}

// The end of a series of steps: a wrapped transaction is committed now.
void WireSession::synchronise(Hold& hold) {
    const bool failed = std::exchange(skipping_, false);
    one_by_one_ = false;
    if (executor_->wrapped()) {
        if (failed || executor_->failed()) {
            executor_->rollback(hold);
        } else if (const Ending ending = commit(hold); !ending.ok()) {
            held_.clear();
            put(ending.error);
        }
        portals_.clear();
    }
    ready();
}

}  // namespace holdfast::dsql
