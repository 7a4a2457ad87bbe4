#include "stored/json_text.hpp"

#include <vector>

#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::flow {
namespace {

std::string nested(std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
}

TEST(JsonText, TakesWhatTheGrammarAllows) {
    for (const std::string_view text : {"null",
                                        " true ",
                                        "false",
                                        "0",
                                        "-0",
                                        "-12.50e+10",
                                        "1E-2",
                                        "123456789012345678901234567890",
                                        "\"\"",
                                        R"("\"\\\/\b\f\n\r\t\u0000\uFFFF\ud83d\ude00")",
                                        "\"\xf0\x9f\x98\x80\x7f\"",
                                        "[]",
                                        "[ ]",
                                        "[1, [2,{}], \"x\"]",
                                        "{}",
                                        "{ }",
                                        R"( { "a" : 1 , "b":{"":[ ]}, "a":2 } )"}) {
        EXPECT_TRUE(is_json(text)) << text;
    }
}

TEST(JsonText, RefusesEverythingElse) {
    for (const std::string_view text : {"",
                                        " ",
                                        "nul",
                                        "nulll",
                                        "True",
                                        "01",
                                        "+1",
                                        "1.",
                                        ".1",
                                        "-",
                                        "1e",
                                        "1e+",
                                        "0x1",
                                        "1 2",
                                        "'a'",
                                        "\"",
                                        "\"a",
                                        "\"\\",
                                        "\"\\u",
                                        "\"\\x\"",
                                        "\"\\u12\"",
                                        "\"\\u12g4\"",
                                        "\"\\u+123\"",
                                        "\"\n\"",
                                        "\"\\ud83d\"",
                                        "\"\\ud83dx\"",
                                        "\"\\ud83d\\n\"",
                                        "\"\\ud83d\\ud83d\"",
                                        "\"\\ude00\"",
                                        "\"\xff\"",
                                        "[",
                                        "[1",
                                        "[1,",
                                        "[1,]",
                                        "[,1]",
                                        "[1 2]",
                                        "]",
                                        "[1}",
                                        "{",
                                        "{\"a\"",
                                        "{\"a\":",
                                        "{\"a\":1",
                                        "{\"a\":1,",
                                        "{\"a\":1,}",
                                        "{,}",
                                        "{1:2}",
                                        "{\"a\" 1}",
                                        "{\"a\":1]",
                                        "{}{}",
                                        "[]x",
                                        "\xef\xbb\xbf{}",
                                        "// c\n1",
                                        "NaN",
                                        "\x01"}) {
        EXPECT_FALSE(is_json(text)) << text;
    }
    EXPECT_FALSE(is_json(std::string_view("1\0", 2)));
}

TEST(JsonText, DepthHasABoundAndStoredTextHasRoomForTheDeepestPayload) {
    EXPECT_TRUE(is_json(nested(json::payload_depth_max)));
    EXPECT_FALSE(is_json(nested(json::payload_depth_max + 1)));
    EXPECT_FALSE(is_json(std::string(1'000'000, '['))) << "must not use the stack up";

    FailureInfo failure;
    failure.details = Payload{nested(json::payload_depth_max)};
    const Event event{.id = 1, .source = 0, .time_ms = 0, .body = WorkflowFailed{failure}};
    EXPECT_EQ(decode_event(encode(event)), event);
}

TEST(JsonText, SaysWhereItStopped) {
    const auto fault_at = [](std::string_view text) {
        json::Scanner scanner(text);
        EXPECT_FALSE(scanner.value());
        EXPECT_NE(scanner.fault(), nullptr);
        return scanner.at();
    };
    EXPECT_EQ(fault_at("[1,2,x]"), 5U);
    EXPECT_EQ(fault_at(R"({"a":1 "b":2})"), 7U);
    EXPECT_EQ(fault_at("\"ab\xff\""), 3U);
}

// The fast path looks at eight bytes at once; a special one must be seen in each of the places.
TEST(JsonText, ASpecialCharacterIsSeenAtEveryPosition) {
    for (std::size_t length = 0; length < 40; ++length) {
        for (std::size_t at = 0; at < length; ++at) {
            for (const char special : {'"', '\\', '\x1f', '\0', '\n', '\x80', '\xff'}) {
                std::string text(length, 'a');
                text[at] = special;
                EXPECT_FALSE(is_json('"' + text + '"') && special != '"');
                if (static_cast<unsigned char>(special) < 0x80U) {
                    EXPECT_EQ(Codec<std::string>::decode(quote(text)), text);
                } else {
                    EXPECT_THROW(static_cast<void>(quote(text)), InvalidArgument);
                }
            }
        }
    }
}

TEST(JsonText, ArraysAreJoinedAndSplitByteForByte) {
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

TEST(JsonText, ValuesAgreeIfOneOnlyHasMoreFields) {
    for (const auto& [one, other] : {std::pair(R"([7,"x"])", R"( [ 7 , "x" ] )"),
                                     std::pair(R"({"id":7})", R"({"city":"","id":7})"),
                                     std::pair(R"([{"a":{"b":1}}])", R"([{"a":{"b":1,"c":[]}}])"),
                                     std::pair(R"({"a":{"x":1},"b":2})", R"({"a":{"y":2,"x":1}})"),
                                     std::pair("{}", R"({"new":null})")}) {
        EXPECT_TRUE(json::agree(one, other)) << one << " " << other;
        EXPECT_TRUE(json::agree(other, one)) << one << " " << other;
    }
    for (const auto& [one, other] : {std::pair("7", "8"),
                                     std::pair(R"("7")", "7"),
                                     std::pair("[7]", "[7,8]"),
                                     std::pair("[]", "{}"),
                                     std::pair(R"({"id":7})", R"({"id":8,"city":""})"),
                                     std::pair(R"({"old":7})", R"({"new":7})"),
                                     std::pair(R"([{"a":{"b":1}}])", R"([{"a":{"b":2,"c":3}}])")}) {
        EXPECT_FALSE(json::agree(one, other)) << one << " " << other;
        EXPECT_FALSE(json::agree(other, one)) << one << " " << other;
    }
}

TEST(JsonText, WhatIsNoArrayIsNotSplit) {
    for (const std::string_view text : {"", "1", "{}", "[1", "[1,]", "[1]]", "[1] 2", "null"}) {
        EXPECT_THROW(static_cast<void>(split_array(text)), Undecodable) << text;
    }
}

}  // namespace
}  // namespace holdfast::flow
