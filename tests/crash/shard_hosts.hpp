// Hosts of a service that take a shard from each other and write for it, and the oracle that knows
// whether a former owner was ever heard.
//
// Ids of tasks come from the owner's range, as a service gives them. A new owner counts the
// tasks of the ranges before its own: nothing may be added to them any more.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <holdfast/sql/database.hpp>
#include <holdfast/store/execution.hpp>
#include <holdfast/store/history_tasks.hpp>
#include <holdfast/store/shard.hpp>
#include <holdfast/testing/crash.hpp>
#include <holdfast/testing/database.hpp>

namespace holdfast::chaos {

inline constexpr store::ShardId shard{7};
inline constexpr std::int64_t ids_per_range = 1'000;
inline constexpr std::int64_t everything = 100'000;  // Of one page.

// How often something happens in every run, and how often in a long one.
inline int times(int in_every_run, int in_a_long_run) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment never changes.
    const bool is_long = std::getenv("HOLDFAST_SOAK") != nullptr;
    return is_long ? in_a_long_run : in_every_run;
}

// What a host learns. The implementation says what becomes of it.
class Chronicle {
public:
    virtual ~Chronicle() = default;
    // The shard is ours under `range`, and `before` tasks are there from earlier ranges.
    virtual void taken(std::int64_t range, std::int64_t before) = 0;
    virtual void acknowledged(std::int64_t task) = 0;
    virtual void refused(std::int64_t task) = 0;  // Said to be not applied.
};

class Host {
public:
    Host(sql::Database& db, Chronicle& chronicle) : shards_(db), chronicle_(chronicle) {}

    // Takes the shard from its owner and writes for it, `writes` times or until it is taken away.
    // Errors of the database pass through, and then the host owns nothing.
    void own(int writes) {
        store::Shard found =
            shards_.get_or_create({.id = shard, .range = store::RangeId{1}, .info = {}});
        const store::RangeId previous = found.range;
        const std::int64_t range = static_cast<std::int64_t>(previous) + 1;
        found.range = store::RangeId{range};
        try {
            shards_.update(found, previous);
            chronicle_.taken(range, tasks_before(range * ids_per_range));
            for (int i = 1; i <= writes; ++i) {
                write({.shard = shard, .range = found.range}, range * ids_per_range + i);
            }
        } catch (const store::ShardOwnershipLost&) {  // NOLINT(bugprone-empty-catch)
            // It has a new owner, who writes on.
        }
    }

private:
    [[nodiscard]] std::int64_t tasks_before(std::int64_t id) const {
        return std::ssize(tasks_
                              .read(shard,
                                    store::Category::transfer,
                                    {.min = {}, .max = {.fire = {}, .id = id}},
                                    everything)
                              .tasks);
    }

    // By turns a task alone, which has no fence but the shard's, and a run with its task.
    void write(const store::ShardLease& lease, std::int64_t id) {
        const store::Tasks tasks{{store::Category::transfer, {{.key = {.fire = {}, .id = id}}}}};
        try {
            if (id % 2 == 0) {
                tasks_.add(lease, tasks);
            } else {
                store::Snapshot run;
                run.workflow = {.ns = {}, .workflow_id = std::to_string(id)};
                run.current.run = store::RunId::random();
                run.record = {.next_event_id = 2, .db_record_version = 1};
                run.tasks = tasks;
                executions_.create({.lease = lease, .snapshot = run});
            }
        } catch (const Error& error) {
            if (error.outcome() == Outcome::not_applied) {
                chronicle_.refused(id);
            }
            throw;
        }
        chronicle_.acknowledged(id);
    }

    store::Shards shards_;
    store::Executions executions_{shards_};
    store::HistoryTasks tasks_{shards_};
    Chronicle& chronicle_;
};

// Errors that a host expects: the database is away, the outcome is unknown, a dead host holds a
// lock, or, where locks do not wait, others were always faster.
inline bool is_expected(const Error& error) {
    return error.outcome() == Outcome::unknown || error.code() == Code::unavailable ||
           error.code() == Code::deadline || error.code() == Code::exhausted ||
           error.code() == Code::conflict;
}

// What all hosts learned together.
struct Story {
    std::map<std::int64_t, std::int64_t> before;  // By range: what its owner found.
    std::vector<std::int64_t> acknowledged;
    std::vector<std::int64_t> refused;
};

inline void expect_no_former_owner_was_heard(const Story& story, const test::Database& db) {
    std::vector<std::int64_t> found;
    for (const auto& row : db.look("SELECT task_id FROM transfer_tasks ORDER BY task_id")) {
        found.push_back(std::stoll(row.at(0).value_or("")));
    }
    EXPECT_EQ(test::check_statements(story.acknowledged, found), test::Verdict{});
    EXPECT_EQ(test::check_statements(story.refused, found).lost.size(), story.refused.size())
        << "something that was said to be not applied is there";
    for (const auto& [range, before] : story.before) {
        EXPECT_EQ(std::ranges::lower_bound(found, range * ids_per_range) - found.begin(), before)
            << "a former owner has written after range " << range << " was taken";
    }
    // In one query, because writes of a killed host may still be on their way.
    EXPECT_EQ(db.number("SELECT (SELECT count(*) FROM executions) - "
                        "(SELECT count(*) FROM transfer_tasks WHERE task_id % 2 <> 0)"),
              0)
        << "a run is there with its task, or neither is";
    EXPECT_GT(story.before.size(), 1U) << "or nothing was tested";
}

}  // namespace holdfast::chaos
