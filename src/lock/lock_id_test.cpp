#include <holdfast/lock/lock_id.hpp>

#include <set>

#include "test/fake_backend.hpp"
#include <gtest/gtest.h>

#include <holdfast/lock/backend.hpp>
#include <holdfast/lock/error.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::lock::tests {
namespace {

bool id_refused(std::string_view text) {
    const auto error = lock_error_of([&] { (void)LockId::parse(text); });
    if (!error) {
        return false;
    }
    EXPECT_EQ(error->lock_code(), LockCode::invalid_argument);
    EXPECT_TRUE(std::string_view(error->what()).starts_with("Invalid lockId format"));
    if (text.size() > 6) {
        EXPECT_EQ(std::string_view(error->what()).find(text), std::string_view::npos)
            << "what was id_refused may be nearly the secret";
    }
    return true;
}

TEST(LockIdTest, AFreshIdHas22CharactersOfBase64url) {
    HOLDFAST_CHECK("locks U-P 1");
    HOLDFAST_CHECK("locks U-P 2");
    HOLDFAST_CHECK("locks U-P 3");
    constexpr std::string_view alphabet =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    std::set<std::string> seen;
    for (int i = 0; i < 1000; ++i) {
        const std::string text = LockId::fresh().reveal();
        ASSERT_EQ(text.size(), LockId::length);
        ASSERT_EQ(text.find_first_not_of(alphabet), std::string::npos);
        ASSERT_EQ(text.find_first_of("+/="), std::string::npos);
        seen.insert(text);
    }
    EXPECT_EQ(seen.size(), 1000U);
}

TEST(LockIdTest, EachOfTheAlphabetIsAcceptedAnywhere) {
    HOLDFAST_CHECK("locks U-P 73");
    HOLDFAST_CHECK("locks U-P 74");
    for (const std::string_view text : {"abcdefghijklmnopqrstuv",
                                        "ABCDEFGHIJKLMNOPQRSTUV",
                                        "WXYZwxyz0123456789-_-_",
                                        "AAECAwQFBgcICQoLDA0ODw",
                                        "_____________________w",
                                        "----------------------"}) {
        EXPECT_EQ(LockId::parse(text).reveal(), text);
    }
    EXPECT_EQ(LockId::parse("abcdefghijklmnopqrstuv"), LockId::parse("abcdefghijklmnopqrstuv"));
    EXPECT_NE(LockId::parse("abcdefghijklmnopqrstuv"), LockId::parse("abcdefghijklmnopqrstuw"));
}

TEST(LockIdTest, AnyOtherLengthIsRefused) {
    HOLDFAST_CHECK("locks U-P 75");
    HOLDFAST_CHECK("locks U-P 76");
    HOLDFAST_CHECK("locks U-P 77");
    HOLDFAST_CHECK("locks U-P 82");
    EXPECT_TRUE(id_refused(""));
    EXPECT_TRUE(id_refused(std::string_view{}));
    for (const std::size_t length : {1U, 7U, 21U, 23U, 26U, 36U, 10'000U}) {
        EXPECT_TRUE(id_refused(std::string(length, 'a'))) << length;
    }
}

TEST(LockIdTest, AnyOtherCharacterIsRefused) {
    HOLDFAST_CHECK("locks U-P 78");
    HOLDFAST_CHECK("locks U-P 79");
    HOLDFAST_CHECK("locks U-P 80");
    HOLDFAST_CHECK("locks U-P 83");
    for (const char bad : std::string_view("+/=@!#$%&* \t\n\r.,:;\0\x7f\xff", 21)) {
        for (const std::size_t place : {0U, 10U, 21U}) {
            std::string text(LockId::length, 'a');
            text[place] = bad;
            EXPECT_TRUE(id_refused(text)) << static_cast<int>(bad) << " at " << place;
        }
    }
    EXPECT_TRUE(id_refused("abcdefghijklmnopqrstuv\n"));
    EXPECT_TRUE(id_refused(" abcdefghijklmnopqrstuv"));
    EXPECT_TRUE(id_refused(" abcdefghijklmnopqrst "));
}

TEST(LockIdTest, LettersThatOnlyLookRightAreRefused) {
    HOLDFAST_CHECK("locks U-P 81");
    EXPECT_TRUE(id_refused("\u0430bcdefghijklmnopqrstuv"));  // Cyrillic, 22 characters.
    EXPECT_TRUE(id_refused("\u0430bcdefghijklmnopqrstu"));   // Cyrillic, 22 bytes.
    EXPECT_TRUE(id_refused("\u10d0bcdefghijklmnopqrst"));    // Georgian, 22 bytes.
    EXPECT_TRUE(id_refused("abcdefghijklmnopqrst\u00e9"));   // 22 bytes.
}

// A backend takes no text: whatever it is called with has been checked.
TEST(LockIdTest, OnlyACheckedIdReachesABackend) {
    HOLDFAST_CHECK("locks U-P 84");
    static_assert(!std::is_convertible_v<std::string, LockId>);
    static_assert(!std::is_constructible_v<LockId, std::string>);
    static_assert(!std::is_constructible_v<LockId, const char*>);
    static_assert(!std::is_default_constructible_v<LockId>);
    static_assert(
        !std::
            is_invocable_v<decltype(&Backend::release), Backend&, std::string, const CallOptions&>);
    EXPECT_TRUE(id_refused("not an id"));
}

}  // namespace
}  // namespace holdfast::lock::tests
