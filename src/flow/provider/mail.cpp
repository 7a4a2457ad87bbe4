#include "provider/mail.hpp"

#include <algorithm>

#include "provider/columns.hpp"
#include "provider/deletes.hpp"
#include "provider/statements.hpp"

#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::flow {
namespace {

// A message with a due time can be withdrawn by the event it belongs to.
std::int64_t timer_of(const MessageBody& body) {
    if (const auto* deadline = std::get_if<StartDeadline>(&body)) {
        return int64(deadline->event);
    }
    const auto* timer = std::get_if<TimerMessage>(&body);
    return timer == nullptr ? 0 : int64(timer->event);
}

// The instance has no mailbox: either it has ended, or it has not started.
sql::Rows open_early(sql::Tx& tx, const std::string& instance, const std::vector<Letter>& letters) {
    if (tx.query(statements::instance_exists, instance)[0].get<bool>(0)) {
        return {};
    }
    return tx.query(
        statements::open_early_mailbox, instance, int64(letters.size()), earliest_us(letters));
}

}  // namespace

Letter::Letter(const Message& message, std::int64_t visible_at_ms)
    : execution(int64(message.execution)),
      timer(timer_of(message.body)),
      visible_at_us(visible_us(visible_at_ms)),
      cancels(std::holds_alternative<CancelMessage>(message.body)),
      body(encode(message.body)) {}

std::int64_t earliest_us(const std::vector<Letter>& letters) {
    std::int64_t earliest = -1;
    for (const Letter& letter : letters) {
        earliest = earliest < 0 ? letter.visible_at_us : std::min(earliest, letter.visible_at_us);
    }
    return earliest;
}

Delivery deliver(sql::Tx& tx,
                 const std::string& instance,
                 const std::vector<Letter>& letters,
                 const sql::Rows& announced) {
    const sql::Rows mailbox = announced.empty() ? open_early(tx, instance, letters) : announced;
    if (mailbox.empty()) {
        return Delivery::ended;
    }
    std::int64_t position = mailbox[0].get<std::int64_t>(0) - int64(letters.size());
    for (const Letter& letter : letters) {
        tx.exec(statements::add_message,
                instance,
                ++position,
                letter.visible_at_us,
                letter.execution,
                letter.timer,
                letter.body);
    }
    if (mailbox[0].get<bool>(1)) {
        return Delivery::early;
    }
    if (std::ranges::any_of(letters, &Letter::cancels)) {
        hurry(tx, instance);
    }
    return Delivery::delivered;
}

void hurry(sql::Tx& tx, const std::string& instance) {
    sql::Answer start = tx.ask(statements::hurry_start, instance);
    sql::Answer state = tx.ask(statements::is_held, instance);
    const bool delayed = !start.rows().empty();
    const sql::Rows held = state.rows();
    if (!delayed && held.empty()) {
        return;
    }
    const bool suspended = !held.empty() && held[0].get<bool>(0);
    const bool blocked = !held.empty() && held[0].get<std::int64_t>(1) != 0;
    const auto locked = lock_instance(tx, instance);
    if (!locked) {
        return;
    }
    const sql::Guard guard = instance_guard(instance, locked->token);
    if (delayed && locked->status == Status::pending) {
        tx.fenced(guard, statements::hurry_instance);
    }
    if (suspended) {
        tx.fenced(guard, statements::resume_instance);
    }
    if (blocked) {  // Last, because it changes the token.
        (void)tx.try_fenced(guard, statements::retry_instance, Uuid::v4());
    }
}

Delivery send_letters(sql::Tx& tx,
                      const std::string& instance,
                      const std::vector<Letter>& letters) {
    const sql::Rows announced =
        tx.query(statements::announce_mail, instance, int64(letters.size()), earliest_us(letters));
    return deliver(tx, instance, letters, announced);
}

}  // namespace holdfast::flow
