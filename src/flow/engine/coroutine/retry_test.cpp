// Retries and timeouts. The attempts of an activity are the runtime's business: the engine writes
// the policy into the scheduled event. A child that is tried again is another child.
#include <array>
#include <limits>

#include "replay/test/engine_fixture.hpp"

namespace holdfast::flow::tests {
namespace {

// --- the arithmetic

TEST(Retry, TheUsualPolicyTriesThreeTimesAndDoubles) {
    HOLDFAST_CHECK("runtime retry_policy_default");
    HOLDFAST_CHECK("runtime retry_policy_new");
    HOLDFAST_CHECK("runtime backoff_exponential_doubles");
    HOLDFAST_CHECK("runtime policy_delay_for_attempt_delegates");
    const RetryPolicy usual;
    EXPECT_EQ(usual.attempts, 3);
    EXPECT_EQ(usual.delay_after(1), 100ms);
    EXPECT_EQ(usual.delay_after(2), 200ms);
    EXPECT_EQ(usual.delay_after(5), 1600ms);
    EXPECT_EQ(usual.ceiling, 30s);
    EXPECT_EQ(usual.per_try, 0ms);
}

TEST(Retry, WithAFactorOfOneOrADelayOfZeroEveryDelayIsTheSame) {
    HOLDFAST_CHECK("runtime retry_policy_builder_with_timeout");
    HOLDFAST_CHECK("runtime retry_policy_builder_chained");
    HOLDFAST_CHECK("runtime backoff_none_always_zero");
    HOLDFAST_CHECK("runtime backoff_fixed_same_delay");
    HOLDFAST_CHECK("runtime backoff_fixed_zero_delay");
    HOLDFAST_CHECK("runtime backoff_exponential_multiplier_one");
    HOLDFAST_CHECK("runtime backoff_exponential_zero_base");
    const RetryPolicy none{.first = 0ms};
    EXPECT_EQ(none.delay_after(1), 0ms);
    EXPECT_EQ(none.delay_after(9), 0ms);
    const RetryPolicy fixed{.first = 70ms, .factor = 1.0, .per_try = 2s};
    EXPECT_EQ(fixed.delay_after(1), 70ms);
    EXPECT_EQ(fixed.delay_after(9), 70ms);
    EXPECT_EQ(fixed.per_try, 2s);
}

TEST(Retry, DelaysGrowAsThePolicySays) {
    HOLDFAST_CHECK("runtime retry_policy_builder_with_backoff");
    HOLDFAST_CHECK("runtime backoff_linear_multiplies_by_attempt");
    HOLDFAST_CHECK("runtime backoff_linear_respects_max");
    HOLDFAST_CHECK("runtime backoff_linear_zero_base");
    HOLDFAST_CHECK("runtime backoff_exponential_respects_max");
    HOLDFAST_CHECK("runtime backoff_exponential_different_multiplier");
    const RetryPolicy unbounded{.ceiling = milliseconds::max()};
    EXPECT_GT(unbounded.delay_after(9'999), 24h * 365);
    const RetryPolicy linear{.first = 100ms, .ceiling = 250ms, .backoff = Backoff::linear};
    EXPECT_EQ(linear.delay_after(1), 100ms);
    EXPECT_EQ(linear.delay_after(2), 200ms);
    EXPECT_EQ(linear.delay_after(3), 250ms);
    const RetryPolicy linear_zero{.first = 0ms, .backoff = Backoff::linear};
    EXPECT_EQ(linear_zero.delay_after(4), 0ms);
    const RetryPolicy triples{.first = 10ms, .factor = 3.0, .ceiling = 100ms};
    EXPECT_EQ(triples.delay_after(3), 90ms);
    EXPECT_EQ(triples.delay_after(4), 100ms);
}

TEST(Retry, APowerThatOverflowsIsStillBounded) {
    HOLDFAST_CHECK("runtime backoff_exponential_large_attempt_no_overflow");
    HOLDFAST_CHECK("runtime large_max_attempts");
    const RetryPolicy usual{.attempts = 10'000};
    EXPECT_EQ(usual.delay_after(9'999), 30s);
    const RetryPolicy shrinking{.factor = 0.0};
    EXPECT_EQ(shrinking.delay_after(5), 0ms);
}

// --- attempts

Workflow<int> retries(Context& ctx, int attempts, int first_ms) {
    const RetryPolicy policy{.attempts = attempts, .first = milliseconds{first_ms}};
    const int sum = co_await ctx.activity<&add>(1, 1).retry(policy);
    co_return sum;
}

TEST(Retry, ThePolicyIsInTheScheduledEventAndTravelsWithTheActivity) {
    HOLDFAST_CHECK("runtime activity_succeeds_first_attempt");
    HOLDFAST_CHECK("runtime typed_activity_retry_success");
    HOLDFAST_CHECK("runtime history_contains_all_activity_scheduled_events");
    Script s(program<&retries>(), "[3,100]");
    s.turn();
    ASSERT_EQ(s.last().activities.size(), 1U);
    EXPECT_EQ(s.last().activities[0].second.retry,
              ActivityRetry(RetryPolicy{.attempts = 3, .first = 100ms}));
    EXPECT_THAT(s.last().timers, IsEmpty());
    s.turn(done(2, "2"));
    EXPECT_EQ(s.output(), "2");
}

TEST(Retry, TheClosingEventHasTheAttemptAndTheFailureBeforeIt) {
    Script s(program<&retries>(), "[3,100]");
    s.turn();
    const FailureInfo busy{.message = "busy"};
    s.turn(Message{1, ActivityAnswer{2, Payload{"2"}, 3, busy}});
    const ActivityCompleted expected{Payload{"2"}, 3, busy};
    EXPECT_EQ(std::get<ActivityCompleted>(s.last().events.at(0).body), expected);
    EXPECT_EQ(s.output(), "2");
}

TEST(Retry, AnAnswerIsFinal) {
    HOLDFAST_CHECK("runtime activity_exhausts_all_attempts");
    HOLDFAST_CHECK("runtime single_attempt_fails");
    HOLDFAST_CHECK("runtime retry_policy_new_single_attempt");
    Script s(program<&retries>(), "[2,0]");
    s.turn();
    s.turn(Message{1, ActivityAnswer{2, FailureInfo{.message = "second"}, 2}});
    EXPECT_EQ(s.failure().message, "second");
    EXPECT_EQ(std::get<ActivityFailedEvent>(s.last().events.at(0).body).attempt, 2);
}

// A deployment that changes how an activity is tried again changes nothing for histories.
TEST(Retry, AReplayTakesAnotherPolicy) {
    Script s(program<&retries>(), "[3,100]");
    s.turn();
    std::vector<Event> history = s.history();
    std::get<ActivityScheduled>(history.at(1).body).retry.reset();
    Execution again("order-7", 1, program<&retries>(), ExecutionLimits{});
    again.load(std::move(history), {});
    const Message answer{1, ActivityAnswer{2, Payload{"2"}, std::nullopt, std::nullopt}};
    EXPECT_EQ(again.turn(Moment{5s}, std::span(&answer, 1)).ending, Ending::completed);
}

// --- what a policy decides

TEST(Retry, APolicyCountsFailuresAndKnowsWhichAreFinal) {
    HOLDFAST_CHECK("runtime activity_fails_then_succeeds");
    HOLDFAST_CHECK("runtime large_max_attempts_integration");
    const ActivityRetry policy(RetryPolicy{.attempts = 3, .non_retryable = {"CardDeclined"}});
    const FailureInfo busy{.type = "Busy", .message = "busy"};
    EXPECT_TRUE(policy.tries_again(busy, 1));
    EXPECT_TRUE(policy.tries_again(busy, 2));
    EXPECT_FALSE(policy.tries_again(busy, 3));
    EXPECT_FALSE(policy.tries_again(FailureInfo{.type = "CardDeclined"}, 1));
    EXPECT_FALSE(policy.tries_again(FailureInfo{.retryable = false}, 1));
    EXPECT_FALSE(policy.tries_again(FailureInfo{.kind = FailureKind::infrastructure}, 1));
    const ActivityRetry once(RetryPolicy{.attempts = 1});
    EXPECT_FALSE(once.tries_again(busy, 1));
    const ActivityRetry often(RetryPolicy{.attempts = 10'000});
    EXPECT_TRUE(often.tries_again(busy, 9'999));
}

TEST(Retry, AnAttemptThatTookTooLongIsTriedAgainUnlessThePolicySaysNo) {
    HOLDFAST_CHECK("runtime timeout_exits_immediately_without_retry");
    HOLDFAST_CHECK("runtime error_retries_but_timeout_exits");
    const FailureInfo late = timeout_failure(5s);
    EXPECT_TRUE(ActivityRetry(RetryPolicy{}).tries_again(late, 1)) << "by default";
    EXPECT_FALSE(ActivityRetry(RetryPolicy{.retry_timeouts = false}).tries_again(late, 1));
}

TEST(Retry, JitterStaysInItsBounds) {
    HOLDFAST_CHECK("runtime retry_with_fixed_backoff");
    HOLDFAST_CHECK("runtime retry_with_no_backoff");
    const ActivityRetry policy(RetryPolicy{.first = 1000ms, .factor = 1.0, .jitter = 0.5});
    EXPECT_EQ(policy.delay_after(1, 0.0), 500ms);
    EXPECT_EQ(policy.delay_after(4, 0.5), 1000ms);
    EXPECT_EQ(policy.delay_after(9, 1.0), 1500ms);
    EXPECT_EQ(ActivityRetry(RetryPolicy{.first = 0ms, .jitter = 0.5}).delay_after(1, 1.0), 0ms);
}

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();
constexpr std::array impossible_policies{RetryPolicy{.attempts = 0},
                                         RetryPolicy{.attempts = 10'001},
                                         RetryPolicy{.first = -1ms},
                                         RetryPolicy{.factor = -1.0},
                                         RetryPolicy{.factor = no_number},
                                         RetryPolicy{.jitter = 1.1},
                                         RetryPolicy{.jitter = no_number}};

Workflow<std::string> refused(Context& ctx, int how) {
    const auto which = static_cast<std::size_t>(how);
    std::string said;
    try {
        if (which < impossible_policies.size()) {
            co_await ctx.activity<&add>(1, 1).retry(impossible_policies[which]);
        } else {
            co_await ctx.activity<&add>(1, 1).timeout(0ms);
        }
    } catch (const Failure& failure) {
        said = failure.type();
    }
    try {
        if (which < impossible_policies.size()) {
            Saga undo{ctx, impossible_policies[which]};
            undo.push<&tests::undo>(1);
        }
    } catch (const Failure& failure) {
        said += failure.type();
    }
    co_return said;
}

// An InvalidOperation that the code can catch, not a panic.
TEST(Retry, APolicyThatCannotBeIsRefusedAtTheCall) {
    HOLDFAST_CHECK("runtime retry_policy_new_zero_panics");
    HOLDFAST_CHECK("runtime zero_duration_timeout");
    for (std::size_t how = 0; how < impossible_policies.size(); ++how) {
        Script s(program<&refused>(), "[" + std::to_string(how) + "]");
        s.turn();
        EXPECT_EQ(s.output(), R"("InvalidOperationInvalidOperation")") << how;
    }
    Script s(program<&refused>(), "[100]");
    s.turn();
    EXPECT_EQ(s.output(), R"("InvalidOperation")") << "a timeout of nothing";
}

// --- children that are tried again

FailureInfo busy_child(std::string message) {
    return FailureInfo{.message = std::move(message)};
}

Workflow<int> bounded(Context& ctx) {
    const RetryPolicy policy{.attempts = 100, .first = 2s, .factor = 1.0, .total = 5s};
    const int sum = co_await ctx.child<&sub>(1).retry(policy);
    co_return sum;
}

TEST(Retry, NoChildBeginsAfterTheTotalTime) {
    Script s(program<&bounded>());
    s.turn();
    s.turn(child_failed(2, busy_child("one")));  // A second has passed.
    s.turn(fired(4));
    s.turn(child_failed(6, busy_child("two")));  // Three, and two more would be five.
    EXPECT_EQ(s.ending(), Ending::none);
    s.turn(fired(8));
    s.turn(child_failed(10, busy_child("three")));
    EXPECT_EQ(s.failure().message, "three");
}

Workflow<int> jitters(Context& ctx) {
    const int sum = co_await ctx.child<&sub>(1).retry({.first = 1000ms, .jitter = 0.5});
    co_return sum;
}

TEST(Retry, JitterBeforeAChildIsTheSameOnReplay) {
    Script s(program<&jitters>());
    s.turn();
    s.turn(child_failed(2, busy_child("busy")));
    const std::int64_t delay = s.last().timers.at(0).second - 3000;
    EXPECT_GE(delay, 500);
    EXPECT_LE(delay, 1500);
    EXPECT_NE(delay, 1000);
}

// --- timeouts

Workflow<std::string> times_out(Context& ctx) {
    std::string said;
    try {
        co_await ctx.activity<&add>(1, 1).timeout(5s);
        said = "in time";
    } catch (const TimedOut& late) {
        said = late.type();
    }
    co_return said;
}

TEST(Retry, ATimeoutGivesUpTheActivity) {
    HOLDFAST_CHECK("runtime timeout_fires_before_success");
    HOLDFAST_CHECK("runtime success_before_timeout");
    HOLDFAST_CHECK("runtime timeout_history_replays_correctly");
    HOLDFAST_CHECK("runtime replay_with_stale_events_in_history");
    Script late(program<&times_out>());
    late.turn();
    EXPECT_THAT(late.last().timers, ElementsAre(Pair(3, 7000)));
    late.turn(fired(3), done(2, "2"));
    EXPECT_EQ(late.output(), R"("TimedOut")");
    EXPECT_THAT(late.last().cancelled_activities, ElementsAre(2));
    Script in_time(program<&times_out>());
    in_time.turn();
    in_time.turn(done(2, "2"));
    EXPECT_EQ(in_time.output(), R"("in time")");
    EXPECT_THAT(in_time.last().cancelled_timers, ElementsAre(3));
}

Workflow<int> per_try(Context& ctx, bool again_after_timeout) {
    const RetryPolicy policy{
        .attempts = 3, .first = 0ms, .per_try = 1ms, .retry_timeouts = again_after_timeout};
    const int sum = co_await ctx.child<&sub>(1).retry(policy);
    co_return sum;
}

TEST(Retry, AChildThatTookTooLongIsTriedAgainUnlessThePolicySaysNo) {
    HOLDFAST_CHECK("runtime very_short_timeout");
    Script stops(program<&per_try>(), "[false]");
    stops.turn();
    stops.turn(fired(3));
    EXPECT_EQ(stops.failure().kind, FailureKind::timeout);
    Script goes_on(program<&per_try>(), "[true]");
    goes_on.turn();
    goes_on.turn(fired(3));
    ASSERT_EQ(goes_on.last().children.size(), 1U);
    goes_on.turn(child_done(goes_on.last().children[0].first, "2"));
    EXPECT_EQ(goes_on.output(), "2");
}

Workflow<std::string> whole_timeout(Context& ctx) {
    std::string said;
    try {
        co_await ctx.activity<&add>(1, 1).retry({.attempts = 9, .first = 1s}).timeout(5s);
    } catch (const TimedOut& late) {
        said = late.type();
    }
    co_return said;
}

TEST(Retry, ATimeoutBoundsAllAttemptsTogether) {
    Script s(program<&whole_timeout>());
    s.turn();
    s.turn(fired(3));
    EXPECT_EQ(s.output(), R"("TimedOut")");
    EXPECT_THAT(s.last().cancelled_activities, ElementsAre(2)) << "in whichever attempt it was";
}

Workflow<std::string> sleeps_with_timeout(Context& ctx) {
    std::string said = "slept";
    try {
        co_await ctx.sleep(1h).timeout(5s);
    } catch (const TimedOut&) {
        said = "woken";
    }
    co_return said;
}

TEST(Retry, ATimerWithATimeoutKeepsItsLength) {
    Script s(program<&sleeps_with_timeout>());
    s.turn();
    EXPECT_THAT(s.last().timers, ElementsAre(Pair(2, 2000 + 3'600'000), Pair(3, 7000)));
    s.turn(fired(3));
    EXPECT_EQ(s.output(), R"("woken")");
}

Workflow<int> races_retries(Context& ctx) {
    auto first = co_await any(ctx.activity<&add>(1, 1).retry({.attempts = 2, .first = 1s}),
                              ctx.activity<&add>(2, 2).retry({.attempts = 2, .first = 1s}));
    co_return static_cast<int>(first.index());
}

TEST(Retry, RetriesRaceEachOther) {
    Script s(program<&races_retries>());
    s.turn();
    s.turn(Message{1, ActivityAnswer{2, Payload{"2"}, 2, FailureInfo{.message = "busy"}}});
    EXPECT_EQ(s.output(), "0");
    EXPECT_THAT(s.last().cancelled_activities, ElementsAre(3));
}

Workflow<int> retries_in_session(Context& ctx) {
    const int sum =
        co_await ctx.activity<&add>(1, 1).session("gpu-3").retry({.attempts = 2, .first = 0ms});
    co_return sum;
}

TEST(Retry, EveryAttemptStaysInItsSession) {
    HOLDFAST_CHECK("runtime retry_on_session_basic_success");
    HOLDFAST_CHECK("runtime retry_on_session_all_attempts_fail");
    HOLDFAST_CHECK("runtime retry_on_session_typed_round_trip");
    Script s(program<&retries_in_session>());
    s.turn();
    EXPECT_EQ(s.last().activities.at(0).second.session, "gpu-3");
    s.turn(failed(2, "still busy"));
    EXPECT_EQ(s.failure().message, "still busy");
}

Workflow<int> retries_a_child(Context& ctx) {
    const int n = co_await ctx.child<&sub>(1).retry({.attempts = 2, .first = 0ms});
    co_return n;
}

TEST(Retry, AChildThatIsTriedAgainIsAnotherChild) {
    Script s(program<&retries_a_child>());
    s.turn();
    s.turn(child_failed(2, FailureInfo{.message = "no"}));
    EXPECT_EQ(s.last().children.at(0).second.instance, "order-7::1.4");
    s.turn(child_done(4, "3"));
    EXPECT_EQ(s.output(), "3");
}

}  // namespace
}  // namespace holdfast::flow::tests
