// Four processes that fill their pools of 50 together, against a gateway that takes 20 connections
// a second and 40 at once: with the limiter none is refused, and without it many are.
#include <array>
#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "fleet/dynamodb.hpp"
#include "fleet/test/source_fixture.hpp"
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <semaphore.h>
#include <sys/mman.h>

#include <holdfast/base/metrics.hpp>
#include <holdfast/dsql/source.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/crash.hpp>
#include <holdfast/testing/dsql.hpp>
#include <holdfast/testing/dynamodb.hpp>
#include <holdfast/testing/postgres.hpp>

namespace holdfast::dsql {
namespace {

using namespace std::chrono_literals;

constexpr int members = 4;
constexpr int connections = 50;  // Of each process.
constexpr int gateway_rate = 20;
constexpr int gateway_burst = 40;
constexpr const char* rates_table = "rates";
constexpr const char* cluster_endpoint = "4zabc7defghij2klmnopqrst5u.dsql.us-east-1.on.aws";

enum Report : std::int64_t { full = 1, full_again = 2, rejected = 3 };

// What the processes of a test share.
struct Shared {
    std::atomic<int> port = 0;
    sem_t hang_up{};  // The gateway is to end all connections, once.
};

// The limiter of a fleet as docs/dsql.md advises, and as its defaults are to the limits of a real
// cluster (100 a second, 1,000 at once): the cluster's own rate, and a fifth of its burst. The rest
// of the burst is for what has a permit, is held up on its way and comes in a heap: each of the
// four processes opens up to 8 connections at a time, which with the limiter's 8 are no more
// than 40.
pool::PermitConfig advised() {
    constexpr int cluster_rate = 100;
    constexpr int cluster_burst = 1000;
    const pool::PermitConfig usual;
    EXPECT_EQ(usual.per_second, cluster_rate);
    EXPECT_EQ(usual.burst * 5, cluster_burst);
    return {.per_second = gateway_rate, .burst = gateway_burst / 5};
}

std::shared_ptr<CredentialProvider> keys() {
    return fixed_credentials({.access_key_id = test::gateway_key().access_key_id,
                              .secret_access_key = test::gateway_key().secret,
                              .session_token = {}});
}

// One process of the fleet: its database, and what became of its openings.
class Member {
public:
    Member(const FleetConfig& config, int port) : db_(url(port), options(config)) {}

    [[nodiscard]] Openings& openings() { return openings_; }

private:
    static std::string url(int port) {
        return fmt::format("dsql://admin@{}?hostaddr=127.0.0.1&port={}&sslrootcert={}&pool={}",
                           cluster_endpoint,
                           port,
                           test::gateway_root_certificate(),
                           connections);
    }
    sql::DatabaseOptions options(const FleetConfig& config) {
        sql::DatabaseOptions options;
        options.name = "fleet";
        options.metrics = &metrics_;
        options.sources["dsql"] = watched(
            dsql_source({.credentials = keys(), .fleet = config, .metrics = &metrics_}), openings_);
        return options;
    }

    Metrics metrics_;
    Openings openings_;
    sql::Database db_;
};

class FleetAtTheGateway : public testing::Test {
protected:
    void SetUp() override {
        if (!test::DynamoEmulator::program()) {
            GTEST_SKIP() << "the emulator of DynamoDB is not there; ./run test fetches it";
        }
        emulator = std::make_unique<test::DynamoEmulator>();
        ASSERT_TRUE(DynamoClient({.region = "us-east-1",
                                  .endpoint = emulator->url(),
                                  .credentials = keys(),
                                  .call_timeout = 10s})
                        .create_table(rates_table, Deadline::after(20s), {}));
        // So many connections are more than the server has room for that tests share.
        server = std::make_unique<test::PrivatePostgres>(
            test::PostgresOptions{.settings = {{"max_connections", "300"}}});
        shared = new (::mmap(
            nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
            Shared;
        ASSERT_EQ(sem_init(&shared->hang_up, 1, 0), 0);
        GatewayOptions options = test::gateway_options();
        options.upstream = server->address().conninfo();
        options.limits.openings_per_second = gateway_rate;
        options.limits.openings_burst = gateway_burst;
        gateway = std::make_unique<test::Victim>(
            [this, options](test::Witness& witness) { serve(options, witness); });
        gateway->wait_for(1, Deadline::after(60s));
    }

    void TearDown() override {
        gateway.reset();
        if (shared != nullptr) {
            ::munmap(shared, sizeof(Shared));
        }
    }

    void serve(const GatewayOptions& options, test::Witness& witness) const {
        Gateway serving(options);
        shared->port = serving.port();
        witness.acknowledged(1);
        for (;;) {
            if (sem_wait(&shared->hang_up) == 0) {
                serving.hang_up();
            }
        }
    }

    // The same work in every process of the fleet.
    template <class Work>
    void start(Work work) {
        for (int i = 0; i < members; ++i) {
            fleet.push_back(std::make_unique<test::Victim>(work));
        }
    }

    // How often each was reported, when all have ended.
    [[nodiscard]] std::array<int, 4> reports() {
        std::array<int, 4> counts{};
        for (const auto& member : fleet) {
            for (const std::int64_t report : member->join(Deadline::after(120s))) {
                ++counts.at(static_cast<std::size_t>(report));
            }
        }
        return counts;
    }

    std::unique_ptr<test::DynamoEmulator> emulator;
    std::unique_ptr<test::PrivatePostgres> server;
    std::unique_ptr<test::Victim> gateway;
    Shared* shared = nullptr;
    std::vector<std::unique_ptr<test::Victim>> fleet;
};

// They start together, and then all connections are cut at one moment: 400 openings.
TEST_F(FleetAtTheGateway, FillsItsPoolsAndFillsThemAgainWithoutOneRefusal) {
    HOLDFAST_CHECK("connections +err.53400");
    FleetConfig config{
        .rate_table = rates_table, .permits = advised(), .dynamodb_endpoint = emulator->url()};
    start([this, config](test::Witness& witness) {
        Member member(config, shared->port);
        member.openings().wait([](const auto& so_far) { return so_far.opened >= connections; });
        witness.acknowledged(full);
        member.openings().wait([](const auto& so_far) { return so_far.opened >= 2 * connections; });
        witness.acknowledged(full_again);
        for (int i = 0; i < member.openings().counts().refused; ++i) {
            witness.acknowledged(rejected);
        }
    });
    for (const auto& member : fleet) {
        member->wait_for(1, Deadline::after(120s));
    }
    ASSERT_EQ(sem_post(&shared->hang_up), 0);
    const auto counts = reports();
    EXPECT_EQ(counts[full], members);
    EXPECT_EQ(counts[full_again], members);
    EXPECT_EQ(counts[rejected], 0);
}

TEST_F(FleetAtTheGateway, IsRefusedManyTimesWithoutTheLimiter) {
    FleetConfig config{.rate = 100'000, .burst = 100'000};
    config.reservoir.warm = 1;
    start([this, config](test::Witness& witness) {
        Member member(config, shared->port);
        member.openings().wait([](const auto& so_far) { return so_far.refused >= 3; });
        for (int i = 0; i < member.openings().counts().refused; ++i) {
            witness.acknowledged(rejected);
        }
    });
    EXPECT_GE(reports()[rejected], 3 * members) << "else the test above shows nothing";
}

}  // namespace
}  // namespace holdfast::dsql
