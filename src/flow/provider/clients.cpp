// Calls of clients: start, send, read.
#include "provider/columns.hpp"
#include "provider/deletes.hpp"
#include "provider/mail.hpp"
#include "provider/statements_admin.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/flow/sql_provider.hpp>
#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::flow {

namespace {

// Deletes an instance that is to be replaced, with its children, if it is too large for the
// transaction that replaces it.
void delete_if_large(const Transact& transact, const std::string& instance, int rows_max) {
    std::int64_t rows = 0;
    transact([&](sql::Tx& tx) {
        rows = 0;
        for (const std::string& one : tree_of(tx, instance)) {
            rows += 2 + tx.query(statements::count_rows, one)[0].get<std::int64_t>(0);
        }
    });
    if (rows < rows_max) {
        return;
    }
    try {
        delete_chosen(transact, [&](sql::Tx& tx) { return lock_tree(tx, instance); }, rows_max);
    } catch (const Error& error) {
        if (error.code() != Code::not_found) {  // Deleted meanwhile.
            throw;
        }
    }
}

}  // namespace

Started SqlProvider::start(const StartInstance& request) {
    require_instance_id(request.instance);
    require_name(request.start.name, "the name of a workflow");
    if (request.duplicate == DuplicatePolicy::restart) {
        delete_if_large(
            [&](const std::function<void(sql::Tx&)>& body) {
                db_.transact("RestartInstance", writing(), body);
            },
            request.instance,
            options_.rows_per_delete);
    }
    const Uuid origin = Uuid::v4();
    for (int broken = 0;; ++broken) {
        try {
            const bool choose = broken == 0 && request.token != Uuid{};
            return start_once(request, origin, choose ? request.token : Uuid::v4());
        } catch (const Error& error) {
            if (!connection_broke(error) || broken == broken_connections_max) {
                throw;
            }
        }
    }
}

// A repeat after a lost answer waits for the row that the first call may be about to commit, and
// recognises it by its origin; a token of its own keeps it from sending the start twice.
Started SqlProvider::start_once(const StartInstance& request,
                                const Uuid& origin,
                                const Uuid& token) {
    const StartMessage& start = request.start;
    const std::string body = encode(MessageBody{start});
    const std::int64_t delay_us = std::max<std::int64_t>(micros(request.delay), 0);
    const auto& parent = start.parent;
    const auto create = [&](sql::Tx& tx) {
        sql::Answer created =
            tx.ask(statements::create_instance,
                   request.instance,
                   start.name,
                   start.version,
                   origin,
                   token,
                   delay_us,
                   parent ? std::optional(parent->instance) : std::nullopt,
                   parent ? std::optional(int64(parent->execution)) : std::nullopt,
                   parent ? std::optional(int64(parent->event)) : std::nullopt,
                   start.cron);
        tx.exec(statements::adopt_mailbox, request.instance, token, delay_us);
        tx.exec(statements::add_start, request.instance, token, delay_us, body);
        return !created.rows().empty();
    };
    return db_.transact("StartInstance", writing(), [&](sql::Tx& tx) {
        bool created = create(tx);
        if (!created) {
            const sql::Rows existing = tx.query(statements::find_origin, request.instance);
            if (!existing.empty() && existing[0].get<Uuid>(0) == origin) {
                const auto locked = lock_instance(tx, request.instance);
                return Started{.created = true, .token = locked ? locked->token : token};
            }
            if (request.duplicate == DuplicatePolicy::restart) {
                for (const LockedInstance& old : lock_tree(tx, request.instance)) {
                    delete_instance(tx, old);
                }
                created = create(tx);
            }
        }
        if (created && delay_us == 0 && request.notify) {
            wake(tx, wake_workflows);
        }
        return Started{.created = created, .token = created ? token : Uuid{}};
    });
}

Delivery SqlProvider::send(const OutgoingMessage& message) {
    require_instance_id(message.instance);
    const Letter letter(message.message, message.visible_at_ms);
    return db_.transact("SendMessage", writing(), [&](sql::Tx& tx) {
        sql::Answer announced =
            tx.ask(statements::announce_mail, message.instance, 1, letter.visible_at_us);
        tx.exec(statements::post_message,
                message.instance,
                letter.visible_at_us,
                letter.execution,
                letter.timer,
                letter.body);
        const sql::Rows mailbox = announced.rows();
        if (mailbox.empty()) {
            return deliver(tx, message.instance, {letter}, mailbox);
        }
        if (mailbox[0].get<bool>(1)) {
            return Delivery::early;
        }
        if (letter.cancels) {
            hurry(tx, message.instance);
        }
        if (letter.visible_at_us == 0 && message.notify) {
            wake(tx, wake_workflows);
        }
        return Delivery::delivered;
    });
}

bool SqlProvider::resume(std::string_view instance) {
    return db_.transact("ResumeInstance", writing(), [&](sql::Tx& tx) {
        const auto locked = lock_instance(tx, instance);
        if (!locked) {
            return false;
        }
        tx.fenced(instance_guard(instance, locked->token), statements::resume_instance);
        wake(tx, wake_workflows);
        return true;
    });
}

std::optional<InstanceInfo> SqlProvider::info(std::string_view instance) {
    const sql::Rows rows = db_.run("InstanceInfo", reading(), statements::read_info, instance).rows;
    return rows.empty() ? std::nullopt : std::optional(instance_info(rows[0]));
}

std::optional<Payload> SqlProvider::kv_value(std::string_view instance, std::string_view key) {
    const sql::Rows rows = db_.run("KvValue", reading(), statements::read_kv, instance, key).rows;
    return rows.empty() ? std::nullopt : std::optional(Payload{rows[0].get<std::string>(0)});
}

std::map<std::string, KvEntry> SqlProvider::kv_all(std::string_view instance) {
    std::map<std::string, KvEntry> entries;
    for (const sql::Row row : db_.run("KvAll", reading(), statements::read_all_kv, instance).rows) {
        entries.emplace(row.get<std::string>(0),
                        KvEntry{.value = Payload{row.get<std::string>(1)},
                                .updated = moment(row.get<std::int64_t>(2))});
    }
    return entries;
}

std::optional<Reply> SqlProvider::take_reply(std::string_view request) {
    // A waiting client polls often: only a reply that is there costs a write.
    if (!db_.run("FindReply", reading(), statements::find_reply, request).rows[0].get<bool>(0)) {
        return std::nullopt;
    }
    const sql::Rows rows =
        db_.run("TakeReply", writing(sql::Durability::relaxed), statements::take_reply, request)
            .rows;
    if (rows.empty()) {
        return std::nullopt;
    }
    return Reply{.request = std::string(request),
                 .failed = rows[0].get<bool>(0),
                 .body = rows[0].get<std::string>(1)};
}

}  // namespace holdfast::flow
