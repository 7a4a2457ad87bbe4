#include <holdfast/flow_engine/stored.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "stored/payload_json.hpp"
#include "stored/reader.hpp"
#include "stored/writer.hpp"
#include <fmt/format.h>

namespace holdfast::flow {
namespace {

constexpr int export_format = 1;
constexpr std::string_view export_mark = R"({"export":)";

// The first line of an exported history.
struct ExportHeader {
    int format = 0;
    std::string instance{};
    ExecutionId execution = 0;
    std::vector<KvSet> kv{};
};

}  // namespace

template <>
struct stored::Layout<ExportHeader> {
    static constexpr std::tuple fields{Field{"export", &ExportHeader::format},
                                       Field{"instance", &ExportHeader::instance},
                                       Field{"execution", &ExportHeader::execution},
                                       Field{"kv", &ExportHeader::kv}};
    static constexpr const char* fault(const ExportHeader& header) {
        return header.format == export_format ? nullptr : "the export has another format";
    }
};

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
    std::optional<std::string> build;
    stored::read_field(members, "id", id);
    stored::read_field(members, "source", source);
    stored::read_field(members, "time_ms", time_ms);
    stored::read_field(members, "build", build);
    return Event{.id = id,
                 .source = source.value_or(0),
                 .time_ms = time_ms,
                 .body = stored::BodyReader<EventBody>::read(members),
                 .build = std::move(build).value_or("")};
}

void expect_end(const stored::Text& all, const json::Scanner& scanner, std::string_view text) {
    if (!scanner.at_end()) {
        all.refuse(text.substr(scanner.at()), "more text follows");
    }
}

template <class T>
T decode_object(std::string_view json) {
    const stored::Text all(json);
    json::Scanner scanner(json);
    stored::Members members(all, scanner, json);
    expect_end(all, scanner, json);
    T value;
    stored::read_fields(members, value);
    return value;
}

}  // namespace

void encode(const Event& event, std::string& out) {
    whole_or_nothing(out, [&] {
        stored::write_field(out, '{', "id", event.id);
        if (event.source != 0) {
            stored::write_field(out, ',', "source", event.source);
        }
        stored::write_field(out, ',', "time_ms", event.time_ms);
        if (!event.build.empty()) {
            stored::write_field(out, ',', "build", event.build);
        }
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

std::string encode(const ExportedHistory& history) {
    ExportHeader header{.format = export_format,
                        .instance = history.instance,
                        .execution = history.execution,
                        .kv = {}};
    for (const auto& [key, value] : history.kv) {
        header.kv.push_back(KvSet{.key = key, .value = value});
    }
    std::string text;
    stored::write(text, header);
    text += '\n';
    text += encode(history.events);
    return text;
}

ExportedHistory decode_export(std::string_view lines) {
    ExportedHistory history;
    const std::size_t begin = std::min(lines.find_first_not_of(" \t\r\n"), lines.size());
    if (lines.substr(begin).starts_with(export_mark)) {
        const stored::Text all(lines);
        json::Scanner scanner(lines);
        scanner.space();
        stored::Members members(all, scanner, lines);
        ExportHeader header;
        stored::read_fields(members, header);
        history.instance = std::move(header.instance);
        history.execution = header.execution;
        for (KvSet& entry : header.kv) {
            history.kv.insert_or_assign(std::move(entry.key), std::move(entry.value));
        }
        lines.remove_prefix(scanner.at());
    }
    history.events = decode_events(lines);
    return history;
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
    return decode_object<FailureInfo>(json);
}

std::string encode(const ActivityRetry& retry) {
    std::string text;
    text.reserve(usual_message_bytes);
    stored::write(text, retry);
    return text;
}

ActivityRetry decode_retry(std::string_view json) {
    return decode_object<ActivityRetry>(json);
}

bool is_json(std::string_view text) noexcept {
    json::Scanner scanner(text, payload_depth_max);
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
