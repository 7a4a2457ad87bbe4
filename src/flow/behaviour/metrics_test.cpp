// What operators can count: every start, end, failure, activity, turn and error, under names that
// stay few, and what is in the store as it was measured last.
#include <holdfast/base/metrics.hpp>

#include <chrono>

#include "behaviour/test/behaviour_fixture.hpp"

namespace holdfast::flow::tests {

std::string pay(sql::Tx& tx, std::string what);

}  // namespace holdfast::flow::tests

HOLDFAST_NAME(holdfast::flow::tests::pay, "test.pay");

namespace holdfast::flow::tests {

std::string pay(sql::Tx&, std::string what) {
    return what;
}

namespace {

class MetricsBehaviour : public StoredBehaviour {
protected:
    MetricsBehaviour() {
        code("work", [](Context& ctx, std::string, std::string arg) -> Task<std::string> {
            std::string text = co_await ctx.activity<&work>("work", arg);
            co_return text;
        });
        code("wait", [](Context& ctx, std::string, std::string) -> Task<std::string> {
            std::string heard = co_await ctx.receive(inbox);
            co_return heard;
        });
        activity("work", [](ActivityContext&, const std::string& arg) -> std::string {
            if (arg == "bad") {
                throw Failure("Bad", "it is bad");
            }
            return arg;
        });
        runtime.emplace(store, behaviour_registry(), counting());
    }
    ~MetricsBehaviour() override { runtime.reset(); }  // It counts until its end.

    RuntimeOptions counting() {
        RuntimeOptions options = manual_options();
        options.metrics = &metrics;
        options.gauges_every = 0ms;  // Whenever the runtime has been at work.
        return options;
    }

    [[nodiscard]] double value(std::string_view name, Labels labels = {}) const {
        return metrics.value(name, labels);
    }
    [[nodiscard]] double starts(std::string_view by, std::string_view version = "1.0.0") const {
        return value("holdfast_flow_starts_total",
                     {{"workflow", "test.script"}, {"version", version}, {"by", by}});
    }
    [[nodiscard]] double ends(std::string_view status, std::string_view version = "1.0.0") const {
        return value("holdfast_flow_ends_total",
                     {{"workflow", "test.script"}, {"version", version}, {"status", status}});
    }
    [[nodiscard]] double failures(std::string_view kind) const {
        return value("holdfast_flow_failures_total",
                     {{"workflow", "test.script"}, {"version", "1.0.0"}, {"kind", kind}});
    }
    [[nodiscard]] double activities(std::string_view outcome,
                                    std::string_view name = "test.work",
                                    std::string_view tag = "") const {
        return value("holdfast_flow_activities_total",
                     {{"activity", name}, {"tag", tag}, {"outcome", outcome}});
    }
    [[nodiscard]] double active() const { return value("holdfast_flow_active_instances"); }
    [[nodiscard]] double messages() const { return value("holdfast_flow_messages_waiting"); }
    [[nodiscard]] double queued() const { return value("holdfast_flow_activities_waiting"); }

