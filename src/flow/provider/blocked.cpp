// Work that no worker could take: keeping it back for a while, and making it due again.
#include "provider/columns.hpp"
#include "provider/statements.hpp"

#include <holdfast/flow/sql_provider.hpp>

namespace holdfast::flow {
namespace {

constexpr std::size_t retried_per_transaction = 200;

// One page of the rows, in the order of the key.
struct InstancesRetried {
    std::string last{};
    int due = 0;
    bool more = false;
};
struct ActivitiesRetried {
    ActivityKey last{};
    int due = 0;
    bool more = false;
};

InstancesRetried retry_instances(sql::Tx& tx, const RetryBlocked& ask, const std::string& after) {
    InstancesRetried page{.last = after};
    const sql::Rows rows =
        tx.query(statements::find_blocked, after, int64(retried_per_transaction));
    for (const sql::Row row : rows) {
        page.last = row.get<std::string>(0);
        const bool fits = ask.fits(stored_block_kind(row.get<std::string>(4)),
                                   row.get<std::string>(2),
                                   row.get<std::string>(3),
                                   row.get<std::string>(5));
        const sql::Guard guard = instance_guard(page.last, row.get<Uuid>(1));
        if (fits && tx.try_fenced(guard, statements::retry_instance, Uuid::v4())) {
            tx.exec(statements::announce_mail, page.last, 0, 0);
            ++page.due;
        }
    }
    page.more = rows.size() == retried_per_transaction;
    return page;
}

ActivitiesRetried retry_activities(sql::Tx& tx, const RetryBlocked& ask, const ActivityKey& after) {
    ActivitiesRetried page{.last = after};
    const sql::Rows rows = tx.query(statements::find_unserved,
                                    Uuid{},
                                    after.instance,
                                    int64(after.execution),
                                    int64(after.event),
                                    int64(retried_per_transaction));
    for (const sql::Row row : rows) {
        page.last = {row.get<std::string>(0), row.get<ExecutionId>(1), row.get<EventId>(2)};
        if (ask.knows(row.get<std::string>(3))) {
            tx.exec(statements::retry_activity,
                    page.last.instance,
                    int64(page.last.execution),
                    int64(page.last.event),
                    Uuid{});
            ++page.due;
        }
    }
    page.more = rows.size() == retried_per_transaction;
    return page;
}

}  // namespace

bool SqlProvider::block_instance(const BlockInstance& block) {
    const std::vector<Run> runs = runs_of(block.positions);
    const std::int64_t pause_us = std::max<std::int64_t>(micros(block.pause), 0);
    const sql::Guard guard = instance_guard(block.instance, block.token);
    return db_.transact("BlockInstance", writing(sql::Durability::relaxed), [&](sql::Tx& tx) {
        sql::FenceAnswer fence = tx.ask_fenced(guard,
                                               statements::block_instance,
                                               Uuid::v4(),
                                               pause_us / 2,
                                               pause_us,
                                               to_string(block.kind),
                                               block.reason,
                                               block.build);
        if (!fence.held()) {
            return false;
        }
        tx.exec(statements::hold_mailbox, block.instance, pause_us / 2);
        for (const Run& run : runs) {
            tx.exec(statements::delay_messages, block.instance, run.first, run.last, 0, 1);
        }
        return true;
    });
}

int SqlProvider::retry_blocked(const RetryBlocked& ask) {
    int retried = 0;
    if (ask.fits) {
        InstancesRetried page;
        do {
            page = db_.transact("RetryBlocked", writing(), [&](sql::Tx& tx) {
                InstancesRetried next = retry_instances(tx, ask, page.last);
                if (next.due > 0) {
                    wake(tx, wake_workflows);
                }
                return next;
            });
            retried += page.due;
        } while (page.more);
    }
    if (ask.knows) {
        ActivitiesRetried page;
        do {
            page = db_.transact("RetryUnserved", writing(), [&](sql::Tx& tx) {
                ActivitiesRetried next = retry_activities(tx, ask, page.last);
                if (next.due > 0) {
                    wake(tx, wake_activities);
                }
                return next;
            });
            retried += page.due;
        } while (page.more);
    }
    return retried;
}

bool SqlProvider::leave_activity(const ActivityKey& key, const Uuid& token, milliseconds delay) {
    return db_.transact("LeaveActivity", writing(sql::Durability::relaxed), [&](sql::Tx& tx) {
        return tx.count(statements::leave_activity,
                        key.instance,
                        int64(key.execution),
                        int64(key.event),
                        token,
                        Uuid{},
                        micros(delay)) == 1;
    });
}

}  // namespace holdfast::flow
