#include <holdfast/base/units.hpp>

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <holdfast/base/error.hpp>

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::string refusal(const auto& parse, std::string_view text) {
    try {
        static_cast<void>(parse(text));
        return "accepted";
    } catch (const InvalidArgument& error) {
        return error.what();
    }
}

TEST(Duration, ReadsWhatPeopleWrite) {
    EXPECT_EQ(parse_duration("0"), 0ns);
    EXPECT_EQ(parse_duration("0s"), 0ns);
    EXPECT_EQ(parse_duration("7ns"), 7ns);
    EXPECT_EQ(parse_duration("100us"), 100us);
    EXPECT_EQ(parse_duration("250ms"), 250ms);
    EXPECT_EQ(parse_duration("5s"), 5s);
    EXPECT_EQ(parse_duration("1m30s"), 90s);
    EXPECT_EQ(parse_duration("2h"), 2h);
    EXPECT_EQ(parse_duration("7d"), 7 * 24h);
    EXPECT_EQ(parse_duration("90m"), 90min);
    EXPECT_EQ(parse_duration("1d2h3m4s5ms6us7ns"), 26h + 3min + 4s + 5ms + 6us + 7ns);
}

TEST(Duration, SaysWhatIsWrong) {
    EXPECT_EQ(refusal(parse_duration, "30"),
              "'30' is not a duration: a number has no unit; write for example 250ms, 5s or 1m30s");
    EXPECT_THAT(refusal(parse_duration, ""), HasSubstr("it is empty"));
    EXPECT_THAT(refusal(parse_duration, "ms"), HasSubstr("a whole number is missing"));
    EXPECT_THAT(refusal(parse_duration, "-5s"), HasSubstr("a whole number is missing"));
    EXPECT_THAT(refusal(parse_duration, "1.5s"), HasSubstr("there is no unit '.'"));
    EXPECT_THAT(refusal(parse_duration, "5 s"), HasSubstr("there is no unit ' s'"));
    EXPECT_THAT(refusal(parse_duration, "5S"), HasSubstr("there is no unit 'S'"));
    EXPECT_THAT(refusal(parse_duration, "5sec"), HasSubstr("there is no unit 'sec'"));
    EXPECT_THAT(refusal(parse_duration, "30s1m"), HasSubstr("'m' stands after a smaller unit"));
    EXPECT_THAT(refusal(parse_duration, "1s1s"), HasSubstr("'s' stands after a smaller unit"));
}

TEST(Duration, AnOverflowIsRefusedAndTheLongestIsNot) {
    constexpr std::string_view longest = "106751d23h47m16s854ms775us807ns";
    EXPECT_EQ(parse_duration(longest), std::chrono::nanoseconds::max());
    for (const std::string_view text : {"9223372036854775808ns",
                                        "99999999999999999999999s",
                                        "106752d",
                                        "106751d24h",
                                        "106751d23h47m16s854ms775us808ns"}) {
        EXPECT_THAT(refusal(parse_duration, text), HasSubstr("longer than 292 years")) << text;
    }
}

TEST(Duration, PrintsShortly) {
    EXPECT_EQ(format_duration(0ns), "0s");
    EXPECT_EQ(format_duration(90s), "1m30s");
    EXPECT_EQ(format_duration(1500ms), "1s500ms");
    EXPECT_EQ(format_duration(24h), "1d");
}

RC_GTEST_PROP(Duration, ReadsBackWhatItPrints, ()) {
    const auto largest = std::numeric_limits<std::int64_t>::max();
    const std::chrono::nanoseconds duration{*rc::gen::inRange<std::int64_t>(0, largest)};
    RC_ASSERT(parse_duration(format_duration(duration)) == duration);
}

