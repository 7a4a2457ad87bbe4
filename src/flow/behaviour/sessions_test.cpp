// Which worker an activity goes to: by its session.
#include "runtime/test/placement_fixture.hpp"

#include <holdfast/base/error.hpp>

namespace holdfast::flow::tests {
namespace {

using SessionBehaviour = PlacementBehaviour;

TEST_F(SessionBehaviour, ASessionStaysWithTheWorkerThatTookItFirst) {
    HOLDFAST_CHECK("runtime session_activity_basic_e2e");
    HOLDFAST_CHECK("runtime session_activity_typed");
    HOLDFAST_CHECK("runtime session_with_worker_node_id_completes");
    HOLDFAST_CHECK("runtime session_with_worker_node_id_activity_context_has_session_id");
    HOLDFAST_CHECK("runtime multi_worker_complex_orchestration");
    code("pinned", [](Context& ctx, std::string, std::string session) -> Task<std::string> {
        std::string said;
        for (int i = 0; i < 3; ++i) {
            std::string next = co_await ctx.activity<&work>("where", "").session(session);
            said += next;
            said += " ";
            co_await ctx.receive(inbox);
        }
        co_return said;
    });
    Node& first = node("first", worker("w-1"));
    node("second", worker("w-2"));
    start("pinned", "p", "s");
    works(first);
    for (int i = 0; i < 3; ++i) {
        client.signal("p", inbox, std::string("next"));
        nodes.reverse();  // The first one finds it, and leaves it to the owner.
        everybody_works();
    }
    EXPECT_EQ(result("p"), "first/-/s first/-/s first/-/s ");
}

TEST_F(SessionBehaviour, SessionsMixWithEachOtherAndWithPlainActivities) {
    HOLDFAST_CHECK("runtime mixed_session_and_regular_activities");
    HOLDFAST_CHECK("runtime multiple_sessions_in_orchestration");
    HOLDFAST_CHECK("runtime session_worker_node_id_multiple_sessions_parallel");
    HOLDFAST_CHECK("runtime session_fan_out_fan_in");
    HOLDFAST_CHECK("runtime session_fan_out_mixed_with_regular");
    HOLDFAST_CHECK("runtime fan_out_multiple_per_session_mixed");
    HOLDFAST_CHECK("runtime ephemeral_session_still_works");
    code("mixed", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::vector<Op<std::string>> many;
        for (int i = 0; i < 3; ++i) {
            many.push_back(ctx.activity<&work>("where", "").session("a"));
            many.push_back(ctx.activity<&work>("where", "").session("b"));
            many.push_back(ctx.activity<&work>("where", ""));
        }
        std::string said;
        for (const std::string& text : co_await all(std::move(many))) {
            said += text + " ";
        }
        co_return said;
    });
    for (const char* id : {"stable", ""}) {  // With an id of its own choice, and with none.
        nodes.clear();
        place.db.advance_clock(10min);
        node("n", worker(id));
        start("mixed", std::string("m") + id);
        everybody_works();
        EXPECT_EQ(result(std::string("m") + id),
                  "n/-/a n/-/b n/-/- n/-/a n/-/b n/-/- n/-/a n/-/b n/-/- ");
    }
}

TEST_F(SessionBehaviour, ASessionOutlivesAnExecutionAndAVersion) {
    HOLDFAST_CHECK("runtime session_survives_continue_as_new");
    HOLDFAST_CHECK("runtime session_continue_as_new_versioned_upgrade");
    code("rounds", [](Context& ctx, std::string self, std::string before) -> Task<std::string> {
        std::string where = co_await ctx.activity<&work>("where", "").session("s");
        if (ctx.execution() == 2) {
            co_return before + where + " as " + ctx.version();
        }
        co_await ctx.receive(inbox);
        co_return again(self, where + ", ");
    });
    node("first", worker("w-1"));
    start("rounds", "r");
    everybody_works();
    // The same worker comes back with a newer build; another one was there before it.
    Registry newer = test_registry();
    newer.activity<&work>().workflow<&script>("1.0.0").workflow<&script>("2.0.0");
    nodes.clear();
    Node& second = node("second", worker("w-2"));
    Runtime first_again(store, newer, worker("w-1"));
    client.signal("r", inbox, std::string("next"));
    first_again.run_until_idle();  // Its turn; the activity of the session waits for w-1.
    works(second);
    on = "first";
    first_again.run_until_idle();
    works(second);
    EXPECT_EQ(result("r"), "first/-/s, first/-/s as 2.0.0");
}

TEST_F(SessionBehaviour, ASessionThatItsWorkerLeftIsTakenByAnother) {
    HOLDFAST_CHECK("runtime durable_copilot_sdk_scaled_out_multi_conversation");
    // Conversations, each pinned to the worker that has its context in memory.
    code("talk", [](Context& ctx, std::string, std::string session) -> Task<std::string> {
        std::string said;
        for (;;) {
            std::string message = co_await ctx.receive(inbox);
            if (message == "bye") {
                co_return said;
            }
            std::string next = co_await ctx.activity<&work>("where", message).session(session);
            said += next;
            said += " ";
        }
    });
    Node& one = node("one", worker("w-1"));
    Node& two = node("two", worker("w-2"));
    start("talk", "ann", "s-ann");
    start("talk", "bob", "s-bob");
    everybody_works();
    client.signal("ann", inbox, std::string("hi"));
    works(one);
    client.signal("bob", inbox, std::string("hi"));
    works(two);
    for (const char* id : {"ann", "bob"}) {
        client.signal(id, inbox, std::string("and"));
    }
    everybody_works();
    nodes.pop_front();  // The first worker is gone, and its sessions lapse.
    place.db.advance_clock(10min);
    for (const char* id : {"ann", "bob"}) {
        client.signal(id, inbox, std::string("still there?"));
        client.signal(id, inbox, std::string("bye"));
    }
    everybody_works();
    EXPECT_EQ(result("ann"), "one/-/s-ann one/-/s-ann two/-/s-ann ");
    EXPECT_EQ(result("bob"), "two/-/s-bob two/-/s-bob two/-/s-bob ")
        << testing::PrintToString(kinds("bob"));
}

TEST_F(SessionBehaviour, ARuntimeTakesNoMoreSessionsThanItMay) {
    HOLDFAST_CHECK("runtime max_sessions_per_runtime_enforced");
    HOLDFAST_CHECK("runtime session_cap_blocks_then_unblocks");
    HOLDFAST_CHECK("runtime same_session_shares_one_slot");
    code("opens", [](Context& ctx, std::string, std::string session) -> Task<std::string> {
        auto [a, b] = co_await all(ctx.activity<&work>("meanwhile", "").session(session),
                                   ctx.activity<&work>("meanwhile", "").session(session));
        co_return a + " " + b;
    });
    Node& rival = node("rival", worker("w-2"));
    int taken_by_rival = 0;
    activity("meanwhile", [&](ActivityContext& ctx, const std::string&) {
        if (on == "one" && taken_by_rival == 0) {
            // While it runs one session, the runtime may hold no other: those are the rival's.
            taken_by_rival = works(rival);
            on = "one";
        }
        return on + "/" + ctx.session().value_or("-");
    });
    Node& one = node("one", worker("w-1", 1));
    for (const char* id : {"s-1", "s-2", "s-3"}) {
        start("opens", id, id);
    }
    works(one);
    EXPECT_GT(taken_by_rival, 0);
    everybody_works();
    std::map<std::string, int> by;
    for (const char* id : {"s-1", "s-2", "s-3"}) {
        const std::string said = result(id);
        EXPECT_TRUE(said == "one/" + std::string(id) + " one/" + id ||
                    said == "rival/" + std::string(id) + " rival/" + id)
            << said;
        ++by[said.substr(0, said.find('/'))];
    }
    EXPECT_EQ(by["one"], 1);
    EXPECT_EQ(by["rival"], 2);
}

TEST(Sessions, ASessionMustLastLongerThanItsActivityGoesUnrenewed) {
    HOLDFAST_CHECK("runtime session_idle_timeout_must_exceed_worker_renewal_interval");
    Store store("sqlite::memory:");
    RuntimeOptions options = manual_options();
    options.activity_lease = 30s;
    options.session_idle = 20s;  // Two thirds of the lease.
    EXPECT_EQ(test::code_of([&] { Runtime(store, test_registry(), options); }),
              Code::invalid_argument);
    options.session_idle = 20s + 1ms;
    EXPECT_EQ(test::code_of([&] { Runtime(store, test_registry(), options); }), std::nullopt);
}

}  // namespace
}  // namespace holdfast::flow::tests
