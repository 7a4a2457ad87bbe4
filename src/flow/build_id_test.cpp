// Two builds of one program, one after the other over the same store.
#include <fstream>
#include <iterator>

#include "runtime/test/runtime_fixture.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/log_capture.hpp>

namespace holdfast::flow::builds {

using tests::greet;
using namespace std::chrono_literals;

Workflow<std::string> before(Context& ctx, std::string name) {
    co_await ctx.activity<&greet>(name);
    co_await ctx.sleep(24h);
    std::string text = co_await ctx.activity<&greet>(name + " again");
    co_return text;
}
// The next release writes names with a title.
Workflow<std::string> after(Context& ctx, std::string name) {
    co_await ctx.activity<&greet>("Dr. " + name);
    co_await ctx.sleep(24h);
    std::string text = co_await ctx.activity<&greet>("Dr. " + name + " again");
    co_return text;
}
Workflow<int> rounds(Context& ctx, int left) {
    co_await ctx.sleep(24h);
    if (left > 0) {
        co_return again(left - 1);
    }
    co_return left;
}

}  // namespace holdfast::flow::builds

HOLDFAST_NAME(holdfast::flow::builds::before, "builds.visit");
HOLDFAST_NAME(holdfast::flow::builds::after, "builds.visit");
HOLDFAST_NAME(holdfast::flow::builds::rounds, "builds.rounds");

namespace holdfast::flow::builds {
namespace {

// What the linker wrote, found without its table of contents: lengths of name and id, a kind, a
// name, the id. Empty if there is none.
std::string note_in_file() {
    std::ifstream file("/proc/self/exe", std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    std::string kind_and_name(8, '\0');  // Not in one piece, or it would be found here.
    kind_and_name[0] = '\x03';
    kind_and_name.replace(4, 3, "GNU");
    for (std::size_t at = 0; (at = bytes.find(kind_and_name, at)) != std::string::npos; ++at) {
        const bool is_note = at % 4 == 0 && at >= 8 && bytes[at - 8] == '\x04';
        if (!is_note || static_cast<unsigned char>(bytes[at - 4]) < 8) {
            continue;
        }
        std::string text;
        for (std::size_t i = 0; i < 6; ++i) {
            text += fmt::format("{:02x}", static_cast<unsigned char>(bytes[at + 8 + i]));
        }
        return text;
    }
    return {};
}

TEST(BuildId, IsWhatTheLinkerWroteIntoTheProgram) {
    EXPECT_EQ(program_build_id(), note_in_file());
    EXPECT_EQ(RuntimeOptions{}.build_id, program_build_id());
}

class Builds : public testing::Test {
protected:
    tests::StoreFixture place{test::Backend::sqlite};
    Client client{*place.store};
    CapturingLogger log;

    // Works off what there is, as the given build with its code.
    template <auto Visit>
    void work_as(const std::string& build) {
        Registry registry;
        registry.activity<&greet>().workflow<Visit>().template workflow<&rounds>();
        RuntimeOptions options = tests::manual_options();
        options.build_id = build;
        options.logger = &log;
        Runtime runtime{*place.store, registry, options};
        runtime.run_until_idle();
    }
    std::vector<std::string> builds(const std::string& id) {
        std::vector<std::string> found;
        for (const Event& event : client.history(id)) {
            if (!event.build.empty()) {
                found.push_back(std::to_string(event.id) + " " + event.build);
            }
        }
        return found;
    }
    const std::string told = "an input is not the one in the history";
};

// The case all of it is for: a release in the middle of a night's sleep.
TEST_F(Builds, AReleaseThatWritesInputsOtherwiseEndsNothing) {
    client.start<&before>("v", "Ann");
    work_as<&before>("a1");
    place.db.advance_clock(24h);
    work_as<&after>("b2");
    EXPECT_EQ(*client.result<&after>("v", 0ms), "hello Dr. Ann again");
    EXPECT_EQ(log.count(told), 1U);
    EXPECT_EQ(builds("v"), (std::vector<std::string>{"1 a1", "5 b2"}));
    EXPECT_EQ(tests::seen.of("greet Dr. Ann"), 0) << "what was done is not done again";
}

TEST_F(Builds, WithinOneBuildAnotherInputIsABug) {
    client.start<&before>("v", "Ann");
    work_as<&before>("a1");
    place.db.advance_clock(24h);
    work_as<&after>("a1");
    EXPECT_EQ(client.info("v")->blocked.value().kind, BlockKind::nondeterminism);
}

// Programs without a build id, and instances from before there was one: as it has always been.
TEST_F(Builds, ABuildThatIsNotKnownIsNoOtherBuild) {
    client.start<&before>("v", "Ann");
    work_as<&before>("");
    EXPECT_TRUE(builds("v").empty());
    place.db.advance_clock(24h);
    work_as<&after>("b2");
    EXPECT_EQ(client.info("v")->blocked.value().kind, BlockKind::nondeterminism);
}

// The worker that ends an execution writes the first event of the next; another may run its code.
TEST_F(Builds, EveryExecutionSaysWhoRanIt) {
    client.start<&rounds>("r", 2);
    work_as<&before>("a1");
    EXPECT_EQ(builds("r"), (std::vector<std::string>{"1 a1"}));
    place.db.advance_clock(24h);
    work_as<&before>("b2");
    EXPECT_EQ(builds("r"), (std::vector<std::string>{"2 b2"}));
    place.db.advance_clock(24h);
    work_as<&before>("b2");
    place.db.advance_clock(24h);
    work_as<&before>("c3");
    EXPECT_EQ(builds("r"), (std::vector<std::string>{"2 b2", "3 c3"}));
    EXPECT_EQ(*client.result<&rounds>("r", 0ms), 0);
}

TEST_F(Builds, ABuildIdIsShortAndPlain) {
    const std::string longest(64, 'x');
    for (const std::string& good : {std::string(), std::string("v1.2-rc/3"), longest}) {
        EXPECT_NO_THROW(work_as<&before>(good));
    }
    for (const std::string& bad : {longest + "x",
                                   std::string("a b"),
                                   std::string("\xC3\xA4"),
                                   std::string("a\nb"),
                                   std::string(1, '\0')}) {
        EXPECT_EQ(test::code_of([&] { work_as<&before>(bad); }), Code::invalid_argument) << bad;
    }
}

}  // namespace
}  // namespace holdfast::flow::builds
