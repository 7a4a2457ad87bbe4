// Properties 2 and 7 of docs/conformance/properties.md: an update applies whole while its token
// holds, and not at all otherwise; and every transaction is counted as it was.
#include <map>
#include <memory>
#include <sstream>

#include "chosen.hpp"
#include "execution/test/run_fixture.hpp"
#include <rapidcheck.h>

#include <holdfast/base/metrics.hpp>
#include <holdfast/dsql/gateway.hpp>
#include <holdfast/store/cluster.hpp>
#include <holdfast/store/task_queue.hpp>
#include <holdfast/testing/conflicts.hpp>
#include <holdfast/testing/dsql.hpp>

namespace holdfast::store::tests {
namespace {

// ---- Property 2 -------------------------------------------------------------------------------

enum class Kind : std::uint8_t { shard, run, task_queue, cluster, user_data };
constexpr int kinds = 5;

// A row of every kind, with its token as a model: what is believed of it, and what was written.
class Rows {
public:
    Rows(sql::Database& db, int number) : db_(db), number_(number) {
        for (int kind = 0; kind < kinds; ++kind) {
            tokens_[Kind{static_cast<std::uint8_t>(kind)}] = 1;
        }
        (void)shards_.get_or_create({.id = shard(), .range = RangeId{1}, .info = blob("first")});
        executions_.create({.lease = lease(0), .snapshot = run_});
        queues_.create(queue_, {.range = RangeId{1}, .info = blob("first")});
        cluster_.save(name_, {.blob = blob("first"), .version = 0});
        user_data_.update(ns_, {{name_, {.data = {.blob = blob("first"), .version = 0}}}});
    }

    // Writes the row with a token that is off by so much. True if it was applied.
    bool write(Kind kind, std::int64_t off, const std::string& text) {
        const bool applied = attempt([&] { write_row(kind, tokens_[kind] + off, off, text); });
        RC_ASSERT(applied == (off == 0));
        if (applied) {
            ++tokens_[kind];
            texts_[kind] = text;
        }
        return applied;
    }
    // The same for a run whose writer has lost the shard.
    void write_without_lease(std::int64_t off, const std::string& text) {
        Mutation change = next_of_run(text);
        RC_ASSERT(!attempt([&] { executions_.update({.lease = lease(off), .mutation = change}); }));
    }
    // Everything is as the model says, and nothing is half there.
    void compare() const {
        RC_ASSERT(shards_.find(shard()) == (Shard{.id = shard(),
                                                  .range = RangeId{token(Kind::shard)},
                                                  .info = text(Kind::shard)}));
        RC_ASSERT(queues_.find(queue_) == (TaskQueue{.range = RangeId{token(Kind::task_queue)},
                                                     .info = text(Kind::task_queue)}));
        RC_ASSERT(cluster_.find(name_) ==
                  (ClusterMetadata{.blob = text(Kind::cluster), .version = token(Kind::cluster)}));
        RC_ASSERT(user_data_.find(ns_, name_) ==
                  (UserData{.blob = text(Kind::user_data), .version = token(Kind::user_data)}));
        RC_ASSERT(std::ssize(user_data_.queues_of_build(ns_, "build")) ==
                  (token(Kind::user_data) > 1 ? 1 : 0));

        // A write of the run has parts in five tables.
        const std::int64_t writes = token(Kind::run) - 1;
        const auto run = executions_.find(shard(), run_.workflow, run_.current.run);
        RC_ASSERT(run.has_value());
        RC_ASSERT(run->record.db_record_version == token(Kind::run));
        RC_ASSERT(std::ssize(run->items.activities) == std::ssize(run_.items.activities) + writes);
        RC_ASSERT(std::ssize(run->buffered) == writes);
        RC_ASSERT((writes == 0 || run->buffered.back() == text(Kind::run)));
        const TaskRange all{.min = {}, .max = {.fire = {}, .id = 1'000'000}};
        RC_ASSERT(std::ssize(tasks_.read(shard(), Category::transfer, all, 100).tasks) == writes);
        RC_ASSERT(executions_.find_current(shard(), run_.workflow).value().last_write_version ==
                  run_.current.last_write_version + writes);
    }

private:
    template <class Work>
    static bool attempt(const Work& work) {
        try {
            work();
            return true;
        } catch (const ConditionFailed& error) {
            RC_ASSERT(error.outcome() == Outcome::not_applied);
            return false;
        }
    }
    void write_row(Kind kind, std::int64_t believed, std::int64_t off, const std::string& text) {
        switch (kind) {
            case Kind::shard:
                return shards_.update(
                    {.id = shard(), .range = RangeId{believed + 1}, .info = blob(text)},
                    RangeId{believed});
            case Kind::run: {
                Mutation change = next_of_run(text);
                change.record.db_record_version += off;
                return executions_.update({.lease = lease(0), .mutation = change});
            }
            case Kind::task_queue:
                return queues_.update(queue_,
                                      {.range = RangeId{believed + 1}, .info = blob(text)},
                                      RangeId{believed});
            case Kind::cluster:
                return cluster_.save(name_, {.blob = blob(text), .version = believed});
            case Kind::user_data:
                return user_data_.update(ns_,
                                         {{name_,
                                           {.data = {.blob = blob(text), .version = believed},
                                            .added_builds = {"build"}}}});
        }
    }
    // One more activity, buffered event and task, and a pointer that says so.
    [[nodiscard]] Mutation next_of_run(const std::string& text) const {
        const std::int64_t writes = token(Kind::run);
        Mutation change = RunStory::mutation(run_, writes);
        change.current.last_write_version += writes;
        change.opened = {.activities = {{100 + writes, blob(text)}}};
        change.buffered = blob(text);
        change.tasks[Category::transfer] = {
            {.key = {.fire = {}, .id = writes}, .blob = blob(text)}};
        return change;
    }
    [[nodiscard]] ShardId shard() const { return ShardId{number_}; }
    [[nodiscard]] ShardLease lease(std::int64_t off) const {
        return {.shard = shard(), .range = RangeId{token(Kind::shard) + off}};
    }
    [[nodiscard]] std::int64_t token(Kind kind) const { return tokens_.at(kind); }
    [[nodiscard]] Blob text(Kind kind) const {
        const auto found = texts_.find(kind);
        return blob(found == texts_.end() ? "first" : found->second);
    }

