#include <holdfast/store/task_queue.hpp>

#include "id_digest.hpp"
#include "matching/statements.hpp"
#include "transaction.hpp"
#include <fmt/core.h>

#include <holdfast/sql/error.hpp>

namespace holdfast::store {
namespace {

// The statements of one kind of queue.
struct Tables {
    const sql::Statement& insert;
    const sql::FencedStatement& update;
    const sql::Statement& select;
    const sql::Statement& lock;
    const sql::FencedStatement& remove;
    const sql::Statement& page;
    const sql::Statement& insert_task;
    const sql::Statement& delete_tasks;
};

constexpr Tables plain{statements::insert_task_queue,
                       statements::update_task_queue,
                       statements::select_task_queue,
                       statements::lock_task_queue,
                       statements::delete_task_queue,
                       statements::page_of_task_queues,
                       statements::insert_task,
                       statements::delete_tasks};
constexpr Tables fair{statements::insert_task_queue_v2,
                      statements::update_task_queue_v2,
                      statements::select_task_queue_v2,
                      statements::lock_task_queue_v2,
                      statements::delete_task_queue_v2,
                      statements::page_of_task_queues_v2,
                      statements::insert_task_v2,
                      statements::delete_tasks_v2};

const Tables& tables_of(Fairness fairness) {
    return fairness == Fairness::fair ? fair : plain;
}

std::string name_of(const TaskQueueKey& key) {
    return fmt::format("task queue \"{}\"", key.name);
}

void require_place(Fairness fairness, const TaskPlace& place) {
    if (fairness == Fairness::plain ? place.pass != 0 : place.pass < 1) {
        throw InvalidPersistenceRequest(
            fmt::format("a {} queue has no pass {}; plain ones have pass 0, fair ones count from 1",
                        fairness == Fairness::plain ? "plain" : "fair",
                        place.pass));
    }
}

// Calls `use(key..., place..., args...)`; plain queues have no column for the pass.
template <class Use, class... A>
auto with_place(Fairness fairness,
                const StoredQueueKey& key,
                const TaskPlace& place,
                const Use& use,
                const A&... args) {
    if (fairness == Fairness::fair) {
        return use(key.range_hash, key.digest, place.pass, place.id, args...);
    }
    return use(key.range_hash, key.digest, place.id, args...);
}

// The first place behind this one: of a fair queue the next pass follows the last id.
TaskPlace after(const TaskPlace& place) {
    if (place.id < std::numeric_limits<std::int64_t>::max()) {
        return {.pass = place.pass, .id = place.id + 1};
    }
    return {.pass = place.pass + 1, .id = std::numeric_limits<std::int64_t>::min()};
}

TaskQueue queue_of(const sql::Row& row) {
    return {.range = RangeId{row.get<std::int64_t>(0)},
            .info = {.data = row.get<sql::Bytes>(1), .encoding = row.get<std::string>(2)}};
}

void require_same_queue(const sql::Bytes& found, const sql::Bytes& asked) {
    const auto text = [](const sql::Bytes& id) {
        return std::string_view(reinterpret_cast<const char*>(id.data()), id.size());
    };
    require_same_id("the task queue", text(found), text(asked));
}

// The queue's row, locked and proved.
class QueueProof {
public:
    QueueProof(sql::Tx& tx, const Tables& tables, const TaskQueueKey& key, RangeId expected)
        : name_(name_of(key)),
          id_(stored_key(key).id),
          expected_(number(expected)),
          locked_(ask(tx, tables, key)) {}

    // Returns the guard for a write of the queue's row. Throws ConditionFailed unless the queue has
    // the range, and so keeps all that the transaction has queued from being committed.
    sql::Guard require() {
        const auto row = locked_.rows().single();
        if (!row) {
            throw ConditionFailed(fmt::format("there is no {}", name_));
        }
        require_same_queue(row->get<sql::Bytes>(1), id_);
        const std::int64_t found = row->get<std::int64_t>(0);
        if (found != expected_) {
            throw ConditionFailed(fmt::format(
                "{} is owned under range {}, no longer under {}", name_, found, expected_));
        }
        return locked_.verify({found});
    }

private:
    static sql::LockedRow ask(sql::Tx& tx, const Tables& tables, const TaskQueueKey& key) {
        const StoredQueueKey stored = stored_key(key);
        return tx.ask_locked(name_of(key), {stored.range_hash, stored.digest}, tables.lock);
    }

