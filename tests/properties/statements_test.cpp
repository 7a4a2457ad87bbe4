// Properties 1 and 8 of docs/conformance/properties.md: whatever the store is asked for, and
// however services start, nothing is sent that Aurora DSQL would refuse. Checked by what
// was really sent.
#include <map>
#include <memory>
#include <regex>
#include <set>

#include "chosen.hpp"
#include "execution/test/run_fixture.hpp"
#include "statement_rules.hpp"
#include <fmt/core.h>
#include <rapidcheck.h>

#include <holdfast/store/cluster.hpp>
#include <holdfast/store/namespace.hpp>
#include <holdfast/store/nexus.hpp>
#include <holdfast/store/queue.hpp>
#include <holdfast/store/task_queue.hpp>
#include <holdfast/store/visibility.hpp>

namespace holdfast::store::tests {
namespace {

// ---- Property 1 -------------------------------------------------------------------------------

// Everything that takes a lock or stands in for one, on a few keys, so that some of it fails.
class Anything {
public:
    explicit Anything(sql::Database& db) : db_(db) {
        queue_.init();
        named_.create(name_);
    }

    static constexpr int kinds = 18;

    // A row that is not as expected is an answer like any other. Nothing else may happen.
    void perform(int kind, int key) {
        try {
            kind < 9 ? perform_run(kind, key) : perform_other(kind, key);
        } catch (const Error& error) {
            RC_ASSERT(error.code() == Code::condition_failed || error.code() == Code::not_found ||
                      error.code() == Code::already_exists);
        }
    }

private:
    void perform_run(int kind, int key) {
        const ShardId shard{key + 1};
        const WorkflowKey workflow{.ns = ns_, .workflow_id = "order-" + std::to_string(key)};
        Shard stored = shards_.get_or_create({.id = shard, .range = RangeId{1}, .info = {}});
        const ShardLease lease{.shard = shard, .range = stored.range};
        Snapshot& run =
            runs_.try_emplace(key, RunStory::snapshot(workflow, RunId::random())).first->second;
        switch (kind) {
            case 0:
                stored.range = RangeId{static_cast<std::int64_t>(stored.range) + 1};
                return shards_.update(stored, lease.range);
            case 1:
                return shards_.update(stored, RangeId{0});
            case 2:
                return executions_.create({.lease = lease, .snapshot = run});
            case 3:
                executions_.update({.lease = lease, .mutation = RunStory::mutation(run)});
                ++run.record.db_record_version;
                return;
            case 4:
                executions_.resolve_conflict(
                    {.lease = lease, .reset = RunStory::next(run, "reset")});
                ++run.record.db_record_version;
                return;
            case 5:
                executions_.set(lease, RunStory::next(run, "set"));
                ++run.record.db_record_version;
                return;
            case 6:
                executions_.remove({.lease = lease, .workflow = workflow, .run = run.current.run});
                executions_.remove_items(lease, workflow, run.current.run);
                executions_.remove_current(lease, workflow, run.current.run);
                runs_.erase(key);
                return;
            case 7:
                tasks_.add(lease,
                           {{Category::timer,
                             {{.key = {.fire = at(1s), .id = ++newest_}, .blob = blob("t")}}}});
                tasks_.complete_range(lease, Category::timer, {.min = {}, .max = {at(2s), 0}});
                return;
            default: {
                const Branch branch = History::new_branch(TreeId::random());
                history_.append(lease,
                                {.branch = branch,
                                 .is_new_branch = true,
                                 .node = {.id = 1, .txn_id = ++newest_, .events = blob("e")}});
                (void)history_.fork(lease, branch, 2, "");
                return history_.remove(lease, branch);
            }
        }
    }
    void perform_other(int kind, int key) {
        const std::string name = "name-" + std::to_string(key);
        const TaskQueueKey queue{.ns = ns_, .name = name};
        switch (kind) {
            case 9:
                return queues_.create(queue, {.range = RangeId{1}, .info = {}});
            case 10:
                return queues_.update(queue, {.range = RangeId{2}, .info = {}}, RangeId{1});
            case 11:
                return queues_.add(queue,
                                   RangeId{2},
                                   {{.place = {.pass = 0, .id = ++newest_}, .blob = blob("t")}});
            case 12:
                return user_data_.update(ns_, {{name, {.data = {.blob = blob("u")}}}});
            case 13:
                return namespaces_.create(
                    {.id = NamespaceId::random(), .name = name, .info = blob("n")});
            case 14:
                return namespaces_.update(
                    {.id = NamespaceId::random(),
                     .name = name,
                     .info = {},
                     .notification_version = namespaces_.notification_version()});
            case 15:
                return cluster_.save(name, {.blob = blob("c"), .version = key});
            case 16:
                return endpoints_.put({.id = EndpointId::random(), .blob = blob("e"), .version = 0},
                                      key);
            default:
                queue_.enqueue(blob("m"));
                queue_.acknowledge(name, key);
                named_.remove_up_to(name_, named_.enqueue(name_, blob("m")));
                visibility_.replace({.ns = ns_,
                                     .run = RunId{ns_.value},
                                     .version = ++newest_,
                                     .workflow_id = name,
                                     .workflow_type = "order"});
                (void)visibility_.list(ns_, "WorkflowType = 'order'", 2);
        }
    }

