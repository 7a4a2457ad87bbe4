// Mail: when it is visible, in which order, and what happens to mail that cannot be read.
#include "provider/test/provider_fixture.hpp"

namespace holdfast::flow::tests {

namespace {

class ProviderQueues : public ProviderStory {
protected:
    static std::vector<MessageBody> every_kind() {
        return {StartMessage{"order", "1.0.0", text("in"), {}},
                ContinueMessage{},
                ActivityAnswer{2, text("done")},
                TimerMessage{2, 5},
                ChildAnswer{2, text("done")},
                ChannelMessage{"box", text("data")},
                SignalMessage{"go", text("data")},
                CancelMessage{"enough"},
                SuspendMessage{"wait"},
                ResumeMessage{},
                UpdateMessage{"r1", "add", text("data")},
                QueryMessage{"r2", "total", text("data")}};
    }
};

TEST_P(ProviderQueues, ATimerIsMailThatIsSeenWhenItFires) {
    HOLDFAST_CHECK("runtime timer_delayed_visibility");
    start("a");
    const auto claim = claimed("a");
    EXPECT_EQ(commit(turn(claim).waits_until(2, claim.now + 1min)), Committed::yes);
    EXPECT_TRUE(idle());
    const auto wait = found(provider.until_next_work(), "work to wait for");
    EXPECT_GT(wait, 50s);
    EXPECT_LE(wait, 1min);

    db.advance_clock(50s);
    EXPECT_TRUE(idle());
    db.advance_clock(10s);
    const auto fired = claimed("a");
    ASSERT_EQ(fired.messages.size(), 1U);
    EXPECT_EQ(std::get<TimerMessage>(fired.messages[0].message.body).event, 2U);
    EXPECT_EQ(fired.messages[0].message.execution, 1U);
    EXPECT_GE(fired.now, claim.now + 1min);
    EXPECT_EQ(commit(turn(fired)), Committed::yes);
    EXPECT_FALSE(provider.until_next_work());
}

TEST_P(ProviderQueues, ACancelledTimerNeverFires) {
    start("a");
    const auto claim = claimed("a");
    const ClaimedTurn first =
        turn(claim).waits_until(2, claim.now + 1min).waits_until(3, claim.now + 2min);
    EXPECT_EQ(commit(first), Committed::yes);
    proceed("a", [](ClaimedTurn& next) { next.cancels_timer(2); });
    db.advance_clock(1min);
    EXPECT_TRUE(idle());
    db.advance_clock(1min);
    const auto fired = claimed("a");
    ASSERT_EQ(fired.messages.size(), 1U);
    EXPECT_EQ(std::get<TimerMessage>(fired.messages[0].message.body).event, 3U);
}

// A timer far away must not hide what can be done now, nor what was moved nearer.
TEST_P(ProviderQueues, VisibleMailOvertakesMailThatIsNot) {
    start("a");
    const auto claim = claimed("a");
    EXPECT_EQ(commit(turn(claim).waits_until(2, claim.now + 1h)), Committed::yes);
    signal("a");
    const auto now = claimed("a");
    ASSERT_EQ(now.messages.size(), 1U);
    EXPECT_EQ(now.messages[0].message.body, MessageBody(SignalMessage{"go", text("now")}));
    EXPECT_EQ(commit(turn(now)), Committed::yes);
    EXPECT_TRUE(idle());
    db.advance_clock(1h);
    EXPECT_EQ(claimed("a").messages.size(), 1U) << "the turn in between must not forget the timer";
}

TEST_P(ProviderQueues, MailIsReadInTheOrderItCame) {
    begin("a");
    for (const char* name : {"one", "two", "three"}) {
        signal("a", name);
    }
    std::vector<std::string> names;
    std::int64_t before = 0;
    for (const auto& message : claimed("a").messages) {
        names.push_back(std::get<SignalMessage>(message.message.body).name);
        EXPECT_GT(message.position, before);
        before = message.position;
    }
    EXPECT_EQ(names, (std::vector<std::string>{"one", "two", "three"}));
}

TEST_P(ProviderQueues, EveryKindOfMessageArrivesAsItWasSent) {
    begin("a");
    const auto kinds = every_kind();
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        EXPECT_EQ(provider.send({"a", {.execution = i, .body = kinds[i]}}), Delivery::delivered);
    }
    const auto claim = claimed("a");
    ASSERT_EQ(claim.messages.size(), kinds.size());
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        EXPECT_EQ(claim.messages[i].message, (Message{.execution = i, .body = kinds[i]}));
        EXPECT_EQ(claim.messages[i].error, "");
    }
}

