// Which histories a runtime takes: those of engines that it can replay.
#include "behaviour/test/behaviour_fixture.hpp"
#include "provider/columns.hpp"

#include <holdfast/base/log_capture.hpp>

namespace holdfast::flow::tests {
namespace {

constexpr Version past{0, 0, 1};
constexpr Version nobodys{98, 0, 0};
constexpr Version future{99, 0, 0};

class CapabilityBehaviour : public Behaviour {
protected:
    CapabilityBehaviour() {
        code("waits", [](Context& ctx, std::string, std::string) -> Task<std::string> {
            std::string text = co_await ctx.receive(inbox);
            co_return text;
        });
    }
    static RuntimeOptions replays(Version low, Version high) {
        RuntimeOptions options = manual_options();
        options.versions = {.ranges = {{low, high}}};
        return options;
    }
    // An instance that an engine of this version has begun, with mail to look at.
    void begun_by(const std::string& id, Version engine) {
        run_script("waits", id);
        runtime.reset();  // It is in no process's memory.
        place.db.execute(
            "UPDATE flow_instances SET engine = " + std::to_string(engine_number(engine)) +
            " WHERE instance_id = '" + id + "'");
        client.signal(id, inbox, "hello " + id);
        runtime.emplace(store, behaviour_registry(), replays(nobodys, nobodys));
    }
    void run_with(const RuntimeOptions& options) {
        Runtime other(store, behaviour_registry(), options);
        other.run_until_idle();
    }
    [[nodiscard]] std::int64_t pin(const std::string& id) const {
        return place.db.number("SELECT engine FROM flow_instances WHERE instance_id = '" + id +
                               "'");
    }
};

TEST_F(CapabilityBehaviour, AnExecutionIsPinnedToTheEngineThatBeganIt) {
    HOLDFAST_CHECK("runtime execution_metadata_includes_pinned_version_on_new_orchestration");
    HOLDFAST_CHECK("runtime pinned_version_extracted_from_orchestration_started_event");
    HOLDFAST_CHECK("runtime sub_orchestration_gets_own_pinned_version");
    code("parent", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::string text = co_await ctx.child<&script>("waits", "").id("c");
        co_return text;
    });
    run_script("parent", "p");
    for (const char* id : {"p", "c"}) {
        EXPECT_EQ(events<WorkflowStarted>(id)[0].engine, engine_version.text()) << id;
        EXPECT_EQ(pin(id), engine_number(engine_version)) << id;
    }
    // A history that comes from elsewhere brings its own.
    auto history = client.history("p");
    std::get<WorkflowStarted>(history[0].body).engine = future.text();
    client.provider().import_history("imported", {.events = history});
    EXPECT_EQ(pin("imported"), engine_number(future));
}

// Such an execution is never claimed: nothing is counted, delayed or logged.
TEST_F(CapabilityBehaviour, WhatARuntimeCannotReplayItLeavesAlone) {
    HOLDFAST_CHECK("runtime runtime_abandons_incompatible_execution");
    HOLDFAST_CHECK("runtime runtime_abandon_reaches_max_attempts_and_poisons");
    HOLDFAST_CHECK("runtime runtime_abandon_uses_short_delay");
    HOLDFAST_CHECK("runtime runtime_logs_warning_on_incompatible_abandon");
    HOLDFAST_CHECK("runtime runtime_processes_compatible_execution_normally");
    begun_by("a", engine_version);
    CapturingLogger log;
    RuntimeOptions narrow = replays(future, future);
    narrow.max_attempts = 2;
    narrow.logger = &log;
    for (int i = 0; i < 5; ++i) {
        run_with(narrow);
    }
    EXPECT_EQ(status("a"), Status::running);
    EXPECT_EQ(log.count("level=warn") + log.count("level=error"), 0U);
    RuntimeOptions fitting = replays(engine_version, engine_version);
    fitting.max_attempts = 1;  // It would be poison if the others had counted.
    run_with(fitting);
    EXPECT_EQ(result("a"), "hello a");
}

TEST_F(CapabilityBehaviour, WhatHasNotBegunFitsEverybody) {
    HOLDFAST_CHECK("runtime existing_executions_without_pinned_version_remain_fetchable");
    start("waits", "new");
    run_with(replays(future, future));
    EXPECT_EQ(status("new"), Status::running);
    EXPECT_THAT(kinds("new"), ElementsAre("workflow_started", "message_awaited"));
}

TEST_F(CapabilityBehaviour, ByDefaultEverythingUpToThisBuild) {
    HOLDFAST_CHECK("runtime default_supported_range_includes_current_and_older_versions");
    HOLDFAST_CHECK("runtime default_supported_range_excludes_future_versions");
    HOLDFAST_CHECK("runtime custom_supported_replay_versions_narrows_range");
    begun_by("older", past);
    begun_by("current", engine_version);
    begun_by("newer", future);
    run_with(replays(engine_version, engine_version));
    EXPECT_EQ(status("older"), Status::running) << "a narrower range";
    EXPECT_EQ(result("current"), "hello current");
    run_with(manual_options());
    EXPECT_EQ(result("older"), "hello older");
    EXPECT_EQ(status("newer"), Status::running);
}

TEST_F(CapabilityBehaviour, RuntimesOfDifferentRangesShareTheWork) {
    HOLDFAST_CHECK("runtime two_runtimes_different_version_ranges_route_correctly");
    HOLDFAST_CHECK("runtime overlapping_version_ranges_both_can_process");
    HOLDFAST_CHECK("runtime mixed_cluster_compatible_and_incompatible_items");
    begun_by("older", past);
    begun_by("between-1", engine_version);
    begun_by("between-2", engine_version);
    begun_by("newer", future);
    const RuntimeOptions low = replays(past, engine_version);
    const RuntimeOptions high = replays(engine_version, future);
    Runtime left(store, behaviour_registry(), low);
    left.run_until_idle();
    EXPECT_EQ(result("older"), "hello older");
    EXPECT_EQ(result("between-1"), "hello between-1");
    EXPECT_EQ(result("between-2"), "hello between-2");
    EXPECT_EQ(status("newer"), Status::running);
    begun_by("between-3", engine_version);
    Runtime right(store, behaviour_registry(), high);
    right.run_until_idle();
    EXPECT_EQ(result("newer"), "hello newer");
    EXPECT_EQ(result("between-3"), "hello between-3") << "both could have";
    EXPECT_EQ(right.stats().turns, 2);
}

// A build to come may read it: it waits, and an operator may end it.
TEST_F(CapabilityBehaviour, AHistoryThatCannotBeReadBlocksItsInstance) {
    HOLDFAST_CHECK("runtime wide_supported_range_drains_stuck_items_via_deserialization_error");
    begun_by("stuck", future);
    place.db.execute("UPDATE flow_history SET events = '{\"type\":\"of the future\"}'");
    for (int i = 0; i < 15; ++i) {
        run_with(manual_options());
        place.db.advance_clock(1min);
    }
    EXPECT_FALSE(info("stuck").blocked) << "no worker takes it";
    CapturingLogger log;
    RuntimeOptions wide = replays(Version{}, future);
    wide.max_attempts = 3;
    wide.logger = &log;
    for (int i = 0; i < 5; ++i) {
        run_with(wide);
        place.db.advance_clock(2min);
    }
    EXPECT_EQ(status("stuck"), Status::running);
    EXPECT_EQ(info("stuck").blocked.value().kind, BlockKind::unreadable);
    EXPECT_EQ(log.count("a workflow is blocked"), 5U);
    client.terminate("stuck", "by ann");
    run_with(wide);
    EXPECT_EQ(status("stuck"), Status::cancelled);
    EXPECT_EQ(failure("stuck").message, "by ann");
}

TEST_F(CapabilityBehaviour, ARuntimeSaysWhatItCanReplay) {
    HOLDFAST_CHECK("runtime runtime_logs_capability_declaration_at_startup");
    CapturingLogger log;
    RuntimeOptions options = replays(past, engine_version);
    options.versions.ranges.emplace_back(future, future);
    options.logger = &log;
    const Runtime other(store, behaviour_registry(), options);
    EXPECT_EQ(log.count("level=info event=\"a runtime starts\" engine=" + engine_version.text() +
                        " replays=0.0.1-" + engine_version.text() + ",99.0.0-99.0.0"),
              1U)
        << testing::PrintToString(log.lines());
}

}  // namespace
}  // namespace holdfast::flow::tests
