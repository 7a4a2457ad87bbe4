#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>

#include "http/test/peer_fixture.hpp"
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/http.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/sanitizers.hpp>

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using test::Peer;
using test::Peers;
using test::peers_that_send;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// While it lives, the process can open `count` more descriptors.
class FewDescriptors {
public:
    explicit FewDescriptors(int count) {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        ::close(next);  // The lowest free number, above which the test has none.
        rlimit few = before_;
        few.rlim_cur = static_cast<rlim_t>(next) + static_cast<rlim_t>(count);
        EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    }
    ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
    FewDescriptors(const FewDescriptors&) = delete;
    FewDescriptors& operator=(const FewDescriptors&) = delete;

private:
    rlimit before_{};
};

std::string get(int port, const std::string& path) {
    const Peer peer(port);
    peer.send("GET " + path + " HTTP/1.1\r\nHost: here\r\n\r\n");
    return peer.rest();
}

// No deadline comes to help: where a test passes, it is not because a slow peer was given up.
constexpr HttpLimits patient{.request = 1h, .answer = 1h};

class Http : public testing::Test {
protected:
    Metrics metrics;
    std::atomic<bool> ready = true;
    HttpEndpoint endpoint{
        {},
        metrics,
        [this] { return ready ? Health{} : Health{false, "the database is away"}; },
        patient};
};

constexpr std::string_view half = "GET /healthz HT";
constexpr std::string_view other_half = "TP/1.1\r\nHost: here\r\n\r\n";
constexpr std::string_view success = "HTTP/1.1 200 OK\r\n";

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
    answers.reserve(40);
    for (int i = 0; i < 40; ++i) {
        answers.push_back(std::async(std::launch::async, get, endpoint.port(), "/healthz"));
    }
    for (auto& answer : answers) {
        EXPECT_THAT(answer.get(), StartsWith("HTTP/1.1 200 OK\r\n"));
    }
}

// Each peer that stopped in the middle of its request is still there afterwards and finishes it.
TEST_F(Http, HalfSentRequestsCostOthersNothing) {
    const Peers slow = peers_that_send(endpoint.port(), 100, half);
    EXPECT_THAT(get(endpoint.port(), "/healthz"), StartsWith(success));
    for (const auto& peer : slow) {
        peer->send(other_half);
        EXPECT_THAT(peer->rest(), StartsWith(success));
    }
}

// More than the server has room for: the oldest make room, and the newest are kept.
TEST_F(Http, HundredsOfSilentPeersCostOthersNothing) {
    const Peers silent = peers_that_send(endpoint.port(), 400, half);
    EXPECT_THAT(get(endpoint.port(), "/healthz"), StartsWith(success));
    EXPECT_EQ(silent.front()->rest(), "");
    silent.back()->send(other_half);
    EXPECT_THAT(silent.back()->rest(), StartsWith(success));
}

TEST_F(Http, AnswersOthersBetweenTheBytesOfARequest) {
    const Peer slow(endpoint.port());
    const std::string request = std::string(half) + std::string(other_half);
    for (const char byte : request) {
        EXPECT_THAT(get(endpoint.port(), "/healthz"), StartsWith(success));
        slow.send({&byte, 1});
    }
    EXPECT_THAT(slow.rest(), StartsWith(success));
}

TEST_F(Http, StopsAtOnceWhilePeersDawdle) {
    const Peers slow = peers_that_send(endpoint.port(), 10, half);
    EXPECT_THAT(get(endpoint.port(), "/healthz"), StartsWith(success));
    endpoint.stop();  // Were it to wait for them, it would wait for an hour.
    EXPECT_EQ(slow.front()->rest(), "");
    EXPECT_FALSE(Peer(endpoint.port()).connected());
    endpoint.stop();  // A repeat does nothing.
}