// Mail can come before its instance; it is kept for a while, and then it is deleted.
TEST_P(ProviderQueues, MailOfAnInstanceThatNeverStartsIsSweptAway) {
    HOLDFAST_CHECK("runtime orphan_queue_messages_dropped");
    EXPECT_EQ(provider.send({"ghost", {.body = ChannelMessage{"box", text("hello")}}}),
              Delivery::early);
    begin("a");
    EXPECT_EQ(provider.send({"a", {.body = ChannelMessage{"box", text("hello")}}}),
              Delivery::delivered);
    EXPECT_EQ(provider.sweep(1min, 1h), 0) << "its start may be on the way";

    db.advance_clock(1min);
    EXPECT_EQ(provider.sweep(1min, 1h), 1);
    EXPECT_EQ(provider.sweep(1min, 1h), 0);
    EXPECT_EQ(rows("flow_messages", "ghost"), 0);
    EXPECT_EQ(provider.stats().early_mailboxes, 0);
    EXPECT_EQ(claimed("a").messages.size(), 1U);
    start("ghost");
    EXPECT_EQ(claimed("ghost").messages.size(), 1U) << "only its start";
}

TEST_P(ProviderQueues, OrphansOfEveryKindDelayNobody) {
    HOLDFAST_CHECK("runtime +orphans_delay_nobody");
    int ghosts = 0;
    for (const MessageBody& kind : every_kind()) {
        const std::string ghost = "ghost" + std::to_string(ghosts++);
        EXPECT_EQ(provider.send({ghost, {.body = kind}}), Delivery::early) << kind_name(kind);
    }
    db.advance_clock(1s);
    start("a");
    const auto claim = claimed("a");  // The very first claim finds it.
    EXPECT_EQ(claim.messages.size(), 1U);
    EXPECT_EQ(commit(turn(claim)), Committed::yes);
    EXPECT_TRUE(idle());
    EXPECT_FALSE(provider.until_next_work()) << "nobody is to be woken for orphans";
}

TEST_P(ProviderQueues, AThousandTimersOfOneInstanceCostOthersNothing) {
    HOLDFAST_CHECK("runtime +a_thousand_timers_do_not_slow_selection");
    const auto statements_of_a_claim = [&](const std::string& id) {
        start(id);
        const auto before = db->driver_stats().statements;
        EXPECT_EQ(claimed(id).messages.size(), 1U);
        return db->driver_stats().statements - before;
    };
    start("busy");
    const auto first = claimed("busy", 1h);
    ClaimedTurn many = turn(first);
    for (EventId event = 2; event <= 1001; ++event) {
        many.waits_until(event, first.now + 1s);
    }
    ASSERT_EQ(commit(many), Committed::yes);
    const auto quiet = statements_of_a_claim("b");

    db.advance_clock(1s);
    const auto busy = claimed("busy", 1h);  // Claimed, so that a search has to look past it.
    EXPECT_EQ(busy.messages.size(), 1000U);
    if (GetParam().conflict_every == 0) {
        EXPECT_EQ(statements_of_a_claim("c"), quiet);
    }
    EXPECT_EQ(db.number("SELECT COUNT(*) FROM flow_mailboxes WHERE instance_id = 'busy'"), 1)
        << "a search sees one row of it, however much mail it has";
    EXPECT_EQ(commit(turn(busy)), Committed::yes);
    EXPECT_EQ(rows("flow_messages", "busy"), 0);
}

