#include "rpc/dispatch.hpp"

#include "rpc/test/dispatch_fixture.hpp"
#include <gtest/gtest.h>
#include <temporal/api/errordetails/v1/message.pb.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/log_capture.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::server::rpc {

namespace {

using tests::DispatchTest;
using tests::StartRequest;
using tests::StartResponse;

TEST_F(DispatchTest, ARequestIsDecodedAndItsResponseEncoded) {
    serve([](const StartRequest& request, Reply<StartResponse> reply) {
        reply.message().set_run_id("run of " + request.workflow_id());
        EXPECT_TRUE(std::move(reply).send());
    });
    EXPECT_EQ(run_id(call("invoice-7")), "run of invoice-7");
}

TEST_F(DispatchTest, AnUnknownMethodIsUnimplementedInTheWordsThatClientsLookFor) {
    HOLDFAST_CHECK("server F21");
    const Refusal refusal = refusal_in(call_method("/temporal.api.X/Dance", ""));
    EXPECT_EQ(refusal.code, StatusCode::unimplemented);
    EXPECT_NE(refusal.message.find("unknown method Dance for service temporal.api.X"),
              std::string::npos);
    EXPECT_NE(refusal.message.find("is unimplemented"), std::string::npos);
}

TEST_F(DispatchTest, NoUnimplementedHasTheWordsThatClientsTakeForMissingCompression) {
    HOLDFAST_CHECK("server F22");
    for (const char* word : {"decompress", "grpc-encoding", "compressor"}) {
        const Refusal sent =
            dispatch.shape(refusal_in(call_method(std::string("/a.B/") + word, "")));
        EXPECT_EQ(sent.code, StatusCode::unimplemented);
        EXPECT_EQ(sent.message.find(word), std::string::npos) << sent.message;
        EXPECT_EQ(log.count(word), 1U) << "the log keeps the text";
    }
    const Refusal plain(StatusCode::unimplemented, "workflow pause is not enabled");
    EXPECT_EQ(dispatch.shape(plain), plain);
}

TEST_F(DispatchTest, AMethodThatIsAlwaysServedKnowsNoGateAndNoCheck) {
    dispatch.add<StartRequest, StartResponse>(
        "/a.B/Always",
        [](const StartRequest&, Reply<StartResponse> reply) { std::move(reply).send(); },
        Gate::always);
    dispatch.add_check([](const CallInfo&) { return Refusal(StatusCode::not_found, "no"); });
    EXPECT_EQ(run_id(call_method("/a.B/Always", "")), "");
    dispatch.stop();
    EXPECT_EQ(run_id(call_method("/a.B/Always", "")), "");
}

TEST_F(DispatchTest, TheFirstCheckThatRefusesAnswers) {
    serve([](const StartRequest&, Reply<StartResponse> reply) {
        ADD_FAILURE() << "the handler runs";
        std::move(reply).send();
    });
    dispatch.add_check([](const CallInfo&) { return std::nullopt; });
    dispatch.add_check(
        [](const CallInfo& info) { return Refusal(StatusCode::failed_precondition, info.method); });
    dispatch.add_check([](const CallInfo&) { return Refusal(StatusCode::internal, "too late"); });
    EXPECT_EQ(refusal_in(call("w")), Refusal(StatusCode::failed_precondition, tests::start));
}

TEST_F(DispatchTest, BytesThatAreNotARequestAreRefused) {
    EXPECT_EQ(refusal_in(call_method(tests::start, "\xff\xff\xff")).code,
              StatusCode::invalid_argument);
}

TEST_F(DispatchTest, AnIdThatIsNotUtf8IsRefused) {
    HOLDFAST_CHECK("server F42");
    const std::string workflow_id = "\x12\x02\xc3\x28";  // Field 2, two bytes.
    EXPECT_EQ(refusal_in(call_method(tests::start, workflow_id)).code,
              StatusCode::invalid_argument);
}

TEST_F(DispatchTest, ARequestAboveTheLimitIsRefusedInTheWordsThatClientsLookFor) {
    const Refusal refusal = refusal_in(call(std::string(std::size_t{5} << 20, 'x')));
    EXPECT_EQ(refusal.code, StatusCode::resource_exhausted);
    EXPECT_TRUE(refusal.message.starts_with("grpc: received message larger than max"));
}

TEST_F(DispatchTest, UntilItIsOpenEveryMethodIsUnavailable) {
    HOLDFAST_CHECK("server F15");
    dispatch.stop();
    EXPECT_EQ(refusal_in(call("w")),
              Refusal(StatusCode::unavailable, "Frontend is not healthy yet"));
    dispatch.open();
    EXPECT_EQ(run_id(call("w")), "");
}

TEST_F(DispatchTest, WhatAHandlerThrowsIsAnsweredByItsCode) {
    serve([](const StartRequest&, const Reply<StartResponse>&) { throw InvalidArgument("no"); });
    EXPECT_EQ(refusal_in(call("w")), Refusal(StatusCode::invalid_argument, "no"));
    serve(
        [](const StartRequest&, const Reply<StartResponse>&) { throw std::runtime_error("bug"); });
    EXPECT_EQ(refusal_in(call("w")).code, StatusCode::internal);
}

TEST_F(DispatchTest, ADroppedCallIsAnsweredInternal) {
    serve([](const StartRequest&, const Reply<StartResponse>&) {});
    EXPECT_EQ(refusal_in(call("w")).code, StatusCode::internal);
    park();
    call("w");
    parked.clear();
    EXPECT_EQ(refusal_in(answers.back()).code, StatusCode::internal);
}

TEST_F(DispatchTest, ACancelledCallTellsItsHandlerOnceAndItsAnswerReachesNobody) {
    park();
    const auto ann = begin("w");
    ann->cancel();
    ann->cancel();
    dispatch.stop();
    EXPECT_EQ(endings, std::vector{Ending::cancelled});
    EXPECT_EQ(refusal_in(answers.back()).code, StatusCode::cancelled);
    EXPECT_FALSE(std::move(parked.front()).send()) << "the task must go to another poller";
    EXPECT_EQ(answers.size(), 1U);
}

TEST_F(DispatchTest, AStopTellsParkedCallsAndCloseAnswersTheRest) {
    park();
    begin("ann");
    begin("bob");
    dispatch.stop();
    EXPECT_EQ(endings, (std::vector{Ending::stopping, Ending::stopping}));
    EXPECT_TRUE(std::move(parked.front()).send());
    dispatch.close();
    ASSERT_EQ(answers.size(), 2U);
    EXPECT_EQ(refusal_in(answers.back()).code, StatusCode::unavailable);
    EXPECT_EQ(dispatch.open_calls(), 0U);
}

TEST_F(DispatchTest, AnInternalTextIsLoggedAndTheClientGetsItsHash) {
    HOLDFAST_CHECK("server F13");
    const Refusal sent = dispatch.shape(Refusal(StatusCode::internal, "row 7 is damaged"));
    ASSERT_TRUE(sent.message.starts_with("something went wrong, please retry ("));
    const std::string hash = sent.message.substr(sent.message.find('(') + 1, 8);
    EXPECT_EQ(log.count("hash=" + hash), 1U);
    EXPECT_EQ(log.count("row 7 is damaged"), 1U);
}

TEST_F(DispatchTest, ALongTextIsCutBetweenTwoCharacters) {
    HOLDFAST_CHECK("server F14");
    std::string text;
    while (text.size() < 10'000) {
        text += "\xe2\x82\xac";  // A euro sign.
    }
    const Refusal sent = dispatch.shape(Refusal(StatusCode::not_found, text));
    EXPECT_LE(sent.message.size(), 4000U);
    EXPECT_GT(sent.message.size(), 3990U);
    EXPECT_TRUE(sent.message.ends_with("\xac... <truncated>"));
}

}  // namespace

}  // namespace holdfast::server::rpc
