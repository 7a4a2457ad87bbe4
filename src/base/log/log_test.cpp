#include <holdfast/base/log.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "log/log_line.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <stdlib.h>

#include <holdfast/base/log_capture.hpp>
#include <holdfast/base/utf8.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using testing::ElementsAre;
using testing::MatchesRegex;

constexpr Wall morning{1'714'979'289'000'042us};  // 2024-05-06T07:08:09.000042Z

std::string text_of(std::string_view event, std::initializer_list<Field> fields) {
    const std::span all(fields.begin(), fields.size());
    return log_line(LogFormat::text, std::nullopt, Level::info, event, all);
}

std::string json_of(std::string_view event, std::initializer_list<Field> fields) {
    const std::span all(fields.begin(), fields.size());
    return log_line(LogFormat::json, std::nullopt, Level::info, event, all);
}

std::filesystem::path new_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "holdfast-log-XXXXXX").string();
    return ::mkdtemp(name.data());
}

// Folder and files are gone with the test.
class LogFile : public testing::Test {
protected:
    ~LogFile() override { std::filesystem::remove_all(folder); }

    [[nodiscard]] std::vector<std::string> lines() const {
        std::ifstream stream(file);
        std::vector<std::string> all;
        for (std::string line; std::getline(stream, line);) {
            all.push_back(line);
        }
        return all;
    }

    std::filesystem::path folder = new_folder();
    std::filesystem::path file = folder / "holdfast.log";
};

TEST(LogLine, TextIsNamesAndValues) {
    const std::array fields{Field("operation", "pay"),
                            Field("attempt", 2),
                            Field("late", true),
                            Field("seconds", 0.25)};
    EXPECT_EQ(
        log_line(LogFormat::text, morning, Level::warn, "slow transaction", fields),
        "time=2024-05-06T07:08:09.000042Z level=warn event=\"slow transaction\" operation=pay "
        "attempt=2 late=true seconds=0.25");
}

TEST(LogLine, JsonIsOneObject) {
    HOLDFAST_CHECK("runtime log_format_variants");
    const std::array fields{Field("operation", "pay"),
                            Field("attempt", 2),
                            Field("late", true),
                            Field("seconds", 0.25)};
    EXPECT_EQ(log_line(LogFormat::json, morning, Level::error, "slow transaction", fields),
              R"({"time":"2024-05-06T07:08:09.000042Z","level":"error","event":"slow transaction",)"
              R"("operation":"pay","attempt":2,"late":true,"seconds":0.25})");
}

TEST(LogLine, TextQuotesAValueThatWouldNotStandAlone) {
    EXPECT_EQ(text_of("e", {{"v", ""}}), R"(level=info event=e v="")");
    EXPECT_EQ(text_of("e", {{"v", "a b"}}), R"(level=info event=e v="a b")");
    EXPECT_EQ(text_of("e", {{"v", "a=b"}}), R"(level=info event=e v="a=b")");
    EXPECT_EQ(text_of("e", {{"v", R"(say "no")"}}), R"(level=info event=e v="say \"no\"")");
    EXPECT_EQ(text_of("e", {{"v", R"(c:\x)"}}), R"(level=info event=e v="c:\\x")");
    EXPECT_EQ(text_of("e", {{"v", "caf\xc3\xa9"}}), "level=info event=e v=\"caf\xc3\xa9\"");
    EXPECT_EQ(text_of("e", {{"v", "sqlite:orders.db"}}), "level=info event=e v=sqlite:orders.db");
}

