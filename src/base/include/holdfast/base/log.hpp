// Structured logs: a level, an event, and fields.
//
// A logger is handed in; there is no global one. Lines are key=value or JSON. Writing never throws
// and never blocks for longer than the sink does.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace holdfast {

enum class Level { debug, info, warn, error, off };

// One `name=value`. Names are snake_case; a value that is a secret does not belong here.
struct Field {
    std::string_view name;
    std::variant<std::int64_t, double, bool, std::string> value;

    template <std::integral T>
        requires(!std::same_as<T, bool>)
    Field(std::string_view n, T v) : name(n), value(static_cast<std::int64_t>(v)) {}
    Field(std::string_view n, bool v) : name(n), value(v) {}
    Field(std::string_view n, double v) : name(n), value(v) {}
    Field(std::string_view n, std::string v) : name(n), value(std::move(v)) {}
    Field(std::string_view n, std::string_view v) : name(n), value(std::string(v)) {}
    Field(std::string_view n, const char* v) : name(n), value(std::string(v)) {}
};

// Safe to share between threads.
class Logger {
public:
    virtual ~Logger() = default;

    [[nodiscard]] virtual bool enabled(Level level) const noexcept = 0;

    // `event` is a short constant phrase that a person can search for.
    virtual void write(Level level,
                       std::string_view event,
                       std::initializer_list<Field> fields) = 0;

    void debug(std::string_view event, std::initializer_list<Field> fields = {}) {
        if (enabled(Level::debug)) {
            write(Level::debug, event, fields);
        }
    }
    void info(std::string_view event, std::initializer_list<Field> fields = {}) {
        if (enabled(Level::info)) {
            write(Level::info, event, fields);
        }
    }
    void warn(std::string_view event, std::initializer_list<Field> fields = {}) {
        if (enabled(Level::warn)) {
            write(Level::warn, event, fields);
        }
    }
    void error(std::string_view event, std::initializer_list<Field> fields = {}) {
        if (enabled(Level::error)) {
            write(Level::error, event, fields);
        }
    }
};

// Writes nothing. The default of the library.
[[nodiscard]] Logger& null_logger() noexcept;

enum class LogFormat { text, json };

struct LogOptions {
    Level level = Level::info;
    LogFormat format = LogFormat::text;
    std::string file{};  // Empty: standard error.
};

[[nodiscard]] std::unique_ptr<Logger> make_logger(const LogOptions& options);

}  // namespace holdfast