    std::string name_;
    sql::Bytes id_;
    std::int64_t expected_;
    sql::LockedRow locked_;
};

}  // namespace

void TaskQueues::create(const TaskQueueKey& key, const TaskQueue& queue, const Call& call) {
    const StoredQueueKey stored = stored_key(key);
    require_blob(db_.dialect(), queue.info);
    try {
        (void)run(db_,
                  operation::create_task_queue,
                  call,
                  tables_of(fairness_).insert,
                  stored.range_hash,
                  stored.digest,
                  stored.id,
                  number(queue.range),
                  queue.info.data,
                  queue.info.encoding);
    } catch (const sql::DatabaseError& error) {
        if (error.error_class() != sql::ErrorClass::duplicate) {
            throw;
        }
        throw ConditionFailed(fmt::format("{} is there already", name_of(key)));
    }
}

std::optional<TaskQueue> TaskQueues::find(const TaskQueueKey& key, const Call& call) const {
    const StoredQueueKey stored = stored_key(key);
    const sql::Result found = run(db_,
                                  operation::get_task_queue,
                                  call,
                                  tables_of(fairness_).select,
                                  stored.range_hash,
                                  stored.digest);
    const auto row = found.rows.single();
    if (!row) {
        return std::nullopt;
    }
    require_same_queue(row->get<sql::Bytes>(3), stored.id);
    return queue_of(*row);
}

void TaskQueues::update(const TaskQueueKey& key,
                        const TaskQueue& queue,
                        RangeId previous,
                        const Call& call) {
    require_blob(db_.dialect(), queue.info);
    const Tables& tables = tables_of(fairness_);
    transact(db_, operation::update_task_queue, call, [&](sql::Tx& tx) {
        const sql::Guard guard = QueueProof(tx, tables, key, previous).require();
        tx.fenced(guard, tables.update, number(queue.range), queue.info.data, queue.info.encoding);
    });
}

void TaskQueues::remove(const TaskQueueKey& key, RangeId range, const Call& call) {
    const StoredQueueKey stored = stored_key(key);
    const sql::Guard guard{
        .what = name_of(key), .key = {stored.range_hash, stored.digest}, .tokens = {number(range)}};
    if (!try_run(db_, operation::delete_task_queue, call, guard, tables_of(fairness_).remove)) {
        throw ConditionFailed(
            fmt::format("{} is not there under range {}", name_of(key), number(range)));
    }
}

std::vector<ListedTaskQueue> TaskQueues::list(std::int64_t page_size,
                                              const std::optional<StoredQueueKey>& after,
                                              const Call& call) const {
    const sql::Result found = run(db_,
                                  operation::list_task_queues,
                                  call,
                                  tables_of(fairness_).page,
                                  after ? after->range_hash : -1,
                                  after ? after->digest : Uuid{},
                                  require_page_size(page_size));
    std::vector<ListedTaskQueue> queues;
    for (const sql::Row row : found.rows) {
        queues.push_back({.key = {.range_hash = row.get<std::int64_t>(4),
                                  .digest = row.get<Uuid>(5),
                                  .id = row.get<sql::Bytes>(3)},
                          .queue = queue_of(row)});
    }
    return queues;
}

void TaskQueues::add(const TaskQueueKey& key,
                     RangeId range,
                     const std::vector<QueueTask>& tasks,
                     const Call& call) {
    const StoredQueueKey stored = stored_key(key);
    const Tables& tables = tables_of(fairness_);
    for (const QueueTask& task : tasks) {
        require_place(fairness_, task.place);
        require_blob(db_.dialect(), task.blob);
    }
    transact(db_, operation::add_queue_tasks, call, [&](sql::Tx& tx) {
        (void)QueueProof(tx, tables, key, range).require();
        for (const QueueTask& task : tasks) {
            TaskQueueKey of_task = key;
            of_task.subqueue = task.subqueue;
            with_place(
                fairness_,
                task.subqueue == key.subqueue ? stored : stored_key(of_task),
                task.place,
                [&](const auto&... args) { tx.exec(tables.insert_task, args...); },
                task.blob.data,
                task.blob.encoding);
        }
    });
}

QueueTaskPage TaskQueues::read(const TaskQueueKey& key,
                               const TaskPlace& min,
                               std::int64_t page_size,
                               std::int64_t max_id,
                               const Call& call) const {
    const StoredQueueKey stored = stored_key(key);
    require_place(fairness_, min);
    (void)require_page_size(page_size);
    const bool is_fair = fairness_ == Fairness::fair;
    if (is_fair && max_id != std::numeric_limits<std::int64_t>::max()) {
        throw InvalidPersistenceRequest("a fair queue is read to its end; give no last id");
    }
    const sql::Result found = is_fair ? run(db_,
                                            operation::get_queue_tasks,
                                            call,
                                            statements::range_tasks_v2,
                                            stored.range_hash,
                                            stored.digest,
                                            min.pass,
                                            min.id,
                                            page_size)
                                      : run(db_,
                                            operation::get_queue_tasks,
                                            call,
                                            statements::range_tasks,
                                            stored.range_hash,
                                            stored.digest,
                                            min.id,
                                            max_id,
                                            page_size);
    QueueTaskPage page;
    for (const sql::Row row : found.rows) {
        const std::size_t id = is_fair ? 1 : 0;
        page.tasks.push_back({.place = {.pass = is_fair ? row.get<std::int64_t>(0) : 0,
                                        .id = row.get<std::int64_t>(id)},
                              .blob = {.data = row.get<sql::Bytes>(id + 1),
                                       .encoding = row.get<std::string>(id + 2)},
                              .subqueue = key.subqueue});
    }
    if (std::ssize(page.tasks) == page_size) {
        const TaskPlace next = after(page.tasks.back().place);
        if (is_fair || next.id < max_id) {
            page.next = next;
        }
    }
    return page;
}

std::int64_t TaskQueues::complete_before(const TaskQueueKey& key,
                                         RangeId range,
                                         const TaskPlace& max,
                                         std::int64_t limit,
                                         const Call& call) {
    require_place(fairness_, max);
    const StoredQueueKey stored = stored_key(key);
    const Tables& tables = tables_of(fairness_);
    TaskQueueKey owner = key;
    owner.subqueue = 0;
    return in_chunks(require_page_size(limit), [&](std::int64_t rows) {
        return transact(db_, operation::complete_queue_tasks, call, [&](sql::Tx& tx) {
            QueueProof proof(tx, tables, owner, range);
            const auto remove = [&](const auto&... args) {
                return tx.count(tables.delete_tasks, args...);
            };
            const std::int64_t deleted = with_place(fairness_, stored, max, remove, rows);
            (void)proof.require();  // In the round trip of the deletion.
            return deleted;
        });
    });
}

}  // namespace holdfast::store
