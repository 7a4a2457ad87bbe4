// One event and one message of each kind with every field set, and the text they are stored as.
//
// The texts are the stored format. A test that disagrees with them has found a change that makes
// old databases unreadable: change the code, not the text.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <holdfast/flow_engine/event.hpp>
#include <holdfast/flow_engine/message.hpp>

namespace holdfast::flow::samples {

inline FailureInfo failure() {
    return {.kind = FailureKind::application,
            .type = "CardDeclined",
            .message = "the bank said \"no\"",
            .retryable = false,
            .details = Payload{R"({"code": 51})"},
            .cause = "HTTP 402"};
}
inline constexpr const char* failure_text =
    R"({"kind":"application","type":"CardDeclined","message":"the bank said \"no\"",)"
    R"("retryable":false,"details":{"code": 51},"cause":"HTTP 402"})";

template <class T>
using Samples = std::vector<std::pair<T, std::string>>;

inline Event event(EventId id, EventId source, EventBody body) {
    return {.id = id, .source = source, .time_ms = 1700000000000, .body = std::move(body)};
}

inline Samples<Event> facts() {
    const std::string failed = failure_text;
    const ParentLink parent{.instance = "order-6", .execution = 2, .event = 9};
    return {
        {event(1,
               0,
               WorkflowStarted{"shop.pay",
                               "1.2.0",
                               Payload{"[7, {\"a\":null}]"},
                               parent,
                               Payload{R"("waiting")"},
                               1,
                               "0.1.0",
                               "*/5 * * * *",
                               {ResetPoint{1, 7}, ResetPoint{2, 5}}}),
         R"({"id":1,"time_ms":1700000000000,"kind":"workflow_started","name":"shop.pay",)"
         R"("version":"1.2.0","input":[7, {"a":null}],)"
         R"("parent":{"instance":"order-6","execution":2,"event":9},"status":"waiting",)"
         R"("format":1,"engine":"0.1.0","cron":"*/5 * * * *",)"
         R"("resets":[{"execution":1,"event":7},{"execution":2,"event":5}]})"},
        {event(8, 0, WorkflowCompleted{Payload{"{}"}}),
         R"({"id":8,"time_ms":1700000000000,"kind":"workflow_completed","output":{}})"},
        {event(8, 0, WorkflowFailed{failure()}),
         R"({"id":8,"time_ms":1700000000000,"kind":"workflow_failed","failure":)" + failed + "}"},
        {event(8, 0, WorkflowContinued{Payload{"[2]"}, "1.3.0"}),
         R"({"id":8,"time_ms":1700000000000,"kind":"workflow_continued","input":[2],)"
         R"("version":"1.3.0"})"},
        {event(8, 0, CancelRequested{"by ann", 1700000030000}),
         R"({"id":8,"time_ms":1700000000000,"kind":"cancel_requested","reason":"by ann",)"
         R"("deadline_ms":1700000030000})"},
        {event(8, 0, WorkflowSuspended{"lunch"}),
         R"({"id":8,"time_ms":1700000000000,"kind":"workflow_suspended","reason":"lunch"})"},
        {event(8, 0, WorkflowResumed{}),
         R"({"id":8,"time_ms":1700000000000,"kind":"workflow_resumed"})"},
        {event(8, 0, TurnContinued{}),
         R"({"id":8,"time_ms":1700000000000,"kind":"turn_continued"})"},
        {event(8, 0, UpdateHandled{"r-1", "add", Payload{"[1]"}, Payload{"2"}, std::nullopt}),
         R"({"id":8,"time_ms":1700000000000,"kind":"update_handled","request":"r-1",)"
         R"("name":"add","input":[1],"result":2})"},
        {event(8, 0, UpdateHandled{"r-2", "add", Payload{"[1]"}, std::nullopt, failure()}),
         R"({"id":8,"time_ms":1700000000000,"kind":"update_handled","request":"r-2",)"
         R"("name":"add","input":[1],"failure":)" +
             failed + "}"},
    };
}

