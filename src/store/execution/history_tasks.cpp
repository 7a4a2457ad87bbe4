#include <holdfast/store/history_tasks.hpp>

#include <algorithm>

#include "execution/lease.hpp"
#include "execution/statements_tasks.hpp"
#include "execution/task_rows.hpp"
#include "times.hpp"
#include "transaction.hpp"
#include <fmt/core.h>

namespace holdfast::store {
namespace {

// The statements of one table.
struct Table {
    const sql::Statement& insert;
    const sql::Statement& range;
    const sql::Statement& update;
    const sql::Statement& remove;
    const sql::Statement& remove_range;
    bool shared;  // Its key names the category.
};

constexpr Table transfer{statements::insert_transfer_task,
                         statements::range_transfer_task,
                         statements::update_transfer_task,
                         statements::delete_transfer_task,
                         statements::delete_range_transfer_task,
                         false};
constexpr Table timer{statements::insert_timer_task,
                      statements::range_timer_task,
                      statements::update_timer_task,
                      statements::delete_timer_task,
                      statements::delete_range_timer_task,
                      false};
constexpr Table replication{statements::insert_replication_task,
                            statements::range_replication_task,
                            statements::update_replication_task,
                            statements::delete_replication_task,
                            statements::delete_range_replication_task,
                            false};
constexpr Table visibility{statements::insert_visibility_task,
                           statements::range_visibility_task,
                           statements::update_visibility_task,
                           statements::delete_visibility_task,
                           statements::delete_range_visibility_task,
                           false};
constexpr Table immediate{statements::insert_immediate_task,
                          statements::range_immediate_task,
                          statements::update_immediate_task,
                          statements::delete_immediate_task,
                          statements::delete_range_immediate_task,
                          true};
constexpr Table scheduled{statements::insert_scheduled_task,
                          statements::range_scheduled_task,
                          statements::update_scheduled_task,
                          statements::delete_scheduled_task,
                          statements::delete_range_scheduled_task,
                          true};

const Table& table_of(Category category) {
    switch (category) {
        case Category::transfer:
            return transfer;
        case Category::timer:
            return timer;
        case Category::replication:
            return replication;
        case Category::visibility:
            return visibility;
        case Category::outbound:
            return immediate;
        case Category::archival:
        case Category::memory_timer:
            return scheduled;
    }
    throw InvalidArgument(
        fmt::format("there is no category {} of tasks", static_cast<std::int32_t>(category)));
}

// Calls `use(prefix of the key..., args...)`.
template <class Use, class... A>
auto with_prefix(
    const Table& table, ShardId shard, Category category, const Use& use, const A&... args) {
    if (table.shared) {
        return use(number(shard), static_cast<std::int32_t>(category), args...);
    }
    return use(number(shard), args...);
}

// Beyond these there are no tasks: a range may begin or end anywhere, say at the first of all
// times.
sql::Timestamp within(sql::Timestamp fire) {
    return std::clamp(fire, earliest, latest);
}

// The same for a key: scheduled tasks have a time before their id.
template <class Use, class... A>
auto with_key(const Table& table,
              ShardId shard,
              Category category,
              const TaskKey& key,
              const Use& use,
              const A&... args) {
    if (is_scheduled(category)) {
        return with_prefix(table, shard, category, use, within(key.fire), key.id, args...);
    }
    return with_prefix(table, shard, category, use, key.id, args...);
}

// The first place behind a key.
TaskKey after(TaskKey key, bool timed) {
    if (key.id < std::numeric_limits<std::int64_t>::max()) {
        ++key.id;
    } else if (timed) {
        key = {.fire = key.fire + std::chrono::microseconds{1},
               .id = std::numeric_limits<std::int64_t>::min()};
    }
    return key;
}

TaskPage to_page(const sql::Rows& rows, bool timed, std::int64_t page_size, const TaskKey& max) {
    TaskPage page;
    page.tasks.reserve(rows.size());
    for (const sql::Row row : rows) {
        const std::size_t id = timed ? 1 : 0;
        Task task{.key = {.fire = timed ? row.get<sql::Timestamp>(0) : sql::Timestamp{},
                          .id = row.get<std::int64_t>(id)},
                  .blob = {.data = row.get<sql::Bytes>(id + 1),
                           .encoding = row.get<std::string>(id + 2)}};
        page.tasks.push_back(std::move(task));
    }
    if (std::ssize(page.tasks) == page_size) {
        const TaskKey next = after(page.tasks.back().key, timed);
        if (timed ? next.fire < max.fire : next.id < max.id) {
            page.next = next;
        }
    }
    return page;
}

void require_source(const std::string& cluster) {
    require_name("the source cluster's name", cluster, name_bytes_max);
}

}  // namespace

void insert_tasks(sql::Tx& tx, ShardId shard, const Tasks& tasks) {
    for (const auto& [category, of_category] : tasks) {
        const Table& table = table_of(category);
        for (const Task& task : of_category) {
            if (is_scheduled(category)) {
                require_time("the time of a task", task.key.fire);
            }
            require_blob(tx.dialect(), task.blob);
            with_key(
                table,
                shard,
                category,
                task.key,
                [&](const auto&... args) { tx.exec(table.insert, args...); },
                task.blob.data,
                task.blob.encoding);
        }
    }
}

void change_tasks(sql::Tx& tx, ShardId shard, std::span<const TaskChange> done) {
    for (const TaskChange& change : done) {
        const Table& table = table_of(change.category);
        if (change.rewritten) {
            require_blob(tx.dialect(), *change.rewritten);
            with_key(
                table,
                shard,
                change.category,
                change.key,
                [&](const auto&... args) { tx.exec(table.update, args...); },
                change.rewritten->data,
                change.rewritten->encoding);
        } else {
            with_key(table, shard, change.category, change.key, [&](const auto&... args) {
                tx.exec(table.remove, args...);
            });
        }
    }
}

void HistoryTasks::add(const ShardLease& lease, const Tasks& tasks, const Call& call) {
    const auto body = [&](sql::Tx& tx, LeaseProof& proof) {
        proof.require();  // A lost lease is told before a key that the new owner has taken.
        insert_tasks(tx, lease.shard, tasks);
    };
    transact_under(shards_, lease, operation::add_tasks, call, body);
}

TaskPage HistoryTasks::read(ShardId shard,
                            Category category,
                            const TaskRange& range,
                            std::int64_t page_size,
                            const Call& call) const {
    const Table& table = table_of(category);
    const bool timed = is_scheduled(category);
    const auto read = [&](const auto&... args) {
        return run(shards_.database(), operation::get_tasks, call, table.range, args...).rows;
    };
    (void)require_page_size(page_size);
    const sql::Rows rows =
        timed ? with_key(table, shard, category, range.min, read, within(range.max.fire), page_size)
              : with_key(table, shard, category, range.min, read, range.max.id, page_size);
    return to_page(rows, timed, page_size, range.max);
}

void HistoryTasks::complete(const ShardLease& lease,
                            Category category,
                            const TaskKey& key,
                            const Call& call) {
    complete(lease, category, std::span(&key, 1), call);
}

void HistoryTasks::complete(const ShardLease& lease,
                            Category category,
                            std::span<const TaskKey> keys,
                            const Call& call) {
    if (keys.size() > completed_at_once_max) {
        throw InvalidPersistenceRequest(
            fmt::format("{} tasks cannot be completed at once; give {} at most",
                        keys.size(),
                        completed_at_once_max));
    }
    const Table& table = table_of(category);
    const auto body = [&](sql::Tx& tx, LeaseProof&) {
        for (const TaskKey& key : keys) {
            with_key(table, lease.shard, category, key, [&](const auto&... args) {
                tx.exec(table.remove, args...);
            });
        }
    };
    transact_under(shards_, lease, operation::complete_task, call, body);
}

std::int64_t HistoryTasks::complete_range(const ShardLease& lease,
                                          Category category,
                                          const TaskRange& range,
                                          const Call& call) {
    const Table& table = table_of(category);
    const auto chunk = [&](const auto&... args) {
        const auto body = [&](sql::Tx& tx, LeaseProof&) {
            return tx.count(table.remove_range, args...);
        };
        return transact_under(shards_, lease, operation::complete_tasks, call, body);
    };
    return in_chunks([&] {
        if (is_scheduled(category)) {
            return with_prefix(table,
                               lease.shard,
                               category,
                               chunk,
                               within(range.min.fire),
                               within(range.max.fire),
                               chunk_rows);
        }
        return with_prefix(
            table, lease.shard, category, chunk, range.min.id, range.max.id, chunk_rows);
    });
}

void HistoryTasks::put_to_dlq(const ShardLease& lease,
                              const std::string& source_cluster,
                              const Task& task,
                              const Call& call) {
    require_source(source_cluster);
    require_blob(shards_.database().dialect(), task.blob);
    const auto body = [&](sql::Tx& tx, LeaseProof&) {
        tx.exec(statements::insert_dlq_task_once,
                source_cluster,
                number(lease.shard),
                task.key.id,
                task.blob.data,
                task.blob.encoding);
    };
    transact_under(shards_, lease, operation::put_dlq_task, call, body);
}

TaskPage HistoryTasks::read_dlq(ShardId shard,
                                const std::string& source_cluster,
                                const TaskRange& range,
                                std::int64_t page_size,
                                const Call& call) const {
    require_source(source_cluster);
    const sql::Result found = run(shards_.database(),
                                  operation::get_dlq_tasks,
                                  call,
                                  statements::range_dlq_task,
                                  source_cluster,
                                  number(shard),
                                  range.min.id,
                                  range.max.id,
                                  require_page_size(page_size));
    return to_page(found.rows, false, page_size, range.max);
}

void HistoryTasks::delete_from_dlq(const ShardLease& lease,
                                   const std::string& source_cluster,
                                   std::int64_t task_id,
                                   const Call& call) {
    require_source(source_cluster);
    const auto body = [&](sql::Tx& tx, LeaseProof&) {
        tx.exec(statements::delete_dlq_task, source_cluster, number(lease.shard), task_id);
    };
    transact_under(shards_, lease, operation::delete_dlq_task, call, body);
}

std::int64_t HistoryTasks::delete_range_from_dlq(const ShardLease& lease,
                                                 const std::string& source_cluster,
                                                 const TaskRange& range,
                                                 const Call& call) {
    require_source(source_cluster);
    const auto body = [&](sql::Tx& tx, LeaseProof&) {
        return tx.count(statements::delete_range_dlq_task,
                        source_cluster,
                        number(lease.shard),
                        range.min.id,
                        range.max.id,
                        chunk_rows);
    };
    return in_chunks(
        [&] { return transact_under(shards_, lease, operation::delete_dlq_tasks, call, body); });
}

bool HistoryTasks::is_dlq_empty(ShardId shard,
                                const std::string& source_cluster,
                                std::int64_t min,
                                const Call& call) const {
    const TaskRange rest{.min = {.fire = {}, .id = min},
                         .max = {.fire = {}, .id = std::numeric_limits<std::int64_t>::max()}};
    return read_dlq(shard, source_cluster, rest, 1, call).tasks.empty();
}

}  // namespace holdfast::store
