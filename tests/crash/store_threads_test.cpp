// Owners of a shard whose database dies in mid-transaction, or who are cut off from it, stalled on
// the way, and return after others have taken the shard: no write of a former owner is ever seen.
#include <algorithm>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "shard_hosts.hpp"
#include <gtest/gtest.h>

#include <holdfast/base/random.hpp>
#include <holdfast/sql/schema.hpp>
#include <holdfast/store/catalogue.hpp>
#include <holdfast/testing/dsql.hpp>
#include <holdfast/testing/fault_proxy.hpp>

namespace holdfast {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t hosts = 3;

// Safe to share between threads.
class Records final : public chaos::Chronicle {
public:
    void taken(std::int64_t range, std::int64_t before) override {
        const std::lock_guard lock(mutex_);
        story_.before[range] = before;
    }
    void acknowledged(std::int64_t task) override {
        const std::lock_guard lock(mutex_);
        story_.acknowledged.push_back(task);
        grown_.notify_all();
    }
    void refused(std::int64_t task) override {
        const std::lock_guard lock(mutex_);
        story_.refused.push_back(task);
    }

    // Whether so many more were acknowledged by the deadline.
    bool wait_for(std::size_t more, Deadline deadline) {
        std::unique_lock lock(mutex_);
        const std::size_t wanted = story_.acknowledged.size() + more;
        return grown_.wait_until(
            lock, deadline.when(), [&] { return story_.acknowledged.size() >= wanted; });
    }
    // After the last write.
    [[nodiscard]] const chaos::Story& story() const { return story_; }

private:
    std::mutex mutex_;
    std::condition_variable grown_;
    chaos::Story story_;
};

// Takes the shard and writes, over and over; trouble on the way to the database is expected, and
// nothing else is.
void be_host(const std::stop_token& stop, sql::Database& db, Records& records) {
    chaos::Host host(db, records);
    while (!stop.stop_requested()) {
        try {
            host.own(5);
        } catch (const Error& error) {
            EXPECT_TRUE(chaos::is_expected(error)) << error.what();
        }
    }
}

// Runs the hosts, each with a database of its own, while `trouble` makes it.
void live_through(const std::vector<std::unique_ptr<sql::Database>>& databases,
                  Records& records,
                  const std::function<void()>& trouble) {
    std::vector<std::jthread> threads;
    threads.reserve(databases.size());
    for (const auto& db : databases) {
        threads.emplace_back(
            [&records, &db](const std::stop_token& stop) { be_host(stop, *db, records); });
    }
    trouble();
    EXPECT_TRUE(records.wait_for(20, Deadline::after(60s))) << "they go on when all is well again";
}

// A server of its own, and a proxy before each host.
class PostgresChaos : public testing::Test {
protected:
    PostgresChaos() {
        sql::schema_apply(*db, store::schema_part(), {});
        proxies.reserve(hosts);
        databases.reserve(hosts);
        for (std::size_t i = 0; i < hosts; ++i) {
            proxies.push_back(std::make_unique<test::FaultProxy>(server.address()));
            databases.push_back(std::make_unique<sql::Database>(
                proxies[i]->address().url(db.name()) + "&pool=1", test::quick_options()));
        }
    }

    void crash() {
        server.crash();
        server.start();
    }
    // Cut off in the middle of whatever it says, and back when others have gone on without it.
    void partition(test::FaultProxy& proxy) {
        proxy.arm({.from = test::Side::client, .nth = moment()}, test::Fault::cut);
        EXPECT_TRUE(proxy.wait_struck(Deadline::after(30s)));
        proxy.refuse(true);
        proxy.cut_all();
        EXPECT_TRUE(records.wait_for(20, Deadline::after(30s)));
        proxy.refuse(false);
    }
    // What it says arrives late: after others have taken the shard, or if it has locked it, before.
    void stall(test::FaultProxy& proxy) {
        proxy.arm({.from = test::Side::client, .nth = moment()}, test::Fault::stall);
        EXPECT_TRUE(proxy.wait_struck(Deadline::after(30s)));
        (void)records.wait_for(20, Deadline::after(100ms));
        proxy.release();
    }
    void lose_an_answer(test::FaultProxy& proxy) {
        proxy.arm({.from = test::Side::server, .type = 'C', .containing = "COMMIT"},
                  test::Fault::lose_answer);
        EXPECT_TRUE(proxy.wait_struck(Deadline::after(30s)));
    }
    int moment() { return 1 + static_cast<int>(random.below(20)); }

    Random random{7};
    test::PrivatePostgres server{{.fsync = true, .settings = {}}};
    test::Database db{server.address()};
    Records records;
    std::vector<std::unique_ptr<test::FaultProxy>> proxies;
    std::vector<std::unique_ptr<sql::Database>> databases;
};

TEST_F(PostgresChaos, NoFormerOwnerIsHeardWhateverHappensOnTheWay) {
    live_through(databases, records, [this] {
        for (int event = 0; event < chaos::times(6, 100); ++event) {
            EXPECT_TRUE(records.wait_for(20, Deadline::after(60s)));
            test::FaultProxy& proxy = *proxies[random.below(hosts)];
            switch (event % 3) {
                case 0:
                    partition(proxy);
                    break;
                case 1:
                    stall(proxy);
                    break;
                default:
                    lose_an_answer(proxy);
            }
        }
    });
    databases.clear();
    chaos::expect_no_former_owner_was_heard(records.story(), db);
}

TEST_F(PostgresChaos, NoFormerOwnerIsHeardWhenTheServerDiesInMidTransaction) {
    live_through(databases, records, [this] {
        for (int event = 0; event < chaos::times(2, 100); ++event) {
            EXPECT_TRUE(records.wait_for(30, Deadline::after(60s)));
            crash();
        }
    });
    databases.clear();
    chaos::expect_no_former_owner_was_heard(records.story(), db);
}

// The same where locks do not wait: the second one is refused at its commit.
TEST(GatewayChaos, NoFormerOwnerIsHeardWhenTheClusterHangsUp) {
    test::Database db{test::Backend::dsql};
    sql::schema_apply(*db, store::schema_part(), {});
    Records records;
    std::vector<std::unique_ptr<sql::Database>> databases;
    databases.reserve(hosts);
    for (std::size_t i = 0; i < hosts; ++i) {
        databases.push_back(std::make_unique<sql::Database>(db.url(), test::quick_options()));
    }
    dsql::Gateway& gateway = test::shared_gateway();
    live_through(databases, records, [&] {
        for (int event = 0; event < chaos::times(4, 100); ++event) {
            EXPECT_TRUE(records.wait_for(10, Deadline::after(60s)));
            switch (event % 4) {
                case 0:
                    gateway.hang_up(db.name());
                    break;
                case 1:
                    gateway.arm({.point = dsql::FaultPoint::commit,
                                 .fault = dsql::GatewayFault::hang_up_after,
                                 .cluster = db.name()});
                    break;
                case 2:
                    gateway.arm({.point = dsql::FaultPoint::statement,
                                 .fault = dsql::GatewayFault::hang_up,
                                 .nth = 3,
                                 .cluster = db.name()});
                    break;
                default:
                    gateway.arm({.point = dsql::FaultPoint::commit,
                                 .fault = dsql::GatewayFault::unavailable_after,
                                 .cluster = db.name()});
            }
        }
    });
    gateway.disarm();
    databases.clear();
    chaos::expect_no_former_owner_was_heard(records.story(), db);
}

}  // namespace
}  // namespace holdfast