    sql::Database& db_;
    int number_;
    Shards shards_{db_};
    Executions executions_{shards_};
    HistoryTasks tasks_{shards_};
    TaskQueues queues_{db_};
    TaskQueueUserData user_data_{db_};
    Cluster cluster_{db_};
    const NamespaceId ns_ = NamespaceId::random();
    const std::string name_ = "row-" + std::to_string(number_);
    const TaskQueueKey queue_{.ns = ns_, .name = name_};
    const Snapshot run_ =
        RunStory::snapshot({.ns = ns_, .workflow_id = "order"}, RunId::random(), 1);
    std::map<Kind, std::int64_t> tokens_;
    std::map<Kind, std::string> texts_;
};

class Property2 : public testing::TestWithParam<test::Backend> {};

TEST_P(Property2, ConditionalUpdateAtomicity) {
    HOLDFAST_CHECK("Property 2");
    MigratedDatabase db{GetParam()};
    int cases = 0;
    EXPECT_TRUE(rc::check("a write applies whole while its token holds, else not at all", [&] {
        Rows rows(db, ++cases);
        const int writes = test::chosen(1, 6);
        for (int i = 0; i < writes; ++i) {
            const Kind kind{static_cast<std::uint8_t>(test::chosen(0, kinds))};
            const std::int64_t off = *rc::gen::element(0, 0, -1, 1);
            const std::string text = "write-" + std::to_string(i);
            if (kind == Kind::run && *rc::gen::arbitrary<bool>()) {
                rows.write_without_lease(*rc::gen::element(-1, 1), text);
            }
            rows.write(kind, off, text);
        }
        rows.compare();
    }));
}

INSTANTIATE_TEST_SUITE_P(Every, Property2, test::every_backend(), test::backend_name);

// ---- Property 7 -------------------------------------------------------------------------------

// What is counted of one operation.
struct Counts {
    double transactions = 0;
    double latencies = 0;
    double attempts = 0;
    double conflicts = 0;
    double retries = 0;
    double pauses = 0;
    double conditions = 0;
    double exhausted = 0;

    friend bool operator==(const Counts&, const Counts&) = default;
};

std::ostream& operator<<(std::ostream& out, const Counts& counts) {
    return out << counts.transactions << " transactions, " << counts.latencies << " latencies, "
               << counts.attempts << " attempts, " << counts.conflicts << " conflicts, "
               << counts.retries << " retries, " << counts.pauses << " pauses, "
               << counts.conditions << " conditions, " << counts.exhausted << " exhausted";
}

// The sum of all series of a metric that belong to the operation. A line is `metric{labels} value`.
double sum_of(const std::string& exposed, const std::string& metric, const std::string& operation) {
    const std::string label = "operation=\"" + operation + "\"";
    double sum = 0;
    std::istringstream lines(exposed);
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with(metric + "{") && line.find(label) < line.find('}')) {
            sum += std::stod(line.substr(line.rfind(' ')));
        }
    }
    return sum;
}

