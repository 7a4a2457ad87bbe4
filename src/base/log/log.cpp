// The only file that knows spdlog, which costs seconds in every file that includes it.
#include <holdfast/base/log.hpp>

#include <cstdio>
#include <span>
#include <utility>

#include "log/log_line.hpp"
#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/error.hpp>

namespace holdfast {
namespace {

spdlog::level::level_enum spdlog_level(Level level) noexcept {
    switch (level) {
        case Level::debug:
            return spdlog::level::debug;
        case Level::info:
            return spdlog::level::info;
        case Level::warn:
            return spdlog::level::warn;
        case Level::error:
            return spdlog::level::err;
        case Level::off:
            return spdlog::level::off;
    }
    return spdlog::level::off;
}

spdlog::sink_ptr sink_for(const std::string& file) {
    if (file.empty()) {
        return std::make_shared<spdlog::sinks::stderr_sink_mt>();
    }
    try {
        return std::make_shared<spdlog::sinks::basic_file_sink_mt>(file);
    } catch (const spdlog::spdlog_ex& reason) {
        Error error(Code::unavailable,
                    Outcome::not_applied,
                    std::string("cannot write the log: ") + reason.what() +
                        "; set log.file to a path that can be written");
        error.set_cause(std::current_exception());
        throw error;
    }
}

// Lines are made here and handed to a spdlog logger of our own, which no registry knows.
class SpdlogLogger final : public Logger {
public:
    explicit SpdlogLogger(const LogOptions& options)
        : level_(options.level),
          format_(options.format),
          sink_("holdfast", sink_for(options.file)) {
        sink_.set_pattern("%v");
        sink_.set_level(spdlog_level(options.level));
        // A line that only sits in a buffer is missing after exactly the crash it would explain.
        sink_.flush_on(spdlog::level::trace);
    }

    [[nodiscard]] bool enabled(Level level) const noexcept override {
        return level != Level::off && level >= level_;
    }

    void write(Level level, std::string_view event, std::initializer_list<Field> fields) override {
        if (!enabled(level)) {
            return;
        }
        try {
            const auto now = system_clock().wall_now();
            const auto line =
                log_line(format_, now, level, event, std::span(fields.begin(), fields.size()));
            sink_.log(spdlog_level(level), spdlog::string_view_t(line.data(), line.size()));
        } catch (...) {
            // Out of memory, most likely. Work goes on without the line.
            std::fputs("holdfast: a log line is lost\n", stderr);
        }
    }

private:
    Level level_;
    LogFormat format_;
    spdlog::logger sink_;
};

class NullLogger final : public Logger {
public:
    [[nodiscard]] bool enabled(Level /*level*/) const noexcept override { return false; }
    void write(Level /*level*/,
               std::string_view /*event*/,
               std::initializer_list<Field> /*fields*/) override {}
};

}  // namespace

Logger& null_logger() noexcept {
    static NullLogger logger;
    return logger;
}

std::unique_ptr<Logger> make_logger(const LogOptions& options) {
    return std::make_unique<SpdlogLogger>(options);
}

}  // namespace holdfast
