// Property 4 of docs/conformance/properties.md: of several changes of one thing from the same
// state, one succeeds.
#include <atomic>
#include <regex>
#include <set>

#include "chosen.hpp"
#include "execution/test/run_fixture.hpp"
#include <rapidcheck.h>

#include <holdfast/base/metrics.hpp>
#include <holdfast/store/cluster.hpp>
#include <holdfast/store/namespace.hpp>
#include <holdfast/store/task_queue.hpp>

namespace holdfast::store::tests {
namespace {

enum class Prize : std::uint8_t { shard, run, task_queue, cluster, user_data, ns };
constexpr int prizes = 6;

// A new row of every kind. All rivals have seen it as it is at first.
class Contest {
public:
    Contest(sql::Database& db, int number) : db_(db), number_(number) {}

    void prepare(Prize prize) {
        switch (prize) {
            case Prize::shard:
            case Prize::run:
                (void)shards_.get_or_create(
                    {.id = lease_.shard, .range = lease_.range, .info = {}});
                if (prize == Prize::run) {
                    executions_.create({.lease = lease_, .snapshot = run_});
                }
                return;
            case Prize::task_queue:
                return queues_.create(queue_, {.range = RangeId{1}, .info = {}});
            case Prize::ns:
                namespaces_.create({.id = ns_, .name = name_, .info = {}});
                seen_ = namespaces_.notification_version();
                return;
            case Prize::cluster:  // Rivals create it.
            case Prize::user_data:
                return;
        }
    }
    void take(Prize prize, const std::string& by) {
        switch (prize) {
            case Prize::shard:
                return shards_.update({.id = lease_.shard, .range = RangeId{2}, .info = blob(by)},
                                      lease_.range);
            case Prize::run: {
                Mutation change = RunStory::mutation(run_);
                change.info = blob(by);
                change.buffered = blob(by);
                return executions_.update({.lease = lease_, .mutation = change});
            }
            case Prize::task_queue:
                return queues_.update(queue_, {.range = RangeId{2}, .info = blob(by)}, RangeId{1});
            case Prize::cluster:
                return cluster_.save(name_, {.blob = blob(by), .version = 0});
            case Prize::user_data:
                return user_data_.update(ns_,
                                         {{name_, {.data = {.blob = blob(by), .version = 0}}}});
            case Prize::ns:
                return namespaces_.update(
                    {.id = ns_, .name = name_, .info = blob(by), .notification_version = seen_});
        }
    }
    // Who is written in the row.
    [[nodiscard]] Blob holder(Prize prize) const {
        switch (prize) {
            case Prize::shard:
                return shards_.find(lease_.shard).value().info;
            case Prize::run: {
                const Execution found =
                    executions_.find(lease_.shard, run_.workflow, run_.current.run).value();
                RC_ASSERT(found.buffered == std::vector{found.info});
                return found.info;
            }
            case Prize::task_queue:
                return queues_.find(queue_).value().info;
            case Prize::cluster:
                return cluster_.find(name_).value().blob;
            case Prize::user_data:
                return user_data_.find(ns_, name_).value().blob;
            case Prize::ns:
                return namespaces_.find(ns_).value().info;
        }
        return {};
    }

private:
    sql::Database& db_;
    int number_;
    Shards shards_{db_};
    Executions executions_{shards_};
    TaskQueues queues_{db_};
    TaskQueueUserData user_data_{db_};
    Cluster cluster_{db_};
    Namespaces namespaces_{db_};
    const NamespaceId ns_ = NamespaceId::random();
    const std::string name_ = "prize-" + std::to_string(number_);
    const ShardLease lease_{.shard = ShardId{number_}, .range = RangeId{1}};
    const TaskQueueKey queue_{.ns = ns_, .name = name_};
    const Snapshot run_ = RunStory::snapshot({.ns = ns_, .workflow_id = name_}, RunId::random());
    std::int64_t seen_ = 0;
};

class Property4 : public testing::TestWithParam<test::Backend> {};

TEST_P(Property4, ConcurrencySafety) {
    HOLDFAST_CHECK("Property 4");
    const MigratedDatabase place{GetParam()};
    Metrics metrics;
    sql::DatabaseOptions options = place.options();
    options.metrics = &metrics;
    sql::Database db{place.url(), options};
    int cases = 0;
    EXPECT_TRUE(rc::check("of all rivals one wins, and the others are told", [&] {
        const Prize prize{static_cast<std::uint8_t>(test::chosen(0, prizes))};
        const int rivals = test::chosen(2, 5);
        Contest contest(db, ++cases);
        contest.prepare(prize);
        std::atomic<int> winners = 0;
        std::atomic<int> winner = 0;
        std::atomic<int> losers = 0;
        std::atomic<int> failures = 0;
        all_at_once(rivals, [&](int i) {
            try {
                contest.take(prize, std::to_string(i));
                ++winners;
                winner = i;
            } catch (const ConditionFailed& error) {
                ++(error.outcome() == Outcome::not_applied ? losers : failures);
            } catch (const std::exception&) {
                ++failures;
            }
        });
        RC_ASSERT(winners == 1);
        RC_ASSERT(losers == rivals - 1);
        RC_ASSERT(failures == 0);
        RC_ASSERT(contest.holder(prize) == blob(std::to_string(winner)));
    }));

    // The only errors are that the row had changed, or a conflict, which was retried.
    std::set<std::string> classes;
    const std::string text = metrics.expose();
    const std::regex label("holdfast_sql_tx_errors_total\\{[^}]*error_class=\"([^\"]+)\"");
    for (std::sregex_iterator found(text.begin(), text.end(), label), end; found != end; ++found) {
        classes.insert((*found)[1]);
    }
    classes.erase("retryable");
    classes.erase("duplicate");  // The second creator retries.
    EXPECT_THAT(classes, ElementsAre("condition_failed"));
}

INSTANTIATE_TEST_SUITE_P(Every, Property4, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