// --- clocks -------------------------------------------------------------------------------------

TEST_P(ProviderQueues, AClockThatJumpsLosesAndDoublesNothing) {
    HOLDFAST_CHECK("runtime +clock_jump");
    start("a");
    const auto before = claimed("a");
    db.advance_clock(1h);
    EXPECT_EQ(commit(turn(before)), Committed::lost) << "the lease is over by the only clock";
    const auto after = claimed("a");
    EXPECT_EQ(commit(turn(after).waits_until(2, after.now + 1min)), Committed::yes);
    begin("b", [](ClaimedTurn& first) { first.schedules(2, "charge"); });
    const auto held = taken("charge");
    signal("b");
    const auto claim = claimed("b");

    db.advance_clock(-1h);  // Leases that were given last longer now; they are still leases.
    EXPECT_TRUE(idle());
    EXPECT_FALSE(take());
    EXPECT_EQ(commit(turn(claim)), Committed::yes);
    EXPECT_TRUE(end(held));
    db.advance_clock(1h);
    const auto next = claimed("b");
    ASSERT_EQ(next.messages.size(), 1U) << "the answer, once";
    EXPECT_EQ(commit(turn(next)), Committed::yes);
    EXPECT_TRUE(idle());
    db.advance_clock(1min);
    EXPECT_EQ(claimed("a").messages.size(), 1U) << "the timer, once";
}

TEST_P(ProviderQueues, TimesWithinAHistoryComeFromTheDatabase) {
    start("a");
    const auto first = claimed("a");
    EXPECT_EQ(commit(turn(first)), Committed::yes);
    db.advance_clock(1h);
    signal("a");
    EXPECT_GE(claimed("a").now - first.now, 1h);
}

// --- damaged rows -------------------------------------------------------------------------------

TEST_P(ProviderQueues, DamagedRowsAreShownNotDroppedAndHarmNobody) {
    HOLDFAST_CHECK("runtime corrupted_serialization_data");
    begin("a");
    signal("a", "good");
    signal("a", "bad");
    tamper("UPDATE flow_messages SET body = 'no message' WHERE body LIKE '%bad%'");
    const auto claim = claimed("a");
    ASSERT_EQ(claim.messages.size(), 2U);
    EXPECT_EQ(claim.messages[0].error, "");
    EXPECT_NE(claim.messages[1].error, "");
    EXPECT_EQ(commit(turn(claim)), Committed::yes) << "a turn may end it";
    EXPECT_EQ(rows("flow_messages", "a"), 0);

    tamper("UPDATE flow_history SET events = 'no history' WHERE instance_id = 'a'");
    EXPECT_NE(provider.load_history("a", 1).error, "");
    start("b");
    EXPECT_EQ(claimed("b").messages.size(), 1U);
}

TEST_P(ProviderQueues, AReplyIsReadOnceOrForgotten) {
    begin("a");
    proceed("a", [](ClaimedTurn& next) {
        next.commit.replies = {{.request = "r1", .failed = false, .body = quote("seven")},
                               {.request = "r2", .failed = true, .body = quote("no")}};
    });
    const auto reply = found(provider.take_reply("r1"), "reply");
    EXPECT_FALSE(reply.failed);
    EXPECT_EQ(reply.body, quote("seven"));
    EXPECT_FALSE(provider.take_reply("r1"));

    db.advance_clock(1h);
    EXPECT_EQ(provider.sweep(1h, 1h), 1);
    EXPECT_FALSE(provider.take_reply("r2"));
}

INSTANTIATE_TEST_SUITE_P(Every, ProviderQueues, every_setting(), setting_name);

}  // namespace

}  // namespace holdfast::flow::tests
