#include "codec.hpp"
#include "eager.hpp"
#include "queue/statements.hpp"
#include "transaction.hpp"
#include <fmt/core.h>

#include <holdfast/sql/error.hpp>
#include <holdfast/store/queue.hpp>

namespace holdfast::store {
namespace {

using nlohmann::json;

std::string describe(const QueueName& queue) {
    return fmt::format("queue \"{}\" of type {}", queue.name, queue.type);
}

void require_queue_name(const QueueName& queue) {
    store::require_name("the queue's name", queue.name, name_bytes_max);
}

// The metadata name the first message that was not deleted, of each partition: there is one.
Blob encode(std::int64_t first) {
    return to_blob({{"partitions", {{"0", {{"first", first}}}}}});
}

std::int64_t first_of(const Blob& blob, const std::string& of) {
    return decode(blob, of, [&](const json& value) {
        const json& partitions = value.at("partitions");
        if (partitions.size() != 1) {
            throw_damaged(of, fmt::format("it has {} partitions, not 1", partitions.size()));
        }
        return partitions.at("0").at("first").get<std::int64_t>();
    });
}

std::int64_t first_in(const sql::Rows& rows, const QueueName& queue) {
    const auto row = rows.single();
    if (!row) {
        throw NotFound(fmt::format("there is no {}", describe(queue)));
    }
    return first_of({.data = row->get<sql::Bytes>(0), .encoding = row->get<std::string>(1)},
                    describe(queue));
}

std::vector<Message> page_of(const sql::Rows& rows,
                             const QueueName& queue,
                             std::int64_t first,
                             std::int64_t page_size) {
    std::vector<Message> page;
    for (const sql::Row row : rows) {
        const auto id = row.get<std::int64_t>(0);
        if (id >= first && std::ssize(page) < page_size) {
            page.push_back(
                {.id = id,
                 .blob = {.data = row.get<sql::Bytes>(1), .encoding = row.get<std::string>(2)}});
            require_encoding(page.back().blob.encoding,
                             fmt::format("message {} of {}", id, describe(queue)));
        }
    }
    return page;
}

}  // namespace

QueueAlreadyExists::QueueAlreadyExists(const QueueName& queue, std::source_location where)
    : Error(Code::already_exists,
            Outcome::not_applied,
            fmt::format("there is a {} already", describe(queue)),
            where) {}

void NamedQueues::create(const QueueName& queue, const Call& call) {
    require_queue_name(queue);
    const Blob fresh = encode(0);
    try {
        (void)run(db_,
                  operation::create_named_queue,
                  call,
                  statements::insert_queue,
                  queue.type,
                  queue.name,
                  fresh.data,
                  fresh.encoding);
    } catch (const sql::DatabaseError& error) {
        if (error.error_class() != sql::ErrorClass::duplicate) {
            throw;
        }
        throw QueueAlreadyExists(queue);
    }
}

std::int64_t NamedQueues::enqueue(const QueueName& queue, const Blob& blob, const Call& call) {
    require_queue_name(queue);
    require_blob(db_.dialect(), blob);
    return transact(
        db_, operation::enqueue_named, eager(operation::enqueue_named, call), [&](sql::Tx& tx) {
            sql::Answer locked = tx.ask(statements::lock_queue, queue.type, queue.name);
            sql::Answer inserted = tx.ask(
                statements::insert_named_message, queue.type, queue.name, blob.data, blob.encoding);
            (void)first_in(locked.rows(), queue);
            return inserted.rows()[0].get<std::int64_t>(0);
        });
}

std::vector<Message> NamedQueues::read(const QueueName& queue,
                                       std::int64_t page_size,
                                       std::optional<std::int64_t> after,
                                       const Call& call) const {
    require_queue_name(queue);
    (void)require_page_size(page_size);
    if (after && (*after < 0 || *after == std::numeric_limits<std::int64_t>::max())) {
        throw InvalidPersistenceRequest(fmt::format("no page ends with message {}", *after));
    }
    const auto ask = [&](sql::Tx& tx, std::int64_t from) {
        return tx.ask(
            statements::range_named_messages, queue.type, queue.name, from, page_size + 1);
    };
    return transact(db_, operation::read_named_queue, call, [&](sql::Tx& tx) {
        sql::Answer metadata = tx.ask(statements::select_queue, queue.type, queue.name);
        sql::Answer messages = ask(tx, after ? *after + 1 : 0);
        const std::int64_t first = first_in(metadata.rows(), queue);
        sql::Rows rows = messages.rows();
        // Of what was deleted, the highest may still be there, for which one more was asked for.
        // There is more of it only while a deletion is under way.
        if (std::ssize(rows) > 1 && rows[1].get<std::int64_t>(0) < first) {
            rows = ask(tx, first).rows();
        }
        return page_of(rows, queue, first, page_size);
    });
}

std::int64_t NamedQueues::remove_up_to(const QueueName& queue,
                                       std::int64_t last,
                                       const Call& call) {
    require_queue_name(queue);
    if (last < 0) {
        throw InvalidPersistenceRequest(
            fmt::format("messages up to {} cannot be deleted; the first message is {}", last, 0));
    }
    struct Span {
        std::int64_t first;
        std::int64_t next;
    };
    const Span deleted = transact(
        db_,
        operation::delete_named_messages,
        eager(operation::delete_named_messages, call),
        [&](sql::Tx& tx) {
            sql::LockedRow locked = tx.ask_locked(
                describe(queue), {std::int64_t{queue.type}, queue.name}, statements::lock_queue);
            sql::Answer highest = tx.ask(statements::last_named_message, queue.type, queue.name);
            const std::int64_t first = first_in(locked.rows(), queue);
            const auto stored_last = highest.rows()[0].get<std::optional<std::int64_t>>(0);
            const std::int64_t next =
                std::max(first, stored_last ? std::min(last, *stored_last) + 1 : 0);
            if (next > first) {
                const Blob blob = encode(next);
                tx.fenced(locked.verify({}), statements::update_queue, blob.data, blob.encoding);
            }
            return Span{.first = first, .next = next};
        });
    // They are not read any more. The highest stays, so that its id is not given again.
    if (deleted.next > deleted.first) {
        in_chunks([&] {
            return run(db_,
                       operation::delete_named_rows,
                       call,
                       statements::delete_named_messages,
                       queue.type,
                       queue.name,
                       deleted.next,
                       chunk_rows)
                .changed;
        });
    }
    return deleted.next - deleted.first;
}

std::vector<ListedQueue> NamedQueues::list(std::int32_t type,
                                           std::int64_t page_size,
                                           const std::string& after,
                                           const Call& call) const {
    const sql::Result found = run(db_,
                                  operation::list_named_queues,
                                  call,
                                  statements::page_of_queues,
                                  type,
                                  after,
                                  require_page_size(page_size));
    std::vector<ListedQueue> page;
    for (const sql::Row row : found.rows) {
        const QueueName queue{.type = type, .name = row.get<std::string>(0)};
        const std::int64_t first = first_of(
            {.data = row.get<sql::Bytes>(1), .encoding = row.get<std::string>(2)}, describe(queue));
        const std::int64_t last = row.get<std::optional<std::int64_t>>(3).value_or(-1);
        page.push_back({.name = queue.name,
                        .messages = std::max<std::int64_t>(0, last - first + 1),
                        .last_id = last});
    }
    return page;
}

}  // namespace holdfast::store
