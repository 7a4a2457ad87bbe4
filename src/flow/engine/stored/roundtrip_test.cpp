#include <string>
#include <vector>

#include "stored/layout.hpp"
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::flow {
namespace {

// Characters that are dangerous somewhere, and some that are not.
rc::Gen<std::string> text() {
    const auto piece = rc::gen::element<std::string>("a",
                                                     "Z9",
                                                     "plain text of more than eight bytes",
                                                     "\"",
                                                     "\\",
                                                     "/",
                                                     "\n",
                                                     "\r\t\b\f",
                                                     std::string(1, '\0'),
                                                     "\x1f",
                                                     "\x7f",
                                                     "\xc3\xa9",
                                                     "\xe2\x80\xa8",
                                                     "\xf0\x9f\x98\x80",
                                                     "\xef\xbf\xbf",
                                                     "{}",
                                                     "\\u0000",
                                                     "\",\"kind\":\"x");
    return rc::gen::map(rc::gen::container<std::vector<std::string>>(piece),
                        [](const std::vector<std::string>& pieces) {
                            std::string all;
                            for (const std::string& one : pieces) {
                                all += one;
                            }
                            return all;
                        });
}

std::string json_value(int depth) {
    switch (*rc::gen::inRange(0, depth > 0 ? 7 : 5)) {
        case 0:
            return *rc::gen::element<std::string>("null", "true", "false", " 1 ", "\n[ ]\n", "{}");
        case 1:
            return Codec<std::int64_t>::encode(*rc::gen::arbitrary<std::int64_t>());
        case 2:
            return Codec<std::uint64_t>::encode(*rc::gen::arbitrary<std::uint64_t>());
        case 3:
            return std::string(*rc::gen::inRange<std::size_t>(1, 400), '9') + ".5e-1000";
        case 4:
            return quote(*text());
        case 5:
            return '[' + json_value(depth - 1) + ',' + json_value(depth - 1) + ']';
        default:
            return "{" + quote(*text()) + ":" + json_value(depth - 1) + " }";
    }
}

void fill(std::string& value) {
    value = *text();
}
void fill(Payload& value) {
    value.json = json_value(4);
}
void fill(bool& value) {
    value = *rc::gen::arbitrary<bool>();
}
void fill(std::int64_t& value) {
    value = *rc::gen::arbitrary<std::int64_t>();
}
void fill(std::uint64_t& value) {
    value = *rc::gen::arbitrary<std::uint64_t>();
}
void fill(int&) {}  // The format: there is one.
void fill(double& value) {
    value = *rc::gen::arbitrary<double>();
}
void fill(FailureKind& value) {
    value = static_cast<FailureKind>(*rc::gen::inRange(0, 7));
}
void fill(Dropped& value) {
    value = static_cast<Dropped>(*rc::gen::inRange(0, 5));
}

template <class T>
void fill_fields(T& value);
void fill(FailureInfo& value) {
    fill_fields(value);
}
void fill(ParentLink& value) {
    fill_fields(value);
}
void fill(ResetPoint& value) {
    fill_fields(value);
}
void fill(ActivityRetry& value) {
    fill_fields(value);
}
template <class T>
void fill(std::vector<T>& values) {
    values.resize(*rc::gen::inRange<std::size_t>(0, 4));
    for (T& value : values) {
        fill(value);
    }
}
template <class T>
void fill(std::optional<T>& value) {
    if (*rc::gen::arbitrary<bool>()) {
        fill(value.emplace());
    }
}
void fill(stored::Answer& value) {
    if (*rc::gen::arbitrary<bool>()) {
        fill(value.emplace<Payload>());
    } else {
        fill(value.emplace<FailureInfo>());
    }
}
template <class T>
void fill_fields(T& value) {
    std::apply([&](const auto&... fields) { (fill(value.*fields.member), ...); },
               stored::Layout<T>::fields);
    if constexpr (std::same_as<T, UpdateHandled>) {
        value.result.reset();
        value.failure.reset();
        if (*rc::gen::arbitrary<bool>()) {
            fill(value.result.emplace());
        } else {
            fill(value.failure.emplace());
        }
    }
}

template <class Body, std::size_t Index = 0>
Body body_of(std::size_t chosen) {
    if constexpr (Index < std::variant_size_v<Body>) {
        if (Index == chosen) {
            Body body(std::in_place_index<Index>);
            fill_fields(*std::get_if<Index>(&body));
            return body;
        }
        return body_of<Body, Index + 1>(chosen);
    } else {
        RC_FAIL("no such kind");
    }
}

Event any_event(std::size_t kind) {
    return {.id = *rc::gen::arbitrary<EventId>(),
            .source = *rc::gen::arbitrary<EventId>(),
            .time_ms = *rc::gen::arbitrary<std::int64_t>(),
            .body = body_of<EventBody>(kind),
            .build = *text()};
}

// Each case makes one event of every kind.
RC_GTEST_PROP(StoredProperty, EveryEventComesBack, ()) {
    std::vector<Event> events;
    for (std::size_t kind = 0; kind < std::variant_size_v<EventBody>; ++kind) {
        const Event event = any_event(kind);
        const std::string text = encode(event);
        RC_ASSERT(is_json(text));
        RC_ASSERT(decode_event(text) == event);
        events.push_back(event);
    }
    RC_ASSERT(decode_events(encode(events)) == events);
}

RC_GTEST_PROP(StoredProperty, EveryMessageComesBack, ()) {
    for (std::size_t kind = 0; kind < std::variant_size_v<MessageBody>; ++kind) {
        const auto message = body_of<MessageBody>(kind);
        const std::string text = encode(message);
        RC_ASSERT(is_json(text));
        RC_ASSERT(decode_message(text) == message);
    }
}

// One byte changed: the text is refused, or it is another event that comes back as well.
RC_GTEST_PROP(StoredProperty, ADamagedTextIsRefusedOrIsAnotherEvent, ()) {
    std::string text = encode(any_event(*rc::gen::inRange<std::size_t>(0, 28)));
    text[*rc::gen::inRange<std::size_t>(0, text.size())] = *rc::gen::arbitrary<char>();
    try {
        const Event event = decode_event(text);
        RC_ASSERT(decode_event(encode(event)) == event);
    } catch (const Undecodable& error) {
        RC_ASSERT(error.what()[0] != '\0');
    }
}

}  // namespace
}  // namespace holdfast::flow
