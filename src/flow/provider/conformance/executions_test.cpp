// Instances and their executions: how they come into being, follow each other, and are listed.
#include "provider/test/provider_fixture.hpp"

namespace holdfast::flow::tests {

namespace {

class ProviderExecutions : public ProviderStory {
protected:
    static std::vector<std::string> ids(const InstancePage& page) {
        std::vector<std::string> names;
        for (const InstanceInfo& one : page.instances) {
            names.push_back(one.instance);
        }
        return names;
    }
};

// --- creation -----------------------------------------------------------------------------------

// The row is there from the start on, so that an instance can be listed, asked and cancelled before
// anybody ran it; the first turn says what it became.
TEST_P(ProviderExecutions, AnInstanceIsPendingUntilItsFirstTurn) {
    HOLDFAST_CHECK("runtime fetch_orchestration_item_new_instance");
    HOLDFAST_CHECK("runtime instance_creation_via_metadata");
    EXPECT_TRUE(start("a", "order").created);
    EXPECT_EQ(info("a").status, Status::pending);
    EXPECT_EQ(info("a").last_event, 0U);
    const auto claim = claimed("a");
    EXPECT_EQ(claim.name, "order");
    EXPECT_EQ(claim.execution, 1U);
    EXPECT_EQ(claim.last_event, 0U);
    EXPECT_TRUE(provider.load_history("a", 1).events.empty());

    ClaimedTurn first = turn(claim);
    first.commit.begun = {.name = "order", .version = "2.3.4", .parent = {}};
    EXPECT_EQ(commit(first), Committed::yes);
    EXPECT_EQ(info("a").status, Status::running);
    EXPECT_EQ(info("a").name, "order");
    EXPECT_EQ(info("a").version, "2.3.4") << "what the runtime resolved, not what was asked for";
    EXPECT_EQ(info("a").last_event, 1U);
}

// A message without an instance waits in a mailbox of its own and cannot be claimed.
TEST_P(ProviderExecutions, MailBeforeItsInstanceIsKeptAndMakesNoInstance) {
    HOLDFAST_CHECK("runtime no_instance_creation_on_enqueue");
    EXPECT_EQ(signal("a"), Delivery::early);
    EXPECT_FALSE(provider.info("a"));
    EXPECT_TRUE(idle());
    EXPECT_EQ(provider.stats().early_mailboxes, 1);
    EXPECT_EQ(provider.stats().instances, 0);

    start("a");
    const auto claim = claimed("a");
    EXPECT_EQ(claim.messages.size(), 2U) << "its start, and what came before";
    EXPECT_EQ(provider.stats().early_mailboxes, 0);
}

TEST_P(ProviderExecutions, AVersionMayBeLeftToTheFirstTurn) {
    HOLDFAST_CHECK("runtime null_version_handling");
    StartMessage without = start_of("order");
    without.version.clear();
    ASSERT_TRUE(provider.start({.instance = "a", .start = without}).created);
    const auto claim = claimed("a");
    ASSERT_EQ(claim.messages.size(), 1U);
    EXPECT_EQ(std::get<StartMessage>(claim.messages[0].message.body).version, "");
    EXPECT_EQ(commit(turn(claim)), Committed::yes);
    EXPECT_EQ(info("a").version, "1.0.0");
}

TEST_P(ProviderExecutions, AChildBeginsWithItsParentsTurn) {
    HOLDFAST_CHECK("runtime sub_orchestration_instance_creation");
    begin("a", [](ClaimedTurn& first) { first.starts_child(2, "a/kid"); });
    EXPECT_EQ(info("a/kid").status, Status::pending);
    const auto claim = claimed("a/kid");
    EXPECT_EQ(claim.name, "child");
    EXPECT_EQ(commit(turn(claim)), Committed::yes);
    EXPECT_EQ(info("a/kid").status, Status::running);
    EXPECT_EQ(info("a/kid").version, "1.0.0");
    EXPECT_EQ(info("a/kid").parent, (ParentLink{"a", 1, 2}));
}

TEST_P(ProviderExecutions, AChildWhoseIdIsTakenIsAFailureOfTheParentsOperation) {
    begin("taken");
    begin("a", [](ClaimedTurn& first) { first.starts_child(2, "taken"); });
    const auto claim = claimed("a");
    ASSERT_EQ(claim.messages.size(), 1U);
    const auto& answer = std::get<ChildAnswer>(claim.messages[0].message.body);
    EXPECT_EQ(answer.event, 2U);
    EXPECT_EQ(std::get<FailureInfo>(answer.result).type, "AlreadyExists");
    EXPECT_EQ(claim.messages[0].message.execution, 1U);
    EXPECT_FALSE(info("taken").parent);
}

TEST_P(ProviderExecutions, ADuplicateStartIsWhatItsPolicySays) {
    begin("a");
    StartInstance again{.instance = "a", .start = start_of("other")};
    EXPECT_FALSE(provider.start(again).created);
    again.duplicate = DuplicatePolicy::use_existing;
    EXPECT_FALSE(provider.start(again).created);
    EXPECT_EQ(info("a").name, "order");
    EXPECT_TRUE(idle()) << "a refused start must not reach the instance";

    finish("a");
    EXPECT_FALSE(provider.start(again).created) << "also when it has ended";
    again.duplicate = DuplicatePolicy::restart;
    EXPECT_TRUE(provider.start(again).created);
    EXPECT_EQ(info("a").name, "other");
    EXPECT_EQ(info("a").status, Status::pending);
    EXPECT_EQ(claimed("a").last_event, 0U);
}

TEST_P(ProviderExecutions, ADelayedStartIsListedAtOnceAndRunsLater) {
    ASSERT_TRUE(provider.start({.instance = "a", .start = start_of("order"), .delay = 1h}).created);
    EXPECT_EQ(info("a").status, Status::pending);
    EXPECT_TRUE(idle());
    db.advance_clock(1h);
    EXPECT_EQ(claimed("a").messages.size(), 1U);
}

// --- executions ---------------------------------------------------------------------------------

// The current execution lives in the instance's row, earlier ones in rows of their own.
TEST_P(ProviderExecutions, AContinuedInstanceBeginsItsNextExecution) {
    HOLDFAST_CHECK("runtime fetch_orchestration_item_existing_instance");
    HOLDFAST_CHECK("runtime continue_as_new_creates_new_execution");
    HOLDFAST_CHECK("runtime latest_execution_detection");
    HOLDFAST_CHECK("runtime execution_isolation");
    begin("a", [](ClaimedTurn& first) { first.schedules(2, "charge"); });
    proceed("a", [](ClaimedTurn& last) { last.continues("1.1.0"); });
    EXPECT_EQ(info("a").execution, 2U);
    EXPECT_EQ(info("a").status, Status::running);
    EXPECT_EQ(info("a").version, "1.1.0");

    const auto claim = claimed("a");
    EXPECT_EQ(claim.execution, 2U);
    EXPECT_EQ(claim.last_event, 1U) << "its event 1 came with the turn that continued";
    ASSERT_EQ(claim.messages.size(), 1U);
    EXPECT_EQ(claim.messages[0].message.body, MessageBody(ContinueMessage{}));
    EXPECT_EQ(commit(turn(claim).records(2, SignalAwaited{"go"})), Committed::yes);

    EXPECT_EQ(history("a", 1), (std::vector<EventId>{1, 2, 3}));
    EXPECT_EQ(history("a", 2), (std::vector<EventId>{1, 2}));
    EXPECT_TRUE(history("a", 3).empty());
}

TEST_P(ProviderExecutions, ExecutionsAreNumberedAsTheRuntimeSaysAndStayReadable) {
    HOLDFAST_CHECK("runtime execution_output_captured_on_continue_as_new");
    HOLDFAST_CHECK("runtime execution_id_sequencing");
    HOLDFAST_CHECK("runtime execution_history_persistence");
    HOLDFAST_CHECK("runtime list_executions");
    HOLDFAST_CHECK("runtime get_execution_info");
    begin("a");
    renew_execution("a");
    renew_execution("a");
    finish("a");

    const auto all = provider.executions("a");
    ASSERT_EQ(all.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(all[i].execution, i + 1);
        EXPECT_EQ(all[i].last_event, 2U);
        EXPECT_EQ(all[i].version, "1.0.0");
        EXPECT_TRUE(all[i].completed) << i;
        EXPECT_EQ(history("a", i + 1), (std::vector<EventId>{1, 2}));
    }
    EXPECT_EQ(all[0].status, Status::continued);
    EXPECT_EQ(all[0].output, quote("next input"));
    EXPECT_EQ(all[2].status, Status::completed);
    EXPECT_EQ(all[2].output, quote("done"));
    EXPECT_EQ(info("a").output, quote("done"));
}

TEST_P(ProviderExecutions, ReplayMayAskOnlyForWhatIsNew) {
    begin("a", [](ClaimedTurn& first) { first.schedules(2, "one").schedules(3, "two"); });
    proceed("a", [](ClaimedTurn& next) { next.schedules(4, "three"); });
    const auto rest = provider.load_history("a", 1, 2).events;
    ASSERT_EQ(rest.size(), 2U);
    EXPECT_EQ(rest[0].id, 3U);
    EXPECT_EQ(std::get<ActivityScheduled>(rest[1].body).name, "three");
    EXPECT_TRUE(provider.load_history("a", 1, 4).events.empty());
}

// The parent continued as new; an answer for its earlier execution must be recognisable.
TEST_P(ProviderExecutions, AChildsAnswerNamesTheExecutionThatAsked) {
    HOLDFAST_CHECK("runtime +child_answer_reaches_the_right_parent_execution");
    begin("a", [](ClaimedTurn& first) { first.starts_child(2, "a/kid"); });
    const auto kid = claimed("a/kid");
    renew_execution("a");

    sql::Database elsewhere(db.url(), db.options());
    SqlProvider other(elsewhere);
    const auto& born = std::get<StartMessage>(kid.messages.at(0).message.body);
    const auto parent = found(born.parent, "parent");
    EXPECT_EQ(parent, (ParentLink{"a", 1, 2}));
    ClaimedTurn last = turn(kid).completes();
    last.sends(parent.instance, ChildAnswer{parent.event, text("grown")}, parent.execution);
    EXPECT_EQ(other.commit_turns(std::span(&last.commit, 1)), std::vector{Committed::yes});

    const auto claim = claimed("a");
    EXPECT_EQ(claim.execution, 2U);
    ASSERT_EQ(claim.messages.size(), 1U);
    EXPECT_EQ(claim.messages[0].message.execution, 1U);
    EXPECT_EQ(claim.messages[0].message.body, MessageBody(ChildAnswer{2, text("grown")}));
}

TEST_P(ProviderExecutions, AnInstanceThatHasEndedTakesNoMail) {
    HOLDFAST_CHECK("runtime ignore_work_after_terminal_event");
    begin_and_finish("a");
    EXPECT_EQ(signal("a"), Delivery::ended);
    EXPECT_TRUE(idle());
    EXPECT_EQ(rows("flow_messages", "a"), 0);
    EXPECT_EQ(rows("flow_mailboxes", "a"), 0);
}

TEST_P(ProviderExecutions, ASuspendedInstanceIsLeftAloneUntilItIsResumed) {
    begin("a", [](ClaimedTurn& first) { first.commit.suspended = true; });
    EXPECT_TRUE(info("a").suspended);
    signal("a");
    EXPECT_TRUE(idle());
    EXPECT_TRUE(provider.resume("a"));
    EXPECT_FALSE(info("a").suspended);
    EXPECT_FALSE(claimed("a").messages.empty());
}

// A suspended instance still gets a cancel request; other mail waits.
TEST_P(ProviderExecutions, ARequestToEndReachesASuspendedInstance) {
    for (const bool force : {false, true}) {
        const std::string id = force ? "forced" : "asked";
        begin(id, [](ClaimedTurn& first) { first.commit.suspended = true; });
        EXPECT_EQ(provider.send({id, {.body = CancelMessage{"enough", force, 0}}}),
                  Delivery::delivered);
        EXPECT_FALSE(info(id).suspended);
        EXPECT_EQ(commit(turn(claimed(id)).fails()), Committed::yes);
    }
}

TEST_P(ProviderExecutions, ARequestToEndReachesASuspendedChild) {
    begin("parent", [](ClaimedTurn& first) { first.starts_child(2, "child"); });
    ClaimedTurn first = turn(claimed("child"));
    first.commit.suspended = true;
    ASSERT_EQ(commit(first), Committed::yes);
    proceed("parent", [](ClaimedTurn& last) {
        last.sends("child", CancelMessage{"the parent has failed", false, 0}).fails();
    });
    EXPECT_EQ(claimed("child").messages.size(), 1U);
}

// The worst moment: the request comes while the turn that suspends is on its way.
TEST_P(ProviderExecutions, ARequestToEndThatCrossesTheSuspensionIsNotForgotten) {
    start("a");
    ClaimedTurn suspends = turn(claimed("a"));
    suspends.commit.suspended = true;
    signal("a");
    EXPECT_EQ(provider.send({"a", {.body = CancelMessage{"enough", true, 0}}}),
              Delivery::delivered);
    ASSERT_EQ(commit(suspends), Committed::yes);
    EXPECT_FALSE(info("a").suspended);
    EXPECT_EQ(claimed("a").messages.size(), 2U);
}

// --- looking ------------------------------------------------------------------------------------

TEST_P(ProviderExecutions, InstancesAreListedNewestFirstAndByWhatTheyAre) {
    HOLDFAST_CHECK("runtime list_instances");
    HOLDFAST_CHECK("runtime list_instances_by_status");
    for (const char* id : {"a", "b", "c"}) {
        begin(id);
        db.advance_clock(1s);
    }
    finish("b");
    proceed("c", [](ClaimedTurn& last) { last.fails(); });
    renew_execution("a");
    start("d", "other");

    using Ids = std::vector<std::string>;
    EXPECT_EQ(ids(provider.list({})), (Ids{"d", "c", "b", "a"}));
    EXPECT_EQ(ids(provider.list({.status = Status::running})), Ids{"a"}) << "its current execution";
    EXPECT_EQ(ids(provider.list({.status = Status::completed})), Ids{"b"});
    EXPECT_EQ(ids(provider.list({.status = Status::failed})), Ids{"c"});
    EXPECT_EQ(ids(provider.list({.status = Status::pending})), Ids{"d"});
    EXPECT_EQ(ids(provider.list({.status = Status::cancelled})), Ids{});
    EXPECT_EQ(ids(provider.list({.name = "other"})), Ids{"d"});
    EXPECT_EQ(ids(provider.list({.id_prefix = "b"})), Ids{"b"});
    EXPECT_EQ(ids(provider.list({.created_after = info("c").created + 1ms})), Ids{"d"});
    EXPECT_EQ(ids(provider.list({.created_before = info("b").created - 1ms})), Ids{"a"});
}

TEST_P(ProviderExecutions, AListComesInPagesWithoutGapOrRepeat) {
    std::vector<std::string> expected;
    for (char id = 'a'; id < 'h'; ++id) {
        start(std::string(1, id));
        expected.insert(expected.begin(), std::string(1, id));
        if (id % 2 == 0) {
            db.advance_clock(1s);  // Some share a moment, some do not.
        }
    }
    std::vector<std::string> seen;
    ListInstances ask{.limit = 2};
    do {
        const InstancePage page = provider.list(ask);
        EXPECT_LE(page.instances.size(), 2U);
        for (const auto& id : ids(page)) {
            seen.push_back(id);
        }
        ask.page = page.next;
        start("new " + std::to_string(seen.size()));  // What is newer does not disturb.
    } while (!ask.page.empty());
    EXPECT_EQ(seen, expected);
}

TEST_P(ProviderExecutions, InstancesAreFoundByTheirAttributes) {
    begin("a", [](ClaimedTurn& first) {
        first.commit.attributes = {{"city", text("Bonn")}, {"tier", text("gold")}};
    });
    begin("b", [](ClaimedTurn& first) { first.commit.attributes = {{"city", text("Bonn")}}; });
    using Ids = std::vector<std::string>;
    EXPECT_EQ(ids(provider.list({.attributes = {{"city", text("Bonn")}}})), (Ids{"b", "a"}));
    EXPECT_EQ(ids(provider.list({.attributes = {{"city", text("Bonn")}, {"tier", text("gold")}}})),
              Ids{"a"});
    proceed("a", [](ClaimedTurn& next) { next.commit.attributes = {{"city", std::nullopt}}; });
    EXPECT_EQ(ids(provider.list({.attributes = {{"city", text("Bonn")}}})), Ids{"b"});
}

TEST_P(ProviderExecutions, AnInstanceTellsWhatItIs) {
    HOLDFAST_CHECK("runtime get_instance_info");
    HOLDFAST_CHECK("runtime instance_stats_history");
    HOLDFAST_CHECK("runtime instance_stats_nonexistent");
    begin("a", [](ClaimedTurn& first) { first.schedules(2, "charge"); });
    const auto early = info("a");
    EXPECT_EQ(early.instance, "a");
    EXPECT_EQ(early.name, "order");
    EXPECT_EQ(early.version, "1.0.0");
    EXPECT_EQ(early.execution, 1U);
    EXPECT_EQ(early.status, Status::running);
    EXPECT_FALSE(early.parent);
    EXPECT_FALSE(early.completed);
    EXPECT_EQ(early.last_event, 2U);
    EXPECT_EQ(early.history_bytes, provider.load_history("a", 1).bytes);
    EXPECT_GT(early.history_bytes, 0);

    db.advance_clock(1h);
    finish("a");
    const auto late = info("a");
    EXPECT_EQ(late.status, Status::completed);
    EXPECT_EQ(late.created, early.created);
    EXPECT_GE(found(late.completed, "end") - late.created, 1h);
    EXPECT_GT(late.history_bytes, early.history_bytes);
    EXPECT_FALSE(provider.info("b"));
}

TEST_P(ProviderExecutions, MessagesCarriedIntoTheNextExecutionAreItsEvents) {
    HOLDFAST_CHECK("runtime instance_stats_carry_forward");
    begin("a");
    proceed("a", [](ClaimedTurn& last) {
        auto next = found(last.continues().commit.next, "next execution");
        next.events.push_back({.id = 2, .body = MessageReceived{"box", text("kept")}});
        last.commit.next = next;
    });
    EXPECT_EQ(info("a").last_event, 2U);
    EXPECT_EQ(claimed("a").last_event, 2U);
    EXPECT_EQ(info("a").history_bytes, provider.load_history("a", 2).bytes);
    EXPECT_EQ(history("a", 2), (std::vector<EventId>{1, 2}));
}

TEST_P(ProviderExecutions, TheTotalsAddUp) {
    HOLDFAST_CHECK("runtime get_system_metrics");
    HOLDFAST_CHECK("runtime get_queue_depths");
    EXPECT_EQ(provider.stats().messages, 0);
    begin("a", [](ClaimedTurn& first) { first.schedules(2, "charge").schedules(3, "ship"); });
    begin_and_finish("b");
    begin("c", [](ClaimedTurn& only) { only.fails(); });
    begin("d");
    renew_execution("d");
    start("e");
    EXPECT_EQ(provider.stats().messages, 1) << "the start of e";
    signal("a");
    provider.send({"a", {.body = SignalMessage{}}, 4'000'000'000'000});

    const SystemStats stats = provider.stats();
    EXPECT_EQ(stats.instances, 5);
    EXPECT_EQ(stats.pending, 1);
    EXPECT_EQ(stats.running, 2);
    EXPECT_EQ(stats.completed, 1);
    EXPECT_EQ(stats.failed, 1);
    EXPECT_EQ(stats.cancelled, 0);
    EXPECT_EQ(stats.executions, 6);
    EXPECT_EQ(stats.messages, 3) << "also what is not visible yet";
    EXPECT_EQ(stats.activities, 2);
    (void)take();
    EXPECT_EQ(provider.stats().activities, 2) << "running ones count, too";
}

TEST_P(ProviderExecutions, AnImportedHistoryReadsBackAndIsNotOverwritten) {
    const std::vector<Event> events{
        {.id = 1, .time_ms = 5, .body = WorkflowStarted{"order", "1.0.0", text("in"), {}, {}}},
        {.id = 2, .time_ms = 6, .body = WorkflowCompleted{text("out")}}};
    provider.import_history("a", {.events = events});
    EXPECT_EQ(provider.load_history("a", 1).events, events);
    EXPECT_TRUE(test::code_of([&] { provider.import_history("a", {.events = events}); }));
    EXPECT_TRUE(idle());
}

// It looks as it did where it came from.
TEST_P(ProviderExecutions, AnImportedHistoryBringsItsStateAlong) {
    const auto at = [](EventId id, EventBody body) {
        return Event{.id = id, .time_ms = 5, .body = std::move(body)};
    };
    const ExportedHistory history{
        .execution = 3,
        .kv = {{"kept", text("old")}, {"erased", text("old")}},
        .events = {at(1, WorkflowStarted{"order", "1.0.0", text("in"), {}, text("begun")}),
                   at(2, KvSet{"kept", text("new")}),
                   at(3, KvErased{"erased"}),
                   at(4, StatusUpdated{text("paid")}),
                   at(5, AttributeSet{"city", text("Ulm")}),
                   at(6, AttributeSet{"size", Payload{"7"}}),
                   at(7, AttributeSet{"size", std::nullopt})}};
    provider.import_history("a", history);
    EXPECT_EQ(info("a").status, Status::running);
    EXPECT_EQ(info("a").execution, 3U);
    EXPECT_EQ(info("a").custom_status, text("paid"));
    EXPECT_EQ(info("a").status_version, 1);
    EXPECT_EQ(value("a", "kept"), text("new").json);
    EXPECT_EQ(value("a", "erased"), std::nullopt);
    EXPECT_EQ(provider.load_history("a", 3).kv, history.kv) << "replay begins as it did";
    EXPECT_EQ(provider.list({.attributes = {{"city", text("Ulm")}}}).instances.size(), 1U);
    EXPECT_TRUE(provider.list({.attributes = {{"size", Payload{"7"}}}}).instances.empty());
}

INSTANTIATE_TEST_SUITE_P(Every, ProviderExecutions, every_setting(), setting_name);

}  // namespace

}  // namespace holdfast::flow::tests
