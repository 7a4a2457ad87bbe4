#include <atomic>
#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/http.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// A plain socket, so that the test does not depend on what it tests.
class Peer {
public:
    explicit Peer(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<std::uint16_t>(port));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const auto* generic = reinterpret_cast<const sockaddr*>(&address);
        connected_ = ::connect(socket_, generic, sizeof address) == 0;
    }
    ~Peer() { ::close(socket_); }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    [[nodiscard]] bool connected() const { return connected_; }
    void send(std::string_view text) const { EXPECT_TRUE(try_send(text)); }
    [[nodiscard]] bool try_send(std::string_view text) const {
        const ssize_t sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
        return sent == static_cast<ssize_t>(text.size());
    }
    // Everything until the other side hangs up.
    [[nodiscard]] std::string rest() const {
        std::string all;
        char buffer[4096];
        while (true) {
            pollfd wanted{.fd = socket_, .events = POLLIN, .revents = 0};
            if (::poll(&wanted, 1, 20'000) != 1) {
                return all + "(and then nothing for 20 s)";
            }
            const ssize_t got = ::recv(socket_, buffer, sizeof buffer, 0);
            if (got <= 0) {
                return all;
            }
            all.append(buffer, static_cast<std::size_t>(got));
        }
    }

private:
    int socket_;
    bool connected_ = false;
};

std::string get(int port, const std::string& path) {
    const Peer peer(port);
    peer.send("GET " + path + " HTTP/1.1\r\nHost: here\r\n\r\n");
    return peer.rest();
}

class Http : public testing::Test {
protected:
    Metrics metrics;
    std::atomic<bool> ready = true;
    HttpEndpoint endpoint{
        {}, metrics, [this] { return ready ? Health{} : Health{false, "the database is away"}; }};
};

TEST_F(Http, ServesTheMetrics) {
    metrics.counter("pancakes_total", "Eaten.").add(3);
    const std::string answer = get(endpoint.port(), "/metrics");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    EXPECT_THAT(answer, EndsWith("\r\n\r\n" + metrics.expose()));
}

TEST_F(Http, IsHealthyAsLongAsItAnswers) {
    ready = false;
    const std::string answer = get(endpoint.port(), "/healthz");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(answer, EndsWith("\r\n\r\nok\n"));
}

TEST_F(Http, IsReadyOrSaysWhyNot) {
    EXPECT_THAT(get(endpoint.port(), "/readyz"), StartsWith("HTTP/1.1 200 OK\r\n"));
    ready = false;
    const std::string answer = get(endpoint.port(), "/readyz");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
    EXPECT_THAT(answer, EndsWith("\r\n\r\nthe database is away\n"));
}

TEST_F(Http, KnowsNothingElse) {
    EXPECT_THAT(get(endpoint.port(), "/"), StartsWith("HTTP/1.1 404 "));
    EXPECT_THAT(get(endpoint.port(), "/metrics/../secrets"), StartsWith("HTTP/1.1 404 "));
    const Peer peer(endpoint.port());
    peer.send("this is not HTTP\r\n\r\n");
    EXPECT_THAT(peer.rest(), StartsWith("HTTP/1.1 400 "));
}

TEST_F(Http, AnswersAHeadRequestWithoutABody) {
    const Peer peer(endpoint.port());
    peer.send("HEAD /healthz HTTP/1.1\r\nHost: here\r\n\r\n");
    const std::string answer = peer.rest();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST_F(Http, RefusesToBeWrittenToBeforeTheBodyIsSent) {
    const Peer peer(endpoint.port());
    peer.send("POST /metrics HTTP/1.1\r\nHost: here\r\nContent-Length: 1000000000\r\n\r\n");
    const std::string answer = peer.rest();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 405 "));
    EXPECT_THAT(answer, HasSubstr("Allow: GET, HEAD\r\n"));
}

TEST_F(Http, AnswersManyAtOnce) {
    std::vector<std::future<std::string>> answers;
    for (int i = 0; i < 40; ++i) {
        answers.push_back(std::async(std::launch::async, get, endpoint.port(), "/healthz"));
    }
    for (auto& answer : answers) {
        EXPECT_THAT(answer.get(), StartsWith("HTTP/1.1 200 OK\r\n"));
    }
}

// Peers that stop in the middle of a request occupy workers; a stop hangs up on them. Were it to
// wait for them instead, it would take their five seconds.
TEST_F(Http, StopsAtOnceWhilePeersDawdle) {
    std::vector<std::unique_ptr<Peer>> dawdlers;
    const auto add_dawdlers = [&](std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            dawdlers.push_back(std::make_unique<Peer>(endpoint.port()));
            dawdlers.back()->send("GET /metr");
        }
    };
    add_dawdlers(HttpServer::workers - 1);
    // Connections are served in turn: once this one is, the others are in a worker's hands.
    EXPECT_THAT(get(endpoint.port(), "/healthz"), StartsWith("HTTP/1.1 200 OK\r\n"));
    add_dawdlers(5);

    const auto begun = std::chrono::steady_clock::now();
    endpoint.stop();
    EXPECT_LT(std::chrono::steady_clock::now() - begun, 4s);
    EXPECT_EQ(dawdlers.front()->rest(), "");
    EXPECT_FALSE(Peer(endpoint.port()).connected());
    endpoint.stop();  // Once more does no harm.
}