    sql::Database& db_;
    Shards shards_{db_};
    Executions executions_{shards_};
    HistoryTasks tasks_{shards_};
    History history_{shards_};
    TaskQueues queues_{db_};
    TaskQueueUserData user_data_{db_};
    Namespaces namespaces_{db_};
    Cluster cluster_{db_};
    NexusEndpoints endpoints_{db_};
    Queue queue_{db_, namespace_replication};
    NamedQueues named_{db_};
    Visibility visibility_{db_};
    const QueueName name_{.type = 1, .name = "letters"};
    const NamespaceId ns_ = NamespaceId::random();
    std::map<int, Snapshot> runs_;
    std::int64_t newest_ = 0;
};

class Property1 : public testing::TestWithParam<test::Backend> {};

TEST_P(Property1, DsqlLockingCompatibility) {
    HOLDFAST_CHECK("Property 1");
    test::StatementRules rules(GetParam());
    test::Database db{GetParam()};
    sql::schema_apply(db, schema_part(), {});  // In the check's sight.
    Anything store(db);
    EXPECT_TRUE(rc::check("rows are locked only as the database allows", [&] {
        for (int left = test::chosen(1, 6); left > 0; --left) {
            store.perform(test::chosen(0, Anything::kinds), test::chosen(0, 3));
        }
        RC_ASSERT(rules.complaints().empty());
    }));
    switch (GetParam()) {
        case test::Backend::dsql:
            EXPECT_THAT(rules.locks(), ElementsAre("FOR UPDATE"));
            break;
        case test::Backend::postgres:
            EXPECT_THAT(rules.locks(), ElementsAre("FOR KEY SHARE", "FOR UPDATE"));
            break;
        case test::Backend::sqlite:  // Has no words for a lock: one would be an error of syntax.
            EXPECT_THAT(rules.locks(), IsEmpty());
            break;
    }
}

INSTANTIATE_TEST_SUITE_P(Every, Property1, test::every_backend(), test::backend_name);

// ---- Property 8 -------------------------------------------------------------------------------

// What all hosts of a service start with.
struct Plan {
    int number;  // Of the case: nothing is shared with another one.
    int shards;
    [[nodiscard]] std::string name() const { return "service-" + std::to_string(number); }
    [[nodiscard]] ShardId shard(int n) const { return ShardId{number * 10 + n + 1}; }
};

// One host of it, which comes up step by step.
class Host {
public:
    Host(sql::Database& db, const Plan& plan, NamespaceId ns) : db_(db), plan_(plan), ns_(ns) {}

    static constexpr int steps = 6;

    void step() {
        switch (step_++) {
            case 0:
                sql::schema_apply(db_, schema_part(), {});  // Nothing, where it is done.
                return;
            case 1:
                return join_cluster();
            case 2:
                return make_namespace();
            case 3:
                return cluster_.heartbeat(
                    {.host = id, .rpc_address = plan_.name(), .role = Role::history}, 60s);
            case 4:
                return take_shards();
            case 5:
                return take_queue();
            default:
                return;
        }
    }
    [[nodiscard]] bool owns(int shard) const {
        return !test::code_of(
            [&] { shards_.assert_ownership(leases_.at(static_cast<std::size_t>(shard))); });
    }

