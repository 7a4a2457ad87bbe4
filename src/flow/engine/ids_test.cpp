#include <holdfast/flow_engine/ids.hpp>

#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>

namespace holdfast::flow {
namespace {

TEST(Version, ReadsThreeNumbersAndGivesThemBack) {
    EXPECT_EQ(Version::parse("1.2.3"), (Version{1, 2, 3}));
    EXPECT_EQ(Version::parse("0.0.0"), Version{});
    EXPECT_EQ(Version::parse("2147483647.0.10").text(), "2147483647.0.10");
    EXPECT_EQ(Version::parse(engine_version.text()), engine_version);
}

TEST(Version, RefusesAnythingElse) {
    for (const std::string_view text :
         {"",          "1",      "1.2",    "1.2.",   ".1.2",    "1..2",   "1.2.3.4",
          "1.2.3-rc1", "v1.2.3", " 1.2.3", "1.2.3 ", "1.2.3\n", "01.2.3", "1.02.3",
          "1.2.00",    "-1.2.3", "+1.2.3", "1.-0.3", "1.2.x",   "1,2,3",  "2147483648.0.0"}) {
        EXPECT_THROW(static_cast<void>(Version::parse(text)), InvalidArgument) << text;
    }
}

TEST(Version, IsOrderedByNumberAndNotByText) {
    EXPECT_LT(Version::parse("1.9.0"), Version::parse("1.10.0"));
    EXPECT_LT(Version::parse("1.2.3"), Version::parse("1.2.4"));
    EXPECT_LT(Version::parse("9.9.9"), Version::parse("10.0.0"));
}

}  // namespace
}  // namespace holdfast::flow
