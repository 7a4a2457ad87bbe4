#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "http/test/peer_fixture.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/base/http.hpp>

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using test::Peer;
using test::Peers;
using test::peers_that_send;
using testing::EndsWith;
using testing::StartsWith;

std::vector<HttpRoute> echo_route() {
    return {{"POST", "/echo", [](const std::string& body) { return HttpAnswer{.body = body}; }}};
}

// Keeps every request it gets, until the test answers.
class LateAnswers {
public:
    HttpHandler handler() {
        return [this](const ReceivedRequest& request, HttpRespond respond) {
            const std::lock_guard lock(mutex_);
            kept_.emplace_back(request, std::move(respond));
            came_.notify_all();
        };
    }
    std::pair<ReceivedRequest, HttpRespond> take() {
        std::unique_lock lock(mutex_);
        came_.wait(lock, [this] { return !kept_.empty(); });
        auto first = std::move(kept_.front());
        kept_.erase(kept_.begin());
        return first;
    }

private:
    std::mutex mutex_;
    std::condition_variable came_;
    std::vector<std::pair<ReceivedRequest, HttpRespond>> kept_;
};

// More requests wait than there are threads, and still the routes answer.
TEST(HttpHandlers, ARequestThatWaitsForItsAnswerHoldsNoThread) {
    LateAnswers late;
    HttpServer server({}, echo_route(), "nothing", {}, late.handler());
    const Peers peers = peers_that_send(
        server.port(), 2 * HttpServer::workers, "GET /a%2Fb?x=1?y HTTP/1.1\r\nHost: here\r\n\r\n");
    std::vector<std::pair<ReceivedRequest, HttpRespond>> waiting;
    waiting.reserve(peers.size());
    for (std::size_t i = 0; i < peers.size(); ++i) {
        waiting.push_back(late.take());
    }
    EXPECT_EQ(waiting[0].first.path, "/a%2Fb");
    EXPECT_EQ(waiting[0].first.query, "x=1?y");
    const Peer bob(server.port());
    bob.send("POST /echo HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\nhi");
    EXPECT_THAT(bob.rest(), EndsWith("hi"));
    for (auto& [request, respond] : waiting) {
        respond({.status = 429, .body = "late\n"});
        respond({.body = "the second answer does not count"});
    }
    for (const auto& peer : peers) {
        EXPECT_THAT(peer->rest(), EndsWith("\r\n\r\nlate\n"));
    }
}

TEST(HttpHandlers, ARequestThatIsDroppedIsAFailure) {
    LateAnswers late;
    HttpServer server({}, {}, "nothing", {}, late.handler());
    const Peer ann(server.port());
    ann.send("GET / HTTP/1.1\r\nHost: here\r\n\r\n");
    (void)late.take();
    EXPECT_THAT(ann.rest(), StartsWith("HTTP/1.1 500 "));
}

// The answer comes when the server stops, and again when it is gone.
TEST(HttpHandlers, AServerThatStopsAnswersWhatItHas) {
    LateAnswers late;
    HttpRespond respond;
    const auto server = std::make_unique<HttpServer>(
        HttpAddress{}, std::vector<HttpRoute>{}, "nothing", HttpOptions{}, late.handler());
    const Peer ann(server->port());
    const Peer silent(server->port());
    ann.send("GET / HTTP/1.1\r\nHost: here\r\n\r\n");
    respond = late.take().second;
    std::thread stopping([&] { server->stop(Deadline::after(1h)); });
    EXPECT_EQ(silent.rest(), "");  // It is stopping.
    respond({.body = "bye\n"});
    stopping.join();
    EXPECT_THAT(ann.rest(), EndsWith("bye\n"));
    respond({.body = "nothing is there to take it\n"});
}

TEST(HttpHandlers, BodiesHaveABoundTogether) {
    HttpOptions options;
    options.limits.bodies_bytes = 10;
    const HttpServer server({}, echo_route(), "nothing", options);
    const std::string head = "POST /echo HTTP/1.1\r\nHost: here\r\nExpect: 100-continue\r\n";
    const Peer ann(server.port());
    ann.send(head + "Content-Length: 6\r\n\r\n");
    EXPECT_THAT(ann.next(), StartsWith("HTTP/1.1 100 "));
    const Peer bob(server.port());
    bob.send(head + "Content-Length: 6\r\n\r\n");
    EXPECT_THAT(bob.rest(), StartsWith("HTTP/1.1 503 "));
    ann.send("123456");
    EXPECT_THAT(ann.rest(), EndsWith("123456"));
    const Peer eve(server.port());
    eve.send(head + "Content-Length: 6\r\n\r\n123456");
    EXPECT_THAT(eve.rest(), EndsWith("123456"));
}

}  // namespace
}  // namespace holdfast
