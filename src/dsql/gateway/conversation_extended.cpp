// The extended protocol: steps are gathered up to a Sync or a Flush, since nobody expects an answer
// before.
#include <algorithm>
#include <utility>

#include "conversation.hpp"
#include "job_id.hpp"

namespace holdfast::dsql {

namespace {

void append_empty(std::string& out, char type) {
    append_message(out, type, {});
}

}  // namespace

Conversation::Prepared Conversation::prepared(std::string_view text, std::string_view types) {
    return {cluster_.judged(text, rules()), std::string(types)};
}

const Conversation::Prepared* Conversation::find_statement(std::string_view name) const {
    const auto found = statements_.find(name);
    return found == statements_.end() ? nullptr : &found->second;
}

const Conversation::Portal* Conversation::find_portal(std::string_view name) const {
    const auto found = portals_.find(name);
    return found == portals_.end() ? nullptr : &found->second;
}

void Conversation::process(bool synced) {
    Hold hold = executor_->hold();
    if (!skipping_) {
        if (synced && executor_->idle() && may_run_alone()) {
            run_alone(hold);
            steps_.clear();
            ready();
            return;
        }
        for (const Step& step : steps_) {
            take(hold, step);
            if (skipping_) {
                break;
            }
        }
        if (!skipping_) {
            flush_group(hold);
        }
    }
    steps_.clear();
    group_.clear();
    if (synced) {
        synchronise(hold);
    } else {
        put(std::string_view{});
    }
}

// True if all steps together are at most one statement, which needs nothing from us.
bool Conversation::may_run_alone() {
    int executed = 0;
    std::map<std::string_view, Prepared> parsed;
    std::map<std::string_view, const Prepared*> bound;
    for (const Step& step : steps_) {
        BodyReader body(step.body);
        switch (step.type) {
            case 'P': {
                const std::string_view name = body.text();
                const std::string_view text = body.text();
                const Prepared& statement = parsed[name] = prepared(text, body.rest());
                if (statement.single() == nullptr || !can_run_alone(*statement.single())) {
                    return false;
                }
                break;
            }
            case 'B': {
                const std::string_view portal = body.text();
                const std::string_view name = body.text();
                if (body.rest().size() >
                    static_cast<std::size_t>(cluster_.options().limits.value_bytes)) {
                    return false;  // Somebody has to look at its size.
                }
                const auto own = parsed.find(name);
                const Prepared* statement =
                    own != parsed.end() ? &own->second : find_statement(name);
                if (statement == nullptr || statement->single() == nullptr ||
                    !can_run_alone(*statement->single())) {
                    return false;
                }
                bound[portal] = statement;
                break;
            }
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

// Requires: may_run_alone().
void Conversation::run_alone(const Hold& hold) {
    std::string bytes;
    std::vector<TableName> tables;
    bool shows = false;
    for (const Step& step : steps_) {
        BodyReader body(step.body);
        if (step.type == 'P') {
            const std::string_view name = body.text();
            const std::string_view text = body.text();
            Prepared statement = prepared(text, body.rest());
            append_message(
                bytes,
                'P',
                BodyWriter().text(name).text(statement.single()->text).bytes(body.rest()).body());
            statements_.insert_or_assign(std::string(name), std::move(statement));
            continue;
        }
        if (step.type == 'B') {
            (void)body.text();
            const Judged& statement = *find_statement(body.text())->single();
            tables = statement.tables;
            shows = statement.kind == Kind::show;
        } else if (step.type == 'C' && body.bytes(1) == "S") {
            statements_.erase(std::string(body.text()));
        }
        append_message(bytes, step.type, step.body);
    }
    append_empty(bytes, 'S');
    const Ending ending = executor_->execute_alone(hold, tables, bytes, sink());
    put(ending.ok() && shows ? Ending::done("SHOW") : ending);
}

void Conversation::take(Hold& hold, const Step& step) {
    switch (step.type) {
        case 'P':
            return parse(hold, step);
        case 'B':
            return bind(hold, step);
        case 'D':
            return describe(hold, step);
        case 'E':
            return execute(hold, step);
        default:
            return close(hold, step);
    }
}

void Conversation::fail(const Ending& ending) {
    put(ending.error);
    group_.clear();
    skipping_ = true;
}

// Hands the server below what it has not seen, in one exchange.
void Conversation::flush_group(const Hold& hold) {
    if (group_.empty()) {
        return;
    }
    append_empty(group_, 'S');
    const Ending ending = executor_->pass(hold, group_, sink());
    group_.clear();
    if (!ending.ok()) {
        fail(ending);
    }
}

void Conversation::parse(Hold& hold, const Step& step) {
    BodyReader body(step.body);
    const std::string name(body.text());
    const std::string_view text = body.text();
    Prepared statement = prepared(text, body.rest());
    const Judged* single = statement.single();
    flush_group(hold);
    if (skipping_) {
        return;
    }
    const bool control = single != nullptr && is_control(single->kind) && !single->refusal;
    if (executor_->failed() && (!control || single->kind == Kind::begin)) {
        return fail(executor_->refuse(hold, in_failed_transaction()));
    }
    if (single != nullptr && single->refusal) {
        return fail(executor_->refuse(
            hold,
            {.code = std::string(single->refusal->code), .message = single->refusal->message}));
    }
    if (single != nullptr && single->kind == Kind::copy_in) {
        return fail(executor_->refuse(
            hold, unsupported("COPY FROM STDIN needs the simple query protocol here")));
    }
    if (control) {
        std::string bytes;
        append_empty(bytes, '1');
        put(bytes);
    } else {
        // By itself, so that it stays prepared whatever becomes of its first execution.
        append_message(group_,
                       'P',
                       BodyWriter()
                           .text(name)
                           .text(single != nullptr ? std::string_view(single->text) : text)
                           .bytes(statement.types)
                           .body());
        flush_group(hold);
    }
    if (!skipping_) {
        statements_.insert_or_assign(name, std::move(statement));
    }
}

void Conversation::bind(Hold& hold, const Step& step) {
    BodyReader body(step.body);
    const std::string portal(body.text());
    const Prepared* statement = find_statement(body.text());
    const Judged* single = statement != nullptr ? statement->single() : nullptr;
    if (executor_->failed() && (single == nullptr || !is_control(single->kind))) {
        return fail(executor_->refuse(hold, in_failed_transaction()));
    }
    if (single != nullptr && is_control(single->kind)) {
        flush_group(hold);
        if (skipping_) {
            return;
        }
        std::string bytes;
        append_empty(bytes, '2');
        put(bytes);
    } else {
        append_message(group_, 'B', step.body);
    }
    if (statement != nullptr) {
        portals_.insert_or_assign(portal, Portal{*statement, std::string(body.rest())});
    }
}

void Conversation::describe(Hold& hold, const Step& step) {
    BodyReader body(step.body);
    const bool of_statement = body.bytes(1) == "S";
    const std::string_view name = body.text();
    const Portal* portal = of_statement ? nullptr : find_portal(name);
    const Prepared* statement = of_statement        ? find_statement(name)
                                : portal != nullptr ? &portal->statement
                                                    : nullptr;
    const Judged* single = statement != nullptr ? statement->single() : nullptr;
    const bool ours = single != nullptr && (is_control(single->kind) || single->async);
    if (!ours) {
        append_message(group_, 'D', step.body);
        return;
    }
    flush_group(hold);
    if (skipping_) {
        return;
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
    put(bytes);
}

void Conversation::execute(Hold& hold, const Step& step) {
    const Portal* portal = find_portal(BodyReader(step.body).text());
    const Judged* single = portal != nullptr ? portal->statement.single() : nullptr;
    if (single == nullptr) {
        append_message(group_, 'E', step.body);  // The server knows what to say.
        return flush_group(hold);
    }
    if (is_control(single->kind)) {
        flush_group(hold);
        if (skipping_) {
            return;
        }
        const Ending ending = control(hold, *single);
        portals_.clear();  // None outlives its transaction.
        if (!ending.ok()) {
            return fail(ending);
        }
        return put(ending);
    }
    if (executor_->idle()) {
        executor_->begin(hold, false, true);
    }
    std::string bytes = std::move(group_);
    group_.clear();
    append_message(bytes, 'E', step.body);
    append_empty(bytes, 'S');
    const Call call{.script = portal->statement.script,
                    .statement = single,
                    .types = portal->statement.types,
                    .arguments = portal->arguments,
                    .simple = false};
    const Ending ending = run_statement(hold, call, bytes);
    if (!ending.ok()) {
        return fail(ending);
    }
    put(ending);
}

void Conversation::close(Hold& hold, const Step& step) {
    BodyReader body(step.body);
    const bool of_statement = body.bytes(1) == "S";
    const std::string_view name = body.text();
    if (of_statement) {
        statements_.erase(std::string(name));
    } else {
        portals_.erase(std::string(name));
    }
    (void)hold;
    append_message(group_, 'C', step.body);  // Closing what is not there is no error.
}

// The end of a row of steps: what we have wrapped is committed now.
void Conversation::synchronise(Hold& hold) {
    const bool failed = std::exchange(skipping_, false);
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
