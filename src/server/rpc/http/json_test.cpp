#include "rpc/http/json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <temporal/api/failure/v1/message.pb.h>
#include <temporal/api/workflow/v1/message.pb.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::rpc {
namespace {

namespace api = temporal::api::workflowservice::v1;
using temporal::api::common::v1::Payload;
using temporal::api::common::v1::Payloads;
using testing::HasSubstr;

Payload payload(const std::string& encoding, const std::string& data) {
    Payload made;
    (*made.mutable_metadata())["encoding"] = encoding;
    made.set_data(data);
    return made;
}

std::string shown(const Payloads& payloads) {
    return to_json(payloads, Shorthand::on);
}

Payloads read(const std::string& text) {
    Payloads payloads;
    EXPECT_EQ(from_json(text, Shorthand::on, payloads), std::nullopt) << text;
    return payloads;
}

TEST(JsonShorthand, ShowsTheValuesThatPayloadsHold) {
    Payloads payloads;
    EXPECT_EQ(shown(payloads), "[]");
    *payloads.add_payloads() = payload("json/plain", " {\"a\": 1.50} ");
    *payloads.add_payloads() = payload("binary/null", "");
    *payloads.add_payloads() = payload("json/plain", "12345678901234567890123");
    EXPECT_EQ(shown(payloads), "[{\"a\": 1.50},null,12345678901234567890123]");
}

TEST(JsonShorthand, ShowsAProtobufObjectWithItsType) {
    Payloads payloads;
    Payload& one = *payloads.add_payloads();
    one = payload("json/protobuf", "{\"x\":1}");
    (*one.mutable_metadata())["messageType"] = "shop.Order";
    Payload& other = *payloads.add_payloads();
    other = payload("json/protobuf", "{}");
    (*other.mutable_metadata())["messageType"] = "shop.Empty";
    EXPECT_EQ(shown(payloads),
              R"([{"_protoMessageType":"shop.Order","x":1},{"_protoMessageType":"shop.Empty"}])");
}

// One payload that has no short form, and the list is shown in full.
TEST(JsonShorthand, ShowsInFullWhatItWouldLose) {
    HOLDFAST_CHECK("server F199");
    for (const auto& [encoding, data] :
         {std::pair{"binary/plain", "x"}, {"json/plain", "not JSON"}, {"json/protobuf", "{}"}}) {
        Payloads payloads;
        *payloads.add_payloads() = payload("json/plain", "1");
        *payloads.add_payloads() = payload(encoding, data);
        EXPECT_THAT(shown(payloads), HasSubstr("{\"payloads\":[{\"metadata\":{\"encoding\":"));
    }
    Payloads payloads;
    Payload& typed = *payloads.add_payloads();
    typed = payload("json/plain", "\"Berlin\"");
    (*typed.mutable_metadata())["type"] = "Keyword";
    EXPECT_THAT(shown(payloads), HasSubstr("\"type\":\"S2V5d29yZA==\""));
}

TEST(JsonShorthand, ReadsValuesAsPayloads) {
    HOLDFAST_CHECK("server F198");
    const Payloads payloads = read(
        R"([{"a": 1}, null, {"_protoMessageType": "shop.Order", "x": 1}, [1.0],
            {"metadata": {"encoding": "YmluYXJ5L3BsYWlu"}, "data": "eA=="},
            {"metadata": {"colour": "red"}}])");
    ASSERT_EQ(payloads.payloads_size(), 6);
    const auto encoding = [&](int i) { return payloads.payloads(i).metadata().at("encoding"); };
    EXPECT_EQ(encoding(0), "json/plain");
    EXPECT_EQ(payloads.payloads(0).data(), "{\"a\": 1}");
    EXPECT_EQ(encoding(1), "binary/null");
    EXPECT_EQ(encoding(2), "json/protobuf");
    EXPECT_EQ(payloads.payloads(2).metadata().at("messageType"), "shop.Order");
    EXPECT_EQ(payloads.payloads(2).data(), "{\"x\":1}");
    EXPECT_EQ(payloads.payloads(3).data(), "[1.0]");
    EXPECT_EQ(encoding(4), "binary/plain");
    EXPECT_EQ(payloads.payloads(4).data(), "x");
    EXPECT_EQ(encoding(5), "json/plain") << "metadata without an encoding are a user's object";
}