// A database that meets conflicts when it is told to, as far as its kind meets any.
class Watched {
public:
    explicit Watched(test::Backend backend) : place_(backend) {
        if (backend == test::Backend::postgres) {
            test::refuse_commits(place_, 2, "cluster_metadata");
        }
        sql::DatabaseOptions options = place_.options();
        options.metrics = &metrics_;
        options.retry.max_retries = retries_max;
        db_ = std::make_unique<sql::Database>(place_.url(), options);
        cluster_ = std::make_unique<Cluster>(*db_);
        (void)Shards(*db_).get_or_create({.id = shard, .range = RangeId{1}, .info = {}});
    }
    ~Watched() {
        if (place_.backend() == test::Backend::dsql) {
            test::shared_gateway().disarm();
        }
    }
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;

    static constexpr int retries_max = 3;
    static constexpr ShardId shard{1};

    // How many conflicts the next write of a cluster meets, if it may meet so many.
    int arrange(int wanted) {
        switch (place_.backend()) {
            case test::Backend::sqlite:
                return 0;  // Writers wait for each other.
            case test::Backend::postgres:
                return 1;  // Every first attempt.
            case test::Backend::dsql:
                break;
        }
        if (wanted > 0) {
            test::shared_gateway().arm({.point = dsql::FaultPoint::commit,
                                        .fault = dsql::GatewayFault::data_conflict,
                                        .nth = 1,
                                        .times = wanted,
                                        .cluster = place_.name()});
        }
        return wanted;
    }
    // The cluster is written with the right version, or with a wrong one.
    void save(bool knows, int wanted) {
        Counts& expected = expected_["SaveClusterMetadata"];
        expected.transactions += 1;
        expected.latencies += 1;
        if (!knows) {
            expected.attempts += 1;
            expected.conditions += 1;
            RC_ASSERT_THROWS_AS(cluster_->save("east", {.blob = {}, .version = version_ + 1}),
                                ConditionFailed);
            return;
        }
        const int conflicts = arrange(wanted);
        const int repeated = std::min(conflicts, retries_max);
        expected.attempts += repeated + 1;
        expected.conflicts += repeated;
        expected.retries += repeated;
        expected.pauses += repeated;
        if (conflicts > retries_max) {
            expected.exhausted += 1;
            RC_ASSERT_THROWS_AS(cluster_->save("east", {.blob = blob("e"), .version = version_}),
                                sql::Exhausted);
            return;
        }
        cluster_->save("east", {.blob = blob("e"), .version = version_});
        ++version_;
    }
    void read() {
        RC_ASSERT(cluster_->find("east").has_value() == (version_ > 0));
        Counts& expected = expected_["GetClusterMetadata"];
        expected.transactions += 1;
        expected.latencies += 1;
        expected.attempts += 1;
    }
    void compare() {
        const std::string exposed = metrics_.expose();
        for (const auto& [operation, expected] : expected_) {
            const auto sum = [&, &of = operation](const std::string& metric) {
                return sum_of(exposed, "holdfast_sql_tx_" + metric, of);
            };
            const Counts found{.transactions = sum("attempts_count"),
                               .latencies = sum("latency_seconds_count"),
                               .attempts = sum("attempts_sum"),
                               .conflicts = sum("conflicts_total"),
                               .retries = sum("retries_total"),
                               .pauses = sum("backoff_seconds_count"),
                               .conditions = sum("condition_failed_total"),
                               .exhausted = sum("exhausted_total")};
            RC_ASSERT(found == expected);
            RC_ASSERT(sum("active") == 0.0);
            RC_ASSERT(sum("unsupported_total") == 0.0);
            RC_ASSERT((found.latencies == 0.0 || sum("latency_seconds_sum") > 0.0));
        }
    }

private:
    MigratedDatabase place_;
    Metrics metrics_;
    std::unique_ptr<sql::Database> db_;
    std::unique_ptr<Cluster> cluster_;
    std::int64_t version_ = 0;
    std::map<std::string, Counts> expected_;
};

class Property7 : public testing::TestWithParam<test::Backend> {};

TEST_P(Property7, MetricsAndObservability) {
    HOLDFAST_CHECK("Property 7");
    Watched db(GetParam());
    EXPECT_TRUE(rc::check("every transaction, conflict, retry and refusal is counted once", [&] {
        const int calls = test::chosen(1, 6);
        for (int i = 0; i < calls; ++i) {
            if (test::chosen(0, 4) == 0) {
                db.read();
            } else {
                db.save(test::chosen(0, 3) > 0, test::chosen(0, Watched::retries_max + 2));
            }
        }
        db.compare();
    }));
}

INSTANTIATE_TEST_SUITE_P(Every, Property7, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
