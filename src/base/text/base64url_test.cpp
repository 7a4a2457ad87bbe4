#include <holdfast/base/base64url.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace holdfast {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(Base64Url, GivesTheExamplesOfTheStandardWithoutPadding) {
    EXPECT_EQ(to_base64url(bytes_of("")), "");
    EXPECT_EQ(to_base64url(bytes_of("f")), "Zg");
    EXPECT_EQ(to_base64url(bytes_of("fo")), "Zm8");
    EXPECT_EQ(to_base64url(bytes_of("foo")), "Zm9v");
    EXPECT_EQ(to_base64url(bytes_of("foob")), "Zm9vYg");
    EXPECT_EQ(to_base64url(bytes_of("fooba")), "Zm9vYmE");
    EXPECT_EQ(to_base64url(bytes_of("foobar")), "Zm9vYmFy");
    EXPECT_EQ(to_base64url(bytes_of("\xfb\xff")), "-_8");
}

RC_GTEST_PROP(Base64Url, ReadsBackWhatItWrote, (const std::vector<std::uint8_t>& values)) {
    const auto bytes = std::as_bytes(std::span(values));
    const auto back = from_base64url(to_base64url(bytes));
    RC_ASSERT(back.has_value());
    RC_ASSERT(std::equal(back->begin(), back->end(), bytes.begin(), bytes.end()));
}

// Two texts for one secret would make a comparison of texts wrong.
RC_GTEST_PROP(Base64Url, HasOneSpellingForEachValue, (const std::string& text)) {
    const auto bytes = from_base64url(text);
    if (bytes) {
        RC_ASSERT(to_base64url(*bytes) == text);
    }
}

TEST(Base64Url, RefusesEverythingElse) {
    for (const std::string_view text :
         {"Zg==", "Z", "Zm9vY", "Zm+v", "Zm/v", "Zm9v\n", "Zh", "Zm9"}) {
        EXPECT_FALSE(from_base64url(text)) << text;
    }
}

}  // namespace
}  // namespace holdfast
