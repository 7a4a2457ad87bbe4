#include "rpc/grpc_transport.hpp"

#include <chrono>
#include <string>

#include "rpc/test/grpc_fixture.hpp"
#include <google/rpc/status.pb.h>
#include <gtest/gtest.h>
#include <temporal/api/errordetails/v1/message.pb.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::rpc {

namespace {

using namespace std::chrono_literals;
using tests::Answered;
using tests::CallOptions;
using tests::echo_method;
using tests::GrpcTest;
using tests::refuse_method;
using tests::wait_method;

constexpr std::size_t mebibyte = std::size_t{1} << 20;

class GrpcTransportTest : public GrpcTest {
protected:
    tests::GrpcClient ann = started();
};

TEST_F(GrpcTransportTest, ACallWithoutCredentialsIsServed) {
    HOLDFAST_CHECK("server F110");
    EXPECT_EQ(run_id_in(ann.call(echo_method, request_of("invoice-7"))), "run of invoice-7");
}

TEST_F(GrpcTransportTest, TheHandlerKnowsTheCallersDeadline) {
    const auto sent = std::chrono::system_clock::now();
    ann.call(echo_method, request_of("w"), {.timeout = 3h});
    const auto deadline = last_info().deadline;
    ASSERT_TRUE(deadline);
    EXPECT_GT(*deadline, sent + 2h);
    EXPECT_LT(*deadline, sent + 4h);
}

// A deadline that is too near passes before the call arrives; then a later one is tried.
TEST_F(GrpcTransportTest, ACallWhoseDeadlinePassesIsTakenFromItsHandler) {
    for (auto timeout = 10ms; waiting.arrived() == 0 && timeout < tests::patience; timeout *= 2) {
        const Answered answered = ann.call(wait_method, "", {.timeout = timeout});
        EXPECT_EQ(answered.status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
    }
    ASSERT_TRUE(waiting.wait_for_endings(1));
    EXPECT_EQ(waiting.endings().front(), Ending::cancelled);
    EXPECT_TRUE(waiting.wait_for_waiting(0));
}

// A poll that is cancelled must not swallow a task.
TEST_F(GrpcTransportTest, ACancelledPollTellsItsHandlerAndTakesNoAnswer) {
    const auto poll = ann.begin(wait_method, "");
    ASSERT_TRUE(waiting.wait_for_waiting(1));
    poll->cancel();
    EXPECT_EQ(poll->answer().status.error_code(), grpc::StatusCode::CANCELLED);
    ASSERT_TRUE(waiting.wait_for_endings(1));
    EXPECT_EQ(waiting.endings(), std::vector{Ending::cancelled});
    EXPECT_TRUE(waiting.wait_for_waiting(0));
}

TEST_F(GrpcTransportTest, APollIsAnsweredLaterFromAnotherThread) {
    const auto poll = ann.begin(wait_method, "");
    ASSERT_TRUE(waiting.wait_for_waiting(1));
    EXPECT_TRUE(waiting.answer_one("a token"));
    tests::WaitResponse response;
    ASSERT_TRUE(response.ParseFromString(poll->answer().bytes));
    EXPECT_EQ(response.task_token(), "a token");
}

// Cancels and answers race; under ASan a use after free would show.
TEST_F(GrpcTransportTest, EveryPollEndsOnceWhenCancelsMeetAnswers) {
    for (int round = 0; round < 50; ++round) {
        const auto poll = ann.begin(wait_method, "");
        ASSERT_TRUE(waiting.wait_for_waiting(1));
        poll->cancel();
        if (round % 2 == 0) {
            waiting.answer_one("late");
        }
        poll->answer();
        ASSERT_TRUE(waiting.wait_for_waiting(0));
    }
    EXPECT_EQ(run_id_in(ann.call(echo_method, request_of("w"))), "run of w");
}

TEST_F(GrpcTransportTest, ARequestOfFiveMebibytesIsRefusedInTheWordsThatClientsLookFor) {
    HOLDFAST_CHECK("server F90");
    for (const std::size_t size : {5 * mebibyte, 20 * mebibyte}) {
        const Answered answered = ann.call(echo_method, request_of(std::string(size, 'x')));
        EXPECT_EQ(answered.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
        EXPECT_TRUE(
            answered.status.error_message().starts_with("grpc: received message larger than max"))
            << answered.status.error_message();
    }
}

TEST_F(GrpcTransportTest, ARequestAndAResponseOfThreeMebibytesPass) {
    const std::string name(3 * mebibyte, 'x');
    EXPECT_EQ(run_id_in(ann.call(echo_method, request_of(name))), "run of " + name);
}

TEST_F(GrpcTransportTest, ACompressedRequestIsUnderstood) {
    HOLDFAST_CHECK("server F91");
    const std::string name(mebibyte, 'x');
    EXPECT_EQ(run_id_in(ann.call(echo_method, request_of(name), {.gzip = true})), "run of " + name);
}

TEST_F(GrpcTransportTest, TheLimitHoldsForWhatACompressedRequestUnfoldsTo) {
    HOLDFAST_CHECK("server F92");
    const Answered answered =
        ann.call(echo_method, request_of(std::string(8 * mebibyte, 'x')), {.gzip = true});
    EXPECT_TRUE(
        answered.status.error_message().starts_with("grpc: received message larger than max"))
        << answered.status.error_message();
}

TEST_F(GrpcTransportTest, ARefusalHasOneDetailInItsTrailer) {
    HOLDFAST_CHECK("server F104");
    temporal::api::errordetails::v1::WorkflowExecutionAlreadyStartedFailure detail;
    detail.set_run_id("r");
    refusal = Refusal(StatusCode::already_exists, "it runs", detail);
    const Answered answered = ann.call(refuse_method, "");
    EXPECT_EQ(answered.status.error_code(), grpc::StatusCode::ALREADY_EXISTS);
    google::rpc::Status status;
    ASSERT_TRUE(status.ParseFromString(answered.status.error_details()));
    EXPECT_EQ(status.code(), grpc::StatusCode::ALREADY_EXISTS);
    EXPECT_EQ(status.message(), "it runs");
    ASSERT_EQ(status.details_size(), 1);
    EXPECT_EQ(status.details(0).type_url(),
              "type.googleapis.com/"
              "temporal.api.errordetails.v1.WorkflowExecutionAlreadyStartedFailure");
    EXPECT_TRUE(status.details(0).UnpackTo(&detail));
    EXPECT_EQ(detail.run_id(), "r");
}

TEST_F(GrpcTransportTest, ARefusalWithoutADetailHasNoSuchTrailer) {
    const Answered answered = ann.call(refuse_method, "");
    EXPECT_EQ(answered.status.error_message(), "workflow not found for ID: w");
    EXPECT_EQ(answered.status.error_details(), "");
}

TEST_F(GrpcTransportTest, AnExhaustedLimitIsToldInTheInitialMetadata) {
    temporal::api::errordetails::v1::ResourceExhaustedFailure detail;
    detail.set_cause(temporal::api::enums::v1::RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT);
    detail.set_scope(temporal::api::enums::v1::RESOURCE_EXHAUSTED_SCOPE_NAMESPACE);
    refusal = Refusal(StatusCode::resource_exhausted, "namespace rate limit exceeded", detail);
    const auto metadata = ann.call(refuse_method, "").initial_metadata;
    EXPECT_TRUE(metadata.contains("x-resource-exhausted-cause"));
    EXPECT_EQ(metadata.find("x-resource-exhausted-cause")->second, "RpsLimit");
    EXPECT_EQ(metadata.find("x-resource-exhausted-scope")->second, "Namespace");
}

TEST_F(GrpcTransportTest, AnInternalFailureReachesTheClientAsAHash) {
    refusal = Refusal(StatusCode::internal, "row 7 is damaged");
    const Answered answered = ann.call(refuse_method, "");
    EXPECT_TRUE(
        answered.status.error_message().starts_with("something went wrong, please retry ("));
    EXPECT_EQ(log.count("row 7 is damaged"), 1U);
}

TEST_F(GrpcTransportTest, AnUnknownMethodIsUnimplemented) {
    const Answered answered = ann.call("/temporal.api.X/Dance", "");
    EXPECT_EQ(answered.status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
    EXPECT_NE(answered.status.error_message().find("is unimplemented"), std::string::npos);
}

TEST_F(GrpcTransportTest, MetadataIsReadAsTheCallersOwnWords) {
    ann.call(echo_method,
             request_of("w"),
             {.metadata = {{"client-name", "temporal-go"},
                           {"client-version", "1.50.0"},
                           {"supported-server-versions", ">=1.0.0 <2.0.0"},
                           {"temporal-namespace", "default"},
                           {"authorization", "Bearer x"},
                           {"caller-type", "operator"}}});
    const Caller caller = last_info().caller;
    EXPECT_EQ(caller.client_name, "temporal-go");
    EXPECT_EQ(caller.client_version, "1.50.0");
    EXPECT_EQ(caller.supported_server_versions, ">=1.0.0 <2.0.0");
    EXPECT_EQ(caller.namespace_hint, "default");
    EXPECT_EQ(caller.authorization, "Bearer x");
    EXPECT_EQ(caller.caller_type, "operator");
}

TEST_F(GrpcTransportTest, AClaimedPrincipalDoesNotReachTheHandler) {
    HOLDFAST_CHECK("server F99");
    ann.call(
        echo_method,
        request_of("w"),
        {.metadata = {{"temporal-principal-type", "user"}, {"temporal-principal-name", "root"}}});
    const auto [name, version, servers, hint, authorization, features, type] = last_info().caller;
    EXPECT_EQ(name + version + servers + hint + authorization + features + type, "");
}

TEST_F(GrpcTransportTest, AnAuthorizationOfManyKilobytesPasses) {
    const std::string token(32 << 10, 'x');
    ann.call(echo_method, request_of("w"), {.metadata = {{"authorization", token}}});
    EXPECT_EQ(last_info().caller.authorization, token);
}

}  // namespace

}  // namespace holdfast::server::rpc
