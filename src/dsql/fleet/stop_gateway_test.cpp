// A process that ends while its pool is still being filled: it ends at once, whatever its openings
// are waiting for, and leaves no lease behind.
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fleet/fleet_store.hpp"
#include "fleet/test/dynamodb_fixture.hpp"
#include "fleet/test/source_fixture.hpp"
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/dsql/fleet.hpp>
#include <holdfast/dsql/source.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/testing/dsql.hpp>

namespace holdfast::dsql {
namespace {

using namespace std::chrono_literals;

constexpr int target = 8;
constexpr int blocks = 4;

// Lets callers in and never says a word: who asks for TLS waits for the answer.
class SilentHost {
public:
    SilentHost() : listening_(::socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto* const any = reinterpret_cast<sockaddr*>(&address);
        const bool listens = ::bind(listening_, any, size) == 0 &&
                             ::listen(listening_, target) == 0 &&
                             ::getsockname(listening_, any, &size) == 0;
        HOLDFAST_ASSERT(listens);
        port_ = ntohs(address.sin_port);
        const timeval patience{.tv_sec = 30, .tv_usec = 0};  // Also of accept().
        ::setsockopt(listening_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    }
    ~SilentHost() {
        for (const int caller : callers_) {
            ::close(caller);
        }
        ::close(listening_);
    }
    SilentHost(const SilentHost&) = delete;
    SilentHost& operator=(const SilentHost&) = delete;

    [[nodiscard]] int port() const noexcept { return port_; }

    // Waits until the next caller has asked for TLS; false if none comes.
    [[nodiscard]] bool hear_one() {
        const int caller = ::accept(listening_, nullptr, nullptr);
        if (caller < 0) {
            return false;
        }
        callers_.push_back(caller);
        char first = 0;
        return ::recv(caller, &first, 1, 0) == 1;
    }

private:
    int listening_;
    int port_ = 0;
    std::vector<int> callers_;
};

// Its first connection leads to the cluster, all others to the silent host.
class DivertedSource final : public WatchedSource {
public:
    DivertedSource(std::unique_ptr<sql::ConnectionSource> source, Openings& openings, int port)
        : WatchedSource(std::move(source), openings), port_(port) {}

    [[nodiscard]] sql::ConnectParams prepare(Deadline deadline,
                                             const std::stop_token& stop,
                                             pool::OpenPhases& phases) override {
        auto params = WatchedSource::prepare(deadline, stop, phases);
        if (begun_.exchange(true)) {
            params["port"] = std::to_string(port_);
        }
        return params;
    }

private:
    const int port_;
    std::atomic<bool> begun_ = false;
};

class StopAtTheGateway : public tests::DynamoStory {
protected:
    [[nodiscard]] FleetConfig config() const {
        FleetConfig config{.rate = 1000, .burst = 1000, .lease_table = table};
        config.dynamodb_endpoint = faults->url();
        config.blocks = {.size = target / 2, .count = blocks};
        config.reservoir.warm = 1;
        return config;
    }

    void open(const FleetConfig& config) {
        sql::DatabaseOptions options;
        options.name = "orders";
        options.sources["dsql"] = [this, config](const sql::Url& url) {
            auto source = dsql_source({.credentials = keys(), .fleet = config})(url);
            return std::make_unique<DivertedSource>(
                std::move(source), openings, divert ? silent.port() : gateway_port());
        };
        db = std::make_unique<sql::Database>(cluster.url() + "&pool=" + std::to_string(target),
                                             std::move(options));
    }

    // Opens, stops in the middle, and leaves nothing behind. It takes less than a second; on a
    // machine that is busy with other things, in one of three times.
    template <class Fill>
    void expect_a_quick_end_of(Fill fill) {
        auto took = std::chrono::nanoseconds::max();
        for (int i = 0; i < 3 && took >= 1s; ++i) {
            fill();
            ASSERT_GT(blocks_owned(), 0) << "else there is nothing to leave behind";
            const Steady began = std::chrono::steady_clock::now();
            db->stop(Deadline::after(20s));
            db.reset();
            took = std::chrono::steady_clock::now() - began;
            EXPECT_EQ(blocks_owned(), 0);
            EXPECT_EQ(openings.counts().closed, openings.counts().opened);
        }
        EXPECT_LT(took, 1s);
    }

    [[nodiscard]] int blocks_owned() {
        int owned = 0;
        for (int number = 0; number < blocks; ++number) {
            const auto block =
                client->get(table, block_key(cluster.endpoint(), number), soon(), {});
            owned += block && !dynamo::text(*block, "owner_id").value_or("").empty() ? 1 : 0;
        }
        return owned;
    }

    static std::shared_ptr<CredentialProvider> keys() {
        return fixed_credentials({.access_key_id = test::gateway_key().access_key_id,
                                  .secret_access_key = test::gateway_key().secret,
                                  .session_token = {}});
    }
    static int gateway_port() { return test::shared_gateway_port(); }

    test::DsqlCluster cluster;
    SilentHost silent;
    bool divert = false;
    Openings openings;
    std::unique_ptr<sql::Database> db;
};

TEST_F(StopAtTheGateway, EndsAtOnceInTheMiddleOfItsFirstFill) {
    expect_a_quick_end_of([&] {
        const int before = openings.counts().opened;
        open(config());
        openings.wait([&](const auto& so_far) { return so_far.opened >= before + 2; });
    });
}

TEST_F(StopAtTheGateway, EndsAtOnceWhileOpeningsWaitForPermits) {
    FleetConfig slow = config();
    slow.rate = 1;
    slow.burst = 1;
    expect_a_quick_end_of([&] { open(slow); });
}

TEST_F(StopAtTheGateway, EndsAtOnceWhileOpeningsWaitForTls) {
    divert = true;
    expect_a_quick_end_of([&] {
        open(config());
        for (int i = 1; i < target; ++i) {  // All but the first.
            ASSERT_TRUE(silent.hear_one());
        }
    });
}

}  // namespace
}  // namespace holdfast::dsql
