#include <holdfast/flow/command_line.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include <holdfast/flow/client.hpp>
#include <holdfast/flow/json.hpp>
#include <holdfast/flow/runtime.hpp>
#include <holdfast/flow/store.hpp>

namespace holdfast::flow::line_test {

inline constexpr Query<int()> asked{"asked"};
inline constexpr Update<int(int)> add{"add"};
inline constexpr Channel<bool> go{"go"};

int twice(int number) {
    return 2 * number;
}
void end_this_process() {
    ::kill(::getpid(), SIGTERM);
}

}  // namespace holdfast::flow::line_test

HOLDFAST_NAME(holdfast::flow::line_test::twice, "twice");
HOLDFAST_NAME(holdfast::flow::line_test::end_this_process, "end_this_process");

namespace holdfast::flow::line_test {

Workflow<int> doubled(Context& ctx, int number) {
    const int result = co_await ctx.activity<&twice>(number);
    co_return result;
}
// The same name with other steps: what a careless change of the code looks like.
Workflow<int> doubled_with_a_pause(Context& ctx, int number) {
    co_await ctx.sleep(std::chrono::milliseconds{1});
    const int result = co_await ctx.activity<&twice>(number);
    co_return result;
}
// The same steps with another input.
Workflow<int> doubled_of_the_next(Context& ctx, int number) {
    const int result = co_await ctx.activity<&twice>(number + 1);
    co_return result;
}
Workflow<int> answering(Context& ctx) {
    int number = 7;
    ctx.on(asked, [&number] { return number; });
    ctx.on(add, [&number](int more) { return number += more; });
    co_await ctx.receive(go);
    co_return number;
}
Workflow<Unit> last_words(Context& ctx) {
    co_await ctx.activity<&end_this_process>();
    co_return Unit{};
}

}  // namespace holdfast::flow::line_test

HOLDFAST_NAME(holdfast::flow::line_test::doubled, "doubled");
HOLDFAST_NAME(holdfast::flow::line_test::doubled_with_a_pause, "doubled");
HOLDFAST_NAME(holdfast::flow::line_test::doubled_of_the_next, "doubled");
HOLDFAST_NAME(holdfast::flow::line_test::answering, "answering");
HOLDFAST_NAME(holdfast::flow::line_test::last_words, "last_words");

namespace holdfast::flow::line_test {
namespace {

class CommandLine : public testing::Test {
protected:
    CommandLine() {
        std::string name = (std::filesystem::temp_directory_path() / "flow-line-XXXXXX").string();
        folder_ = ::mkdtemp(name.data());
        registry_.workflow<&doubled>()
            .workflow<&answering>()
            .workflow<&last_words>()
            .activity<&twice>()
            .activity<&end_this_process>();
    }
    ~CommandLine() override { std::filesystem::remove_all(folder_); }

    int run(std::vector<std::string> words) { return run(registry_, std::move(words)); }
    int run(const Registry& registry, std::vector<std::string> words) {
        words.insert(words.begin(), "shop");
        if (words.size() > 1) {
            words.push_back("--db=" + url());
        }
        std::vector<const char*> argv;
        for (const std::string& word : words) {
            argv.push_back(word.c_str());
        }
        testing::internal::CaptureStdout();
        testing::internal::CaptureStderr();
        const int code = command_line(registry, static_cast<int>(argv.size()), argv.data());
        std::fflush(stdout);
        out_ = testing::internal::GetCapturedStdout();
        err_ = testing::internal::GetCapturedStderr();
        return code;
    }
    [[nodiscard]] std::string url() const { return "sqlite:" + (folder_ / "x.db").string(); }

