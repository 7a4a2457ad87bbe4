// Which worker an activity goes to: by its tag, and by its session.
#include "runtime/test/placement_fixture.hpp"

#include <holdfast/base/error.hpp>
#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::flow::tests {
namespace {

using TagBehaviour = PlacementBehaviour;

TEST_F(TagBehaviour, ATagIsInTheHistoryOnlyIfThereIsOne) {
    HOLDFAST_CHECK("runtime e2e_with_tag_persists_tag_in_event_history");
    HOLDFAST_CHECK("runtime work_item_activity_execute_with_tag_roundtrips");
    HOLDFAST_CHECK("runtime work_item_activity_execute_none_tag_omitted_in_json");
    HOLDFAST_CHECK("runtime work_item_activity_execute_missing_tag_deserializes_as_none");
    HOLDFAST_CHECK("runtime e2e_activity_context_tag_visible_in_handler");
    HOLDFAST_CHECK("runtime e2e_activity_context_tag_none_for_untagged");
    code("asks", [](Context& ctx, std::string, std::string tag) -> Task<std::string> {
        auto operation = ctx.activity<&work>("where", "");
        if (!tag.empty()) {
            operation = std::move(operation).tag(tag);
        }
        std::string text = co_await operation;
        co_return text;
    });
    node("n", serving(TagFilter::everything()));
    start("asks", "tagged", "gpu");
    start("asks", "plain", "");
    everybody_works();
    EXPECT_EQ(result("tagged"), "n/gpu/-");
    EXPECT_EQ(result("plain"), "n/-/-");
    EXPECT_EQ(events<ActivityScheduled>("tagged")[0].tag, "gpu");
    EXPECT_THAT(client.export_history("tagged"), HasSubstr(R"("tag":"gpu")"));
    const std::string plain = client.export_history("plain");
    EXPECT_EQ(plain.find(R"("tag")"), std::string::npos);
    EXPECT_EQ(std::get<ActivityScheduled>(decode_export(plain).events[1].body).tag, std::nullopt);
}

TEST_F(TagBehaviour, ATagMayBeAsLongAsItMayBe) {
    HOLDFAST_CHECK("runtime e2e_tag_at_boundary_succeeds");
    code("long", [](Context& ctx, std::string, std::string bytes) -> Task<std::string> {
        std::string said = "taken";
        try {
            const std::string tag(static_cast<std::size_t>(std::stoi(bytes)), 't');
            co_await ctx.activity<&work>("echo", "").tag(tag);
        } catch (const Failure& failure) {
            said = failure.type();
        }
        co_return said;
    });
    node("n", serving(TagFilter::everything()));
    start("long", "fits", "256");
    start("long", "too long", "257");
    everybody_works();
    EXPECT_EQ(result("fits"), "taken");
    EXPECT_EQ(result("too long"), "InvalidOperation");
}

TEST_F(TagBehaviour, EachTagIsServedByThoseWhoServeIt) {
    HOLDFAST_CHECK("runtime e2e_two_workers_different_tags_no_overlap");
    HOLDFAST_CHECK("runtime sample_heterogeneous_workers_with_tags");
    HOLDFAST_CHECK("runtime sample_dual_runtime_tag_cooperation");
    HOLDFAST_CHECK("runtime e2e_tag_routing_survives_continue_as_new");
    HOLDFAST_CHECK("runtime multi_worker_heterogeneous_config");
    code("mixed", [](Context& ctx, std::string self, std::string before) -> Task<std::string> {
        auto [gpu, cpu, plain] = co_await all(ctx.activity<&work>("where", "").tag("gpu"),
                                              ctx.activity<&work>("where", "").tag("cpu"),
                                              ctx.activity<&work>("where", ""));
        const std::string all_of_them = gpu + " " + cpu + " " + plain;
        if (ctx.execution() == 1) {
            co_return again(self, all_of_them);
        }
        co_return before == all_of_them ? before : before + " then " + all_of_them;
    });
    node("render", serving(TagFilter::only({"gpu"})));
    node("build", serving(TagFilter::only({"cpu"})));
    RuntimeOptions dispatcher = manual_options();  // Takes turns, and no activities.
    dispatcher.activity_threads = 0;
    node("dispatch", dispatcher);
    node("default", serving(TagFilter::default_only()));
    start("mixed", "m");
    everybody_works();
    EXPECT_EQ(result("m"), "render/gpu/- build/cpu/- default/-/-");
}

TEST_F(TagBehaviour, ATagThatNobodyServesTimesOutAndSomethingElseIsDone) {
    HOLDFAST_CHECK("runtime e2e_tagged_activity_starvation_times_out");
    HOLDFAST_CHECK("runtime sample_starvation_safe_tagged_activity");
    code("safe", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        auto fast = co_await ctx.activity<&work>("where", "").tag("gpu").timeout(1min).outcome();
        if (fast) {
            co_return *fast;
        }
        std::string slow = co_await ctx.activity<&work>("where", "");
        co_return std::string(to_string(fast.failure().kind)) + ", then " + slow;
    });
    node("n", serving(TagFilter::default_only()));
    start("safe", "s");
    everybody_works();
    EXPECT_EQ(status("s"), Status::running);
    place.db.advance_clock(1min);
    everybody_works();
    EXPECT_EQ(result("s"), "timeout, then n/-/-");
    EXPECT_EQ(client.stats().activities, 0) << "the one that nobody served is called back";
}

// The dangerous moment: a process has run an activity which another one has asked for, and has a
// coroutine of that instance in memory which knows nothing of it.
TEST_F(TagBehaviour, TheAnswerToAnotherProcesssQuestionIsNotLost) {
    code("asks", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        co_await ctx.receive(inbox);
        std::string where = co_await ctx.activity<&work>("where", "").tag("gpu");
        co_return where;
    });
    Node& first = node("first", serving(TagFilter::only({"gpu"})));
    start("asks", "a");
    works(first);
    Store elsewhere(*place.db);  // The first process is not told what happens here.
    Client caller(elsewhere);
    Runtime second(elsewhere, behaviour_registry(), manual_options());
    caller.signal("a", inbox, std::string("ask"));
    second.run_until_idle();
    ASSERT_EQ(client.stats().activities, 1);
    works(first);
    second.run_until_idle();
    EXPECT_EQ(result("a"), "first/gpu/-");
}

}  // namespace
}  // namespace holdfast::flow::tests
