// A workflow played by hand, turn by turn, for tests.
//
//   Script s(program<&hello>(), R"(["Ann"])");
//   s.turn();
//   EXPECT_THAT(s.events(), ElementsAre("1 workflow_started", "2 activity_scheduled greet"));
//   s.turn(done(2, R"("hi")"));
//   EXPECT_EQ(s.output(), R"("hi")");
//
// Every turn is played three times: by the object that is kept, and by two that are built from the
// history so far as it is stored. One of those must say nothing new when nothing has come, the
// other must say exactly what the kept one says. So each test of a turn is a test of replay too.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/flow_engine/combine.hpp>
#include <holdfast/flow_engine/execution.hpp>
#include <holdfast/flow_engine/map.hpp>
#include <holdfast/flow_engine/saga.hpp>
#include <holdfast/flow_engine/stored.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::flow::tests {

// Activities and a child to ask for. The engine never calls them, so they have no bodies.
std::string greet(std::string name);
int add(int a, int b);
int quote_price(int item);
void undo(int step);
Workflow<int> sub(Context& ctx, int n);

inline constexpr Channel<std::string> inbox{"inbox"};
inline constexpr Channel<std::string> outbox{"outbox"};
inline constexpr Signal<std::string> go{"go"};
inline constexpr Signal<std::string> halt{"halt"};

}  // namespace holdfast::flow::tests

HOLDFAST_NAME(holdfast::flow::tests::greet, "greet");
HOLDFAST_NAME(holdfast::flow::tests::add, "add");
HOLDFAST_NAME(holdfast::flow::tests::quote_price, "quote");
HOLDFAST_NAME(holdfast::flow::tests::undo, "undo");
HOLDFAST_NAME(holdfast::flow::tests::sub, "sub");

