#include <holdfast/base/visible.hpp>

#include <string>

#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/exit_code.hpp>
#include <holdfast/base/utf8.hpp>

namespace holdfast {
namespace {

TEST(Visible, LeavesWhatCanBeReadAsItIs) {
    for (const std::string_view text : {"", "order/7", "Grüße, 世界 🙂", "a\n\tb", "\\u202e"}) {
        EXPECT_EQ(visible(text), text);
    }
}

TEST(Visible, ShowsWhatSteersATerminalAsAnEscape) {
    EXPECT_EQ(visible("\x1b[2Jx"), "\\x1b[2Jx");
    EXPECT_EQ(visible("a\rb\x7f"), "a\\x0db\\x7f");
    EXPECT_EQ(visible("\xC2\x9B"
                      "31m"),
              "\\x9b31m")
        << "CSI in one character";
    EXPECT_EQ(visible("\xFF\xC2"), "\\xff\\xc2") << "not UTF-8";
    EXPECT_EQ(visible(std::string_view("\0", 1)), "\\x00");
}

TEST(Visible, ShowsWhatReordersOrHidesTextAsAnEscape) {
    EXPECT_EQ(visible("\u202Egpj.exe"), "\\u202egpj.exe");
    for (const char32_t c : {U'\x61C',
                             U'\x200B',
                             U'\x200E',
                             U'\x200F',
                             U'\x202A',
                             U'\x202B',
                             U'\x202C',
                             U'\x202D',
                             U'\x2028',
                             U'\x2066',
                             U'\x2067',
                             U'\x2068',
                             U'\x2069',
                             U'\x2060',
                             U'\xFEFF',
                             U'\xAD',
                             U'\x180E',
                             U'\x3164',
                             U'\xE0041'}) {
        std::string text;
        append_utf8(text, c);
        EXPECT_NE(visible(text), text) << static_cast<unsigned>(c);
        EXPECT_EQ(visible(visible(text)), visible(text));
    }
}

TEST(Visible, IsHowAnErrorIsSaid) {
    EXPECT_EQ(sentence_of(InvalidArgument("there is no 'a\x1b[2J\u202E'")),
              "there is no 'a\\x1b[2J\\u202e'");
}

}  // namespace
}  // namespace holdfast