inline Samples<Event> activities_and_answers() {
    const std::string failed = failure_text;
    return {
        {event(2, 0, ActivityScheduled{"shop.capture", Payload{"[1]"}, "s-1", "gpu"}),
         R"({"id":2,"time_ms":1700000000000,"kind":"activity_scheduled","name":"shop.capture",)"
         R"("input":[1],"session":"s-1","tag":"gpu"})"},
        {event(2,
               0,
               ActivityScheduled{
                   "shop.capture", Payload{"[1]"}, std::nullopt, std::nullopt, 60000, 5000}),
         R"({"id":2,"time_ms":1700000000000,"kind":"activity_scheduled","name":"shop.capture",)"
         R"("input":[1],"start_within_ms":60000,"ahead_ms":5000})"},
        {event(2,
               0,
               ActivityScheduled{"shop.capture",
                                 Payload{"[1]"},
                                 std::nullopt,
                                 std::nullopt,
                                 std::nullopt,
                                 std::nullopt,
                                 ActivityRetry(RetryPolicy{.attempts = 5,
                                                           .factor = 1.5,
                                                           .per_try = milliseconds{2000},
                                                           .total = milliseconds{60000},
                                                           .jitter = 0.25,
                                                           .non_retryable = {"CardDeclined"}})}),
         R"({"id":2,"time_ms":1700000000000,"kind":"activity_scheduled","name":"shop.capture",)"
         R"("input":[1],"retry":{"attempts":5,"first_ms":100,"factor":1.5,"ceiling_ms":30000,)"
         R"("per_try_ms":2000,"total_ms":60000,"timeouts":true,"linear":false,"jitter":0.25,)"
         R"("non_retryable":["CardDeclined"]}})"},
        {event(3, 2, ActivityCompleted{Payload{"1"}, 2, failure()}),
         R"({"id":3,"source":2,"time_ms":1700000000000,"kind":"activity_completed",)"
         R"("result":1,"attempt":2,"last_failure":)" +
             failed + "}"},
        {event(3, 2, ActivityFailedEvent{failure(), 3}),
         R"({"id":3,"source":2,"time_ms":1700000000000,"kind":"activity_failed","failure":)" +
             failed + R"(,"attempt":3})"},
        {event(3, 2, ActivityCompleted{Payload{"null"}}),
         R"({"id":3,"source":2,"time_ms":1700000000000,"kind":"activity_completed",)"
         R"("result":null})"},
        {event(3, 2, ActivityFailedEvent{failure()}),
         R"({"id":3,"source":2,"time_ms":1700000000000,"kind":"activity_failed","failure":)" +
             failed + "}"},
    };
}

inline Samples<Event> other_requests_and_answers() {
    const std::string failed = failure_text;
    return {
        {event(4, 0, TimerCreated{1700000005000}),
         R"({"id":4,"time_ms":1700000000000,"kind":"timer_created","fire_at_ms":1700000005000})"},
        {event(5, 4, TimerFired{}),
         R"({"id":5,"source":4,"time_ms":1700000000000,"kind":"timer_fired"})"},
        {event(6, 0, ChildScheduled{"shop.ship", "order-7::6", Payload{"[]"}, "2.0.0"}),
         R"({"id":6,"time_ms":1700000000000,"kind":"child_scheduled","name":"shop.ship",)"
         R"("instance":"order-7::6","input":[],"version":"2.0.0"})"},
        {event(7, 6, ChildCompleted{Payload{"true"}}),
         R"({"id":7,"source":6,"time_ms":1700000000000,"kind":"child_completed","result":true})"},
        {event(7, 6, ChildFailedEvent{failure()}),
         R"({"id":7,"source":6,"time_ms":1700000000000,"kind":"child_failed","failure":)" + failed +
             "}"},
        {event(8, 0, WorkflowDetached{"shop.mail", "mail-7", Payload{"[1]"}, ""}),
         R"({"id":8,"time_ms":1700000000000,"kind":"workflow_detached","name":"shop.mail",)"
         R"("instance":"mail-7","input":[1],"version":""})"},
        {event(9, 0, MessageAwaited{"orders"}),
         R"({"id":9,"time_ms":1700000000000,"kind":"message_awaited","channel":"orders"})"},
        {event(10, 9, MessageReceived{"orders", Payload{"3"}}),
         R"({"id":10,"source":9,"time_ms":1700000000000,"kind":"message_received",)"
         R"("channel":"orders","data":3})"},
        {event(11, 0, SignalAwaited{"approve"}),
         R"({"id":11,"time_ms":1700000000000,"kind":"signal_awaited","name":"approve"})"},
        {event(12, 11, SignalReceived{"approve", Payload{R"("ann")"}}),
         R"({"id":12,"source":11,"time_ms":1700000000000,"kind":"signal_received",)"
         R"("name":"approve","data":"ann"})"},
        {event(13, 2, OperationCancelled{Dropped::timer, "dropped"}),
         R"({"id":13,"source":2,"time_ms":1700000000000,"kind":"operation_cancelled",)"
         R"("operation":"timer","reason":"dropped"})"},
    };
}