namespace holdfast::flow::tests {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

template <auto W>
detail::Program program() {
    return &detail::run_program<W>;
}

// --- messages

inline Message done(EventId event, std::string json, ExecutionId execution = 1) {
    return {execution, ActivityAnswer{event, Payload{std::move(json)}}};
}
inline Message failed(EventId event, FailureInfo failure) {
    return {1, ActivityAnswer{event, std::move(failure)}};
}
inline Message failed(EventId event, std::string message) {
    return failed(event, FailureInfo{.message = std::move(message)});
}
inline Message fired(EventId event, std::int64_t at_ms = 0) {
    return {1, TimerMessage{event, at_ms}};
}
inline Message child_done(EventId event, std::string json) {
    return {1, ChildAnswer{event, Payload{std::move(json)}}};
}
inline Message child_failed(EventId event, FailureInfo failure) {
    return {1, ChildAnswer{event, std::move(failure)}};
}
inline Message mail(std::string channel, std::string json) {
    return {0, ChannelMessage{std::move(channel), Payload{std::move(json)}}};
}
inline Message signal(std::string name, std::string json) {
    return {0, SignalMessage{std::move(name), Payload{std::move(json)}}};
}
inline Message cancel(std::string reason, std::int64_t grace_ms = 0) {
    return {0, CancelMessage{std::move(reason), false, grace_ms}};
}
inline Message terminate(std::string reason) {
    return {0, CancelMessage{std::move(reason), true, 0}};
}
inline Message query(std::string request, std::string name, std::string json = "[]") {
    return {0, QueryMessage{std::move(request), std::move(name), Payload{std::move(json)}}};
}
inline Message update(std::string request, std::string name, std::string json = "[]") {
    return {0, UpdateMessage{std::move(request), std::move(name), Payload{std::move(json)}}};
}

// --- events in a line

struct Brief {
    template <class T>
    std::string operator()(const T&) const {
        return {};
    }
    std::string operator()(const WorkflowCompleted& e) const { return " " + e.output.json; }
    std::string operator()(const WorkflowFailed& e) const { return " " + e.failure.text(); }
    std::string operator()(const WorkflowContinued& e) const { return " " + e.input.json; }
    std::string operator()(const CancelRequested& e) const { return " " + e.reason; }
    std::string operator()(const ActivityScheduled& e) const { return " " + e.name; }
    std::string operator()(const ChildScheduled& e) const { return " " + e.name; }
    std::string operator()(const WorkflowDetached& e) const { return " " + e.name; }
    std::string operator()(const MessageAwaited& e) const { return " " + e.channel; }
    std::string operator()(const MessageReceived& e) const { return " " + e.channel; }
    std::string operator()(const SignalAwaited& e) const { return " " + e.name; }
    std::string operator()(const SignalReceived& e) const { return " " + e.name; }
    std::string operator()(const OperationCancelled& e) const {
        return " " + std::string(to_string(e.operation)) + " " + e.reason;
    }
    std::string operator()(const KvSet& e) const { return " " + e.key + "=" + e.value.json; }
    std::string operator()(const KvErased& e) const { return " " + e.key; }
    std::string operator()(const PatchRecorded& e) const { return " " + e.change; }
};

// "4 activity_completed<-2"
inline std::string brief(const Event& event) {
    std::string text = std::to_string(event.id) + " " + std::string(kind_name(event.body));
    if (event.source != 0) {
        text += "<-" + std::to_string(event.source);
    }
    return text + std::visit(Brief{}, event.body);
}

inline std::vector<std::string> brief(const std::vector<Event>& events) {
    std::vector<std::string> lines;
    lines.reserve(events.size());
    for (const Event& event : events) {
        lines.push_back(brief(event));
    }
    return lines;
}

inline Event event(EventId id, EventBody body, EventId source = 0) {
    return {.id = id, .source = source, .time_ms = 1000, .body = std::move(body)};
}

// Event 1.
inline WorkflowStarted start(std::string input = "[]") {
    WorkflowStarted first;
    first.name = "under_test";
    first.version = "1.0.0";
    first.input = Payload{std::move(input)};
    return first;
}
inline Event started(std::string input = "[]") {
    return event(1, start(std::move(input)));
}

inline void expect_same(const Turn& warm, const Turn& cold) {
    EXPECT_EQ(brief(cold.events), brief(warm.events));
    EXPECT_EQ(cold.events, warm.events);
    EXPECT_EQ(cold.ending, warm.ending);
    EXPECT_EQ(cold.taken, warm.taken);
    EXPECT_EQ(cold.activities, warm.activities);
    EXPECT_EQ(cold.timers, warm.timers);
    EXPECT_EQ(cold.children, warm.children);
    EXPECT_EQ(cold.detached, warm.detached);
    EXPECT_EQ(cold.cancelled_activities, warm.cancelled_activities);
    EXPECT_EQ(cold.cancelled_timers, warm.cancelled_timers);
    EXPECT_EQ(cold.cancelled_children, warm.cancelled_children);
    EXPECT_EQ(cold.status, warm.status);
    EXPECT_EQ(cold.status_changes, warm.status_changes);
    EXPECT_EQ(cold.kv, warm.kv);
    EXPECT_EQ(cold.attributes, warm.attributes);
    EXPECT_EQ(cold.suspended, warm.suspended);
    EXPECT_EQ(cold.replies, warm.replies);
    EXPECT_EQ(cold.carried, warm.carried);
}

struct Setting {
    ExecutionId execution = 1;
    ExecutionLimits limits{};
    std::map<std::string, Payload> kv{};
    std::optional<Payload> status{};
    std::vector<Event> history{};  // Empty: a new execution.
    bool checked = true;           // Whether check_replay can tell: it knows the usual limits only.
    std::string build{};
};

class Script {
public:
    explicit Script(detail::Program code, std::string input = "[]", Setting setting = {})
        : code_(code), input_(std::move(input)), setting_(std::move(setting)) {
        history_ = setting_.history;
        warm_ = build(history_);
    }

    const Turn& turn(std::vector<Message> messages = {}) {
        now_ms_ += 1000;
        const std::unique_ptr<Execution> cold = build(history_);
        last_ = warm_->turn(now(), messages);
        expect_same(last_, cold->turn(now(), messages));
        history_.insert(history_.end(), last_.events.begin(), last_.events.end());
        if (last_.ending == Ending::none) {
            expect_quiet();
        } else {
            expect_ended();
        }
        return last_;
    }
    template <class... M>
    const Turn& turn(Message first, M... rest) {
        return turn(std::vector<Message>{std::move(first), std::move(rest)...});
    }