TEST_F(Http, RefusesAHeadWithoutEnd) {
    const Peer peer(endpoint.port());
    peer.send("GET /metrics HTTP/1.1\r\nX-More: " + std::string(20'000, 'x'));
    EXPECT_THAT(peer.rest(), StartsWith("HTTP/1.1 431 "));
}

TEST_F(Http, HangsUpOnAPeerThatNeverEndsItsRequest) {
    const Peer peer(endpoint.port());
    peer.send("GET /metrics HTTP/1.1\r\n");
    while (peer.try_send("X-More: and more\r\n")) {
    }
    EXPECT_THAT(get(endpoint.port(), "/healthz"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(Http, StopsFromSeveralThreadsAtOnce) {
    std::vector<std::jthread> stoppers;
    stoppers.reserve(4);
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
    EXPECT_THAT(send("PUT /echo", "x"), HasSubstr("Allow: DELETE, POST\r\n"));
    EXPECT_THAT(send("POST /echo", std::string(HttpLimits{}.body_bytes, 'x')),
                StartsWith("HTTP/1.1 202 "));
    EXPECT_THAT(send("POST /echo", std::string(HttpLimits{}.body_bytes + 1, 'x')),
                StartsWith("HTTP/1.1 413 "));
}

using Answering = std::function<HttpAnswer(const std::string&)>;

HttpAnswer echo(const std::string& body) {
    HttpAnswer answer;
    answer.body = body;
    return answer;
}

// A server that no setting was made for.
std::unique_ptr<HttpServer> served(std::vector<HttpRoute> routes, const HttpLimits& limits) {
    const HttpAddress any;
    HttpOptions options;
    options.limits = limits;
    return std::make_unique<HttpServer>(any, std::move(routes), "nothing", options);
}

TEST(HttpRoutes, TellsAClientThatAsksToSendTheBody) {
    std::vector<HttpRoute> routes;
    routes.push_back({"POST", "/echo", echo});
    const auto server = served(std::move(routes), patient);
    const Peer peer(server->port());
    peer.send(
        "POST /echo HTTP/1.1\r\nHost: here\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    EXPECT_EQ(peer.next(), "HTTP/1.1 100 Continue\r\n\r\n");
    peer.send("hi");
    EXPECT_THAT(peer.rest(), EndsWith("\r\n\r\nhi"));
}

// The refusal is not lost with the bytes that come after it.
TEST(HttpRoutes, ARefusalReachesAClientThatStillSends) {
    const auto server = served({}, patient);
    const Peer peer(server->port());
    peer.send("POST /x HTTP/1.1\r\nHost: here\r\nContent-Length: 200000\r\n\r\n");
    for (int i = 0; i < 20 && peer.try_send(std::string(10'000, 'x')); ++i) {
    }
    EXPECT_THAT(peer.rest(), StartsWith("HTTP/1.1 404 "));
}

TEST(HttpRoutes, ARouteThatWaitsDoesNotHoldUpOthers) {
    std::promise<void> begun;
    std::promise<void> may_end;
    const Answering slowly = [&](const std::string& body) {
        begun.set_value();
        may_end.get_future().wait();
        return echo(body);
    };
    std::vector<HttpRoute> routes;
    routes.push_back({"GET", "/slow", slowly});
    routes.push_back({"GET", "/quick", echo});
    const auto server = served(std::move(routes), patient);
    const Peer slow(server->port());
    slow.send("GET /slow HTTP/1.1\r\nHost: here\r\n\r\n");
    begun.get_future().wait();
    EXPECT_THAT(get(server->port(), "/quick"), StartsWith(success));
    may_end.set_value();
    EXPECT_THAT(slow.rest(), StartsWith(success));
}

class HttpLimit : public testing::Test {
protected:
    static constexpr std::size_t large = std::size_t{8} << 20;  // More than a socket holds.

    std::unique_ptr<HttpServer> server(const HttpLimits& limits) {
        std::vector<HttpRoute> routes;
        routes.push_back({"GET", "/large", [this](const std::string&) { return echo(body); }});
        routes.push_back({"GET", "/healthz", echo});
        return served(std::move(routes), limits);
    }

    const std::string body = std::string(large, 'x');
    static constexpr std::string_view ask = "GET /large HTTP/1.1\r\nHost: here\r\n\r\n";
};

TEST_F(HttpLimit, SlowReadersOfALargeAnswerCostOthersNothing) {
    const auto running = server(patient);
    const Peers slow = peers_that_send(running->port(), HttpServer::workers + 2, ask);
    EXPECT_THAT(get(running->port(), "/healthz"), StartsWith(success));
    for (const auto& peer : slow) {
        EXPECT_THAT(peer->rest(), EndsWith("\r\n\r\n" + body));
    }
}

// Two answers fit. The oldest that is not read makes room for the newest.
TEST_F(HttpLimit, UnreadAnswersAreBoundedInSum) {
    HttpLimits limits = patient;
    limits.answer_bytes = 2 * large + 10'000;
    const auto running = server(limits);
    Peers slow;
    for (int i = 0; i < 3; ++i) {
        slow.push_back(std::move(peers_that_send(running->port(), 1, ask).front()));
        EXPECT_THAT(slow.back()->next(), StartsWith(success));
    }
    EXPECT_LT(slow[0]->rest().size(), large);
    EXPECT_GE(slow[1]->rest().size(), large);
    EXPECT_GE(slow[2]->rest().size(), large);
}

TEST_F(HttpLimit, AFullTableMakesRoomForTheNewest) {
    HttpLimits limits = patient;
    limits.connections = 4;
    const auto running = server(limits);
    const Peers slow = peers_that_send(running->port(), 4, half);
    EXPECT_THAT(get(running->port(), "/healthz"), StartsWith(success));
    EXPECT_EQ(slow[0]->rest(), "");
    for (std::size_t i = 1; i < slow.size(); ++i) {
        slow[i]->send(other_half);
        EXPECT_THAT(slow[i]->rest(), StartsWith(success));
    }
}

TEST_F(HttpLimit, ASilentPeerIsGivenUpAtTheDeadline) {
    HttpLimits limits = patient;
    limits.request = 10ms;
    const auto running = server(limits);
    EXPECT_EQ(Peer(running->port()).rest(), "");
}

// A limit per read would never be met by this one.
TEST_F(HttpLimit, ABusyPeerIsGivenUpAtTheDeadline) {
    HttpLimits limits = patient;
    limits.request = 10ms;
    const auto running = server(limits);
    const Peer peer(running->port());
    for (int i = 0; i < 8 && peer.try_send("GET /"); ++i) {
    }
    EXPECT_EQ(peer.rest(), "");
}

TEST_F(HttpLimit, APeerThatDoesNotReadIsGivenUpAtTheDeadline) {
    HttpLimits limits = patient;
    limits.answer = 10ms;
    const auto running = server(limits);
    const Peer peer(running->port());
    peer.send(ask);
    peer.wait_for_reset();
}

// The process has three descriptors left, and more silent peers than that.
TEST_F(HttpLimit, LivesWithFewDescriptors) {
    if (test::sanitizer_needs_descriptors) {
        GTEST_SKIP() << "UBSan needs descriptors itself; the g++ suite runs this test";
    }
    const auto running = server(patient);
    Peers silent(20);
    for (auto& peer : silent) {
        peer = std::make_unique<Peer>();
    }
    Peer last;
    const FewDescriptors few(3);
    for (const auto& peer : silent) {
        peer->connect(running->port());
        EXPECT_TRUE(peer->connected());
    }
    last.connect(running->port());
    last.send("GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n");
    EXPECT_THAT(last.rest(), StartsWith(success));
}

TEST(HttpReadiness, AFailingCheckIsAReason) {
    Metrics metrics;
    const HttpEndpoint endpoint(
        {}, metrics, []() -> Health { throw std::runtime_error("no idea"); });
    const std::string answer = get(endpoint.port(), "/readyz");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
    EXPECT_THAT(answer, EndsWith("no idea\n"));
}

TEST(HttpStart, StartingAndStoppingLeavesNothingBehind) {
    Metrics metrics;
    for (int i = 0; i < 50; ++i) {
        const HttpEndpoint endpoint({}, metrics, [] { return Health{}; });
        ASSERT_GT(endpoint.port(), 0);
    }
}

// Two servers on one port would each get half of the requests.
TEST(HttpStart, APortThatIsTakenIsAnErrorWithTheCure) {
    Metrics metrics;
    const auto health = [] { return Health{}; };
    const HttpEndpoint first({}, metrics, health);
    try {
        const HttpEndpoint second({.port = first.port()}, metrics, health);
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
        const HttpEndpoint endpoint({.host = "192.0.2.1"}, metrics, [] { return Health{}; });
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
