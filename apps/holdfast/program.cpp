#include "program.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/terminal.hpp"
#include "signals.hpp"
#include <fmt/core.h>

#include <holdfast/base/config.hpp>
#include <holdfast/base/exit_code.hpp>

namespace holdfast::app {
namespace {

Config load_config(const Request& request, Settings settings) {
    std::optional<ConfigFile> file;
    if (!request.config_file.empty()) {
        file = read_config_file(request.config_file);
    }
    // A command reports its failure itself; log lines before it would be noise.
    std::ranges::find(settings, "log.level", &Setting::key)->fallback = "error";
    return Config::load(
        settings,
        {.flags = request.flags, .environment = &process_environment, .file = std::move(file)});
}

int run(const Program& program, const Request& request, Signals& signals) {
    const Config config = load_config(request, program.settings);
    for (const std::string& warning : config.warnings()) {
        fmt::print(stderr, "holdfast: {}\n", warning);
    }
    const std::unique_ptr<Logger> logger = make_logger(log_options(config));
    Metrics metrics;
    return request.command({.config = config,
                            .config_file = request.config_file,
                            .logger = *logger,
                            .metrics = metrics,
                            .stop = signals.token(),
                            .signals = signals,
                            .add_sources = program.add_sources,
                            .json = request.json,
                            .quiet = request.quiet});
}

}  // namespace

int run_program(const Program& program, int argc, const char* const* argv) {
    Signals signals;
    int status = exit_done;
    try {
        const std::variant<Request, Answer> parsed = program.parse(argc, argv);
        if (const auto* answer = std::get_if<Answer>(&parsed)) {
            print(answer->text);
        } else {
            status = run(program, std::get<Request>(parsed), signals);
        }
    } catch (const std::exception& failure) {
        fmt::print(stderr, "holdfast: {}\n", sentence_of(failure));
        status = exit_code_of(failure);
    }
    return signals.received() == 0 ? status : exit_signal_base + signals.received();
}

}  // namespace holdfast::app
