#include "provider/turns.hpp"

#include <algorithm>
#include <array>

#include "provider/statements.hpp"
#include <fmt/core.h>

#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::flow {
namespace {

// How many timers one statement cancels.
constexpr std::size_t timers_per_statement = 8;

EventId last_of(const std::vector<Event>& events) {
    return events.empty() ? 0 : events.back().id;
}

// The last event after this turn and the one before it; -1 if the turn adds no event.
std::int64_t last_written(const TurnCommit& turn) {
    return turn.events.empty() ? -1 : int64(last_of(turn.events));
}
std::int64_t last_believed(const TurnCommit& turn) {
    return turn.events.empty() ? -1 : int64(turn.last_event);
}

// Empty in all turns but the first of an execution.
struct BegunColumns {
    std::optional<std::string> name;
    std::optional<std::string> version;
    std::optional<std::int64_t> engine;
};

BegunColumns columns_of(const std::optional<TurnCommit::Begun>& begun) {
    if (!begun) {
        return {};
    }
    return {begun->name, begun->version, engine_number(begun->engine)};
}

bool is_plain(const TurnCommit& turn) {
    return !turn.begun && !is_final(turn.status) && !turn.custom_status && !turn.suspended &&
           turn.status_changes == 0 && turn.output.empty();
}

bool sends_continue(const TurnCommit& turn) {
    return std::any_of(turn.messages.begin(), turn.messages.end(), [&](const auto& message) {
        return message.instance == turn.instance &&
               std::holds_alternative<ContinueMessage>(message.message.body);
    });
}

std::optional<std::string> text_of(const std::optional<StatusChange>& change) {
    return change && change->status ? std::optional(change->status->json) : std::nullopt;
}

void write_history(sql::Tx& tx,
                   const TurnCommit& turn,
                   ExecutionId execution,
                   const HistoryText& history) {
    for (const HistoryRow& row : history.rows) {
        tx.exec(statements::add_history,
                turn.instance,
                int64(execution),
                int64(row.first),
                int64(row.last),
                row.count,
                turn.next_token,
                row.lines);
    }
}

void write_activity(sql::Tx& tx, const ActivityTask& task) {
    const bool claimed = task.claim != Uuid{};
    tx.exec(statements::add_activity,
            task.key.instance,
            int64(task.key.execution),
            int64(task.key.event),
            task.name,
            task.input.json,
            task.workflow,
            task.version,
            task.tag.value_or(""),
            task.session,
            task.claim,
            claimed ? micros(task.claim_lease) : -micros(task.ahead),
            claimed ? 1 : 0,
            task.must_begin,
            task.retry ? std::optional(encode(*task.retry)) : std::nullopt);
}

void cancel_timers(sql::Tx& tx, const TurnCommit& turn) {
    const std::vector<EventId>& timers = turn.cancelled_timers;
    for (std::size_t at = 0; at < timers.size(); at += timers_per_statement) {
        std::array<std::int64_t, timers_per_statement> some{};
        for (std::size_t i = 0; i < some.size(); ++i) {
            some[i] = int64(timers[std::min(at + i, timers.size() - 1)]);
        }
        tx.exec(statements::cancel_timers,
                turn.instance,
                int64(turn.execution),
                some[0],
                some[1],
                some[2],
                some[3],
                some[4],
                some[5],
                some[6],
                some[7]);
    }
}

void write_kv(sql::Tx& tx, const TurnCommit& turn) {
    for (const KvChange& change : turn.kv) {
        switch (change.what) {
            case KvChange::What::set:
                tx.exec(statements::set_kv, turn.instance, change.key, change.value.json);
                break;
            case KvChange::What::erase:
                tx.exec(statements::erase_kv, turn.instance, change.key);
                break;
            case KvChange::What::clear:
                tx.exec(statements::clear_kv, turn.instance);
                break;
        }
    }
}

// Whether the mail that came too late for this turn has a cancel request.
bool is_asked_to_end(sql::Tx& tx, const std::string& instance) {
    for (const sql::Row row : tx.query(statements::read_mail, instance, mail_per_claim_max)) {
        if (std::holds_alternative<CancelMessage>(inbox_message(row).message.body)) {
            return true;
        }
    }
    return false;
}

bool same_operation(const sql::Row& existing, const ParentLink& parent) {
    return existing.get<std::optional<std::string>>(1) == parent.instance &&
           existing.get<std::optional<std::int64_t>>(2) == int64(parent.execution) &&
           existing.get<std::optional<std::int64_t>>(3) == int64(parent.event);
}

}  // namespace

