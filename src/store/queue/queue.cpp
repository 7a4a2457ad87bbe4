#include <holdfast/store/queue.hpp>

#include "codec.hpp"
#include "eager.hpp"
#include "queue/statements.hpp"
#include "transaction.hpp"
#include <fmt/core.h>

namespace holdfast::store {
namespace {

using nlohmann::json;

constexpr std::string_view what = "a queue's metadata";

std::map<std::string, std::int64_t> levels_of(const sql::Row& row) {
    const Blob blob{.data = row.get<sql::Bytes>(1), .encoding = row.get<std::string>(2)};
    return decode(blob, what, [](const json& value) {
        return value.at("acks").get<std::map<std::string, std::int64_t>>();
    });
}

Blob encode_levels(const std::map<std::string, std::int64_t>& levels) {
    return to_blob({{"acks", levels}});
}

sql::Row require_queue(const sql::Rows& rows, std::int32_t type) {
    const auto row = rows.single();
    if (!row) {
        throw NotFound(fmt::format("queue {} was not initialised", type));
    }
    return *row;
}

std::int32_t stored_type(QueueType type, Letters letters) {
    const auto value = static_cast<std::int32_t>(type);
    if (value < 1) {
        throw InvalidArgument(fmt::format("there is no type {} of queues; count from 1", value));
    }
    return letters == Letters::live ? value : -value;
}

}  // namespace

Queue::Queue(sql::Database& db, QueueType type, Letters letters)
    : db_(db), type_(stored_type(type, letters)) {}

void Queue::init(const Call& call) {
    const Blob none = encode_levels({});
    (void)run(db_,
              operation::init_queue,
              call,
              statements::insert_queue_metadata,
              type_,
              none.data,
              none.encoding);
}

std::int64_t Queue::enqueue(const Blob& blob, const Call& call) {
    require_blob(db_.dialect(), blob);
    return transact(db_, operation::enqueue, eager(operation::enqueue, call), [&](sql::Tx& tx) {
        sql::Answer locked = tx.ask(statements::lock_queue_metadata, type_);
        sql::Answer inserted = tx.ask(statements::insert_message, type_, blob.data, blob.encoding);
        (void)require_queue(locked.rows(), type_);
        return inserted.rows()[0].get<std::int64_t>(0);
    });
}

std::vector<Message> Queue::read(std::int64_t after,
                                 std::int64_t page_size,
                                 std::int64_t last,
                                 const Call& call) const {
    const sql::Result found = run(db_,
                                  operation::read_queue,
                                  call,
                                  statements::range_messages,
                                  type_,
                                  after,
                                  last,
                                  require_page_size(page_size));
    std::vector<Message> page;
    for (const sql::Row row : found.rows) {
        page.push_back(
            {.id = row.get<std::int64_t>(0),
             .blob = {.data = row.get<sql::Bytes>(1), .encoding = row.get<std::string>(2)}});
    }
    return page;
}

void Queue::remove(std::int64_t id, const Call& call) {
    (void)run(db_, operation::delete_message, call, statements::delete_message, type_, id);
}

std::int64_t Queue::remove_range(std::int64_t after, std::int64_t last, const Call& call) {
    return in_chunks([&] {
        return transact(db_,
                        operation::delete_messages,
                        eager(operation::delete_messages, call),
                        [&](sql::Tx& tx) {
                            sql::Answer locked = tx.ask(statements::lock_queue_metadata, type_);
                            sql::Answer deleted =
                                tx.ask(statements::delete_messages, type_, after, last, chunk_rows);
                            (void)require_queue(locked.rows(), type_);
                            return static_cast<std::int64_t>(deleted.rows().size());
                        });
    });
}

void Queue::acknowledge(const std::string& cluster, std::int64_t level, const Call& call) {
    require_name("the cluster's name", cluster, name_bytes_max);
    transact(db_, operation::update_acks, eager(operation::update_acks, call), [&](sql::Tx& tx) {
        sql::LockedRow locked = tx.ask_locked(
            fmt::format("queue {}", type_), {std::int64_t{type_}}, statements::lock_queue_metadata);
        const sql::Row row = require_queue(locked.rows(), type_);
        std::map<std::string, std::int64_t> levels = levels_of(row);
        const auto [known, is_new] = levels.try_emplace(cluster, level);
        if (!is_new && known->second >= level) {
            return;
        }
        known->second = level;
        const Blob blob = encode_levels(levels);
        tx.fenced(locked.verify({row.get<std::int64_t>(0)}),
                  statements::update_queue_metadata,
                  blob.data,
                  blob.encoding);
    });
}

std::map<std::string, std::int64_t> Queue::ack_levels(const Call& call) const {
    const sql::Rows rows =
        run(db_, operation::get_acks, call, statements::select_queue_metadata, type_).rows;
    return levels_of(require_queue(rows, type_));
}

}  // namespace holdfast::store