TEST(JsonShorthand, IsOnlyForThoseWhoWantIt) {
    HOLDFAST_CHECK("server F200");
    Payloads payloads;
    EXPECT_NE(from_json("[1]", Shorthand::off, payloads), std::nullopt);
    *payloads.add_payloads() = payload("json/plain", "1");
    EXPECT_EQ(to_json(payloads, Shorthand::off),
              R"({"payloads":[{"metadata":{"encoding":"anNvbi9wbGFpbg=="},"data":"MQ=="}]})");
}

// In maps, in lists, and in a message within an Any.
TEST(JsonShorthand, ReachesPayloadsWhereverTheyAre) {
    temporal::api::workflow::v1::WorkflowExecutionInfo info;
    const std::string text = R"({"memo":{"fields":{"a":[1],"b":null}}})";
    EXPECT_EQ(from_json(text, Shorthand::on, info), std::nullopt);
    EXPECT_EQ(info.memo().fields().at("a").data(), "[1]");
    EXPECT_THAT(to_json(info, Shorthand::on), HasSubstr("\"a\":[1]"));
    EXPECT_THAT(to_json(info, Shorthand::on), HasSubstr("\"b\":null"));

    temporal::api::failure::v1::Failure failure;
    failure.mutable_cause()->mutable_application_failure_info()->set_type("Bad");
    *failure.mutable_cause()
         ->mutable_application_failure_info()
         ->mutable_details()
         ->add_payloads() = payload("json/plain", "\"why\"");
    EXPECT_EQ(to_json(failure, Shorthand::on),
              R"({"cause":{"applicationFailureInfo":{"type":"Bad","details":["why"]}}})");
}

TEST(Json, ReadsNamesOfEnumeratorsInTheirShortForm) {
    api::StartWorkflowExecutionRequest request;
    EXPECT_EQ(from_json(R"({"workflowIdReusePolicy": "RejectDuplicate",
                            "workflow_id_conflict_policy": 1, "workflow_run_timeout": "3.5s"})",
                        Shorthand::on,
                        request),
              std::nullopt);
    EXPECT_EQ(request.workflow_id_reuse_policy(),
              temporal::api::enums::v1::WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE);
    EXPECT_EQ(request.workflow_id_conflict_policy(),
              temporal::api::enums::v1::WORKFLOW_ID_CONFLICT_POLICY_FAIL);
    EXPECT_EQ(request.workflow_run_timeout().nanos(), 500'000'000);
    EXPECT_THAT(to_json(request, Shorthand::on),
                HasSubstr("\"WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE\""));
}

TEST(Json, RefusesWhatItDoesNotUnderstand) {
    api::StartWorkflowExecutionRequest request;
    for (const char* const text : {"",
                                   "{",
                                   "[]",
                                   "{} x",
                                   R"({"workflowName": "x"})",
                                   R"({"workflowId": 1, "workflowId": {}})",
                                   R"({"workflowIdReusePolicy": "Sometimes"})",
                                   R"({"workflowRunTimeout": "soon"})"}) {
        EXPECT_NE(from_json(text, Shorthand::on, request), std::nullopt) << text;
    }
}

TEST(Json, IsIndentedByTwoBlanks) {
    HOLDFAST_CHECK("server F201");
    EXPECT_EQ(pretty_json(R"({"a":[1,{"b":{}}],"c":[],"d":"x,y"})"),
              "{\n  \"a\": [\n    1,\n    {\n      \"b\": {}\n    }\n  ],\n  \"c\": [],\n"
              "  \"d\": \"x,y\"\n}");
    EXPECT_EQ(pretty_json("3"), "3");
}

}  // namespace
}  // namespace holdfast::server::rpc