inline Samples<Event> records() {
    return {
        {event(2, 0, StatusUpdated{Payload{R"("half")"}}),
         R"({"id":2,"time_ms":1700000000000,"kind":"status_updated","status":"half"})"},
        {event(2, 0, StatusUpdated{std::nullopt}),
         R"({"id":2,"time_ms":1700000000000,"kind":"status_updated"})"},
        {event(2, 0, KvSet{"total", Payload{"12"}}),
         R"({"id":2,"time_ms":1700000000000,"kind":"kv_set","key":"total","value":12})"},
        {event(2, 0, KvErased{"total"}),
         R"({"id":2,"time_ms":1700000000000,"kind":"kv_erased","key":"total"})"},
        {event(2, 0, KvCleared{}), R"({"id":2,"time_ms":1700000000000,"kind":"kv_cleared"})"},
        {event(2, 0, PatchRecorded{"new-tax"}),
         R"({"id":2,"time_ms":1700000000000,"kind":"patch_recorded","change":"new-tax"})"},
        {event(2, 0, AttributeSet{"customer", Payload{"7"}}),
         R"({"id":2,"time_ms":1700000000000,"kind":"attribute_set","name":"customer","value":7})"},
        {event(2, 0, AttributeSet{"customer", std::nullopt}),
         R"({"id":2,"time_ms":1700000000000,"kind":"attribute_set","name":"customer"})"},
    };
}

inline Samples<Event> events() {
    Samples<Event> all = facts();
    for (const Samples<Event>& more :
         {activities_and_answers(), other_requests_and_answers(), records()}) {
        all.insert(all.end(), more.begin(), more.end());
    }
    return all;
}

inline Samples<MessageBody> messages() {
    const std::string failed = failure_text;
    const ParentLink parent{.instance = "order-6", .execution = 2, .event = 9};
    return {
        {StartMessage{"shop.pay", "", Payload{"[7]"}, parent, "@every 1h"},
         R"({"kind":"start","name":"shop.pay","version":"","input":[7],)"
         R"("parent":{"instance":"order-6","execution":2,"event":9},"cron":"@every 1h"})"},
        {ContinueMessage{}, R"({"kind":"continue"})"},
        {ActivityAnswer{2, Payload{"[1]"}}, R"({"kind":"activity_answer","event":2,"result":[1]})"},
        {ActivityAnswer{2, failure()},
         R"({"kind":"activity_answer","event":2,"failure":)" + failed + "}"},
        {ActivityAnswer{2, Payload{"[1]"}, 4, failure()},
         R"({"kind":"activity_answer","event":2,"result":[1],"attempt":4,"last_failure":)" +
             failed + "}"},
        {TimerMessage{4, 1700000005000},
         R"({"kind":"timer","event":4,"fire_at_ms":1700000005000})"},
        {ChildAnswer{6, Payload{"null"}}, R"({"kind":"child_answer","event":6,"result":null})"},
        {ChildAnswer{6, failure()},
         R"({"kind":"child_answer","event":6,"failure":)" + failed + "}"},
        {ChannelMessage{"orders", Payload{"3"}},
         R"({"kind":"channel_message","channel":"orders","data":3})"},
        {SignalMessage{"approve", Payload{"{}"}},
         R"({"kind":"signal","name":"approve","data":{}})"},
        {CancelMessage{"by ann", true, 30000},
         R"({"kind":"cancel","reason":"by ann","force":true,"grace_ms":30000})"},
        {CancelMessage{"by ann", true, 0, true},
         R"({"kind":"cancel","reason":"by ann","force":true,"grace_ms":0,"fail":true})"},
        {SuspendMessage{"lunch"}, R"({"kind":"suspend","reason":"lunch"})"},
        {ResumeMessage{}, R"({"kind":"resume"})"},
        {UpdateMessage{"r-1", "add", Payload{"[1]"}},
         R"({"kind":"update","request":"r-1","name":"add","input":[1]})"},
        {QueryMessage{"r-2", "total", Payload{"[]"}},
         R"({"kind":"query","request":"r-2","name":"total","input":[]})"},
        {StartDeadline{2, 60000}, R"({"kind":"start_deadline","event":2,"limit_ms":60000})"},
    };
}

}  // namespace holdfast::flow::samples
