#include <holdfast/flow_engine/stored.hpp>

#include <set>

#include "stored/test/stored_fixture.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::flow {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string refusal(std::string_view text) {
    try {
        static_cast<void>(decode_event(text));
        return "accepted";
    } catch (const Undecodable& error) {
        return error.what();
    }
}

Event activity(std::optional<std::string> tag) {
    return samples::event(2, 0, ActivityScheduled{"a", Payload{"1"}, std::nullopt, std::move(tag)});
}

void replace(std::string& text, std::string_view old, std::string_view now) {
    const std::size_t at = text.find(old);
    ASSERT_NE(at, std::string::npos) << old << " in " << text;
    text.replace(at, old.size(), now);
}

// --- the format
// ---------------------------------------------------------------------------------------

TEST(StoredFormat, EveryKindOfEventIsWrittenAsEverAndReadsBack) {
    std::set<std::size_t> seen;
    for (const auto& [event, text] : samples::events()) {
        EXPECT_EQ(encode(event), text);
        EXPECT_EQ(decode_event(text), event) << text;
        EXPECT_TRUE(is_json(text)) << text;
        EXPECT_THAT(text, HasSubstr(R"("kind":")" + std::string(kind_name(event.body)) + '"'));
        seen.insert(event.body.index());
    }
    EXPECT_EQ(seen.size(), std::variant_size_v<EventBody>) << "a kind has no sample";
}

TEST(StoredFormat, EveryKindOfMessageIsWrittenAsEverAndReadsBack) {
    std::set<std::size_t> seen;
    for (const auto& [message, text] : samples::messages()) {
        EXPECT_EQ(encode(message), text);
        EXPECT_EQ(decode_message(text), message) << text;
        EXPECT_TRUE(is_json(text)) << text;
        EXPECT_THAT(text, HasSubstr(R"("kind":")" + std::string(kind_name(message)) + '"'));
        seen.insert(message.index());
    }
    EXPECT_EQ(seen.size(), std::variant_size_v<MessageBody>) << "a kind has no sample";
}

TEST(StoredFormat, AFailureIsWrittenAsEverAndReadsBack) {
    EXPECT_EQ(encode(samples::failure()), samples::failure_text);
    EXPECT_EQ(decode_failure(samples::failure_text), samples::failure());
    EXPECT_EQ(encode(FailureInfo{.kind = FailureKind::panic, .message = "oops"}),
              R"({"kind":"panic","type":"","message":"oops","retryable":true,"cause":""})");
}

TEST(StoredFormat, NoTwoKindsShareAName) {
    std::set<std::string_view> names;
    for (const auto& [event, text] : samples::events()) {
        names.insert(kind_name(event.body));
    }
    EXPECT_EQ(names.size(), std::variant_size_v<EventBody>);
}

TEST(StoredFormat, EveryOperationThatCanBeDroppedHasAName) {
    using enum Dropped;
    for (const Dropped operation : {activity, timer, child, message, signal}) {
        const Event event = samples::event(3, 2, OperationCancelled{operation, "dropped"});
        const std::string text = encode(event);
        EXPECT_THAT(text, HasSubstr(R"("operation":")" + std::string(to_string(operation))));
        EXPECT_EQ(decode_event(text), event);
    }
}

TEST(StoredFormat, OnlyAnEndIsTerminal) {
    for (const auto& [event, text] : samples::events()) {
        const std::set<std::string_view> ends{
            "workflow_completed", "workflow_failed", "workflow_continued"};
        EXPECT_EQ(is_terminal(event.body), ends.contains(kind_name(event.body))) << text;
    }
}

// --- what may be absent
// -------------------------------------------------------------------------------

TEST(StoredEvent, ATagIsStoredWhenThereIsOneAndLeftOutWhenThereIsNone) {
    HOLDFAST_CHECK("runtime activity_scheduled_with_tag_roundtrips");
    HOLDFAST_CHECK("runtime activity_scheduled_none_tag_omitted_in_json");
    HOLDFAST_CHECK("runtime activity_scheduled_missing_tag_deserializes_as_none");
    const std::string tagged = encode(activity("gpu"));
    EXPECT_THAT(tagged, HasSubstr(R"("tag":"gpu")"));
    EXPECT_EQ(decode_event(tagged), activity("gpu"));

    const std::string plain = encode(activity(std::nullopt));
    EXPECT_THAT(plain, Not(HasSubstr("tag")));
    EXPECT_EQ(decode_event(plain), activity(std::nullopt));

    EXPECT_NE(decode_event(encode(activity(""))), activity(std::nullopt)) << "empty is a tag";
}

TEST(StoredEvent, TheKeyValueEventsComeBack) {
    HOLDFAST_CHECK("runtime kv_event_kinds_roundtrip");
    for (const EventBody& body : {EventBody{KvSet{"k\"\n", Payload{R"({"a": [1]})"}}},
                                  EventBody{KvErased{""}},
                                  EventBody{KvCleared{}}}) {
        const Event event = samples::event(5, 0, body);
        EXPECT_EQ(decode_event(encode(event)), event);
    }
}

// A history without them is as readable as ever, and so is one that a newer build has added to.
TEST(StoredEvent, HistoriesFromBeforeAndAfterTheKeyValueEventsAreRead) {
    HOLDFAST_CHECK("runtime kv_event_kinds_backward_compat");
    const auto older = samples::facts();
    EXPECT_EQ(decode_event(older.front().second), older.front().first);
    EXPECT_EQ(decode_event(R"({"id":2,"time_ms":5,"kind":"kv_set","key":"k","value":1,)"
                           R"("written_at_ms":7})"),
              (Event{.id = 2, .source = 0, .time_ms = 5, .body = KvSet{"k", Payload{"1"}}}));
}

// Two versions of a program share a history: what one does not know it leaves alone, what it needs
// it insists on, and payloads of either pass through untouched.
TEST(StoredEvent, AnEventOfANewerVersionOfAWorkflowPassesUntouched) {
    HOLDFAST_CHECK("runtime serde_boundary_v2_events");
    const std::string newer =
        R"({"id":2,"time_ms":5,"kind":"activity_scheduled","name":"pay","priority":9,)"
        R"("input":[{"cents":1,"currency":"EUR"}],"region":{"name":"eu","tags":[]}})";
    const Event event = decode_event(newer);
    EXPECT_EQ(
        std::get<ActivityScheduled>(event.body),
        (ActivityScheduled{
            "pay", Payload{R"([{"cents":1,"currency":"EUR"}])"}, std::nullopt, std::nullopt}));
    EXPECT_EQ(decode_event(encode(event)), event);
}

TEST(StoredEvent, AnEmptyOptionalIsNotANull) {
    const Event null = samples::event(2, 0, StatusUpdated{Payload{"null"}});
    EXPECT_EQ(encode(null),
              R"({"id":2,"time_ms":1700000000000,"kind":"status_updated","status":null})");
    EXPECT_EQ(decode_event(encode(null)), null);
    EXPECT_THAT(refusal(R"({"id":1,"time_ms":1,"kind":"activity_scheduled","name":"a","input":1,)"
                        R"("tag":null})"),
                HasSubstr("field 'tag': expected a string, found null"));
}

TEST(StoredEvent, TheOrderOfFieldsDoesNotMatter) {
    EXPECT_EQ(decode_event(R"( { "value" : 12, "key":"total" ,"kind": "kv_set", "time_ms":1,)"
                           "\n\t"
                           R"("source":3,"id":2 } )"),
              (Event{.id = 2, .source = 3, .time_ms = 1, .body = KvSet{"total", Payload{" 12"}}}));
}

// Replay compares payloads as text, so not even whitespace may be lost.
TEST(StoredEvent, PayloadsComeBackByteForByte) {
    for (const std::string_view json : {" 1 ",
                                        "\n{\n  \"a\" : 1,\n  \"a\" : 2\n}\n",
                                        "1.00e+002",
                                        R"("\u0041\/")",
                                        "123456789012345678901234567890.5"}) {
        const Event event = samples::event(3, 2, ActivityCompleted{Payload{std::string(json)}});
        EXPECT_EQ(decode_event(encode(event)), event) << json;
        EXPECT_EQ(decode_events(encode(std::vector{event, event})), (std::vector{event, event}));
    }
}

// --- what is refused
// ----------------------------------------------------------------------------------

TEST(StoredEvent, ATextThatIsCutAnywhereIsRefused) {
    for (const auto& [event, text] : samples::events()) {
        for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
            const std::string cut = text.substr(0, bytes);
            EXPECT_THROW(static_cast<void>(decode_event(cut)), Undecodable) << cut;
        }
    }
    for (const auto& [message, text] : samples::messages()) {
        for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
            const std::string cut = text.substr(0, bytes);
            EXPECT_THROW(static_cast<void>(decode_message(cut)), Undecodable) << cut;
        }
    }
}

// Every field that is not optional, of every kind: renamed, and given another type.
TEST(StoredEvent, AMissingFieldIsRefusedAndNamed) {
    for (const std::string_view name :
         {"id", "time_ms", "kind", "name", "instance", "input", "version"}) {
        std::string text =
            R"({"id":6,"time_ms":1,"kind":"child_scheduled","name":"n","instance":"i","input":[],)"
            R"("version":""})";
        ASSERT_EQ(refusal(text), "accepted");
        replace(text, '"' + std::string(name) + "\":", "\"x\":");
        EXPECT_THAT(refusal(text), HasSubstr("field '" + std::string(name) + "' is missing"));
    }
}

TEST(StoredEvent, AFieldOfAnotherTypeIsRefusedWithItsPlace) {
    EXPECT_EQ(refusal(R"({"id":"1","time_ms":1,"kind":"kv_cleared"})"),
              "byte 6: field 'id': expected an integer in range, found a string");
    for (const std::string_view id :
         {"-1", "1.0", "1e3", "18446744073709551616", "null", "true", "[1]", "{}"}) {
        EXPECT_THAT(refusal(R"({"id":)" + std::string(id) + R"(,"time_ms":1,"kind":"kv_cleared"})"),
                    HasSubstr("field 'id'"));
    }
    EXPECT_THAT(refusal(R"({"id":1,"time_ms":1,"kind":7})"),
                HasSubstr("field 'kind': expected a string, found a number"));
    EXPECT_THAT(refusal(R"({"id":1,"time_ms":1,"kind":"kv_erased","key":["k"]})"),
                HasSubstr("field 'key': expected a string, found an array"));
    EXPECT_THAT(refusal(R"({"id":1,"time_ms":1,"kind":"workflow_failed","failure":"x"})"),
                HasSubstr("expected an object"));
    EXPECT_THAT(refusal(R"({"id":1,"time_ms":1,"kind":"operation_cancelled","operation":"Timer",)"
                        R"("reason":""})"),
                HasSubstr("the name of an operation"));
}

TEST(StoredEvent, AnUnknownKindIsRefusedAndNamed) {
    EXPECT_EQ(refusal(R"({"id":1,"time_ms":1,"kind":"kv_doubled","key":"k"})"),
              "byte 27: unknown kind 'kv_doubled'");
    EXPECT_THAT(refusal(R"({"id":1,"time_ms":1,"kind":"start"})"), HasSubstr("unknown kind"))
        << "a message is no event";
    EXPECT_THROW(static_cast<void>(decode_message(R"({"kind":"kv_cleared"})")), Undecodable);
}

TEST(StoredEvent, AFieldThatComesTwiceIsRefused) {
    EXPECT_EQ(refusal(R"({"id":1,"id":1,"time_ms":1,"kind":"kv_cleared"})"),
              "byte 8: a field that was there before");
    EXPECT_THAT(refusal(R"({"id":1,"time_ms":1,"kind":"kv_cleared","new":1,"new":2})"),
                HasSubstr("there before"));
}

TEST(StoredEvent, TextAfterTheEventIsRefused) {
    const std::string text = encode(activity("t"));
    EXPECT_EQ(refusal(text + " \n"), "accepted");
    for (const std::string_view more : {"x", "}", ",", "{}", "\n{}"}) {
        EXPECT_THAT(refusal(text + std::string(more)), HasSubstr("more text follows"));
    }
    EXPECT_THAT(refusal("[]"), HasSubstr("byte 0: expected an object"));
}

TEST(StoredEvent, TheNumberOfFieldsIsBounded) {
    std::string text = R"({"id":1,"time_ms":1,"kind":"kv_cleared")";
    for (int i = 0; i < 29; ++i) {
        text += ",\"f" + std::to_string(i) + "\":0";
    }
    EXPECT_EQ(refusal(text + "}"), "accepted");
    EXPECT_THAT(refusal(text + R"(,"more":0})"), HasSubstr("too many fields"));
}

TEST(StoredEvent, AHistoryOfAnotherFormatIsRefused) {
    std::string text = samples::events().front().second;
    replace(text, R"("format":1)", R"("format":2)");
    EXPECT_THAT(refusal(text), HasSubstr("another format"));

    WorkflowStarted started;
    started.format = 2;
    EXPECT_THROW(static_cast<void>(encode(samples::event(1, 0, started))), InvalidArgument);
}

TEST(StoredEvent, AnUpdateHasEitherAResultOrAFailure) {
    const UpdateHandled neither{"r", "n", Payload{}, std::nullopt, std::nullopt};
    const UpdateHandled both{"r", "n", Payload{}, Payload{}, FailureInfo{}};
    EXPECT_THROW(static_cast<void>(encode(samples::event(1, 0, neither))), InvalidArgument);
    EXPECT_THROW(static_cast<void>(encode(samples::event(1, 0, both))), InvalidArgument);
    EXPECT_THAT(refusal(R"({"id":1,"time_ms":1,"kind":"update_handled","request":"r","name":"n",)"
                        R"("input":1})"),
                HasSubstr("either a result or a failure"));
}

TEST(StoredMessage, AnAnswerHasEitherAResultOrAFailure) {
    for (const std::string_view kind : {"activity_answer", "child_answer"}) {
        const std::string start = R"({"kind":")" + std::string(kind) + R"(","event":2)";
        EXPECT_THROW(static_cast<void>(decode_message(start + "}")), Undecodable);
        EXPECT_THROW(static_cast<void>(decode_message(start + R"(,"result":1,"failure":)" +
                                                      samples::failure_text + "}")),
                     Undecodable);
    }
}

TEST(StoredEvent, WhatCannotBeWrittenLeavesTheTextAsItWas) {
    std::string text = "before\n";
    EXPECT_THROW(encode(activity("\xff"), text), InvalidArgument);
    EXPECT_EQ(text, "before\n");
}

// --- histories
// ----------------------------------------------------------------------------------------

TEST(StoredHistory, IsOneLinePerEvent) {
    const std::vector<Event> events{samples::event(1, 0, KvCleared{}), activity("t")};
    const std::string text = encode(events);
    EXPECT_EQ(text, encode(events[0]) + '\n' + encode(events[1]) + '\n');
    EXPECT_EQ(decode_events(text), events);
    EXPECT_EQ(decode_events(text.substr(0, text.size() - 1)), events) << "the last line end";
    EXPECT_TRUE(decode_events("").empty());
    EXPECT_EQ(encode(std::vector<Event>{}), "");
}

TEST(StoredHistory, AnExportSaysWhoseItIsAndWithWhichKeysItBegan) {
    const ExportedHistory history{.instance = "order \"7\"",
                                  .execution = 3,
                                  .kv = {{"a\nb", Payload{"[1, 2]"}}, {"total", Payload{"12"}}},
                                  .events = {samples::event(1, 0, KvCleared{}), activity("t")}};
    const std::string text = encode(history);
    EXPECT_EQ(text.substr(0, text.find('\n')),
              R"({"export":1,"instance":"order \"7\"","execution":3,)"
              R"("kv":[{"key":"a\nb","value":[1, 2]},{"key":"total","value":12}]})");
    EXPECT_EQ(decode_export(text), history);

    const ExportedHistory bare = decode_export(encode(history.events));
    EXPECT_EQ(bare.events, history.events) << "a history without the line is one, too";
    EXPECT_EQ(bare.instance, "");
    EXPECT_THROW(static_cast<void>(decode_export(R"({"export":2,"instance":"a","execution":1})")),
                 Undecodable);
    EXPECT_THROW(static_cast<void>(decode_export(R"({"export":1,"execution":1})")), Undecodable);
}

TEST(StoredHistory, ARefusalSaysWhichEvent) {
    const std::string good = encode(samples::event(1, 0, KvCleared{}));
    const auto history_refusal = [](const std::string& text) -> std::string {
        try {
            static_cast<void>(decode_events(text));
            return "accepted";
        } catch (const Undecodable& error) {
            return error.what();
        }
    };
    EXPECT_EQ(history_refusal(good + '\n' + R"({"id":2})"),
              "event 2 of the text, byte " + std::to_string(good.size() + 1) +
                  ": field 'time_ms' is missing");
    EXPECT_THAT(history_refusal(good + good), HasSubstr("must begin its line"));
    EXPECT_THAT(history_refusal(good + "\n,"), HasSubstr("event 2"));
}

}  // namespace
}  // namespace holdfast::flow
