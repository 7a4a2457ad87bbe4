#include "log/log_line.hpp"

#include <cmath>
#include <ctime>
#include <iterator>
#include <variant>

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <holdfast/base/json_text.hpp>
#include <holdfast/base/utf8.hpp>

namespace holdfast {
namespace {

// 2024-05-06T07:08:09.123456Z
std::string utc(Wall now) {
    const auto second = std::chrono::floor<std::chrono::seconds>(now);
    const std::time_t unix_seconds = second.time_since_epoch().count();
    std::tm parts{};
    ::gmtime_r(&unix_seconds, &parts);
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", parts, (now - second).count());
}

// Appends `text` with everything escaped that could end the string or the line. Both formats use
// JSON's escapes, and differ in how they show a byte that is not text: JSON has no way to keep it.
void append_escaped(std::string& line, std::string_view text, LogFormat format) {
    while (!text.empty()) {
        const auto [code_point, size] = first_character(text);
        if (!code_point && format == LogFormat::text) {
            const auto byte = static_cast<unsigned char>(text.front());
            fmt::format_to(std::back_inserter(line), "\\x{:02x}", byte);
        } else if (!code_point) {
            json::append_escape(line, U'\ufffd');
        } else if (*code_point == '"' || *code_point == '\\' || is_control(*code_point)) {
            json::append_escape(line, *code_point);
        } else {
            line += text.substr(0, size);
        }
        text.remove_prefix(size);
    }
}

void append_quoted(std::string& line, std::string_view text, LogFormat format) {
    line += '"';
    append_escaped(line, text, format);
    line += '"';
}

bool stands_alone(std::string_view text) noexcept {
    const auto plain = [](char c) {
        return c > ' ' && c < '\x7f' && c != '=' && c != '"' && c != '\\';
    };
    for (const char c : text) {
        if (!plain(c)) {
            return false;
        }
    }
    return !text.empty();
}

void append_value(std::string& line, std::string_view text, LogFormat format) {
    if (format == LogFormat::text && stands_alone(text)) {
        line += text;
    } else {
        append_quoted(line, text, format);
    }
}

void append_value(std::string& line, double number, LogFormat format) {
    const std::string text = fmt::format("{}", number);
    // JSON has no infinity and no NaN.
    append_value(line, text, std::isfinite(number) ? LogFormat::text : format);
}

void append_field(std::string& line, const Field& field, LogFormat format) {
    struct Append {
        std::string& line;
        LogFormat format;
        void operator()(std::int64_t number) const { line += fmt::format("{}", number); }
        void operator()(bool truth) const { line += truth ? "true" : "false"; }
        void operator()(double number) const { append_value(line, number, format); }
        void operator()(const std::string& text) const { append_value(line, text, format); }
    };
    append_value(line, field.name, format);
    line += format == LogFormat::json ? ':' : '=';
    std::visit(Append{line, format}, field.value);
}

std::string_view name_of(Level level) noexcept {
    switch (level) {
        case Level::debug:
            return "debug";
        case Level::info:
            return "info";
        case Level::warn:
            return "warn";
        case Level::error:
            return "error";
        case Level::off:
            return "off";
    }
    return "off";
}

}  // namespace

std::string log_line(LogFormat format,
                     std::optional<Wall> now,
                     Level level,
                     std::string_view event,
                     std::span<const Field> fields) {
    std::string line = format == LogFormat::json ? "{" : "";
    const auto append = [&](const Field& field) {
        if (line.size() > 1) {
            line += format == LogFormat::json ? ',' : ' ';
        }
        append_field(line, field, format);
    };
    if (now) {
        append({"time", utc(*now)});
    }
    append({"level", name_of(level)});
    append({"event", event});
    for (const Field& field : fields) {
        append(field);
    }
    if (format == LogFormat::json) {
        line += '}';
    }
    return line;
}

}  // namespace holdfast