TEST_F(Http, HangsUpOnWhoNeverEndsARequest) {
    const Peer peer(endpoint.port());
    peer.send("GET /metrics HTTP/1.1\r\n");
    while (peer.try_send("X-More: and more\r\n")) {
    }
    EXPECT_THAT(get(endpoint.port(), "/healthz"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(Http, StopsFromSeveralThreadsAtOnce) {
    std::vector<std::jthread> stoppers;
    for (int i = 0; i < 4; ++i) {
        stoppers.emplace_back([this] { endpoint.stop(); });
    }
}

TEST(HttpRoutes, TakesABodyWhereARouteWantsOne) {
    const HttpServer server(
        {},
        {{"GET", "/", [](const std::string&) { return HttpAnswer{}; }},
         {"POST",
          "/echo",
          [](const std::string& body) { return HttpAnswer{.status = 202, .body = "so: " + body}; }},
         {"DELETE",
          "/echo",
          [](const std::string&) -> HttpAnswer { throw std::runtime_error("there is none"); }}},
        "nothing");
    const auto send = [&server](const std::string& head, const std::string& body) {
        const Peer peer(server.port());
        peer.send(head + " HTTP/1.1\r\nHost: here\r\nContent-Length: " +
                  std::to_string(body.size()) + "\r\n\r\n" + body);
        return peer.rest();
    };
    const std::string echo = send("POST /echo", "hello");
    EXPECT_THAT(echo, StartsWith("HTTP/1.1 202 "));
    EXPECT_THAT(echo, EndsWith("\r\n\r\nso: hello"));
    const std::string failure = send("DELETE /echo", "");
    EXPECT_THAT(failure, StartsWith("HTTP/1.1 500 "));
    EXPECT_THAT(failure, EndsWith("\r\n\r\nthere is none\n"));
    EXPECT_THAT(send("PUT /echo", "x"), HasSubstr("Allow: DELETE, GET, HEAD, POST\r\n"));
}

TEST(HttpReadiness, AFailingCheckIsAReason) {
    Metrics metrics;
    HttpEndpoint endpoint({}, metrics, []() -> Health { throw std::runtime_error("no idea"); });
    const std::string answer = get(endpoint.port(), "/readyz");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
    EXPECT_THAT(answer, EndsWith("no idea\n"));
}

TEST(HttpStart, StartingAndStoppingLeavesNothingBehind) {
    Metrics metrics;
    for (int i = 0; i < 50; ++i) {
        HttpEndpoint endpoint({}, metrics, [] { return Health{}; });
        ASSERT_GT(endpoint.port(), 0);
    }
}

// Two servers on one port would each get half of the requests.
TEST(HttpStart, APortThatIsTakenIsAnErrorWithTheCure) {
    Metrics metrics;
    const auto health = [] { return Health{}; };
    HttpEndpoint first({}, metrics, health);
    try {
        HttpEndpoint second({.port = first.port()}, metrics, health);
        FAIL() << "two servers share a port";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::unavailable);
        EXPECT_EQ(error.what(),
                  "cannot listen on 127.0.0.1 port " + std::to_string(first.port()) +
                      ": Address already in use; set metrics.address to a free address of this "
                      "machine");
    }
    EXPECT_THAT(get(first.port(), "/healthz"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST(HttpStart, AnAddressOfAnotherMachineIsAnError) {
    Metrics metrics;
    const auto listen = [&] {
        HttpEndpoint endpoint({.host = "192.0.2.1"}, metrics, [] { return Health{}; });
    };
    EXPECT_EQ(test::code_of(listen), Code::unavailable);
}

TEST(HttpAddress, ReadsHostAndPort) {
    EXPECT_EQ(HttpAddress::parse("127.0.0.1:9464").host, "127.0.0.1");
    EXPECT_EQ(HttpAddress::parse("127.0.0.1:9464").port, 9464);
    EXPECT_EQ(HttpAddress::parse("localhost:0").port, 0);
    EXPECT_EQ(HttpAddress::parse("[::1]:80").host, "::1");
    EXPECT_EQ(HttpAddress::parse(":9464").host, "0.0.0.0");
    for (const std::string_view text : {"",
                                        "localhost",
                                        "9464",
                                        "host:",
                                        "host:http",
                                        "host:-1",
                                        "host:65536",
                                        "::1:80",
                                        "h:80 "}) {
        EXPECT_THROW(static_cast<void>(HttpAddress::parse(text)), InvalidArgument) << text;
    }
}

}  // namespace
}  // namespace holdfast
