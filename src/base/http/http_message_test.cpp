#include "http/http_message.hpp"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::http {
namespace {

using State = RequestReader::State;

RequestReader read_in_pieces(std::string_view text, std::size_t piece) {
    RequestReader reader;
    while (!text.empty() && (reader.state() == State::head || reader.state() == State::body)) {
        reader.take(text.substr(0, piece));
        text.remove_prefix(std::min(piece, text.size()));
    }
    return reader;
}

// The status of the refusal; 0 if there is none.
int refusal_of(std::string_view text) {
    const RequestReader reader = read_in_pieces(text, text.size());
    return reader.state() == State::malformed ? reader.refusal().status : 0;
}

TEST(HttpRequestReader, ReadsTheSameFromPiecesOfAnySize) {
    const std::string text =
        "POST /faults?x=1 HTTP/1.1\r\nHost: here:80\r\nX-Empty:\r\nCONTENT-length:  5 "
        "\r\n\r\nhello";
    for (std::size_t piece = 1; piece <= text.size(); ++piece) {
        const RequestReader reader = read_in_pieces(text, piece);
        ASSERT_EQ(reader.state(), State::complete) << piece;
        EXPECT_EQ(reader.request().method, "POST");
        EXPECT_EQ(reader.request().path, "/faults");
        EXPECT_THAT(reader.request().values("host"), testing::ElementsAre("here:80"));
        EXPECT_THAT(reader.request().values("x-empty"), testing::ElementsAre(""));
        EXPECT_EQ(reader.request().body, "hello");
    }
}

TEST(HttpRequestReader, DropsWhatFollowsTheRequest) {
    const RequestReader reader =
        read_in_pieces("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi there", 1000);
    EXPECT_EQ(reader.state(), State::complete);
    EXPECT_EQ(reader.request().body, "hi");
}

TEST(HttpRequestReader, WaitsForTheBodyThatIsAnnounced) {
    const RequestReader reader = read_in_pieces(
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\nExpect: 100-Continue\r\n\r\nhi", 1000);
    EXPECT_EQ(reader.state(), State::body);
    EXPECT_EQ(reader.body_bytes(), 9);
    EXPECT_TRUE(reader.expects_continue());
}

TEST(HttpRequestReader, AnOlderClientNeedsNoHost) {
    EXPECT_EQ(refusal_of("GET / HTTP/1.0\r\n\r\n"), 0);
}

TEST(HttpRequestReader, RefusesWhatIsNotARequest) {
    for (const std::string_view text : {"\r\n\r\n",
                                        "this is not HTTP\r\n\r\n",
                                        "GET /\r\n\r\n",
                                        "GET / / HTTP/1.1\r\nHost: h\r\n\r\n",
                                        "G(T / HTTP/1.1\r\nHost: h\r\n\r\n",
                                        " / HTTP/1.1\r\nHost: h\r\n\r\n",
                                        "GET / HTTP/1.1\r\n\r\n",
                                        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
                                        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
                                        "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
                                        "GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n",
                                        "GET / HTTP/1.1\r\nHost: a\nOrigin: b\r\n\r\n"}) {
        EXPECT_EQ(refusal_of(text), 400) << text;
    }
    EXPECT_EQ(refusal_of("GET / HTTP/2.0\r\nHost: h\r\n\r\n"), 505);
    EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\nHost: h\r\nExpect: cake\r\n\r\n"), 417);
}

// Two readers of one message must not differ about where it ends.
TEST(HttpRequestReader, RefusesABodyOfUnclearLength) {
    const std::string head = "POST / HTTP/1.1\r\nHost: h\r\n";
    for (const std::string_view length : {"",
                                          "-1",
                                          "+1",
                                          "1x",
                                          "0x1",
                                          "1, 1",
                                          "99999999999999999999999",
                                          "1\r\nContent-Length: 1",
                                          "1\r\nContent-Length: 2"}) {
        EXPECT_EQ(refusal_of(head + "Content-Length: " + std::string(length) + "\r\n\r\n"), 400)
            << length;
    }
    EXPECT_EQ(refusal_of(head + "Transfer-Encoding: chunked\r\n\r\n"), 411);
    EXPECT_EQ(refusal_of(head + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"), 411);
}

TEST(HttpRequestReader, RefusesAHeadWithoutEndAtTheLimit) {
    const std::string start = "GET / HTTP/1.1\r\nHost: h\r\nX: ";
    const auto padded = [&](std::size_t size) {
        return start + std::string(size - start.size() - 4, 'x') + "\r\n\r\n";
    };
    for (const std::size_t piece : {std::size_t{100}, RequestReader::head_bytes_max * 2}) {
        EXPECT_EQ(read_in_pieces(padded(RequestReader::head_bytes_max), piece).state(),
                  State::complete);
        const RequestReader reader =
            read_in_pieces(padded(RequestReader::head_bytes_max + 1), piece);
        EXPECT_EQ(reader.state(), State::malformed);
        EXPECT_EQ(reader.refusal().status, 431);
    }
}

TEST(HttpReply, SaysHowLongItIsAndThatTheConnectionEnds) {
    EXPECT_EQ(to_bytes({.status = 405, .body = "no\n", .headers = {{"Allow", "GET, HEAD"}}}, false),
              "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 3\r\n"
              "Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"
              "Allow: GET, HEAD\r\n\r\nno\n");
    EXPECT_THAT(to_bytes({.body = "ok\n"}, true),
                testing::AllOf(testing::HasSubstr("Content-Length: 3\r\n"),
                               testing::EndsWith("close\r\n\r\n")));
}

}  // namespace
}  // namespace holdfast::http
