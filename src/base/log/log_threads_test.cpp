#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <holdfast/base/log.hpp>
#include <holdfast/base/log_capture.hpp>

namespace holdfast {
namespace {

using namespace std::chrono_literals;

TEST(Logger, ThreadsDoNotTearEachOthersLines) {
    testing::internal::CaptureStderr();
    const auto logger = make_logger({});
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&logger] {
                for (int i = 0; i < 500; ++i) {
                    logger->info("tick", {{"text", "a b c"}});
                }
            });
        }
    }
    std::istringstream written(testing::internal::GetCapturedStderr());
    int lines = 0;
    for (std::string line; std::getline(written, line); ++lines) {
        ASSERT_TRUE(line.starts_with("time=")) << line;
        ASSERT_TRUE(line.ends_with(R"(level=info event=tick text="a b c")")) << line;
    }
    EXPECT_EQ(lines, 2000);
}

TEST(CapturingLogger, WakesWhoWaitsForALine) {
    CapturingLogger log;
    std::jthread writer([&] { log.info("ready"); });
    EXPECT_TRUE(log.wait_for("event=ready", Deadline::after(20s)));
    EXPECT_FALSE(log.wait_for("event=never", Deadline::after(0s)));
}

}  // namespace
}  // namespace holdfast
