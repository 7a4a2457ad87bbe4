#include "stored/payload_json.hpp"

#include <vector>

#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::flow {
namespace {

std::string nested(std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
}

TEST(PayloadJson, DepthHasABoundAndStoredTextHasRoomForTheDeepestPayload) {
    EXPECT_TRUE(is_json(nested(payload_depth_max)));
    EXPECT_FALSE(is_json(nested(payload_depth_max + 1)));
    EXPECT_FALSE(is_json(std::string(1'000'000, '['))) << "must not use the stack up";

    FailureInfo failure;
    failure.details = Payload{nested(payload_depth_max)};
    const Event event{.id = 1, .source = 0, .time_ms = 0, .body = WorkflowFailed{failure}};
    EXPECT_EQ(decode_event(encode(event)), event);
}

TEST(PayloadJson, ArraysAreJoinedAndSplitByteForByte) {
    const std::vector<std::string> values{
        "1", " {\"a\": [1,2] }", "\"x,]\"", "[ ]", "\tnull\n", "\"\\u00e9\""};
    const std::string joined = join_array(values);
    EXPECT_TRUE(is_json(joined));
    const std::vector<std::string_view> split = split_array(joined);
    EXPECT_EQ(std::vector<std::string>(split.begin(), split.end()), values);

    EXPECT_EQ(join_array({}), "[]");
    EXPECT_TRUE(split_array("[]").empty());
    EXPECT_TRUE(split_array(" [ ] ").empty());
    EXPECT_EQ(split_array(" [7] ").front(), "7");
}

TEST(PayloadJson, ValuesAgreeIfOneOnlyHasMoreFields) {
    for (const auto& [one, other] : {std::pair(R"([7,"x"])", R"( [ 7 , "x" ] )"),
                                     std::pair(R"({"id":7})", R"({"city":"","id":7})"),
                                     std::pair(R"([{"a":{"b":1}}])", R"([{"a":{"b":1,"c":[]}}])"),
                                     std::pair(R"({"a":{"x":1},"b":2})", R"({"a":{"y":2,"x":1}})"),
                                     std::pair("{}", R"({"new":null})")}) {
        EXPECT_TRUE(agree(one, other)) << one << " " << other;
        EXPECT_TRUE(agree(other, one)) << one << " " << other;
    }
    for (const auto& [one, other] : {std::pair("7", "8"),
                                     std::pair(R"("7")", "7"),
                                     std::pair("[7]", "[7,8]"),
                                     std::pair("[]", "{}"),
                                     std::pair(R"({"id":7})", R"({"id":8,"city":""})"),
                                     std::pair(R"({"old":7})", R"({"new":7})"),
                                     std::pair(R"([{"a":{"b":1}}])", R"([{"a":{"b":2,"c":3}}])")}) {
        EXPECT_FALSE(agree(one, other)) << one << " " << other;
        EXPECT_FALSE(agree(other, one)) << one << " " << other;
    }
}

TEST(PayloadJson, WhatIsNoArrayIsNotSplit) {
    for (const std::string_view text : {"", "1", "{}", "[1", "[1,]", "[1]]", "[1] 2", "null"}) {
        EXPECT_THROW(static_cast<void>(split_array(text)), Undecodable) << text;
    }
}

}  // namespace
}  // namespace holdfast::flow
