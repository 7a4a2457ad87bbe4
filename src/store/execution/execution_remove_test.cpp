// A run that has more rows than one transaction may change.
#include "execution/test/run_fixture.hpp"

namespace holdfast::store::tests {
namespace {

class LargeRun : public RunStory {
public:
    // Past everything that is tested: no writer could do it in one transaction either.
    void fill(const std::string& table, const std::string& columns, const std::string& values) {
        const bool sqlite = GetParam() == test::Backend::sqlite;
        const std::string numbers =
            sqlite ? "WITH RECURSIVE s (n) AS (SELECT 1000 UNION ALL SELECT n + 1 FROM s "
                     "WHERE n < 4200) "
                   : "WITH s (n) AS (SELECT generate_series(1000, 4200)) ";
        db.execute("INSERT INTO " + table + " (shard_id, namespace_id, workflow_id, run_id, " +
                   columns + ") " + numbers +
                   "SELECT e.shard_id, e.namespace_id, e.workflow_id, e.run_id, " + values +
                   " FROM s, executions e WHERE e.workflow_id = 'large'");
    }
    [[nodiscard]] std::int64_t count(const std::string& table) {
        return db.number("SELECT count(*) FROM " + table);
    }
};

TEST_P(LargeRun, IsDeletedWhole) {
    const Snapshot large = create(workflow("large"));
    const Snapshot small = create(workflow("small"));
    fill("activity_info_maps", "schedule_id, data, data_encoding", "n, e.data, ''");
    fill("signals_requested_sets", "signal_id", "'signal-' || n");
    fill("buffered_events", "id, data, data_encoding", "n, e.data, ''");
    ASSERT_GT(count("activity_info_maps"), 3'000);

    executions.remove(lease.shard, large.workflow, large.current.run);
    EXPECT_EQ(find(large), std::nullopt);
    EXPECT_EQ(find(small), stored(small)) << "nobody else's rows";
    EXPECT_EQ(count("executions"), 1);
    EXPECT_EQ(count("activity_info_maps"), std::ssize(small.items.activities));
    EXPECT_EQ(count("timer_info_maps"), std::ssize(small.items.timers));
    EXPECT_EQ(count("child_execution_info_maps"), std::ssize(small.items.children));
    EXPECT_EQ(count("request_cancel_info_maps"), std::ssize(small.items.request_cancels));
    EXPECT_EQ(count("signal_info_maps"), std::ssize(small.items.signals));
    EXPECT_EQ(count("signals_requested_sets"), std::ssize(small.items.signals_requested));
    EXPECT_EQ(count("chasm_node_maps"), std::ssize(small.items.chasm));
    EXPECT_EQ(count("buffered_events"), 0);
}

// It was interrupted after the run itself was gone: the second call finds the rest.
TEST_P(LargeRun, IsDeletedByASecondCallIfTheFirstWasInterrupted) {
    const Snapshot large = create(workflow("large"));
    fill("activity_info_maps", "schedule_id, data, data_encoding", "n, e.data, ''");
    db.execute("DELETE FROM executions");
    executions.remove(lease.shard, large.workflow, large.current.run);
    EXPECT_EQ(count("activity_info_maps"), 0);
    EXPECT_EQ(count("timer_info_maps"), 0);
}

INSTANTIATE_TEST_SUITE_P(Every, LargeRun, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