    const HostId id = HostId::random();

private:
    void join_cluster() {
        if (!cluster_.find(plan_.name())) {
            cluster_.save(plan_.name(), {.blob = blob("cluster"), .version = 0});
        }
    }
    void make_namespace() {
        try {
            namespaces_.create({.id = ns_, .name = plan_.name(), .info = blob("system")});
        } catch (const NamespaceAlreadyExists&) {
            RC_ASSERT(namespaces_.find(ns_).has_value());
        }
    }
    void take_shards() {
        for (int n = 0; n < plan_.shards; ++n) {
            Shard shard =
                shards_.get_or_create({.id = plan_.shard(n), .range = RangeId{1}, .info = {}});
            const RangeId previous = shard.range;
            shard.range = RangeId{static_cast<std::int64_t>(previous) + 1};
            shards_.update(shard, previous);
            leases_.push_back({.shard = shard.id, .range = shard.range});
        }
    }
    void take_queue() {
        const TaskQueueKey key{.ns = ns_, .name = "system"};
        const auto found = queues_.find(key);
        if (!found) {
            return queues_.create(key, {.range = RangeId{1}, .info = {}});
        }
        queues_.update(key,
                       {.range = RangeId{static_cast<std::int64_t>(found->range) + 1}, .info = {}},
                       found->range);
    }

    sql::Database& db_;
    const Plan& plan_;
    NamespaceId ns_;
    Cluster cluster_{db_};
    Namespaces namespaces_{db_};
    Shards shards_{db_};
    TaskQueues queues_{db_};
    std::vector<ShardLease> leases_;
    int step_ = 0;
};

class Property8 : public testing::TestWithParam<test::Backend> {};

TEST_P(Property8, ServiceInitialization) {
    HOLDFAST_CHECK("Property 8");
    test::StatementRules rules(GetParam());
    test::Database db{GetParam()};
    sql::schema_apply(db, schema_part(), {});  // In the check's sight.
    int cases = 0;
    EXPECT_TRUE(rc::check("hosts come up in any order, and nothing is refused", [&] {
        const Plan plan{.number = ++cases, .shards = test::chosen(1, 4)};
        const NamespaceId ns = NamespaceId::random();
        std::vector<std::unique_ptr<Host>> hosts;
        const int crowd = test::chosen(1, 4);
        std::vector<std::size_t> order;  // Whose step is to be done, once for each.
        for (std::size_t n = 0; n < static_cast<std::size_t>(crowd); ++n) {
            hosts.push_back(std::make_unique<Host>(db, plan, ns));
            order.insert(order.end(), Host::steps, n);
        }
        while (!order.empty()) {
            const auto next = order.begin() + test::chosen<std::ptrdiff_t>(0, std::ssize(order));
            hosts.at(*next)->step();
            order.erase(next);
        }
        RC_ASSERT(rules.complaints().empty());

        const Cluster cluster(db);
        RC_ASSERT(std::ssize(cluster.members({.rpc_address = plan.name()}, 10)) == crowd);
        for (int shard = 0; shard < plan.shards; ++shard) {
            int owners = 0;
            for (const auto& host : hosts) {
                owners += host->owns(shard) ? 1 : 0;
            }
            RC_ASSERT(owners == 1);
        }
        const auto queue = TaskQueues(db).find({.ns = ns, .name = "system"});
        RC_ASSERT(queue.value().range == RangeId{crowd});
    }));
    if (GetParam() != test::Backend::sqlite) {
        EXPECT_THAT(rules.tables(), testing::HasSubstr("CREATE TABLE IF NOT EXISTS shards"));
        EXPECT_THAT(rules.locks(), testing::Contains("FOR UPDATE")) << "or nothing was tested";
    }
}

INSTANTIATE_TEST_SUITE_P(Every, Property8, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
