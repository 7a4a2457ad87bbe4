// Processes that want the same rows of the store, and some that die while they have them.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "shard_hosts.hpp"
#include <gtest/gtest.h>

#include <holdfast/base/metrics.hpp>
#include <holdfast/base/random.hpp>
#include <holdfast/sql/schema.hpp>
#include <holdfast/store/catalogue.hpp>
#include <holdfast/store/namespace.hpp>
#include <holdfast/store/task_queue.hpp>
#include <holdfast/testing/backends.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast {
namespace {

using namespace std::chrono_literals;

class StoreProcesses : public testing::TestWithParam<test::Backend> {
protected:
    StoreProcesses() {
        sql::schema_apply(*db, store::schema_part(), {});
        (void)store::Shards(*db).get_or_create({.id = chaos::shard, .range = store::RangeId{1}});
        store::TaskQueues(*db).create(queue, {.range = store::RangeId{1}});
        store::Namespaces(*db).create(ns);
        db.close();
    }

    test::Database db{test::that_forks(GetParam())};
    const store::Namespace ns{.id = store::NamespaceId::random(), .name = "orders"};
    const store::TaskQueueKey queue{.ns = ns.id, .name = "orders"};
};

// ---- All want one row ---------------------------------------------------------------------------

constexpr int rivals = 4;
constexpr std::int64_t tokens = 8;
constexpr std::int64_t kinds =
    3;  // Shard, queue, namespace: what is reported is token * kinds + i.

// Moves a token on until it has moved often enough. A loser gets Lost; any other
// error ends the process, and the test.
template <class Lost, class Look, class Move>
void contend(test::Witness& witness, std::int64_t kind, const Look& look, const Move& move) {
    for (std::int64_t token = look(); token <= tokens; token = look()) {
        try {
            move(token);
            witness.acknowledged(token * kinds + kind);
        } catch (const Lost& lost) {
            if (lost.outcome() != Outcome::not_applied) {
                throw;
            }
        }
    }
}

void contend_for_all(const std::string& url,
                     const store::TaskQueueKey& queue,
                     const store::Namespace& ns,
                     test::Witness& witness) {
    Metrics metrics;
    sql::DatabaseOptions options = test::quick_options();
    options.metrics = &metrics;
    sql::Database own(url, options);
    store::Shards shards(own);
    contend<store::ShardOwnershipLost>(
        witness,
        0,
        [&] { return static_cast<std::int64_t>(shards.find(chaos::shard).value().range); },
        [&](std::int64_t token) {
            shards.update({.id = chaos::shard, .range = store::RangeId{token + 1}},
                          store::RangeId{token});
        });
    store::TaskQueues queues(own);
    contend<store::ConditionFailed>(
        witness,
        1,
        [&] { return static_cast<std::int64_t>(queues.find(queue).value().range); },
        [&](std::int64_t token) {
            queues.update(queue, {.range = store::RangeId{token + 1}}, store::RangeId{token});
        });
    store::Namespaces namespaces(own);
    contend<store::ConditionFailed>(
        witness,
        2,
        [&] { return namespaces.notification_version(); },
        [&](std::int64_t token) {
            store::Namespace changed = ns;
            changed.notification_version = token;
            namespaces.update(changed);
        });
    // What failed was a lost guard or a conflict, and conflicts, and nothing else, were tried again
    // until they were none.
    for (const std::string_view operation : {"UpdateShard", "UpdateTaskQueue", "UpdateNamespace"}) {
        const Labels labels{{"operation", operation}, {"db", own.name()}};
        double retries = 0;
        for (const std::string_view attempt : {"1", "2", "3", "4", "5"}) {
            retries +=
                metrics.value("holdfast_sql_tx_retries_total",
                              {{"operation", operation}, {"db", own.name()}, {"attempt", attempt}});
        }
        if (retries != metrics.value("holdfast_sql_tx_errors_total",
                                     {{"operation", operation},
                                      {"db", own.name()},
                                      {"error_class", "retryable"},
                                      {"outcome", "not_applied"}}) ||
            metrics.value("holdfast_sql_tx_exhausted_total", labels) != 0 ||
            metrics.value("holdfast_sql_tx_unsupported_total", labels) != 0) {
            throw Error(Code::internal, Outcome::unknown, "the figures tell of other errors");
        }
    }
}

TEST_P(StoreProcesses, EveryFencingTokenHasOneWinner) {
    std::vector<std::unique_ptr<test::Victim>> crowd;
    crowd.reserve(rivals);
    for (int i = 0; i < rivals; ++i) {
        crowd.push_back(std::make_unique<test::Victim>(
            [this](test::Witness& witness) { contend_for_all(db.url(), queue, ns, witness); }));
    }
    std::vector<std::int64_t> won;
    for (const auto& rival : crowd) {
        const std::vector<std::int64_t> own = rival->join(Deadline::after(60s));
        won.insert(won.end(), own.begin(), own.end());
    }
    std::ranges::sort(won);
    EXPECT_EQ(std::ranges::adjacent_find(won), won.end()) << "a token was won twice";
    std::map<std::int64_t, std::set<std::int64_t>> by_kind;
    for (const std::int64_t report : won) {
        by_kind[report % kinds].insert(report / kinds);
    }
    std::set<std::int64_t> ranges;
    for (std::int64_t token = 1; token <= tokens; ++token) {
        ranges.insert(token);
    }
    EXPECT_EQ(by_kind[0], ranges) << "every range of the shard had a winner";
    EXPECT_EQ(by_kind[1], ranges) << "and of the queue";
    // To make the namespace was the first change.
    ranges.erase(1);
    EXPECT_EQ(by_kind[2], ranges);
    EXPECT_EQ(db.number("SELECT range_id FROM shards"), tokens + 1);
    EXPECT_EQ(db.number("SELECT range_id FROM task_queues"), tokens + 1);
    EXPECT_EQ(db.number("SELECT notification_version FROM namespace_metadata"), tokens + 1);
}

// ---- Owners that are killed ---------------------------------------------------------------------

// Over the pipe to the test: tasks as they are, and what an owner found as a negative number.
class Telegraph final : public chaos::Chronicle {
public:
    static constexpr std::int64_t factor = 1'000'000;