    Metrics metrics;
};

TEST_P(MetricsBehaviour, EndsOfWorkflowsAndActivitiesAreCountedByWhatTheyWere) {
    HOLDFAST_CHECK("runtime metrics_capture_activity_and_orchestration_outcomes");
    HOLDFAST_CHECK("runtime metrics_outcome_matrix");
    code("again", [](Context&, std::string self, std::string arg) -> Task<std::string> {
        if (arg.empty()) {
            co_return again(self, std::string("once more"));
        }
        co_return arg;
    });
    for (const char* id : {"a", "b", "c"}) {
        run_script("work", id, "good");
    }
    run_script("work", "d", "bad");
    run_script("wait", "e");
    client.cancel("e", "not wanted");
    run();
    run_script("again", "f");
    EXPECT_EQ(starts("client"), 6);
    EXPECT_EQ(ends("completed"), 4);
    EXPECT_EQ(ends("failed"), 1);
    EXPECT_EQ(ends("cancelled"), 1);
    EXPECT_EQ(ends("continued"), 1);
    EXPECT_EQ(activities("success"), 3);
    EXPECT_EQ(activities("error"), 1);
    EXPECT_EQ(value("holdfast_flow_duration_seconds",
                    {{"workflow", "test.script"}, {"status", "completed"}}),
              4);
    EXPECT_EQ(value("holdfast_flow_history_events", {{"workflow", "test.script"}}), 7);
}

TEST_P(MetricsBehaviour, HaveTheNamesOfCodeAsLabelsAndNeverThoseOfInstances) {
    HOLDFAST_CHECK("runtime labeled_metrics_recording");
    code("tagged", [](Context& ctx, std::string, std::string arg) -> Task<std::string> {
        std::string text = co_await ctx.activity<&work>("work", arg).tag("gpu");
        co_return text;
    });
    RuntimeOptions options = counting();
    options.tags = TagFilter::default_and({"gpu"});
    restart(behaviour_registry(), options);
    run_script("tagged", "customer-4711", "good");
    run_script("work", "customer-4712", "good");
    EXPECT_EQ(activities("success", "test.work", "gpu"), 1);
    EXPECT_EQ(activities("success"), 1);
    EXPECT_EQ(metrics.expose().find("customer"), std::string::npos);
    EXPECT_NE(metrics.expose().find("test.script"), std::string::npos) << "the search works";
}

TEST_P(MetricsBehaviour, AnExecutionThatContinuesIsOneEndAndOneStart) {
    HOLDFAST_CHECK("runtime continue_as_new_metrics");
    client.start<&loop>("l", 1, 4);
    run();
    const auto starts_of_loop = [&](std::string_view by) {
        return value("holdfast_flow_starts_total",
                     {{"workflow", "test.loop"}, {"version", "1.0.0"}, {"by", by}});
    };
    const auto ends_of_loop = [&](std::string_view status) {
        return value("holdfast_flow_ends_total",
                     {{"workflow", "test.loop"}, {"version", "1.0.0"}, {"status", status}});
    };
    EXPECT_EQ(starts_of_loop("client"), 1);
    EXPECT_EQ(starts_of_loop("continue"), 3);
    EXPECT_EQ(ends_of_loop("continued"), 3);
    EXPECT_EQ(ends_of_loop("completed"), 1);
}

TEST_P(MetricsBehaviour, ActivitiesTellHowLongTheyRanAndHowLongTheyWaited) {
    HOLDFAST_CHECK("runtime activity_duration_tracking");
    activity("work", [](ActivityContext&, const std::string& arg) {
        // By the clock that it is measured with; there is nothing to wait for.
        const auto until = std::chrono::steady_clock::now() + 20ms;
        while (std::chrono::steady_clock::now() < until) {
        }
        return arg;
    });
    run_script("work", "a");
    EXPECT_EQ(value("holdfast_flow_activity_duration_seconds", {{"activity", "test.work"}}), 1);
    EXPECT_EQ(value("holdfast_flow_schedule_to_start_seconds", {{"activity", "test.work"}}), 1);
    const std::string text = metrics.expose();
    const std::string_view sum = "holdfast_flow_activity_duration_seconds_sum{";
    const std::size_t line = text.find(sum);
    ASSERT_NE(line, std::string::npos);
    EXPECT_GE(std::stod(text.substr(text.find("} ", line) + 2)), 0.02);
}

// A mistake in the input, missing code, changed code, and a requested end call for different
// reactions.
TEST_P(MetricsBehaviour, FailuresAreToldApartByTheirKind) {
    HOLDFAST_CHECK("runtime error_classification_metrics");
    HOLDFAST_CHECK("runtime separate_error_counters_exported");
    HOLDFAST_CHECK("runtime metrics_error_shortcuts");
    code("panics", [](Context&, std::string, std::string) -> Task<std::string> {
        throw std::runtime_error("no Failure");
        co_return "";
    });
    code("late", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::string heard = co_await ctx.receive(inbox).timeout(1min);
        co_return heard;
    });
    code("lost", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        const Payload input{"[]"};
        const Payload answer = co_await ctx.activity("test.nobody", input);
        co_return answer.json;
    });
    code("changed", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        co_await ctx.sleep(1min);
        co_return "slept";
    });
    RuntimeOptions options = counting();
    options.max_attempts = 1;
    Registry registry = behaviour_registry();
    registry.on_nondeterminism(NondeterminismPolicy::fail);
    restart(registry, options);
    run_script("work", "a", "bad");
    run_script("panics", "p");
    run_script("late", "l");
    run_script("lost", "n");
    place.db.advance_clock(1min);
    EXPECT_EQ(client.provider().claim_activities({}).size(), 1U) << "by a worker that dies";
    run_script("wait", "c");
    client.cancel("c", "not wanted");
    run_script("changed", "d");
    code("changed", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::string heard = co_await ctx.receive(inbox);
        co_return heard;
    });
    restart(registry, options);
    for (int i = 0; i < 3; ++i) {
        advance(2min);
    }
    EXPECT_EQ(failures("application"), 1);
    EXPECT_EQ(failures("panic"), 1);
    EXPECT_EQ(failures("timeout"), 1);
    EXPECT_EQ(failures("poison"), 1);
    EXPECT_EQ(failures("cancelled"), 1);
    EXPECT_EQ(failures("nondeterminism"), 1);
    EXPECT_EQ(ends("failed") + ends("cancelled"), 6) << "each is one of them";
}

