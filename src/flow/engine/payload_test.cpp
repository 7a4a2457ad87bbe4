#include <holdfast/flow_engine/payload.hpp>

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::flow {
namespace {

using testing::HasSubstr;

template <class T>
std::string refusal(std::string_view json) {
    try {
        static_cast<void>(Codec<T>::decode(json));
        return "accepted";
    } catch (const InvalidArgument& error) {
        return error.what();
    }
}

template <class T>
void expect_round_trip(const T& value, std::string_view json) {
    EXPECT_EQ(Codec<T>::encode(value), json);
    EXPECT_EQ(Codec<T>::decode(json), value);
}

template <class T>
void expect_exact_limits() {
    expect_round_trip(std::numeric_limits<T>::min(), std::to_string(std::numeric_limits<T>::min()));
    expect_round_trip(std::numeric_limits<T>::max(), std::to_string(std::numeric_limits<T>::max()));
}

TEST(Codec, IntegersAreExactToTheirLimits) {
    expect_exact_limits<std::int8_t>();
    expect_exact_limits<std::uint16_t>();
    expect_exact_limits<int>();
    expect_exact_limits<std::int64_t>();
    expect_exact_limits<std::uint64_t>();
    expect_round_trip<std::int64_t>(9007199254740993, "9007199254740993");  // No double has it.
}

TEST(Codec, AnIntegerBeyondItsTypeIsRefusedAndNotCut) {
    EXPECT_THAT(refusal<std::int8_t>("128"), HasSubstr("from -128 to 127, found the number 128"));
    EXPECT_THAT(refusal<std::int64_t>("9223372036854775808"), HasSubstr("9223372036854775808"));
    EXPECT_THAT(refusal<std::uint64_t>("18446744073709551616"), HasSubstr("18446744073709551616"));
    EXPECT_THAT(refusal<unsigned>("-1"), HasSubstr("from 0 to 4294967295, found the number -1"));
}

TEST(Codec, ARefusalNamesWhatItFound) {
    EXPECT_THAT(refusal<int>("1.5"), HasSubstr("found the number 1.5"));
    EXPECT_THAT(refusal<int>("1e3"), HasSubstr("found the number 1e3"));
    EXPECT_THAT(refusal<int>("null"), HasSubstr("found null"));
    EXPECT_THAT(refusal<int>(R"("7")"), HasSubstr("found a string"));
    EXPECT_THAT(refusal<int>("[1]"), HasSubstr("found an array"));
    EXPECT_THAT(refusal<bool>("1"), HasSubstr("expected a boolean, found the number 1"));
    EXPECT_THAT(refusal<std::string>(R"({"a":1})"), HasSubstr("found an object"));
    EXPECT_THAT(refusal<Unit>("true"), HasSubstr("expected null, found a boolean"));
    EXPECT_THAT(refusal<double>(R"("1")"), HasSubstr("found a string"));
}

TEST(Codec, TextThatIsNoJsonIsRefused) {
    for (const std::string_view text :
         {"", " ", "01", "+1", "1.", ".5", "0x10", "1 2", "inf", "nan", "-", "1e", "NULL", "\"a"}) {
        EXPECT_THAT(refusal<int>(text), HasSubstr("not JSON")) << text;
        EXPECT_THAT(refusal<double>(text), HasSubstr("not JSON")) << text;
        EXPECT_THAT(refusal<std::string>(text), testing::StartsWith("expected")) << text;
        EXPECT_THAT(refusal<bool>(text), testing::StartsWith("expected")) << text;
        EXPECT_THAT(refusal<Unit>(text), testing::StartsWith("expected")) << text;
    }
}

TEST(Codec, WhitespaceAroundAValueIsAllowed) {
    EXPECT_EQ(Codec<int>::decode(" 7\n"), 7);
    EXPECT_EQ(Codec<double>::decode("\t1.5 "), 1.5);
    EXPECT_EQ(Codec<std::string>::decode(" \"a\" "), "a");
    EXPECT_TRUE(Codec<bool>::decode(" true "));
    EXPECT_EQ(Codec<Unit>::decode(" null "), Unit{});
}

TEST(Codec, DoublesHaveTheShortestTextThatLeadsBack) {
    expect_round_trip(0.1, "0.1");
    expect_round_trip(1.0, "1");
    expect_round_trip(-2.5, "-2.5");
    expect_round_trip(1e300, "1e+300");
    expect_round_trip(5e-324, "5e-324");
    expect_round_trip(0.30000000000000004, "0.30000000000000004");
    EXPECT_EQ(Codec<double>::encode(-0.0), "-0");
    EXPECT_TRUE(std::signbit(Codec<double>::decode("-0")));
}

TEST(Codec, NumbersThatJsonOrADoubleCannotHoldAreRefused) {
    using Limits = std::numeric_limits<double>;
    for (const double value : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()}) {
        EXPECT_THROW(Codec<double>::encode(value), InvalidArgument);
    }
    EXPECT_THAT(refusal<double>("1e999"), HasSubstr("found the number 1e999"));
}

TEST(Codec, AFloatIsTheNumberThatItHolds) {
    expect_round_trip(1.5F, "1.5");
    expect_round_trip(0.1F, "0.10000000149011612");
    EXPECT_THAT(refusal<float>("1e39"), HasSubstr("expected a float"));
    EXPECT_THROW(Codec<float>::encode(std::numeric_limits<float>::infinity()), InvalidArgument);
}

TEST(Codec, AnOptionalIsItsValueOrNull) {
    expect_round_trip(std::optional<int>(7), "7");
    expect_round_trip(std::optional<int>(), "null");
    expect_round_trip(std::optional<std::string>("null"), R"("null")");
    EXPECT_EQ(Codec<std::optional<bool>>::decode(" null "), std::nullopt);
    EXPECT_THAT(refusal<std::optional<int>>(R"("7")"), HasSubstr("found a string"));
}

TEST(Codec, StringsAreEscapedAndReadWithEveryEscape) {
    expect_round_trip<std::string>("a\"b\\c/d", R"("a\"b\\c/d")");
    expect_round_trip<std::string>("\b\f\n\r\t", R"("\b\f\n\r\t")");
    expect_round_trip<std::string>(std::string("\0\x1f\x7f", 3), "\"\\u0000\\u001f\x7f\"");
    expect_round_trip<std::string>("\xc3\xa9\xf0\x9f\x98\x80", "\"\xc3\xa9\xf0\x9f\x98\x80\"");
    EXPECT_EQ(Codec<std::string>::decode(R"("\/\u00e9\u20AC\ud83d\uDE00")"),
              "/\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
}

TEST(Codec, AStringThatIsNotUtf8IsRefused) {
    for (const std::string text : {"\xff",
                                   "a\xc3",             // cut
                                   "\xc0\xaf",          // overlong
                                   "\xe0\x80\x80",      // overlong
                                   "\xed\xa0\x80",      // a surrogate
                                   "\xf4\x90\x80\x80",  // past the end of Unicode
                                   "12345678\x80"}) {   // behind a whole word of plain text
        EXPECT_THROW(Codec<std::string>::encode(text), InvalidArgument);
        EXPECT_FALSE(is_json('"' + text + '"'));
    }
}

RC_GTEST_PROP(CodecProperty, EveryIntegerComesBack, (std::int64_t wide, std::uint64_t natural)) {
    RC_ASSERT(Codec<std::int64_t>::decode(Codec<std::int64_t>::encode(wide)) == wide);
    RC_ASSERT(Codec<std::uint64_t>::decode(Codec<std::uint64_t>::encode(natural)) == natural);
}

RC_GTEST_PROP(CodecProperty, EveryFiniteDoubleComesBack, (double value)) {
    RC_PRE(std::isfinite(value));
    const std::string json = Codec<double>::encode(value);
    RC_ASSERT(is_json(json));
    RC_ASSERT(Codec<double>::decode(json) == value);
}

// Any bytes: either they come back, or they are refused and no reader would take them either.
RC_GTEST_PROP(CodecProperty, EveryStringComesBackOrIsRefused, (const std::string& value)) {
    try {
        const std::string json = Codec<std::string>::encode(value);
        RC_ASSERT(is_json(json));
        RC_ASSERT(Codec<std::string>::decode(json) == value);
    } catch (const InvalidArgument&) {
        RC_ASSERT(!is_json('"' + value + '"'));
    }
}

}  // namespace
}  // namespace holdfast::flow
