// Four processes that fill their pools together, against a gateway that takes few connections a
// second: with the limiter nobody is refused, and without it many are.
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "dynamodb.hpp"
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <sys/mman.h>

#include <holdfast/dsql/source.hpp>
#include <holdfast/sql/url.hpp>
#include <holdfast/testing/crash.hpp>
#include <holdfast/testing/dsql.hpp>
#include <holdfast/testing/dynamodb.hpp>
#include <holdfast/testing/postgres.hpp>

namespace holdfast::dsql {
namespace {

using namespace std::chrono_literals;

constexpr int processes = 4;
constexpr int connections = 20;  // Of each process.
constexpr int openers = 8;       // Threads of each process.
constexpr const char* table = "rates";

enum Fate : std::int64_t { opened = 1, refused = 2, failed = 3 };

// Where the gateway is, for processes that were forked before or after it.
struct Address {
    std::array<char, 128> endpoint{};
    std::atomic<int> port = 0;
};

std::shared_ptr<CredentialProvider> keys() {
    return fixed_credentials({.access_key_id = test::gateway_key().access_key_id,
                              .secret_access_key = test::gateway_key().secret,
                              .session_token = {}});
}

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
        const auto options = test::gateway_options();  // Made here, so that all share them.
        address = new (::mmap(
            nullptr, sizeof(Address), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
            Address;
        gateway = std::make_unique<test::Victim>([this, options](test::Witness& witness) {
            GatewayOptions few = options;
            few.limits.openings_per_second = 20;
            few.limits.openings_burst = 40;
            Gateway serving(few);
            const test::DsqlCluster cluster(serving);
            const std::string endpoint = cluster.endpoint();
            std::memcpy(address->endpoint.data(), endpoint.c_str(), endpoint.size() + 1);
            address->port = serving.port();
            witness.acknowledged(1);
            static_cast<void>(
                system_clock().sleep_until(std::chrono::steady_clock::now() + 5min, {}));
        });
        gateway->wait_for(1, Deadline::after(60s));
    }

    void TearDown() override {
        gateway.reset();
        if (address != nullptr) {
            ::munmap(address, sizeof(Address));
        }
    }

    // What became of the openings of all processes, each of which fills its pool `times` times.
    [[nodiscard]] std::array<int, 4> fill(const FleetConfig& config, int times) {
        std::vector<std::unique_ptr<test::Victim>> fleet;
        for (int i = 0; i < processes; ++i) {
            fleet.push_back(std::make_unique<test::Victim>(
                [&](test::Witness& witness) { fill_pool(config, times, witness); }));
        }
        std::array<int, 4> fates{};
        for (const auto& member : fleet) {
            for (const std::int64_t fate : member->join(Deadline::after(120s))) {
                ++fates.at(static_cast<std::size_t>(fate));
            }
        }
        return fates;
    }

    void fill_pool(const FleetConfig& config, int times, test::Witness& witness) const {
        const auto source = dsql_source({.credentials = keys(), .fleet = config})(
            sql::parse_url(fmt::format("dsql://admin@{}?hostaddr=127.0.0.1&port={}&sslrootcert={}",
                                       address->endpoint.data(),
                                       address->port.load(),
                                       test::gateway_root_certificate())));
        for (int round = 0; round < times; ++round) {
            std::vector<PGconn*> pool(connections, nullptr);
            std::atomic<std::size_t> next = 0;
            std::vector<std::jthread> threads;
            for (int i = 0; i < openers; ++i) {
                threads.emplace_back([&] {
                    for (std::size_t at = next++; at < pool.size(); at = next++) {
                        pool[at] = open(*source, witness);
                    }
                });
            }
            threads.clear();
            for (PGconn* connection : pool) {  // All of them are dropped at once.
                PQfinish(connection);
                source->closed();
            }
        }
    }

    static PGconn* open(sql::ConnectionSource& source, test::Witness& witness) {
        const sql::ConnectParams params = source.prepare(Deadline::after(60s), {});
        std::vector<const char*> names;
        std::vector<const char*> values;
        for (const auto& [name, value] : params) {
            names.push_back(name.c_str());
            values.push_back(value.c_str());
        }
        names.push_back(nullptr);
        values.push_back(nullptr);
        PGconn* connection = PQconnectdbParams(names.data(), values.data(), 0);
        const std::string said = PQerrorMessage(connection);
        const bool well = PQstatus(connection) == CONNECTION_OK;
        const bool too_soon = said.find("rate exceeded") != std::string::npos;
        witness.acknowledged(well ? opened : too_soon ? refused : failed);
        return connection;
    }

    std::unique_ptr<test::DynamoEmulator> emulator;
    std::unique_ptr<test::Victim> gateway;
    Address* address = nullptr;
};

TEST_F(FleetAtTheGateway, FillsItsPoolsAndFillsThemAgainWithoutOneRefusal) {
    FleetConfig config{.rate_table = table,
                       .permits = {.per_second = 20, .burst = 30},
                       .dynamodb_endpoint = emulator->url()};
    config.limits.permit_wait = 50s;
    const auto fates = fill(config, 2);
    EXPECT_EQ(fates[opened], 2 * processes * connections);
    EXPECT_EQ(fates[refused], 0);
    EXPECT_EQ(fates[failed], 0);
}

TEST_F(FleetAtTheGateway, IsRefusedManyTimesWithoutTheLimiter) {
    const auto fates = fill({.rate = 100'000, .burst = 100'000}, 1);
    EXPECT_GE(fates[opened], 40);
    EXPECT_GE(fates[refused], 10) << "else the test above shows nothing";
    EXPECT_EQ(fates[failed], 0);
}

}  // namespace
}  // namespace holdfast::dsql
