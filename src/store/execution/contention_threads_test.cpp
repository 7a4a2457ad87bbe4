// Many who want one row: a shard, a task queue, the namespaces' counter. Of all who want to move a
// fencing token on, one does; the others are told by the error that is made for it. What is tried
// again is a conflict of the database, 40001, and nothing else.
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "test/store_fixture.hpp"

#include <holdfast/base/metrics.hpp>
#include <holdfast/store/namespace.hpp>
#include <holdfast/store/task_queue.hpp>

namespace holdfast::store::tests {
namespace {

constexpr int crowd = 6;
constexpr std::int64_t tokens = 12;  // How often the row changes hands.

class Contention : public testing::TestWithParam<test::Backend> {
public:
    Contention() { sql::schema_apply(*db, schema_part(), {}); }

    // What became of every token, as the rivals were told.
    struct Tally {
        std::map<std::int64_t, int> winners;  // By the token that was given up: how many moved it.
        int lost = 0;
    };

    // Each rival reads the token and tries to move it on, until it has moved often enough.
    // `move(rival, token)` throws Lost if another rival has moved it.
    template <class Lost>
    static Tally contend(const std::function<std::int64_t()>& look,
                         const std::function<void(int, std::int64_t)>& move) {
        std::mutex mutex;
        Tally tally;
        all_at_once(crowd, [&](int rival) {
            try {
                for (std::int64_t token = look(); token < tokens; token = look()) {
                    try {
                        move(rival, token);
                        const std::lock_guard lock(mutex);
                        ++tally.winners[token];
                    } catch (const Lost& lost) {
                        EXPECT_EQ(lost.outcome(), Outcome::not_applied);
                        const std::lock_guard lock(mutex);
                        ++tally.lost;
                    }
                }
            } catch (const std::exception& other) {
                ADD_FAILURE() << "rivals lose by one error only: " << other.what();
            }
        });
        return tally;
    }

    [[nodiscard]] double errors(std::string_view operation, std::string_view error_class) const {
        double all = 0;
        for (const std::string_view outcome : {"not_applied", "unknown"}) {
            all += metrics.value("holdfast_sql_tx_errors_total",
                                 {{"operation", operation},
                                  {"db", "contended"},
                                  {"error_class", error_class},
                                  {"outcome", outcome}});
        }
        return all;
    }
    [[nodiscard]] double retries(std::string_view operation) const {
        double all = 0;
        for (const std::string_view attempt : {"1", "2", "3", "4", "5"}) {
            all += metrics.value(
                "holdfast_sql_tx_retries_total",
                {{"operation", operation}, {"db", "contended"}, {"attempt", attempt}});
        }
        return all;
    }

    // One winner for each token, and the figures say the same as the rivals.
    void expect_one_winner_each(const Tally& tally, std::string_view operation) {
        EXPECT_EQ(tally.winners.size(), static_cast<std::size_t>(tokens));
        for (const auto& [token, winners] : tally.winners) {
            EXPECT_EQ(winners, 1) << "token " << token;
        }
        const Labels labels{{"operation", operation}, {"db", "contended"}};
        EXPECT_EQ(metrics.value("holdfast_sql_tx_latency_seconds", labels),
                  static_cast<double>(tokens) + tally.lost)
            << "every try is one transaction";
        EXPECT_EQ(metrics.value("holdfast_sql_tx_condition_failed_total", labels), tally.lost);
        EXPECT_EQ(metrics.value("holdfast_sql_tx_exhausted_total", labels), 0);
        EXPECT_EQ(retries(operation), errors(operation, "retryable"))
            << "every conflict was tried again, and nothing else was";
        for (const std::string_view other : {"duplicate",
                                             "connection_lost",
                                             "permanent",
                                             "deadline",
                                             "unsupported_feature",
                                             "limit_exceeded"}) {
            EXPECT_EQ(errors(operation, other), 0) << other;
        }
        if (GetParam() != test::Backend::dsql) {
            EXPECT_EQ(retries(operation), 0) << "rivals wait for a lock, and then they see";
        }
    }