    std::filesystem::path folder_;
    Registry registry_;
    std::string out_;
    std::string err_;
};

TEST_F(CommandLine, StartWithAWaitDoesTheWorkAndPrintsTheResult) {
    EXPECT_EQ(run({"start", "doubled", "--input", "[21]", "--id", "a", "--wait", "30s"}), 0);
    EXPECT_EQ(out_, "42\n");
    EXPECT_EQ(run({"start", "doubled", "--input", "[21]", "--id", "a"}), 1) << err_;
    EXPECT_EQ(run({"start", "doubled", "--id", "b", "--wait=30s"}), 1) << "arguments are missing";
}

TEST_F(CommandLine, AWorkerWorksUntilItIsAskedToStop) {
    ASSERT_EQ(run({"start", "last_words", "--id", "a"}), 0) << err_;
    // The workflow itself sends the signal, from an activity.
    EXPECT_EQ(run({"run"}), 0) << err_;
    Store store{url()};
    Client client{store};
    EXPECT_TRUE(client.info("a").has_value());
}

TEST_F(CommandLine, QuestionsAreAnsweredWithoutAnotherWorker) {
    ASSERT_EQ(run({"start", "answering", "--id", "a"}), 0) << err_;
    EXPECT_EQ(run({"query", "a", "asked"}), 0) << err_;
    EXPECT_EQ(out_, "7\n");
    EXPECT_EQ(run({"update", "a", "add", "[3]"}), 0) << err_;
    EXPECT_EQ(out_, "10\n");
    EXPECT_EQ(run({"query", "a", "unheard_of"}), 1) << err_;
    EXPECT_EQ(run({"query", "ghost", "asked"}), 1) << err_;
}

TEST_F(CommandLine, ReplayTellsWhetherTheCodeStillDoesWhatItDid) {
    ASSERT_EQ(run({"start", "doubled", "--input", "[21]", "--id", "a", "--wait", "30s"}), 0);
    const std::string file = (folder_ / "a.jsonl").string();
    {
        Store store{url()};
        Client client{store};
        std::ofstream{file} << client.export_history("a");
    }
    EXPECT_EQ(run({"replay", file}), 0) << err_;

    Registry changed;
    changed.workflow<&doubled_with_a_pause>().activity<&twice>();
    EXPECT_EQ(run(changed, {"replay", file}), 1) << out_;
    EXPECT_NE(err_.find("nondeterministic"), std::string::npos) << err_;
    EXPECT_EQ(run(changed, {"replay", file, "--json"}), 1);
    EXPECT_NE(out_.find("\"same\":false"), std::string::npos) << out_;

    EXPECT_EQ(run({"replay", (folder_ / "none").string()}), 1) << err_;
}

// The rule by which a runtime would judge: this build may not ask for something else, another may.
TEST_F(CommandLine, ReplayWarnsOfOtherInputsOnlyWhereAnotherBuildWroteThem) {
    ASSERT_EQ(run({"start", "doubled", "--input", "[21]", "--id", "a", "--wait", "30s"}), 0);
    std::string lines;
    {
        Store store{url()};
        Client client{store};
        lines = client.export_history("a");
    }
    const std::string mine = "\"build\":\"" + program_build_id();
    ASSERT_NE(lines.find(mine), std::string::npos) << lines;
    const std::string same = (folder_ / "same.jsonl").string();
    std::ofstream{same} << lines;
    const std::string other = (folder_ / "other.jsonl").string();
    std::ofstream{other} << lines.replace(lines.find(mine), mine.size(), "\"build\":\"another");

    Registry changed;
    changed.workflow<&doubled_of_the_next>().activity<&twice>();
    EXPECT_EQ(run(changed, {"replay", same}), 1) << out_;
    EXPECT_EQ(run(changed, {"replay", other}), 0) << err_;
    EXPECT_NE(err_.find("an input is not the one in the history"), std::string::npos) << err_;
    EXPECT_EQ(run({"replay", other}), 0);
    EXPECT_EQ(err_, "");
}

TEST_F(CommandLine, WhatIsNotUnderstoodIsRefusedInOneSentence) {
    const std::vector<std::vector<std::string>> wrong{{},
                                                      {"dance"},
                                                      {"start"},
                                                      {"start", "unknown"},
                                                      {"start", "doubled", "--input", "21"},
                                                      {"start", "doubled", "--delay", "soon"},
                                                      {"start", "doubled", "--colour", "red"},
                                                      {"start", "doubled", "twice"},
                                                      {"query", "a"},
                                                      {"replay"}};
    for (const std::vector<std::string>& words : wrong) {
        EXPECT_EQ(run(words), 2) << testing::PrintToString(words) << err_;
        EXPECT_EQ(err_.find("shop: "), 0U) << err_;
        EXPECT_EQ(err_.find('\n'), err_.size() - 1) << err_;
        EXPECT_EQ(out_, "");
    }
    EXPECT_FALSE(std::filesystem::exists(folder_ / "x.db")) << "refused at the door";
}

}  // namespace
}  // namespace holdfast::flow::line_test