    explicit Telegraph(test::Witness& witness) : witness_(witness) {}
    void taken(std::int64_t range, std::int64_t before) override {
        witness_.acknowledged(-(range * factor + before));
    }
    void acknowledged(std::int64_t task) override { witness_.acknowledged(task); }
    void refused(std::int64_t) override {}  // Its writer goes on, or ends.

    static void read(const std::vector<std::int64_t>& reports, chaos::Story& story) {
        for (const std::int64_t report : reports) {
            if (report < 0) {
                story.before[-report / factor] = -report % factor;
            } else {
                story.acknowledged.push_back(report);
            }
        }
    }

private:
    test::Witness& witness_;
};

void own_until_killed(const std::string& url, test::Witness& witness) {
    sql::Database own(url, test::quick_options());
    Telegraph telegraph(witness);
    chaos::Host host(own, telegraph);
    for (;;) {
        try {
            host.own(5);
        } catch (const Error& error) {
            if (!chaos::is_expected(error)) {
                throw;
            }
        }
    }
}

TEST_P(StoreProcesses, OwnersThatAreKilledInMidTransactionLeaveNothingHalfDone) {
    const int deaths = chaos::times(3, 60);
    const auto spawn = [this] {
        return std::make_unique<test::Victim>(
            [this](test::Witness& witness) { own_until_killed(db.url(), witness); });
    };
    Random random(1);
    chaos::Story story;
    std::vector<std::unique_ptr<test::Victim>> hosts;
    hosts.push_back(spawn());
    hosts.push_back(spawn());
    for (int death = 0; death < deaths; ++death) {
        // The killed host is in the middle of something, at a random moment.
        auto& unlucky = hosts[random.below(hosts.size())];
        const std::size_t more = unlucky->acknowledged() + 5 + random.below(10);
        Telegraph::read(unlucky->kill_after(more, Deadline::after(60s)), story);
        unlucky = spawn();
    }
    for (const auto& host : hosts) {
        const std::size_t more = host->acknowledged() + 5;
        Telegraph::read(host->kill_after(more, Deadline::after(60s)), story);
    }
    chaos::expect_no_former_owner_was_heard(story, db);
}

INSTANTIATE_TEST_SUITE_P(Every, StoreProcesses, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast
