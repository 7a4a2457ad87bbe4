#include <holdfast/base/json_text.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/utf8.hpp>

namespace holdfast {
namespace {

bool is_json(std::string_view text) {
    json::Scanner scanner(text);
    return scanner.value() && scanner.at_end();
}

std::string json_of(std::string_view text) {
    std::string out;
    json::append_string(out, text);
    return out;
}

std::string unquoted(std::string_view literal) {
    std::string out;
    json::append_unescaped(out, literal);
    return out;
}

// Writes down what the scanner tells, one piece after the other.
class Notes final : public json::Visitor {
public:
    void open_object(std::size_t at) override { note(at, "{"); }
    void open_array(std::size_t at) override { note(at, "["); }
    void key(std::size_t at, std::string_view literal) override {
        note(at, std::string(literal) + ":");
    }
    void scalar(std::size_t at, std::string_view literal) override { note(at, literal); }
    void close() override { text += " close"; }

    std::string text;

private:
    void note(std::size_t at, std::string_view what) {
        text += ' ' + std::to_string(at) + std::string(what);
    }
};

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
    EXPECT_EQ(fault_at(R"("ab\u12")"), 3U) << "an escape begins at its backslash";
    EXPECT_EQ(fault_at(R"("ab\ud83d\u0041")"), 3U);
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
                    EXPECT_EQ(unquoted(json_of(text)), text);
                } else {
                    EXPECT_THROW(static_cast<void>(json_of(text)), InvalidArgument);
                }
            }
        }
    }
}

TEST(JsonText, AWalkTellsOfEverythingInOrderAndWhere) {
    const std::string_view text = R"( {"a" : [1, "x\n" ], "b":{ } , "c": null} )";
    json::Scanner scanner(text);
    Notes notes;
    EXPECT_TRUE(scanner.walk(notes));
    EXPECT_TRUE(scanner.at_end());
    EXPECT_EQ(notes.text, R"( 1{ 2"a": 8[ 91 12"x\n" close 21"b": 25{ close 31"c": 36null close)");
}

TEST(JsonText, AWalkTellsOfWhatStandsBeforeAFault) {
    json::Scanner scanner(R"({"a":[1,}])");
    Notes notes;
    EXPECT_FALSE(scanner.walk(notes));
    EXPECT_EQ(notes.text, R"( 0{ 1"a": 5[ 61)");
    EXPECT_EQ(scanner.at(), 8U);

    json::Scanner deep(std::string_view("[[[]]]"), 2);
    EXPECT_FALSE(deep.walk(notes));
    EXPECT_EQ(deep.at(), 2U);
}

RC_GTEST_PROP(JsonText, AWalkAcceptsWhatAScanAccepts, (const std::string& bytes)) {
    json::Scanner scan(bytes);
    json::Scanner walk(bytes);
    Notes notes;
    RC_ASSERT(scan.value() == walk.walk(notes));
    RC_ASSERT(scan.at() == walk.at());
}

RC_GTEST_PROP(JsonText, EveryTextSurvivesTheRoundTrip, (const std::string& bytes)) {
    const std::string text = valid_utf8(bytes);
    RC_ASSERT(is_json(json_of(text)));
    RC_ASSERT(unquoted(json_of(text)) == text);
}

}  // namespace
}  // namespace holdfast
