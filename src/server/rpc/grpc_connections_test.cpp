#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "rpc/test/grpc_fixture.hpp"
#include "rpc/test/http2_fixture.hpp"
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::server::rpc {

namespace {

using namespace std::chrono_literals;
using tests::Answered;
using tests::echo_method;
using tests::Frame;
using tests::GrpcTest;
using tests::wait_method;

class GrpcConnectionsTest : public GrpcTest {
protected:
    // The message of the failure to start; empty if it started.
    std::string failure_of(GrpcTransportOptions options) {
        try {
            start(std::move(options));
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    }
};

TEST_F(GrpcConnectionsTest, APortThatIsTakenIsNamed) {
    start();
    const GrpcTransport& first = *server;
    GrpcTransportOptions options{.port = first.port()};
    EXPECT_EQ(failure_of(options),
              fmt::format("can't set frontend port {}: Address already in use", first.port()));
}

TEST_F(GrpcConnectionsTest, AnAddressThatIsNotOneIsRefused) {
    EXPECT_EQ(failure_of({.address = "everywhere"}),
              "can't set frontend port 0: \"everywhere\" is not an IP address");
}

TEST_F(GrpcConnectionsTest, APortIsFreeAgainAfterTheStop) {
    start();
    const std::uint16_t port = server->port();
    EXPECT_EQ(run_id_in(client().call(echo_method, request_of("w"))), "run of w");
    server.reset();
    dispatch.open();
    start({.port = port});
    EXPECT_EQ(run_id_in(client().call(echo_method, request_of("w"))), "run of w");
}

// A hundred waiting polls hold no thread of the few there are.
TEST_F(GrpcConnectionsTest, AStopAnswersAHundredPollsAndReturns) {
    start();
    auto ann = client();
    std::vector<std::unique_ptr<tests::ClientCall>> polls;
    for (int i = 0; i < 100; ++i) {
        polls.push_back(ann.begin(wait_method, ""));
    }
    ASSERT_TRUE(waiting.wait_for_waiting(100));
    EXPECT_EQ(run_id_in(ann.call(echo_method, request_of("w"))), "run of w");
    server->stop(Deadline::after(tests::patience));
    for (const auto& poll : polls) {
        const Answered answered = poll->answer();
        EXPECT_TRUE(answered.status.ok()) << answered.status.error_message();
        EXPECT_EQ(answered.bytes, "");
    }
    EXPECT_EQ(dispatch.open_calls(), 0U);
    EXPECT_EQ(ann.call(echo_method, request_of("w")).status.error_code(),
              grpc::StatusCode::UNAVAILABLE);
}

TEST_F(GrpcConnectionsTest, APollThatMissesTheDrainIsRefused) {
    start();
    waiting.ignore_stops();
    auto ann = client();
    const auto poll = ann.begin(wait_method, "");
    ASSERT_TRUE(waiting.wait_for_waiting(1));
    server->stop(Deadline::after(0ms));
    EXPECT_EQ(poll->answer().status.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_FALSE(waiting.answer_one("late"));
}

TEST_F(GrpcConnectionsTest, AServerMayGoWhileCallsWait) {
    start();
    waiting.ignore_stops();
    auto ann = client();
    const auto poll = ann.begin(wait_method, "");
    ASSERT_TRUE(waiting.wait_for_waiting(1));
    server.reset();
    EXPECT_EQ(poll->answer().status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

// More pings at once than an SDK sends in an hour.
TEST_F(GrpcConnectionsTest, PingsOnAnIdleConnectionAreAnsweredHoweverManyThereAre) {
    HOLDFAST_CHECK("server F93");
    start();
    tests::Http2Client ann(server->port());
    for (int i = 0; i < 50; ++i) {
        ann.send({.type = tests::ping_frame, .flags = 0, .stream = 0, .payload = "pingpong"});
    }
    for (int acknowledged = 0; acknowledged < 50;) {
        const auto frame = ann.read();
        ASSERT_TRUE(frame);
        ASSERT_NE(frame->type, tests::goaway_frame) << frame->payload;
        acknowledged += frame->type == tests::ping_frame ? 1 : 0;
    }
}

TEST_F(GrpcConnectionsTest, AnOldConnectionIsSentAwayAndItsPollStillAnswered) {
    HOLDFAST_CHECK("server F94");
    start({.connections = {.age_max = 50ms}});
    tests::Http2Client ann(server->port());
    ann.call(1, wait_method, "");
    ASSERT_TRUE(waiting.wait_for_waiting(1));
    ASSERT_TRUE(ann.read_until(tests::goaway_frame));
    EXPECT_TRUE(waiting.answer_one("a task"));
    const auto data = ann.read_until(tests::data_frame);
    ASSERT_TRUE(data);
    EXPECT_NE(data->payload.find("a task"), std::string::npos);
    const auto trailers = ann.read_until(tests::headers_frame);
    ASSERT_TRUE(trailers);
    EXPECT_EQ(trailers->flags & tests::end_stream, tests::end_stream);
}

class GrpcTlsTest : public GrpcConnectionsTest {
protected:
    GrpcTransportOptions with_tls(bool require_client_certificate = false) const {
        return {.tls = GrpcTls{
                    .certificate = own.certificate,
                    .key = own.key,
                    .client_authorities = require_client_certificate ? authority.certificate() : "",
                    .require_client_certificate = require_client_certificate}};
    }
    grpc::StatusCode called_by(tests::GrpcClient client) const {
        return client.call(echo_method, request_of("w"), {.timeout = 10s}).status.error_code();
    }

    tests::Authority authority;
    tests::Certified own = authority.issue("the server");
};

TEST_F(GrpcTlsTest, AClientThatTrustsTheAuthorityIsServed) {
    start(with_tls());
    EXPECT_EQ(called_by(tests::GrpcClient(server->port(), &authority)), grpc::StatusCode::OK);
}

TEST_F(GrpcTlsTest, AClientThatTrustsAnotherAuthorityHasNoConnection) {
    start(with_tls());
    const tests::Authority other;
    EXPECT_EQ(called_by(tests::GrpcClient(server->port(), &other)), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(GrpcTlsTest, ClientsWithoutACertificateHaveNoConnectionWhereOneIsRequired) {
    HOLDFAST_CHECK("server F106");
    start(with_tls(true));
    EXPECT_EQ(called_by(tests::GrpcClient(server->port(), &authority)),
              grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(called_by(tests::GrpcClient(server->port(), &authority, authority.issue("ann"))),
              grpc::StatusCode::OK);
}

TEST_F(GrpcTlsTest, ACertificateOfAnotherAuthorityIsNotAccepted) {
    start(with_tls(true));
    const tests::Authority other;
    EXPECT_EQ(called_by(tests::GrpcClient(server->port(), &authority, other.issue("bob"))),
              grpc::StatusCode::UNAVAILABLE);
}

TEST_F(GrpcTlsTest, AKeyOfAnotherCertificateIsRefusedAtTheStart) {
    GrpcTransportOptions options = with_tls();
    options.tls->key = authority.issue("another").key;
    EXPECT_EQ(failure_of(options),
              "can't set frontend port 0: the certificate and the key cannot be used together");
}

}  // namespace

}  // namespace holdfast::server::rpc