// A value from outside must not be able to forge a second line or to steer a terminal.
TEST(LogLine, ControlCharactersAreEscaped) {
    const std::string value = "a\nlevel=error\r\t\x1b[2J\x7f\0b\xe2\x80\xa8 c"s;
    const std::string escaped = R"("a\nlevel=error\r\t\u001b[2J\u007f\u0000b\u2028 c")";
    EXPECT_EQ(text_of("e", {{"v", value}}), "level=info event=e v=" + escaped);
    EXPECT_EQ(json_of("e", {{"v", value}}), R"({"level":"info","event":"e","v":)" + escaped + "}");
}

TEST(LogLine, BytesThatAreNoTextStayVisible) {
    EXPECT_EQ(text_of("e", {{"v", "a\xff"}}), R"(level=info event=e v="a\xff")");
    EXPECT_EQ(json_of("e", {{"v", "a\xff"}}), R"({"level":"info","event":"e","v":"a\ufffd"})");
}

TEST(LogLine, JsonHasNoBareNumberForWhatIsNone) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    EXPECT_EQ(json_of("e", {{"v", infinity}}), R"({"level":"info","event":"e","v":"inf"})");
    EXPECT_EQ(text_of("e", {{"v", -infinity}}), "level=info event=e v=-inf");
}

RC_GTEST_PROP(LogLine, IsOneLineOfValidTextWhateverItHolds, (const std::string& value)) {
    const auto control = [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; };
    for (const std::string& line :
         {text_of(value, {{"v", value}}), json_of(value, {{"v", value}})}) {
        RC_ASSERT(valid_utf8(line) == line);
        RC_ASSERT(std::none_of(line.begin(), line.end(), control));
    }
}

TEST_F(LogFile, KeepsWhatItsLevelAllowsWithTheTimeInUtc) {
    const auto logger = make_logger({.level = Level::warn, .file = file});
    EXPECT_FALSE(logger->enabled(Level::info));
    EXPECT_TRUE(logger->enabled(Level::error));
    logger->info("quiet");
    logger->warn("loud", {{"n", 1}});
    logger->write(Level::debug, "quiet", {});
    const std::string time = "time=[0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+.[0-9]+Z";
    EXPECT_THAT(lines(), ElementsAre(MatchesRegex(time + " level=warn event=loud n=1")));
}

TEST_F(LogFile, AppendsToWhatIsThere) {
    make_logger({.file = file})->info("one");
    make_logger({.format = LogFormat::json, .file = file})->info("two");
    ASSERT_EQ(lines().size(), 2U);
    EXPECT_THAT(lines()[1], MatchesRegex(R"(\{"time":"[^"]+","level":"info","event":"two"\})"));
}

// The line that explains a crash must not wait in a buffer; `logger` is still alive here.
TEST_F(LogFile, ALineIsInTheFileWhenWritingReturns) {
    const auto logger = make_logger({.file = file});
    logger->info("about to crash");
    EXPECT_EQ(lines().size(), 1U);
}

TEST_F(LogFile, AFileThatCannotBeWrittenIsAnErrorWithTheCure) {
    try {
        static_cast<void>(make_logger({.file = folder}));
        FAIL() << "a folder is no log file";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::unavailable);
        EXPECT_THAT(error.what(), testing::HasSubstr("set log.file to a path"));
        EXPECT_TRUE(error.cause());
    }
}

TEST(Logger, WithoutAFileWritesToStandardError) {
    testing::internal::CaptureStderr();
    make_logger({})->info("hello");
    EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::EndsWith(" event=hello\n"));
}

TEST(Logger, OffWritesNothingAtAnyLevel) {
    testing::internal::CaptureStderr();
    const auto logger = make_logger({.level = Level::off});
    logger->error("lost");
    logger->write(Level::off, "never", {});
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    EXPECT_FALSE(logger->enabled(Level::error));
}

TEST(Logger, TheNullLoggerTakesEverything) {
    EXPECT_FALSE(null_logger().enabled(Level::error));
    null_logger().error("nobody hears");
    null_logger().write(Level::error, "nobody hears", {{"n", 1}});
}

TEST(CapturingLogger, KeepsLinesForTheTest) {
    CapturingLogger log(Level::info);
    log.debug("hidden");
    log.warn("slow transaction", {{"operation", "pay"}});
    EXPECT_THAT(log.lines(), ElementsAre(R"(level=warn event="slow transaction" operation=pay)"));
    EXPECT_EQ(log.count("operation=pay"), 1U);
    EXPECT_EQ(log.count("hidden"), 0U);
}

}  // namespace
}  // namespace holdfast
