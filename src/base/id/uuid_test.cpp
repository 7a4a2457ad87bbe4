#include <holdfast/base/uuid.hpp>

#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <holdfast/base/base64url.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/manual_clock.hpp>

namespace holdfast {
namespace {

using namespace std::chrono_literals;

unsigned version_of(const Uuid& uuid) {
    return std::to_integer<unsigned>(uuid.bytes[6]) >> 4U;
}

unsigned variant_of(const Uuid& uuid) {
    return std::to_integer<unsigned>(uuid.bytes[8]) >> 6U;
}

TEST(Uuid, IsNilByDefault) {
    EXPECT_EQ(Uuid{}.text(), "00000000-0000-0000-0000-000000000000");
}

TEST(Uuid, FourIsRandomAndSaysSo) {
    std::set<Uuid> seen;
    for (int i = 0; i < 1000; ++i) {
        const Uuid uuid = Uuid::v4();
        EXPECT_EQ(version_of(uuid), 4U);
        EXPECT_EQ(variant_of(uuid), 2U);
        seen.insert(uuid);
    }
    EXPECT_EQ(seen.size(), 1000U);
}

// The example of RFC 9562: 2022-02-22T19:22:22Z is 017f22e2-79b0.
TEST(Uuid, SevenBeginsWithItsMillisecond) {
    const Uuid uuid = Uuid::v7(Wall{1645557742000ms});
    EXPECT_EQ(uuid.text().substr(0, 15), "017f22e2-79b0-7");
    EXPECT_EQ(version_of(uuid), 7U);
    EXPECT_EQ(variant_of(uuid), 2U);
}

RC_GTEST_PROP(Uuid, SevenSortsByTime, ()) {
    constexpr std::int64_t us_end = (std::int64_t{1} << 48U) * 1000;
    const auto early = *rc::gen::inRange<std::int64_t>(0, us_end - 2000);
    const auto later_by = *rc::gen::inRange<std::int64_t>(1, 2000);
    const auto at = [](std::int64_t us) { return Uuid::v7(Wall{std::chrono::microseconds{us}}); };
    RC_ASSERT(at(early) < at(early + later_by));
}

TEST(Uuid, SevenRefusesATimeItCannotHold) {
    EXPECT_THROW(static_cast<void>(Uuid::v7(Wall{-1us})), InvalidArgument);
    EXPECT_THROW(static_cast<void>(Uuid::v7(Wall{std::chrono::milliseconds{1LL << 48}})),
                 InvalidArgument);
}

RC_GTEST_PROP(Uuid, ReadsBackItsTextInEitherCase, (const std::array<std::uint8_t, 16>& values)) {
    const auto uuid = Uuid::from_bytes(std::as_bytes(std::span(values)));
    RC_ASSERT(uuid.has_value());
    std::string text = uuid->text();
    RC_ASSERT(text.size() == 36U);
    RC_ASSERT(Uuid::parse(text) == uuid);
    for (char& c : text) {
        c = static_cast<char>(std::toupper(c));
    }
    RC_ASSERT(Uuid::parse(text) == uuid);
}

TEST(Uuid, RefusesEveryOtherText) {
    for (const std::string_view text : {"",
                                        "017f22e279b07cc398c4dc0c0c07398f",
                                        "{17f22e2-79b0-7cc3-98c4-dc0c0c07398f}",
                                        "017f22e2-79b0-7cc3-98c4-dc0c0c07398",
                                        "017f22e2-79b0-7cc3-98c4-dc0c0c07398ff",
                                        "017f22e2-79b0-7cc3-98c4-dc0c0c07398g",
                                        "017f22e2079b0-7cc3-98c4-dc0c0c07398f",
                                        "017f22e-279b0-7cc3-98c4-dc0c0c07398f"}) {
        EXPECT_FALSE(Uuid::parse(text)) << text;
    }
    EXPECT_FALSE(Uuid::from_bytes(std::vector<std::byte>(15)));
    EXPECT_FALSE(Uuid::from_bytes(std::vector<std::byte>(17)));
}

TEST(Token, HoldsSixteenRandomBytesInTwentyTwoCharacters) {
    const std::string token = make_token();
    EXPECT_EQ(token.size(), 22U);
    const auto bytes = from_base64url(token);
    ASSERT_TRUE(bytes);
    EXPECT_EQ(bytes->size(), 16U);
    EXPECT_NE(token, make_token());
}

}  // namespace
}  // namespace holdfast
