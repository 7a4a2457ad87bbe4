#include <holdfast/base/percent.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace holdfast {
namespace {

TEST(Percent, EncodingKeepsOnlyWhatNeedsNone) {
    EXPECT_EQ(percent_encoded("Az09-._~"), "Az09-._~");
    EXPECT_EQ(percent_encoded("/tmp/a b", "/"), "/tmp/a%20b");
    EXPECT_EQ(percent_encoded(" +/=&%\xc3\xa9"), "%20%2B%2F%3D%26%25%C3%A9");
    EXPECT_EQ(percent_decoded("%20%2b%2F+\xc3%a9"), " +/+\xc3\xa9");
    for (const std::string_view broken : {"%", "%2", "a%", "%2G", "%G2", "%-1", "%+1", "%0x"}) {
        EXPECT_EQ(percent_decoded(broken), std::nullopt) << broken;
    }
}

RC_GTEST_PROP(Percent, EveryTextSurvivesTheRoundTrip, (const std::string& bytes)) {
    RC_ASSERT(percent_decoded(percent_encoded(bytes)) == bytes);
}

}  // namespace
}  // namespace holdfast