TEST_P(MetricsBehaviour, ChildrenAreStartsOfTheirParents) {
    HOLDFAST_CHECK("runtime sub_orchestration_metrics");
    HOLDFAST_CHECK("runtime metrics_suborchestration");
    client.start<&parent>("p", 3);
    run();
    EXPECT_EQ(value("holdfast_flow_starts_total",
                    {{"workflow", "test.chain"}, {"version", "1.0.0"}, {"by", "parent"}}),
              3);
    EXPECT_EQ(value("holdfast_flow_starts_total",
                    {{"workflow", "test.parent"}, {"version", "1.0.0"}, {"by", "client"}}),
              1);
    EXPECT_EQ(value("holdfast_flow_ends_total",
                    {{"workflow", "test.chain"}, {"version", "1.0.0"}, {"status", "completed"}}),
              3);
}

TEST_P(MetricsBehaviour, VersionsAreCountedApart) {
    HOLDFAST_CHECK("runtime versioned_orchestration_metrics");
    Registry registry = test_registry();
    registry.activity<&work>().workflow<&script>("1.0.0").workflow<&script>("2.0.0");
    restart(registry, counting());
    client.start_with<&script>({.version = "1.0.0"}, "old", "work", "good");
    client.start_with<&script>({.version = "2.0.0"}, "new", "work", "good");
    client.start_with<&script>({.version = "2.0.0"}, "newer", "work", "good");
    run();
    EXPECT_EQ(starts("client", "1.0.0"), 1);
    EXPECT_EQ(starts("client", "2.0.0"), 2);
    EXPECT_EQ(ends("completed", "1.0.0"), 1);
    EXPECT_EQ(ends("completed", "2.0.0"), 2);
}

TEST_P(MetricsBehaviour, ActivitiesAreCountedByTheirOutcome) {
    HOLDFAST_CHECK("runtime metrics_activity_outcomes");
    code("pay", [](Context& ctx, std::string, std::string arg) -> Task<std::string> {
        std::string paid = co_await ctx.activity<&pay>(arg);
        co_return paid;
    });
    Registry registry = behaviour_registry();
    registry.activity<&pay>();
    restart(registry, counting());
    run_script("work", "a", "good");
    run_script("work", "b", "bad");
    run_script("pay", "c", "7");
    seen.meanwhile = [&](ActivityContext& ctx) {
        place.db.execute("DELETE FROM flow_activities");  // As a cancellation leaves it,
        ctx.heartbeat(std::string("still there"));        // of which it hears in this way.
    };
    client.start<&racer>("r");
    run();
    EXPECT_EQ(activities("success"), 1);
    EXPECT_EQ(activities("error"), 1);
    EXPECT_EQ(activities("committed", "test.pay"), 1);
    EXPECT_EQ(activities("cancelled", "test.hold"), 1);
}