// What the first round trip brings back.
struct TurnBatch::Answers {
    struct Start {
        const OutgoingStart* start;
        sql::Answer created;
    };
    // An instance that starts with its first turn. No row in `created`: it exists already. A
    // mailbox where none is expected, or none where one is: there is early mail.
    struct Creation {
        const Entry* entry;
        sql::Answer created;
        sql::Answer mailbox;
        sql::Rows opened{};
    };
    std::vector<std::pair<std::size_t, sql::FenceAnswer>> turns;
    std::vector<Creation> creations;
    std::vector<Start> starts;
    std::vector<std::pair<const Entry*, sql::Answer>> mailboxes;
    std::vector<std::pair<std::size_t, sql::Answer>> closed;  // By turns that have ended.
    std::vector<std::pair<const Finished*, sql::Answer>> finished;
    std::vector<std::string> sessions;
};

TurnBatch::TurnBatch(const std::vector<const TurnCommit*>& turns) {
    turns_.reserve(turns.size());
    for (const TurnCommit* turn : turns) {
        turns_.push_back(
            {.turn = turn,
             .history = history_text(turn->events),
             .next_history = turn->next ? history_text(turn->next->events) : HistoryText{}});
        prepare(turns_.size() - 1);
    }
    std::sort(finished_.begin(), finished_.end(), [](const Finished& x, const Finished& y) {
        return x.end->key < y.end->key;
    });
}

void TurnBatch::prepare(std::size_t index) {
    const TurnCommit& turn = *turns_[index].turn;
    Place& own = places_[turn.instance];
    own.turn = index;
    own.ends = is_final(turn.status) && !turn.next;
    own.touches_mail =
        !turn.consumed.empty() || !turn.cancelled_timers.empty() || turn.next.has_value();
    for (const OutgoingMessage& message : turn.messages) {
        Place& place = places_[message.instance];
        place.letters.emplace_back(message.message, message.visible_at_ms);
        place.wakes = place.wakes || (message.notify && message.visible_at_ms <= 0);
    }
    if (turn.next && !turn.next->start && !sends_continue(turn)) {
        own.letters.emplace_back(Message{turn.next->execution, ContinueMessage{}});
        own.wakes = true;
    }
    for (const OutgoingStart& start : turn.starts) {
        places_[start.instance].starts.emplace_back(
            &start, start.token == Uuid{} ? Uuid::v4() : start.token);
    }
    for (const ActivityEnd& end : turn.finished) {
        finished_.push_back({index, &end});
    }
}

Woken TurnBatch::write(sql::Tx& tx) const {
    Answers answers;
    for (const auto& [instance, place] : places_) {
        ask_place(tx, instance, place, answers);
    }
    for (const Finished& finished : finished_) {
        const ActivityKey& key = finished.end->key;
        answers.finished.emplace_back(&finished,
                                      tx.ask(statements::end_activity,
                                             key.instance,
                                             int64(key.execution),
                                             int64(key.event),
                                             finished.end->token));
    }

    // Every fence is read before anything else is sent, so that the rest may travel with COMMIT.
    if (const std::optional<std::size_t> refused = find_refused(answers)) {
        throw TurnRefused{*refused};
    }

    Woken woken;
    write_mail(tx, answers, woken);
    answer_refused_starts(tx, answers, woken);
    std::vector<bool> has_mail(turns_.size(), false);
    for (auto& [turn, mailbox] : answers.closed) {
        const sql::Rows rows = mailbox.rows();
        has_mail[turn] = rows.empty() || rows[0].get<std::optional<std::int64_t>>(0).has_value();
    }
    for (std::size_t i = 0; i < turns_.size(); ++i) {
        const Prepared& prepared = turns_[i];
        write_turn(tx, prepared, has_mail[i]);
        woken.activities =
            woken.activities || std::any_of(prepared.turn->activities.begin(),
                                            prepared.turn->activities.end(),
                                            [](const auto& task) { return task.claim == Uuid{}; });
    }
    std::sort(answers.sessions.begin(), answers.sessions.end());
    for (const std::string& session : answers.sessions) {
        tx.exec(statements::touch_session, session);
    }
    return woken;
}