    [[nodiscard]] const Turn& last() const { return last_; }
    [[nodiscard]] std::vector<std::string> events() const { return brief(last_.events); }
    [[nodiscard]] const std::vector<Event>& history() const { return history_; }
    [[nodiscard]] Ending ending() const { return last_.ending; }
    [[nodiscard]] std::string output() const {
        return last_.ending == Ending::completed ? last_.output().json : brief(last_.events).back();
    }
    [[nodiscard]] const FailureInfo& failure() const { return last_.failure(); }
    [[nodiscard]] Moment now() const { return Moment{milliseconds{now_ms_}}; }
    [[nodiscard]] std::vector<EventId> activities() const {
        std::vector<EventId> ids;
        ids.reserve(last_.activities.size());
        for (const auto& [id, what] : last_.activities) {
            ids.push_back(id);
        }
        return ids;
    }
    [[nodiscard]] std::unique_ptr<Execution> rebuild() const { return build(history_); }

private:
    [[nodiscard]] std::unique_ptr<Execution> build(const std::vector<Event>& history) const {
        auto made = std::make_unique<Execution>(
            "order-7", setting_.execution, code_, setting_.limits, nullptr, setting_.build);
        if (history.empty()) {
            WorkflowStarted first = start(input_);
            first.status = setting_.status;
            made->begin(std::move(first), setting_.kv);
        } else {
            made->load(decode_events(encode(history)), setting_.kv);
        }
        return made;
    }
    // A copy that is built from the history has nothing to add to it.
    void expect_quiet() const {
        const Turn quiet = build(history_)->turn(now(), {});
        EXPECT_THAT(brief(quiet.events), IsEmpty()) << "the replay went on by itself";
        EXPECT_EQ(quiet.ending, Ending::none);
        EXPECT_THAT(quiet.timers, IsEmpty());
        expect_checked();
    }
    void expect_checked() const {
        if (!setting_.checked) {
            return;
        }
        const auto difference = check_replay(
            "order-7", code_, history_, setting_.kv, setting_.execution, setting_.build);
        EXPECT_FALSE(difference.has_value()) << difference->text();
    }
    void expect_ended() const {
        const std::unique_ptr<Execution> after = build(history_);
        EXPECT_THAT(brief(after->turn(now(), {}).events), IsEmpty());
        EXPECT_TRUE(after->ended());
        if (last_.ending == Ending::failed && last_.failure().kind == FailureKind::nondeterminism) {
            return;
        }
        expect_checked();
    }

    detail::Program code_;
    std::string input_;
    Setting setting_;
    std::unique_ptr<Execution> warm_;
    std::vector<Event> history_;
    Turn last_;
    std::int64_t now_ms_ = 1000;
};

// What the code says to a history, in one turn without messages.
inline Turn over(detail::Program code,
                 std::vector<Event> history,
                 std::vector<Message> messages = {}) {
    Execution execution("order-7", 1, code);
    execution.load(std::move(history));
    return execution.turn(Moment{5000ms}, messages);
}

inline EventBody asks_greet(std::string input = R"(["Ann"])") {
    return ActivityScheduled{"greet", Payload{std::move(input)}, std::nullopt, std::nullopt};
}

// Programs of one step.
inline Workflow<std::string> greets(Context& ctx) {
    std::string text = co_await ctx.activity<&greet>("Ann");
    co_return text;
}
inline Workflow<Unit> sleeps(Context& ctx) {
    co_await ctx.sleep(5s);
    co_return Unit{};
}
inline Workflow<std::string> awaits_go(Context& ctx) {
    std::string text = co_await ctx.await_signal(go);
    co_return text;
}
inline Workflow<std::string> reads_inbox(Context& ctx) {
    std::string text = co_await ctx.receive(inbox);
    co_return text;
}
inline Workflow<int> waits_for_child(Context& ctx) {
    const int result = co_await ctx.child<&sub>(3);
    co_return result;
}

}  // namespace holdfast::flow::tests
