#include <holdfast/base/http_client.hpp>

#include <latch>

#include <gmock/gmock.h>

#include <holdfast/base/error.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/local_server.hpp>

namespace holdfast {
namespace {

using namespace std::chrono_literals;

TEST(HttpUrl, IsSplitOrRefused) {
    const HttpUrl plain = parse_http_url("http://host:8080/path?x=1");
    EXPECT_FALSE(plain.tls);
    EXPECT_EQ(plain.host, "host");
    EXPECT_EQ(plain.port, 8080);
    EXPECT_EQ(plain.target, "/path?x=1");
    const HttpUrl six = parse_http_url("https://[fd00:ec2::254]");
    EXPECT_TRUE(six.tls);
    EXPECT_EQ(six.host, "fd00:ec2::254");
    EXPECT_EQ(six.port, 443);
    EXPECT_EQ(six.target, "/");
    EXPECT_EQ(parse_http_url("http://host?x").target, "/?x");
    for (const std::string_view bad : {"",
                                       "host",
                                       "ftp://host",
                                       "http://",
                                       "http://:80",
                                       "http://h:0",
                                       "http://h:65536",
                                       "http://h:x",
                                       "http://h:",
                                       "http://user@h/"}) {
        EXPECT_EQ(test::code_of([bad] { (void)parse_http_url(bad); }), Code::invalid_argument)
            << bad;
    }
}

class HttpClient : public testing::Test {
protected:
    [[nodiscard]] HttpReply get(const std::string& path, Deadline deadline) const {
        return http_send({.url = local.url(path)}, deadline, {});
    }

    // The server's handlers look at them until it is gone.
    std::latch asked{1};
    std::latch test_over{1};
    test::LocalServer local;
};

TEST_F(HttpClient, AnyStatusIsAnAnswer) {
    local.server.Post("/echo", [](const httplib::Request& request, httplib::Response& response) {
        response.status = 418;
        response.set_content(request.get_header_value("X-Word") + request.body, "text/plain");
    });
    local.server.Get("/away",
                     [](const auto&, auto& response) { response.set_redirect("/elsewhere"); });
    local.start();
    const HttpReply reply = http_send({.method = "POST",
                                       .url = local.url("/echo"),
                                       .headers = {{"X-Word", "hello-"}},
                                       .body = "world"},
                                      Deadline::after(10s),
                                      {});
    EXPECT_EQ(reply.status, 418);
    EXPECT_EQ(reply.body, "hello-world");
    EXPECT_EQ(get("/away", Deadline::after(10s)).status, 302) << "redirects are not followed";
}

// Each single read of the library ends in time, and the answer as a whole would never.
TEST_F(HttpClient, AServerThatDripsIsHungUpOn) {
    local.server.Get("/drip", [&](const auto&, httplib::Response& response) {
        response.set_chunked_content_provider("text/plain", [&](std::size_t, auto& sink) {
            std::this_thread::sleep_for(10ms);
            return !test_over.try_wait() && sink.write("x", 1);
        });
    });
    local.start();
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(test::code_of([&] { (void)get("/drip", Deadline::after(200ms)); }),
              Code::unavailable);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
    test_over.count_down();
}

TEST_F(HttpClient, ASilentServerIsGivenUpAtTheDeadlineOrWhenStopped) {
    local.server.Get("/silent", [&](const auto&, auto&) {
        asked.count_down();
        test_over.wait();
    });
    local.server.Get("/mute", [&](const auto&, auto&) { test_over.wait(); });
    local.start();
    EXPECT_EQ(test::code_of([&] { (void)get("/mute", Deadline::after(100ms)); }),
              Code::unavailable);
    std::stop_source stop;
    const std::jthread stopper([&] {
        asked.wait();
        stop.request_stop();
    });
    EXPECT_EQ(test::code_of([&] {
                  (void)http_send(
                      {.url = local.url("/silent")}, Deadline::after(60s), stop.get_token());
              }),
              Code::cancelled);
    test_over.count_down();
}

TEST_F(HttpClient, AnEndlessAnswerIsCutOff) {
    local.server.Get("/flood", [](const auto&, httplib::Response& response) {
        response.set_content(std::string(reply_bytes_max + 1, 'x'), "text/plain");
    });
    local.start();
    EXPECT_EQ(test::code_of([&] { (void)get("/flood", Deadline::after(10s)); }), Code::unavailable);
}

TEST_F(HttpClient, NobodyThereIsUnavailable) {
    EXPECT_EQ(test::code_of([] {
                  (void)http_send({.url = "http://127.0.0.1:1/"}, Deadline::after(10s), {});
              }),
              Code::unavailable);
}

}  // namespace
}  // namespace holdfast