    static sql::DatabaseOptions counted(Metrics& metrics) {
        sql::DatabaseOptions options = test::quick_options();
        options.metrics = &metrics;
        options.name = "contended";
        return options;
    }

    Metrics metrics;
    test::Database db{GetParam(), counted(metrics)};
};

// Every rival has shard_mutex of its own, as if it were another process: the database alone
// decides.
TEST_P(Contention, OneShardHasOneOwnerForEachRange) {
    std::vector<std::unique_ptr<Shards>> hosts;
    hosts.reserve(crowd);
    for (int i = 0; i < crowd; ++i) {
        hosts.push_back(std::make_unique<Shards>(*db));
    }
    const ShardId id{7};
    (void)hosts[0]->get_or_create({.id = id, .range = RangeId{0}, .info = {}});
    const Tally tally = contend<ShardOwnershipLost>(
        [&] { return static_cast<std::int64_t>(hosts[0]->find(id).value().range); },
        [&](int rival, std::int64_t token) {
            hosts[static_cast<std::size_t>(rival)]->update(
                {.id = id, .range = RangeId{token + 1}, .info = blob(std::to_string(rival))},
                RangeId{token});
        });
    expect_one_winner_each(tally, "UpdateShard");
    EXPECT_EQ(hosts[0]->find(id).value_or(Shard{}).range, RangeId{tokens});
}

// An owner adds a task under its range, unless it has lost the queue in the meantime: no range has
// tasks of two owners.
TEST_P(Contention, OneTaskQueueHasOneOwnerForEachRange) {
    TaskQueues queues{*db};
    const TaskQueueKey key{.ns = NamespaceId::random(), .name = "orders"};
    queues.create(key, {.range = RangeId{0}, .info = {}});
    std::mutex mutex;
    std::map<std::int64_t, Blob> owners;
    const Tally tally = contend<ConditionFailed>(
        [&] { return static_cast<std::int64_t>(queues.find(key).value().range); },
        [&](int rival, std::int64_t token) {
            const Blob name = blob(std::to_string(rival));
            queues.update(key, {.range = RangeId{token + 1}, .info = name}, RangeId{token});
            {
                const std::lock_guard lock(mutex);
                owners[token + 1] = name;
            }
            try {
                queues.add(key,
                           RangeId{token + 1},
                           {{.place = {.pass = 0, .id = token + 1}, .blob = name}});
            } catch (const ConditionFailed&) {  // NOLINT(bugprone-empty-catch)
                // Another one has taken it already. It was ours all the same.
            }
        });
    expect_one_winner_each(tally, "UpdateTaskQueue");
    for (const QueueTask& task : queues.read(key, {}, 100).tasks) {
        EXPECT_EQ(task.blob, owners.at(task.place.id));
    }
    EXPECT_EQ(errors("CreateTasks", "retryable"), retries("CreateTasks"));
}

TEST_P(Contention, OneNamespaceIsChangedByOneForEachVersion) {
    Namespaces namespaces{*db};
    const Namespace made{.id = NamespaceId::random(), .name = "orders", .info = blob("")};
    namespaces.create(made);
    const std::int64_t base = namespaces.notification_version();
    const Tally tally =
        contend<ConditionFailed>([&] { return namespaces.notification_version() - base; },
                                 [&](int rival, std::int64_t token) {
                                     Namespace changed = made;
                                     changed.info = blob(std::to_string(rival));
                                     changed.notification_version = base + token;
                                     namespaces.update(changed);
                                 });
    expect_one_winner_each(tally, "UpdateNamespace");
    EXPECT_EQ(namespaces.notification_version(), base + tokens);
}

INSTANTIATE_TEST_SUITE_P(Every, Contention, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