TEST_P(MetricsBehaviour, PoisonIsCounted) {
    HOLDFAST_CHECK("runtime poison_message_metrics");
    HOLDFAST_CHECK("runtime metrics_poison_messages");
    EXPECT_EQ(value("holdfast_flow_poison_total"), 0);
    runtime.reset();
    start("work", "kills its dispatchers", "good");
    for (int i = 0; i < 2; ++i) {
        EXPECT_FALSE(client.provider().claim_instances({.count = 100}).empty());
        place.db.advance_clock(1min);
    }
    RuntimeOptions options = counting();
    options.max_attempts = 2;
    restart(behaviour_registry(), options);
    run();
    EXPECT_EQ(value("holdfast_flow_poison_total"), 1) << "a workflow";
    RuntimeOptions no_workers = counting();
    no_workers.activity_threads = 0;
    restart(behaviour_registry(), no_workers);
    run_script("work", "kills its workers", "good");
    for (int i = 0; i < 2; ++i) {
        EXPECT_FALSE(client.provider().claim_activities({.count = 100}).empty());
        place.db.advance_clock(1min);
    }
    restart(behaviour_registry(), options);
    run();
    EXPECT_EQ(value("holdfast_flow_poison_total"), 2) << "and an activity";
    EXPECT_EQ(failures("poison"), 1) << "the workflow that the activity has ended";
}

TEST_P(MetricsBehaviour, TurnsCommitsAndReplaysAreCounted) {
    HOLDFAST_CHECK("runtime metrics_dispatcher");
    run_script("wait", "w");
    EXPECT_EQ(value("holdfast_flow_turns_total"), 1);
    EXPECT_EQ(value("holdfast_flow_commits_total"), 1);
    restart(behaviour_registry(), counting());  // What it had in memory is gone.
    tell("w", inbox, std::string("go"));
    EXPECT_EQ(value("holdfast_flow_turns_total"), 2);
    EXPECT_EQ(value("holdfast_flow_commits_total"), 2);
    EXPECT_EQ(value("holdfast_flow_turns_from_cache_total"), 0);
    EXPECT_GE(value("holdfast_flow_events_replayed_total"), 1);
    run_script("work", "x", "good");
    EXPECT_GT(value("holdfast_flow_turns_from_cache_total"), 0);
    EXPECT_EQ(value("holdfast_flow_turns_lost_total"), 0);
}

// --- what is in the store

TEST_P(MetricsBehaviour, GaugesAreThereFromTheFirstMeasurementOn) {
    HOLDFAST_CHECK("runtime queue_depth_gauges_initialization");
    HOLDFAST_CHECK("runtime all_gauges_initialized_together");
    const std::vector<std::string> names{"holdfast_flow_active_instances",
                                         "holdfast_flow_messages_waiting",
                                         "holdfast_flow_activities_waiting",
                                         "holdfast_flow_oldest_mail_seconds",
                                         "holdfast_flow_cached_instances"};
    for (const std::string& name : names) {
        EXPECT_EQ(metrics.expose().find("\n" + name + " "), std::string::npos) << name;
    }
    run();
    for (const std::string& name : names) {
        EXPECT_NE(metrics.expose().find("\n" + name + " 0\n"), std::string::npos) << name;
    }
}

TEST_P(MetricsBehaviour, ActiveInstancesFollowTheStore) {
    HOLDFAST_CHECK("runtime active_orchestrations_gauge");
    HOLDFAST_CHECK("runtime active_orchestrations_gauge_comprehensive");
    HOLDFAST_CHECK("runtime gauge_poller_updates_active_orchestrations_on_completion");
    HOLDFAST_CHECK("runtime metrics_active_orchestrations");
    for (const char* id : {"a", "b", "c"}) {
        run_script("wait", id);
    }
    EXPECT_EQ(active(), 3);
    EXPECT_EQ(value("holdfast_flow_cached_instances"), 3);
    tell("a", inbox, std::string("go"));
    EXPECT_EQ(active(), 2) << "one has completed";
    client.cancel("b", "not wanted");
    run();
    EXPECT_EQ(active(), 1);
    client.terminate("c", "at once");
    run();
    EXPECT_EQ(active(), 0);
    client.start<&loop>("l", 1, 3);
    run();
    EXPECT_EQ(active(), 0) << "executions that continue are one instance";
    restart(behaviour_registry(), counting());
    run_script("wait", "d");
    EXPECT_EQ(active(), 1) << "the next process counts on from what is there";
}

