// What keys become in tables and in logs. The long results were computed by another program.
#include <holdfast/lock/key.hpp>

#include <set>

#include "test/fake_backend.hpp"
#include <gtest/gtest.h>

#include <holdfast/sql/dialect.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::lock::tests {
namespace {

std::string repeat(std::string_view text, int times) {
    std::string result;
    for (int i = 0; i < times; ++i) {
        result += text;
    }
    return result;
}

// The refusal's message, which is empty if there was none.
template <class Body>
std::string refusal(Body&& body) {
    const auto error = lock_error_of(std::forward<Body>(body));
    EXPECT_TRUE(!error || error->lock_code() == LockCode::invalid_argument);
    return error ? error->what() : "";
}

std::string key_refusal(std::string_view key) {
    return refusal([&] { (void)normalised_key(key); });
}

std::string storage_refusal(std::string_view prefix,
                            std::string_view key,
                            std::size_t limit,
                            std::size_t reserve) {
    return refusal([&] { (void)storage_key(prefix, key, limit, reserve); });
}

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

// How many of the 22 characters at the end differ.
int difference(std::string_view one, std::string_view other) {
    int count = 0;
    for (std::size_t i = 1; i <= 22; ++i) {
        count += one[one.size() - i] != other[other.size() - i] ? 1 : 0;
    }
    return count;
}

const std::string x500 = repeat("x", 500);
constexpr std::string_view composed = "caf\u00e9";
constexpr std::string_view decomposed = "cafe\u0301";

TEST(KeyTest, APlainKeyIsUnchanged) {
    HOLDFAST_CHECK("locks U-P 64");
    for (const std::string_view key : {"a", "invoice/7", "a:b-c_d.e", " blanks ", "UPPER", "\t"}) {
        EXPECT_EQ(normalised_key(key), key);
    }
}

TEST(KeyTest, ComposedAndDecomposedAreOneKey) {
    HOLDFAST_CHECK("locks U-P 65");
    HOLDFAST_CHECK("locks U-P 66");
    EXPECT_EQ(normalised_key(decomposed), composed);
    EXPECT_EQ(normalised_key(composed), composed);
    EXPECT_EQ(normalised_key("\u212b"), "\u00c5");  // The Angstrom sign is a letter.
    EXPECT_NE(normalised_key("\ufb01"), "fi");      // A ligature is not.
}

TEST(KeyTest, AnEmptyKeyIsRefused) {
    HOLDFAST_CHECK("locks U-P 67");
    EXPECT_EQ(key_refusal(""), "Key must not be empty");
}

TEST(KeyTest, LengthIsCountedInBytesAfterNormalisation) {
    HOLDFAST_CHECK("locks U-P 68");
    HOLDFAST_CHECK("locks U-P 69");
    HOLDFAST_CHECK("locks U-P 70");
    HOLDFAST_CHECK("locks U-P 71");
    HOLDFAST_CHECK("locks U-P 72");
    static_assert(key_bytes_max == 512);
    EXPECT_EQ(normalised_key(repeat("a", 512)).size(), 512U);
    EXPECT_TRUE(contains(key_refusal(repeat("a", 513)), "exceeds maximum length"));
    EXPECT_EQ(normalised_key(repeat("\U0001F512", 128)).size(), 512U);
    EXPECT_TRUE(contains(key_refusal(repeat("\U0001F512", 129)), "exceeds maximum length"));
    // 768 bytes become 512.
    EXPECT_EQ(normalised_key(repeat("e\u0301", 256)).size(), 512U);
}

TEST(KeyTest, WhatNoDatabaseCanHoldIsRefused) {
    HOLDFAST_CHECK("locks N12");
    EXPECT_TRUE(contains(key_refusal(std::string_view("a\0b", 3)), "U+0000"));
    EXPECT_TRUE(contains(key_refusal(std::string_view("\0", 1)), "U+0000"));
    for (const std::string_view bad : {"\xff",
                                       "\xc0\xaf",          // Overlong.
                                       "\xe0\x80\xaf",      // Overlong.
                                       "\xf0\x80\x80\xaf",  // Overlong.
                                       "\xed\xa0\x80",      // A lone surrogate.
                                       "\xed\xbf\xbf",      // A lone surrogate.
                                       "\xf4\x90\x80\x80",  // Beyond U+10FFFF.
                                       "\xf5\x80\x80\x80",
                                       "abc\xc3",  // Cut off.
                                       "\x80"}) {
        EXPECT_EQ(key_refusal(bad), "Key must be well-formed UTF-8");
    }
    EXPECT_EQ(normalised_key("\U0010FFFD"), "\U0010FFFD");
}

TEST(StorageKey, AShortKeyIsUnchanged) {
    HOLDFAST_CHECK("locks U-P 4");
    HOLDFAST_CHECK("locks U-P 20");
    EXPECT_EQ(storage_key("test", "resource:payment:12345", 1000, 25),
              "test:resource:payment:12345");
    EXPECT_EQ(storage_key("p", "k", 1000, 0), "p:k");
    EXPECT_EQ(storage_key("", "invoice/7", 1700, 0), "invoice/7");
}

TEST(StorageKey, ALongKeyBecomesItsHashExactly) {
    HOLDFAST_CHECK("locks U-P 5");
    HOLDFAST_CHECK("locks U-P 11");
    HOLDFAST_CHECK("locks U-P 14");
    HOLDFAST_CHECK("locks U-P 19");
    HOLDFAST_CHECK("locks U-P 23");
    HOLDFAST_CHECK("locks U-P 24");
    EXPECT_EQ(storage_key("", x500, 30, 0), "w4wr8wVcUWqYrF2X8w58Ng");
    EXPECT_EQ(storage_key("test", x500, 100, 0), "test:almAngpz1zHVEeEfkwDrhg");
    EXPECT_EQ(storage_key("test", repeat("\U0001F512", 20), 50, 0), "test:AJKLrVZ9phhDxmjqXkR1Mg");
    EXPECT_EQ(storage_key("test", repeat("x", 80), 100, 26), "test:CdWDJuxNg2YG8X4fVXuF5g");
    EXPECT_EQ(storage_key("test", repeat(composed, 50), 50, 0), "test:WY2gS4ZIO1dvAB6sz5-lHQ");
    EXPECT_EQ(storage_key("test", repeat(decomposed, 50), 50, 0), "test:WY2gS4ZIO1dvAB6sz5-lHQ");
    EXPECT_LE(storage_key("test", x500, 100, 26).size() + 26, 100U);
}

TEST(StorageKey, TheCountersKeyIsMadeFromTheLocks) {
    HOLDFAST_CHECK("locks U-P 6");
    HOLDFAST_CHECK("locks U-P 7");
    EXPECT_EQ(fence_key("", storage_key("", "invoice/7", 1700, 0), 1700, 0), "fence:invoice/7");
    EXPECT_EQ(fence_key("", storage_key("", x500, 30, 0), 30, 0), "fence:w4wr8wVcUWqYrF2X8w58Ng");
    EXPECT_EQ(fence_key("test", storage_key("test", x500, 100, 0), 50, 0),
              "test:fence:test:almAngpz1zHVEeEfkwDrhg");
    const std::string base = storage_key("test", x500, 40, 5);
    EXPECT_LE(base.size() + 5, 40U);
    EXPECT_LE(fence_key("test", base, 40, 5).size() + 5, 40U);
}

TEST(StorageKey, ColonsAtThePrefixsEndDoNotCount) {
    HOLDFAST_CHECK("locks U-P 8");
    EXPECT_EQ(storage_key("test:", "k", 100, 0), "test:k");
    EXPECT_EQ(storage_key("test:::", "k", 100, 0), "test:k");
    EXPECT_EQ(storage_key(":::", "k", 100, 0), "k");
    EXPECT_EQ(storage_key("a:b", "k", 100, 0), "a:b:k");
}

TEST(StorageKey, WhatCannotFitIsRefused) {
    HOLDFAST_CHECK("locks U-P 9");
    HOLDFAST_CHECK("locks U-P 10");
    HOLDFAST_CHECK("locks U-P 25");
    HOLDFAST_CHECK("locks U-P 26");
    EXPECT_EQ(storage_refusal("test", "", 100, 0), "Key must not be empty");
    EXPECT_TRUE(
        contains(storage_refusal(repeat("p", 200), "k", 100, 0), "Prefix exceeds backend limit"));
    EXPECT_TRUE(
        contains(storage_refusal(repeat("p", 80), "k", 100, 26), "Prefix exceeds backend limit"));
    EXPECT_TRUE(contains(storage_refusal(repeat("p", 90), x500, 100, 0), "even after hashing"));
    EXPECT_EQ(storage_refusal(repeat("p", 77), x500, 100, 0), "");
}

TEST(StorageKey, TheLimitItselfIsAllowed) {
    HOLDFAST_CHECK("locks U-P 21");
    HOLDFAST_CHECK("locks U-P 22");
    EXPECT_EQ(storage_key("test", repeat("k", 95), 100, 0), "test:" + repeat("k", 95));
    EXPECT_EQ(storage_key("test", repeat("k", 96), 100, 0).size(), 27U);
    EXPECT_EQ(storage_key("test", repeat("k", 90), 100, 5), "test:" + repeat("k", 90));
    EXPECT_EQ(storage_key("test", repeat("k", 91), 100, 5).size(), 27U);
}

TEST(StorageKey, HashesLookLikeChance) {
    HOLDFAST_CHECK("locks U-P 12");
    HOLDFAST_CHECK("locks U-P 16");
    HOLDFAST_CHECK("locks U-P 31");
    const std::string one = storage_key("test", repeat("a", 500), 100, 0);
    const std::string other = storage_key("test", repeat("b", 500), 100, 0);
    EXPECT_EQ(one.size(), 5U + 22U);
    EXPECT_GT(difference(one, other), 11);
    const std::string similar = storage_key("test", repeat("a", 499) + "b", 100, 0);
    EXPECT_GE(difference(one, similar), 9) << "more than 40 % of 22";
    EXPECT_FALSE(contains(one, "aaa"));
}

TEST(StorageKey, PrefixesKeepNamesApart) {
    HOLDFAST_CHECK("locks U-P 13");
    HOLDFAST_CHECK("locks U-P 32");
    const std::string one = storage_key("one", x500, 100, 0);
    const std::string two = storage_key("two", x500, 100, 0);
    EXPECT_NE(one.substr(4), two.substr(4)) << "also in the hash";
    EXPECT_NE(storage_key("one", "k", 100, 0), storage_key("two", "k", 100, 0));
}

TEST(StorageKey, ResultsRepeatAndDoNotDependOnTheReserve) {
    HOLDFAST_CHECK("locks U-P 17");
    HOLDFAST_CHECK("locks U-P 18");
    const std::string first = storage_key("test", x500, 100, 0);
    for (int i = 0; i < 100; ++i) {
        ASSERT_EQ(storage_key("test", x500, 100, 0), first);
    }
    EXPECT_EQ(storage_key("test", x500, 100, 10), first);
    EXPECT_EQ(storage_key("test", x500, 100, 26), first);
}

TEST(StorageKey, ManyKeysGiveManyNamesAndCounters) {
    HOLDFAST_CHECK("locks U-P 15");
    HOLDFAST_CHECK("locks U-P 27");
    HOLDFAST_CHECK("locks U-P 28");
    std::set<std::string> names;
    std::set<std::string> counters;
    for (int i = 0; i < 1000; ++i) {
        const std::string name = storage_key("", x500 + std::to_string(i), 30, 0);
        names.insert(name);
        counters.insert(fence_key("", name, 25, 0));  // Hashed a second time.
    }
    EXPECT_EQ(names.size(), 1000U);
    EXPECT_EQ(counters.size(), 1000U);
}

TEST(StorageKey, LongKeysCostNoSpaceAndLittleTime) {
    HOLDFAST_CHECK("locks U-P 29");
    HOLDFAST_CHECK("locks U-P 30");
    EXPECT_EQ(storage_key("test", repeat("k", 100), 60, 0).size(), 27U);
    EXPECT_EQ(storage_key("test", repeat("k", 100'000), 60, 0).size(), 27U);
    const Deadline generous = Deadline::after(std::chrono::seconds{10});
    for (int i = 0; i < 10'000; ++i) {
        (void)storage_key("test", x500, 100, 0);
    }
    EXPECT_FALSE(generous.passed());
}

TEST(StorageKey, NoDatabaseHasToHashAKeyThatIsAllowed) {
    for (const sql::Dialect& dialect : sql::every_dialect()) {
        const std::size_t limit = dialect.key_bytes_max;
        const std::string longest = repeat("k", key_bytes_max);
        EXPECT_EQ(storage_key("", longest, limit, 0), longest);
        EXPECT_EQ(fence_key("", longest, limit, 0), "fence:" + longest);
    }
}

// The other algorithm of this shape, which can be turned round, does not exist here: items ask for
// the shape and the properties.
TEST(HashedName, Is24HexadecimalDigits) {
    HOLDFAST_CHECK("locks U-P 37");
    HOLDFAST_CHECK("locks U-P 38");
    HOLDFAST_CHECK("locks U-P 41");
    HOLDFAST_CHECK("locks U-P 42");
    HOLDFAST_CHECK("locks U-P 43");
    for (const std::string& value : {std::string("invoice/7"),
                                     std::string(),
                                     std::string("\U0001F512\u9501\u9375"),
                                     repeat("x", 10'000)}) {
        const std::string hash = hashed_name(value);
        EXPECT_EQ(hash.size(), 24U);
        EXPECT_EQ(hash.find_first_not_of("0123456789abcdef"), std::string::npos);
        EXPECT_EQ(hashed_name(value), hash);
    }
    // HMAC-SHA-256 under the public salt, the first 12 bytes.
    EXPECT_EQ(hashed_name("invoice/7"), "748ed13f187e70063630bb40");
    EXPECT_EQ(hashed_name("invoice/7", "of this deployment"), "b3e1e15a385aa3e0c028dd7e");
}

TEST(HashedName, DiffersWithTheValueAndNotWithItsForm) {
    HOLDFAST_CHECK("locks U-P 39");
    HOLDFAST_CHECK("locks U-P 40");
    HOLDFAST_CHECK("locks U-P 44");
    HOLDFAST_CHECK("locks U-H 1");
    EXPECT_EQ(hashed_name(composed), hashed_name(decomposed));
    std::set<std::string> hashes;
    for (int i = 0; i < 1000; ++i) {
        const std::string key = "invoice/" + std::to_string(i);
        const std::string hash = hashed_name(key);
        EXPECT_FALSE(contains(hash, key));
        hashes.insert(hash);
    }
    EXPECT_EQ(hashes.size(), 1000U);
    const std::string id = LockId::fresh().reveal();
    EXPECT_FALSE(contains(hashed_name(id), id));
}

}  // namespace
}  // namespace holdfast::lock::tests
