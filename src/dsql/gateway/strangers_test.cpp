// Connections that do not log in: they cost little, have little time, and keep out no one.
#include <array>
#include <system_error>

#include "gateway/test/gateway_fixture.hpp"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/unique_fd.hpp>
#include <holdfast/dsql/wire.hpp>
#include <holdfast/testing/crash.hpp>
#include <holdfast/testing/sanitizers.hpp>

namespace holdfast::dsql::tests {

namespace {

using namespace std::chrono_literals;

UniqueFd knock(int port) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
}

bool send_all(const UniqueFd& fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t size = ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (size <= 0) {
            return false;
        }
        bytes.remove_prefix(static_cast<std::size_t>(size));
    }
    return true;
}

// Everything up to the end of the connection.
std::string heard(const UniqueFd& fd) {
    std::string all;
    std::array<char, 1024> bytes{};
    for (ssize_t size = 1; size > 0;) {
        size = ::recv(fd.get(), bytes.data(), bytes.size(), 0);
        all.append(bytes.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    }
    return all;
}

std::string packet(std::uint32_t code, std::string_view rest = {}) {
    const BodyWriter length = BodyWriter()
                                  .int32(static_cast<std::int32_t>(rest.size() + 8))
                                  .int32(static_cast<std::int32_t>(code));
    return length.body() + std::string(rest);
}

// A gateway in a process of its own, which may open few files.
class FewDescriptors : public testing::Test {
protected:
    static constexpr rlim_t files = 64;

    void SetUp() override {
        if (test::sanitizer_needs_descriptors) {
            GTEST_SKIP() << "UBSan needs descriptors itself; the g++ suite runs this test";
        }
    }
    FewDescriptors() {
        test::fork_gateway();  // This process keeps one thread.
        cluster = std::make_unique<test::DsqlCluster>();
        const GatewayOptions options = test::gateway_options();
        gateway = std::make_unique<test::Victim>([options](test::Witness& witness) {
            const rlimit limit{files, files};
            ::setrlimit(RLIMIT_NOFILE, &limit);
            const Gateway few(options);
            witness.acknowledged(few.port());
            for (;;) {
                ::pause();
            }
        });
        gateway->wait_for(1, Deadline::after(30s));
        port = static_cast<int>(gateway->reports().front());
    }

    [[nodiscard]] Client client() const {
        sql::ConnectParams params = cluster->params();
        params["port"] = std::to_string(port);
        return Client(params);
    }

    std::unique_ptr<test::DsqlCluster> cluster;
    std::unique_ptr<test::Victim> gateway;
    int port = 0;
};

// Far more than it has descriptors, and none of them ever says a word.
TEST_F(FewDescriptors, FourHundredSilentConnectionsKeepNoOneOut) {
    std::vector<UniqueFd> silent;
    silent.reserve(400);
    for (int i = 0; i < 400; ++i) {
        silent.push_back(knock(port));
    }
    const Client in = client();
    ASSERT_TRUE(in.connected()) << in.response();
    EXPECT_EQ(in.exec("SELECT 1").cell(), "1");
    // The oldest were told to go; the last ones may still be there.
    EXPECT_EQ(heard(silent.front()), "");
    for (int i = 0; i < 20; ++i) {
        silent.push_back(knock(port));
        const Client next = client();
        ASSERT_TRUE(next.connected()) << next.response();
    }
    EXPECT_EQ(in.exec("SELECT 1").cell(), "1");
}

// Those who have logged in are not sent away for the sake of others.
TEST_F(FewDescriptors, WhenAllAreTakenByClientsTheNextIsRefusedAndTheOthersGoOn) {
    std::vector<Client> inside;
    for (int i = 0; i < 64; ++i) {
        Client next = client();
        if (!next.connected()) {
            break;
        }
        inside.push_back(std::move(next));
    }
    ASSERT_GE(inside.size(), 4U);
    ASSERT_LT(inside.size(), 64U);
    for (const Client& one : inside) {
        EXPECT_EQ(one.exec("SELECT 1").cell(), "1");
    }
    inside.erase(inside.begin(), inside.begin() + 3);
    const auto deadline = Deadline::after(30s);
    bool let_in = false;
    while (!let_in && !deadline.passed()) {  // Once the gateway has seen them go.
        let_in = client().connected();
    }
    EXPECT_TRUE(let_in);
}

TEST(GatewayStrangers, AThreadThatCannotBeMadeCostsOneConnection) {
    GatewayOptions options = test::gateway_options();
    std::atomic<int> failures = 3;
    options.make_thread = [&failures](std::function<void()> run) {
        if (failures-- > 0) {
            throw std::system_error(EAGAIN, std::generic_category());
        }
        return std::jthread(std::move(run));
    };
    const Gateway gateway(options);
    const test::DsqlCluster cluster(gateway);
    for (int i = 0; i < 3; ++i) {
        EXPECT_THAT(heard(knock(gateway.port())), testing::HasSubstr("too many open connections"));
    }
    const Client in(cluster.params());
    ASSERT_TRUE(in.connected()) << in.response();
    EXPECT_EQ(in.exec("SELECT 1").cell(), "1");
    EXPECT_EQ(gateway.stats().connections, 1);
}

// As PostgreSQL has it: 10,000 bytes are the most before the login.
TEST(GatewayStrangers, ALongStartupPacketIsRefusedByItsLength) {
    const Gateway gateway(test::gateway_options());
    for (const std::size_t size : {std::size_t{10'001}, std::size_t{9'900'000}}) {
        const UniqueFd fd = knock(gateway.port());
        const std::string first = packet(protocol_3, std::string(size - 8, 'a')).substr(0, 8);
        ASSERT_TRUE(send_all(fd, first));  // The length says it all: nothing else is waited for.
        EXPECT_THAT(heard(fd), testing::HasSubstr("invalid message length"));
    }
    // One that is just short enough is read, and refused for what it says.
    const UniqueFd fd = knock(gateway.port());
    ASSERT_TRUE(send_all(
        fd,
        packet(protocol_3,
               "user" + std::string(1, '\0') + std::string(9'985, 'a') + std::string(2, '\0'))));
    EXPECT_THAT(heard(fd), testing::HasSubstr("TLS is required"));
}

// A token is no longer than that either.
TEST(GatewayStrangers, ALongTokenIsRefusedByItsLength) {
    const Gateway gateway(test::gateway_options());
    const test::DsqlCluster cluster(gateway);
    sql::ConnectParams params = cluster.params();
    params["password"] = std::string(20'000, 'a');
    const Client out(params);
    EXPECT_FALSE(out.connected());
    EXPECT_THAT(out.response(), testing::HasSubstr("invalid message length"));
    EXPECT_TRUE(Client(cluster.params()).connected());
}

// One question after another, each in good time: the time is for the whole login.
TEST(GatewayStrangers, QuestionsBeforeTheLoginComeToAnEnd) {
    const Gateway gateway(test::gateway_options());
    const UniqueFd fd = knock(gateway.port());
    std::string answers;
    std::array<char, 16> bytes{};
    for (int asked = 0; asked < 1000 && send_all(fd, packet(gss_request)); ++asked) {
        const ssize_t size = ::recv(fd.get(), bytes.data(), bytes.size(), 0);
        if (size <= 0) {
            break;
        }
        answers.append(bytes.data(), static_cast<std::size_t>(size));
    }
    EXPECT_EQ(answers, "N");
}

// Byte by byte: neither a packet in the clear nor a record of TLS that never ends holds a place.
TEST(GatewayStrangers, WhoeverIsSlowIsGoneWhenTheTimeIsUp) {
    GatewayOptions options = test::gateway_options();
    options.limits.login_time = 50ms;
    const Gateway gateway(options);
    for (const std::string& opening : {std::string{},
                                       std::string("\0\0\x27\x10", 4),
                                       packet(ssl_request),
                                       packet(ssl_request) + std::string("\x16\x03\x01\x02", 4)}) {
        const UniqueFd fd = knock(gateway.port());
        ASSERT_TRUE(send_all(fd, opening));
        pollfd end{.fd = fd.get(), .events = POLLRDHUP, .revents = 0};
        int sent = 0;
        while (sent < 100'000 && ::poll(&end, 1, 5) == 0) {
            sent += opening.empty() || !send_all(fd, std::string_view("\0", 1)) ? 0 : 1;
        }
        EXPECT_NE(end.revents, 0) << "still there after " << sent << " bytes";
    }
    const auto deadline = Deadline::after(30s);
    while (gateway.stats().strangers > 0 && !deadline.passed()) {
        std::this_thread::yield();
    }
    EXPECT_EQ(gateway.stats().strangers, 0);
}

// The newest are served: those who log in do so at once.
TEST(GatewayStrangers, OneTooManyMakesTheOldestGo) {
    GatewayOptions options = test::gateway_options();
    options.limits.strangers = 3;
    const Gateway gateway(options);
    const test::DsqlCluster cluster(gateway);
    const Client in(cluster.params());
    std::vector<UniqueFd> silent;
    silent.reserve(4);
    for (int i = 0; i < 4; ++i) {
        silent.push_back(knock(gateway.port()));
    }
    EXPECT_EQ(heard(silent.front()), "");
    for (std::size_t i = 1; i < silent.size(); ++i) {
        pollfd end{.fd = silent[i].get(), .events = POLLRDHUP, .revents = 0};
        EXPECT_EQ(::poll(&end, 1, 0), 0) << i;
    }
    EXPECT_EQ(in.exec("SELECT 1").cell(), "1");
}

// Before the token is found good, strangers take nothing from the rate of openings.
TEST(GatewayStrangers, DoNotUseUpTheRate) {
    GatewayOptions options = test::gateway_options();
    options.limits.openings_burst = 2;
    options.limits.openings_per_second = 0;
    const Gateway gateway(options);
    const test::DsqlCluster cluster(gateway);
    sql::ConnectParams wrong = cluster.params();
    wrong["password"] = "no token";
    for (int i = 0; i < 5; ++i) {
        EXPECT_FALSE(Client(wrong).connected());
    }
    const Client in(cluster.params());
    EXPECT_TRUE(in.connected()) << in.response();
}

}  // namespace

}  // namespace holdfast::dsql::tests