std::optional<std::size_t> TurnBatch::find_refused(Answers& answers) {
    std::optional<std::size_t> refused;
    const auto refuse = [&](std::size_t turn) { refused = refused.value_or(turn); };
    for (auto& [turn, fence] : answers.turns) {
        if (!fence.held()) {
            refuse(turn);
        }
    }
    for (Answers::Creation& creation : answers.creations) {
        const Place& place = creation.entry->second;
        const bool created = !creation.created.rows().empty();
        creation.opened = creation.mailbox.rows();
        if (!created || creation.opened.empty() != place.ends) {
            refuse(place.own_turn());
        }
    }
    for (auto& [finished, answer] : answers.finished) {
        const sql::Rows rows = answer.rows();
        if (rows.empty()) {
            refuse(finished->turn);
        } else if (auto session = rows[0].get<std::optional<std::string>>(0)) {
            answers.sessions.push_back(std::move(*session));
        }
    }
    return refused;
}

void TurnBatch::ask_place(sql::Tx& tx,
                          const std::string& instance,
                          const Place& place,
                          Answers& answers) const {
    const bool creates = place.turn && turns_[*place.turn].turn->creates;
    if (creates) {
        ask_creation(tx, *places_.find(instance), answers);
    } else if (place.turn) {
        answers.turns.emplace_back(*place.turn, ask_turn(tx, turns_[*place.turn]));
    }
    for (const auto& [start, token] : place.starts) {
        const auto& parent = start->start.parent;
        answers.starts.push_back(
            {start,
             tx.ask(statements::create_instance,
                    instance,
                    start->start.name,
                    start->start.version,
                    token,
                    token,
                    0,
                    parent ? std::optional(parent->instance) : std::nullopt,
                    parent ? std::optional(int64(parent->execution)) : std::nullopt,
                    parent ? std::optional(int64(parent->event)) : std::nullopt,
                    start->start.cron)});
        tx.exec(statements::adopt_mailbox, instance, token, 0);
        tx.exec(statements::add_start, instance, token, 0, encode(MessageBody{start->start}));
    }
    if (creates) {
        return;
    }
    if (place.ends) {
        answers.closed.emplace_back(place.own_turn(), tx.ask(statements::close_mailbox, instance));
    } else if (place.touches_mail || !place.letters.empty()) {
        answers.mailboxes.emplace_back(&*places_.find(instance),
                                       tx.ask(statements::announce_mail,
                                              instance,
                                              int64(place.letters.size()),
                                              earliest_us(place.letters)));
    }
}

