#include <holdfast/flow_engine/stored.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "json_text.hpp"
#include "stored_reader.hpp"
#include "stored_writer.hpp"
#include <fmt/format.h>

namespace holdfast::flow {
namespace {

// What a small event takes; growing a text step by step costs more than writing it.
constexpr std::size_t usual_event_bytes = 160;
constexpr std::size_t usual_message_bytes = 96;

// Runs `write` on `out`; if it throws, `out` is as before.
template <class Write>
void whole_or_nothing(std::string& out, const Write& write) {
    const std::size_t before = out.size();
    try {
        write();
    } catch (...) {
        out.resize(before);
        throw;
    }
}

Event read_event(const stored::Text& all, json::Scanner& scanner, std::string_view text) {
    stored::Members members(all, scanner, text);
    EventId id = 0;
    std::optional<EventId> source;
    std::int64_t time_ms = 0;
    stored::read_field(members, "id", id);
    stored::read_field(members, "source", source);
    stored::read_field(members, "time_ms", time_ms);
    return Event{.id = id,
                 .source = source.value_or(0),
                 .time_ms = time_ms,
                 .body = stored::BodyReader<EventBody>::read(members)};
}

void expect_end(const stored::Text& all, const json::Scanner& scanner, std::string_view text) {
    if (!scanner.at_end()) {
        all.refuse(text.substr(scanner.at()), "more text follows");
    }
}

}  // namespace

void encode(const Event& event, std::string& out) {
    whole_or_nothing(out, [&] {
        stored::write_field(out, '{', "id", event.id);
        if (event.source != 0) {
            stored::write_field(out, ',', "source", event.source);
        }
        stored::write_field(out, ',', "time_ms", event.time_ms);
        stored::write_body(out, ',', event.body);
    });
}

std::string encode(const Event& event) {
    std::string text;
    text.reserve(usual_event_bytes);
    encode(event, text);
    return text;
}

Event decode_event(std::string_view line) {
    const stored::Text all(line);
    json::Scanner scanner(line);
    Event event = read_event(all, scanner, line);
    expect_end(all, scanner, line);
    return event;
}

std::string encode(const std::vector<Event>& events) {
    std::string text;
    text.reserve(events.size() * usual_event_bytes);
    for (const Event& event : events) {
        encode(event, text);
        text += '\n';
    }
    return text;
}

std::vector<Event> decode_events(std::string_view lines) {
    const stored::Text all(lines);
    json::Scanner scanner(lines);
    std::vector<Event> events;
    // By values, not by line ends: a payload may hold a line end between its values.
    scanner.space();
    while (!scanner.at_end()) {
        try {
            if (!events.empty() && lines[scanner.at() - 1] != '\n') {
                all.refuse(lines.substr(scanner.at()), "an event must begin its line");
            }
            events.push_back(read_event(all, scanner, lines));
        } catch (const Undecodable& error) {
            throw Undecodable(
                fmt::format("event {} of the text, {}", events.size() + 1, error.what()));
        }
    }
    return events;
}

std::string encode(const MessageBody& body) {
    std::string text;
    text.reserve(usual_message_bytes);
    stored::write_body(text, '{', body);
    return text;
}

MessageBody decode_message(std::string_view line) {
    const stored::Text all(line);
    json::Scanner scanner(line);
    stored::Members members(all, scanner, line);
    expect_end(all, scanner, line);
    return stored::BodyReader<MessageBody>::read(members);
}

std::string encode(const FailureInfo& failure) {
    std::string text;
    text.reserve(usual_message_bytes);
    stored::write(text, failure);
    return text;
}

FailureInfo decode_failure(std::string_view json) {
    const stored::Text all(json);
    json::Scanner scanner(json);
    stored::Members members(all, scanner, json);
    expect_end(all, scanner, json);
    FailureInfo failure;
    stored::read_fields(members, failure);
    return failure;
}

bool is_json(std::string_view text) noexcept {
    json::Scanner scanner(text, json::payload_depth_max);
    return scanner.value() && scanner.at_end();
}

std::string quote(std::string_view text) {
    std::string quoted;
    quoted.reserve(text.size() + 2);
    json::append_string(quoted, text);
    return quoted;
}

std::string join_array(const std::vector<std::string>& values) {
    std::size_t bytes = values.size() + 2;
    for (const std::string& value : values) {
        bytes += value.size();
    }
    std::string array;
    array.reserve(bytes);
    char before = '[';
    for (const std::string& value : values) {
        array += before;
        array += value;
        before = ',';
    }
    if (values.empty()) {
        array += '[';
    }
    array += ']';
    return array;
}

std::vector<std::string_view> split_array(std::string_view json) {
    const stored::Text all(json);
    json::Scanner scanner(json);
    std::vector<std::string_view> values;
    const bool good = scanner.array([&](std::string_view value) -> const char* {
        values.push_back(value);
        return nullptr;
    });
    if (!good) {
        all.refuse(json.substr(scanner.at()), scanner.fault());
    }
    expect_end(all, scanner, json);
    return values;
}

}  // namespace holdfast::flow
