// Resetting an instance: a turn that continues as an execution whose first events are given.
#include "provider/columns.hpp"
#include "provider/deletes.hpp"
#include "provider/statements_admin.hpp"
#include "provider/turns.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/flow/sql_provider.hpp>

namespace holdfast::flow {
namespace {

TurnCommit turn_of(const ResetInstance& request) {
    TurnCommit turn;
    turn.instance = request.instance;
    turn.next_token = Uuid::v4();
    turn.leased = false;  // A held lease is lost, as with any change of the token.
    turn.execution = request.execution;
    turn.last_event = request.last_event;
    turn.status = Status::reset;
    turn.next = request.next;
    turn.custom_status = StatusChange{request.custom_status};
    turn.status_changes = 1;
    turn.suspended = false;
    turn.kv = request.kv;
    turn.attributes = request.attributes;
    turn.activities = request.activities;
    turn.messages = request.messages;
    return turn;
}

}  // namespace

bool SqlProvider::reset(const ResetInstance& request) {
    TurnCommit turn = turn_of(request);
    const auto write = [&](sql::Tx& tx) {
        const auto locked = lock_instance(tx, request.instance);
        if (!locked) {
            throw Error(Code::not_found,
                        Outcome::not_applied,
                        fmt::format("there is no workflow '{}'; check its id", request.instance));
        }
        const sql::Rows rows = tx.query(statements::current_execution, request.instance);
        const sql::Row current = rows[0];
        if (current.get<ExecutionId>(0) != request.execution ||
            current.get<EventId>(4) != request.last_event) {
            // Unless it was this call, and the answer was lost.
            const sql::Rows writer = tx.query(statements::who_wrote,
                                              request.instance,
                                              int64(request.next.execution),
                                              int64(request.next.events.front().id));
            return !writer.empty() && writer[0].get<Uuid>(0) == turn.next_token;
        }
        turn.token = locked->token;
        turn.output = current.get<std::optional<std::string>>(3).value_or("");
        tx.exec(statements::open_mailbox, request.instance);  // It has none if it had ended.
        tx.exec(statements::drop_activities, request.instance);
        tx.exec(statements::reset_kv, request.instance);
        tx.exec(statements::bury_kv, request.instance);
        (void)TurnBatch({&turn}).write(tx);
        wake(tx, wake_workflows);
        wake(tx, wake_activities);
        return true;
    };
    for (int broken = 0;; ++broken) {
        try {
            return db_.transact("ResetInstance", writing(), write);
        } catch (const TurnRefused&) {
            return false;
        } catch (const Error& error) {
            if (!connection_broke(error) || broken == broken_connections_max) {
                throw;
            }
        }
    }
}

}  // namespace holdfast::flow