// A turn that is also a start. The token it leaves proves later that this start made the instance.
void TurnBatch::ask_creation(sql::Tx& tx, const Entry& entry, Answers& answers) const {
    const auto& [instance, place] = entry;
    const Prepared& prepared = turns_[place.own_turn()];
    const TurnCommit& turn = *prepared.turn;
    const TurnCommit::Begun begun = turn.begun.value_or(TurnCommit::Begun{});
    const std::optional<ParentLink>& parent = begun.parent;
    const sql::Answer created =
        tx.ask(statements::create_advanced,
               instance,
               begun.name,
               begun.version,
               to_string(turn.status),
               turn.next_token,
               int64(last_of(turn.events)),
               prepared.history.bytes,
               engine_number(begun.engine),
               parent ? std::optional(parent->instance) : std::nullopt,
               parent ? std::optional(int64(parent->execution)) : std::nullopt,
               parent ? std::optional(int64(parent->event)) : std::nullopt,
               turn.output,
               is_final(turn.status),
               text_of(turn.custom_status),
               turn.status_changes);
    const sql::Answer mailbox = place.ends ? tx.ask(statements::close_mailbox, instance)
                                           : tx.ask(statements::open_new_mailbox,
                                                    instance,
                                                    int64(place.letters.size()),
                                                    earliest_us(place.letters));
    answers.creations.push_back({&entry, created, mailbox});
}

sql::FenceAnswer TurnBatch::ask_continuing_turn(sql::Tx& tx,
                                                const Prepared& prepared,
                                                const NextExecution& next) const {
    const TurnCommit& turn = *prepared.turn;
    const BegunColumns begun = columns_of(turn.begun);
    tx.exec(statements::archive_execution,
            turn.instance,
            turn.token,
            begun.version,
            turn.output,
            last_written(turn),
            prepared.history.bytes,
            begun.engine,
            to_string(turn.status));
    const bool scheduled = next.start.has_value();
    return tx.ask_fenced(instance_guard(turn.instance, turn.token),
                         statements::advance_execution,
                         turn.next_token,
                         to_string(scheduled ? Status::pending : Status::running),
                         int64(last_of(next.events)),
                         prepared.next_history.bytes,
                         int64(turn.execution),
                         last_believed(turn),
                         turn.leased,
                         int64(next.execution),
                         begun.name,
                         next.version,
                         engine_number(engine_version),
                         turn.custom_status.has_value(),
                         text_of(turn.custom_status),
                         turn.status_changes,
                         turn.suspended,
                         scheduled ? visible_us(next.start_at_ms) : 0);
}

sql::FenceAnswer TurnBatch::ask_turn(sql::Tx& tx, const Prepared& prepared) const {
    const TurnCommit& turn = *prepared.turn;
    if (turn.next) {
        return ask_continuing_turn(tx, prepared, *turn.next);
    }
    const sql::Guard guard = instance_guard(turn.instance, turn.token);
    if (is_plain(turn)) {
        return tx.ask_fenced(guard,
                             statements::advance,
                             turn.next_token,
                             to_string(turn.status),
                             last_written(turn),
                             prepared.history.bytes,
                             int64(turn.execution),
                             last_believed(turn),
                             turn.leased);
    }
    const BegunColumns begun = columns_of(turn.begun);
    const std::optional<ParentLink> parent = turn.begun ? turn.begun->parent : std::nullopt;
    return tx.ask_fenced(guard,
                         statements::advance_fully,
                         turn.next_token,
                         to_string(turn.status),
                         last_written(turn),
                         prepared.history.bytes,
                         int64(turn.execution),
                         last_believed(turn),
                         turn.leased,
                         begun.name,
                         begun.version,
                         begun.engine,
                         parent ? std::optional(parent->instance) : std::nullopt,
                         parent ? std::optional(int64(parent->execution)) : std::nullopt,
                         parent ? std::optional(int64(parent->event)) : std::nullopt,
                         turn.output,
                         is_final(turn.status),
                         turn.custom_status.has_value(),
                         text_of(turn.custom_status),
                         turn.status_changes,
                         turn.suspended);
}

void TurnBatch::write_mail(sql::Tx& tx, Answers& answers, Woken& woken) const {
    for (auto& [entry, answer] : answers.mailboxes) {
        const sql::Rows announced = answer.rows();
        const auto& [instance, place] = *entry;
        if (!place.letters.empty()) {
            const Delivery delivery = deliver(tx, instance, place.letters, announced);
            woken.workflows = woken.workflows || (delivery == Delivery::delivered && place.wakes);
        }
    }
    for (const Answers::Creation& creation : answers.creations) {
        const auto& [instance, place] = *creation.entry;
        if (!place.letters.empty() && !place.ends) {
            deliver(tx, instance, place.letters, creation.opened);
            woken.workflows = woken.workflows || place.wakes;
        }
    }
}