TEST_P(MetricsBehaviour, QueuesAreMeasured) {
    HOLDFAST_CHECK("runtime gauge_poller_refreshes_queue_depths");
    HOLDFAST_CHECK("runtime queue_depth_gauges_tracking");
    HOLDFAST_CHECK("runtime metrics_queue_depths");
    RuntimeOptions no_workers = counting();
    no_workers.activity_threads = 0;
    restart(behaviour_registry(), no_workers);
    run_script("work", "a", "good");
    run_script("work", "b", "good");
    client.start<&sleeper>("s", 3600);
    run();
    EXPECT_EQ(queued(), 2);
    EXPECT_EQ(messages(), 1) << "the timer";
    restart(behaviour_registry(), counting());
    run();
    EXPECT_EQ(queued(), 0) << "somebody has come to do it";
    EXPECT_EQ(messages(), 1);
    advance(2h);
    EXPECT_EQ(messages(), 0);
    RuntimeOptions no_workflows = counting();
    no_workflows.workflow_threads = 0;
    restart(behaviour_registry(), no_workflows);
    start("wait", "w");
    place.db.advance_clock(1h);
    run();
    EXPECT_EQ(messages(), 1);
    EXPECT_GE(value("holdfast_flow_oldest_mail_seconds"), 3600) << "nobody takes it";
}

// --- the store itself

TEST_P(MetricsBehaviour, CallsOfTheStoreAreTimedByTheDatabase) {
    HOLDFAST_CHECK("runtime provider_metrics_recorded");
    sql::DatabaseOptions options = place.db.options();
    options.metrics = &metrics;
    options.name = "orders";
    sql::Database measured(place.db.url(), options);
    Store own(measured);
    Client caller(own);
    Runtime worker(own, behaviour_registry(), manual_options());
    caller.start<&script>("a", "work", "good");
    worker.run_until_idle();
    EXPECT_EQ(result("a"), "good");
    EXPECT_GE(
        value("holdfast_sql_tx_latency_seconds", {{"operation", "CommitTurns"}, {"db", "orders"}}),
        1);
}

TEST_P(MetricsBehaviour, AStoreThatFailsIsCountedByWhatWasAskedOfIt) {
    HOLDFAST_CHECK("runtime provider_error_metrics");
    HOLDFAST_CHECK("runtime metrics_provider_errors");
    activity("work", [&](ActivityContext&, const std::string& arg) {
        place.db.execute("ALTER TABLE flow_history RENAME TO flow_hidden");
        return arg;
    });
    RuntimeOptions options = counting();
    options.shadow_replay_every = 0;  // Nothing is read but for a commit.
    restart(behaviour_registry(), options);
    run_script("work", "a", "good");
    place.db.execute("ALTER TABLE flow_hidden RENAME TO flow_history");
    EXPECT_EQ(value("holdfast_flow_store_errors_total", {{"operation", "commit_turns"}}), 1);
    EXPECT_EQ(value("holdfast_flow_turns_lost_total"), 1);
    activity("work", [](ActivityContext&, const std::string& arg) { return arg; });
    restart(behaviour_registry(), counting());
    run();
    EXPECT_EQ(result("a"), "good");
}

// Metrics are lent: several runtimes share them, they outlive each of them, and none is needed.
TEST_P(MetricsBehaviour, OutliveTheRuntimesThatCount) {
    HOLDFAST_CHECK("runtime observability_handle_lifecycle");
    run_script("work", "a", "good");
    {
        Runtime second(store, behaviour_registry(), counting());
        runtime.reset();
        start("work", "b", "good");
        second.run_until_idle();
    }
    EXPECT_EQ(ends("completed"), 2) << "by both";
    restart();  // Without metrics.
    run_script("work", "c", "good");
    EXPECT_EQ(result("c"), "good");
    EXPECT_EQ(ends("completed"), 2);
    EXPECT_NE(metrics.expose().find("holdfast_flow_ends_total"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Every, MetricsBehaviour, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::flow::tests