TEST(Size, ReadsWhatPeopleWrite) {
    EXPECT_EQ(parse_size("0"), 0U);
    EXPECT_EQ(parse_size("512"), 512U);
    EXPECT_EQ(parse_size("512B"), 512U);
    EXPECT_EQ(parse_size("64KiB"), 65'536U);
    EXPECT_EQ(parse_size("3kB"), 3'000U);
    EXPECT_EQ(parse_size("3KB"), 3'000U);
    EXPECT_EQ(parse_size("10MB"), 10'000'000U);
    EXPECT_EQ(parse_size("1GiB"), 1'073'741'824U);
    EXPECT_EQ(parse_size("2TiB"), 2'199'023'255'552U);
}

TEST(Size, SaysWhatIsWrong) {
    EXPECT_EQ(
        refusal(parse_size, "10 MB"),
        "'10 MB' is not a size: there is no unit ' MB'; write for example 512, 64KiB or 10MB");
    EXPECT_THAT(refusal(parse_size, ""), HasSubstr("does not begin with a whole number"));
    EXPECT_THAT(refusal(parse_size, "MB"), HasSubstr("does not begin with a whole number"));
    EXPECT_THAT(refusal(parse_size, "-1"), HasSubstr("does not begin with a whole number"));
    EXPECT_THAT(refusal(parse_size, "1M"), HasSubstr("there is no unit 'M'"));
    EXPECT_THAT(refusal(parse_size, "1MB2"), HasSubstr("there is more after the unit"));
}

TEST(Size, AnOverflowIsRefusedAndTheLargestIsNot) {
    EXPECT_EQ(parse_size("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
    EXPECT_EQ(parse_size("16777215TiB"), std::uint64_t{16'777'215} << 40U);
    for (const std::string_view text :
         {"18446744073709551616", "16777216TiB", "18446744073709551615kB"}) {
        EXPECT_THAT(refusal(parse_size, text), HasSubstr("does not fit 64 bits")) << text;
    }
}

TEST(Size, PrintsInTheLargestUnitThatIsExact) {
    EXPECT_EQ(format_size(0), "0");
    EXPECT_EQ(format_size(1234), "1234");
    EXPECT_EQ(format_size(65'536), "64KiB");
    EXPECT_EQ(format_size(10'000'000), "10MB");
}

RC_GTEST_PROP(Size, ReadsBackWhatItPrints, (std::uint64_t number)) {
    const std::uint64_t scale =
        *rc::gen::element<std::uint64_t>(1, 1000, 1024, 1'000'000, 1U << 20U, 1U << 30U);
    const std::uint64_t bytes = number * scale;
    RC_ASSERT(parse_size(format_size(bytes)) == bytes);
}

TEST(Moment, ReadsIso8601InUtc) {
    const Wall day = std::chrono::sys_days{std::chrono::year{2028} / 2 / 29};
    EXPECT_EQ(parse_moment("2028-02-29T00:00:00Z"), day);
    EXPECT_EQ(parse_moment("2028-02-29T23:59:59Z"), day + 24h - 1s);
    EXPECT_EQ(parse_moment("2028-02-29T00:00:01.25Z"), day + 1250ms);
    EXPECT_EQ(parse_moment("2028-02-29T00:00:00.1234567899Z"), day + 123'456us);
    EXPECT_EQ(parse_moment("2028-02-29T00:00:00+00:00"), day);
}

TEST(Moment, RefusesEverythingElse) {
    for (const std::string_view text : {"",
                                        "now",
                                        "2028-02-29",
                                        "2028-02-29T00:00:00",
                                        "2028-02-29 00:00:00Z",
                                        "2028-02-29T00:00:00+01:00",
                                        "2028-02-29T00:00:00.Z",
                                        "2028-02-29T00:00:00Zulu",
                                        "2028-02-29T24:00:00Z",
                                        "2028-02-29T00:60:00Z",
                                        "2028-02-29T00:00:60Z",
                                        "2027-02-29T00:00:00Z",
                                        "2028-13-01T00:00:00Z",
                                        "0000-01-01T00:00:00Z",
                                        "28-02-29T00:00:00Z",
                                        "+028-02-29T00:00:00Z"}) {
        EXPECT_THAT(refusal(parse_moment, text), HasSubstr("for example 2026-01-02T03:04:05Z"))
            << text;
    }
}

}  // namespace
}  // namespace holdfast
