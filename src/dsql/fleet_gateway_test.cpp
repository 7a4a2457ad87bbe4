// Four processes that fill their pools together, against a gateway that takes few connections a
// second: with the limiter nobody is refused, and without it many are.
#include <array>
#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "dynamodb.hpp"
#include <fmt/core.h>
#include <gtest/gtest.h>
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

constexpr int processes = 4;
constexpr int connections = 50;  // Of each process.
constexpr const char* table = "rates";
constexpr const char* endpoint = "4zabc7defghij2klmnopqrst5u.dsql.us-east-1.on.aws";

enum Report : std::int64_t { full = 1, full_again = 2, refused = 3 };

// What the processes of a test share.
struct Shared {
    std::atomic<int> port = 0;
    std::atomic<bool> hang_up = false;  // The gateway is to end all connections, once.
};

std::shared_ptr<CredentialProvider> keys() {
    return fixed_credentials({.access_key_id = test::gateway_key().access_key_id,
                              .secret_access_key = test::gateway_key().secret,
                              .session_token = {}});
}

void nap() {
    static_cast<void>(system_clock().sleep_until(std::chrono::steady_clock::now() + 20ms, {}));
}

// One process of the fleet: its database, and what became of its openings.
class Member {
public:
    Member(const FleetConfig& config, int port) : db_(url(port), options(config)) {}

    [[nodiscard]] sql::PoolStats pool() const { return db_.pool_stats(); }
    [[nodiscard]] int refusals() const {
        return static_cast<int>(metrics_.value(
            "dsql_reservoir_refill_failures_total",
            {{"pool", "fleet"}, {"service", "unknown"}, {"reason", "rate_limited"}}));
    }

private:
    static std::string url(int port) {
        return fmt::format("dsql://admin@{}?hostaddr=127.0.0.1&port={}&sslrootcert={}&pool={}",
                           endpoint,
                           port,
                           test::gateway_root_certificate(),
                           connections);
    }
    sql::DatabaseOptions options(const FleetConfig& config) {
        sql::DatabaseOptions options;
        options.name = "fleet";
        options.metrics = &metrics_;
        options.sources["dsql"] =
            dsql_source({.credentials = keys(), .fleet = config, .metrics = &metrics_});
        return options;
    }

    Metrics metrics_;
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
                        .create_table(table, Deadline::after(20s), {}));
        // So many connections are more than the server has room for that tests share.
        server = std::make_unique<test::PrivatePostgres>(
            test::PostgresOptions{.settings = {{"max_connections", "300"}}});
        shared = new (::mmap(
            nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
            Shared;
        GatewayOptions options = test::gateway_options();
        options.upstream = server->address().conninfo();
        options.limits.openings_per_second = 20;
        options.limits.openings_burst = 40;
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
            nap();
            if (shared->hang_up.exchange(false)) {
                serving.hang_up();
            }
        }
    }

    // The same work in every process of the fleet.
    template <class Work>
    void start(Work work) {
        for (int i = 0; i < processes; ++i) {
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
    // Less than the gateway takes: what has a permit may be held up on its way, and come in a heap.
    FleetConfig config{.rate_table = table,
                       .permits = {.per_second = 18, .burst = 15},
                       .dynamodb_endpoint = emulator->url()};
    start([this, config](test::Witness& witness) {
        const Member member(config, shared->port);
        witness.acknowledged(full);
        while (member.pool().opened < 2 * connections || member.pool().ready < connections) {
            nap();
        }
        witness.acknowledged(full_again);
        for (int i = 0; i < member.refusals(); ++i) {
            witness.acknowledged(refused);
        }
    });
    for (const auto& member : fleet) {
        member->wait_for(1, Deadline::after(60s));
    }
    shared->hang_up = true;
    const auto counts = reports();
    EXPECT_EQ(counts[full], processes);
    EXPECT_EQ(counts[full_again], processes);
    EXPECT_EQ(counts[refused], 0);
}

TEST_F(FleetAtTheGateway, IsRefusedManyTimesWithoutTheLimiter) {
    FleetConfig config{.rate = 100'000, .burst = 100'000};
    config.reservoir.warm = 1;
    start([this, config](test::Witness& witness) {
        const Member member(config, shared->port);
        const Deadline deadline = Deadline::after(30s);
        while (member.refusals() < 3 && !deadline.passed()) {
            nap();
        }
        for (int i = 0; i < member.refusals(); ++i) {
            witness.acknowledged(refused);
        }
    });
    EXPECT_GE(reports()[refused], 3 * processes) << "else the test above shows nothing";
}

}  // namespace
}  // namespace holdfast::dsql