void TurnBatch::answer_refused_starts(sql::Tx& tx, Answers& answers, Woken& woken) const {
    for (Answers::Start& start : answers.starts) {
        if (!start.created.rows().empty()) {
            woken.workflows = woken.workflows || start.start->notify;
            continue;
        }
        const auto& parent = start.start->start.parent;
        const std::string& instance = start.start->instance;
        const auto own = parent ? places_.find(parent->instance) : places_.end();
        if (!parent || (own != places_.end() && own->second.ends)) {
            continue;  // No parent waits.
        }
        const sql::Rows existing = tx.query(statements::find_origin, instance);
        if (!existing.empty() && same_operation(existing[0], *parent)) {
            continue;
        }
        const FailureInfo failure{
            .type = "AlreadyExists",
            .message = fmt::format("there is a workflow '{}' already", instance),
            .retryable = false};
        const Message answer{parent->execution, ChildAnswer{parent->event, failure}};
        send_letters(tx, parent->instance, {Letter{answer}});
        woken.workflows = true;
    }
}

void TurnBatch::write_turn(sql::Tx& tx, const Prepared& prepared, bool has_mail) const {
    const TurnCommit& turn = *prepared.turn;
    write_history(tx, turn, turn.execution, prepared.history);
    if (turn.next) {
        write_history(tx, turn, turn.next->execution, prepared.next_history);
    }
    write_state(tx, turn);
    for (const ActivityTask& task : turn.activities) {
        write_activity(tx, task);
    }
    std::vector<ActivityKey> cancelled = turn.cancelled_activities;
    std::sort(cancelled.begin(), cancelled.end());
    for (const ActivityKey& key : cancelled) {
        tx.exec(statements::drop_activity, key.instance, int64(key.execution), int64(key.event));
    }
    if (is_final(turn.status) && !turn.next) {
        if (has_mail) {
            tx.exec(statements::drop_messages, turn.instance);
        }
        if (!turn.names_all_activities) {
            tx.exec(statements::drop_activities, turn.instance);
        }
        return;
    }
    for (const Run& run : runs_of(turn.consumed)) {
        tx.exec(statements::consume_messages, turn.instance, run.first, run.last);
    }
    cancel_timers(tx, turn);
    if (turn.next) {
        // After a reset the next execution may still need the children's answers.
        tx.exec(turn.status == Status::reset ? statements::drop_timers
                                             : statements::drop_execution_messages,
                turn.instance,
                int64(turn.execution));
    }
    if (turn.next && turn.next->start) {
        tx.exec(statements::schedule_start,
                turn.instance,
                visible_us(turn.next->start_at_ms),
                encode(MessageBody{*turn.next->start}));
    }
    if (places_.find(turn.instance)->second.touches_mail) {
        tx.exec(statements::settle_mailbox, turn.instance);
    }
    if (turn.suspended == true && is_asked_to_end(tx, turn.instance)) {
        tx.fenced(instance_guard(turn.instance, turn.next_token), statements::resume_instance);
    }
}

void TurnBatch::write_state(sql::Tx& tx, const TurnCommit& turn) const {
    write_kv(tx, turn);
    if (turn.next && turn.status != Status::reset) {
        tx.exec(statements::seed_kv, turn.instance);
        tx.exec(statements::bury_kv, turn.instance);
    }
    for (const AttributeChange& change : turn.attributes) {
        if (change.value) {
            tx.exec(statements::set_attribute, turn.instance, change.name, change.value->json);
        } else {
            tx.exec(statements::remove_attribute, turn.instance, change.name);
        }
    }
    for (const Reply& reply : turn.replies) {
        tx.exec(statements::add_reply, reply.request, reply.failed, reply.body);
    }
}

}  // namespace holdfast::flow
