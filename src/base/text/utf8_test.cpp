#include <holdfast/base/utf8.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace holdfast {
namespace {

TEST(Utf8, ReadsCharactersOfEveryLength) {
    EXPECT_EQ(first_character("A").code_point, U'A');
    EXPECT_EQ(first_character("\xc3\xa9!").code_point, U'\u00e9');
    EXPECT_EQ(first_character("\xe2\x82\xac").code_point, U'\u20ac');
    EXPECT_EQ(first_character("\xf0\x9f\x98\x80").code_point, U'\U0001f600');
    EXPECT_EQ(first_character("\xf4\x8f\xbf\xbf").code_point, U'\U0010ffff');
}

TEST(Utf8, RefusesWhatOnlyLooksLikeText) {
    for (const std::string_view bytes : {"\x80",              // A continuation alone.
                                         "\xc3",              // Cut off.
                                         "\xe2\x82",          // Cut off later.
                                         "\xc0\xaf",          // '/' in two bytes.
                                         "\xe0\x80\xaf",      // '/' in three.
                                         "\xed\xa0\x80",      // Half a surrogate pair.
                                         "\xf4\x90\x80\x80",  // Past the last code point.
                                         "\xff"}) {
        EXPECT_EQ(first_character(bytes).code_point, std::nullopt);
        EXPECT_EQ(first_character(bytes).bytes, 1U);
    }
}

TEST(Utf8, ReplacesBadBytesAndKeepsTheRest) {
    EXPECT_EQ(valid_utf8("caf\xc3\xa9"), "caf\xc3\xa9");
    EXPECT_EQ(valid_utf8("a\xff"
                         "b\xc3"),
              "a\xef\xbf\xbd"
              "b\xef\xbf\xbd");
}

RC_GTEST_PROP(Utf8, WhatWasRepairedNeedsNoRepair, (const std::string& bytes)) {
    const std::string valid = valid_utf8(bytes);
    RC_ASSERT(valid_utf8(valid) == valid);
}

RC_GTEST_PROP(Utf8, TextIsValidIfNothingInItNeedsRepair, (const std::string& bytes)) {
    RC_ASSERT(is_utf8(bytes) == (valid_utf8(bytes) == bytes));
}

TEST(Utf8, TheFirstInvalidByteIsFoundWhereverItStands) {
    EXPECT_TRUE(is_utf8(""));
    EXPECT_TRUE(is_utf8(std::string_view("\0", 1)));
    for (std::size_t before = 0; before < 20; ++before) {
        for (std::size_t after = 0; after < 20; ++after) {
            const std::string text =
                std::string(before, 'a') + "\xc3\xa9" + std::string(after, 'b');
            EXPECT_TRUE(is_utf8(text));
            EXPECT_EQ(valid_utf8_bytes(text + "\xc3"), text.size());
            EXPECT_EQ(valid_utf8_bytes(std::string(before, 'a') + "\x80" + text), before);
        }
    }
}

TEST(Utf8, EveryCodePointIsReadAsItWasWritten) {
    for (char32_t code_point = 0; code_point <= 0x10ffff; ++code_point) {
        if (code_point == 0xd800) {
            code_point = 0xe000;  // Past the surrogates.
        }
        std::string text;
        append_utf8(text, code_point);
        const Utf8Character read = first_character(text);
        ASSERT_EQ(read.code_point, code_point);
        ASSERT_EQ(read.bytes, text.size());
    }
}

TEST(Utf8, KnowsTheCharactersThatEndALine) {
    for (const char32_t c : {U'\n',
                             U'\r',
                             U'\v',
                             U'\f',
                             U'\0',
                             char32_t{0x85},
                             U'\u2028',
                             U'\u2029',
                             char32_t{0x1b},
                             char32_t{0x7f}}) {
        EXPECT_TRUE(is_control(c)) << static_cast<unsigned>(c);
    }
    EXPECT_FALSE(is_control(U' '));
    EXPECT_FALSE(is_control(U'\u00e9'));
}

}  // namespace
}  // namespace holdfast
