// The binary: reads the command line and the configuration, wires what a command needs, runs it,
// and says in one sentence what went wrong.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <optional>
#include <variant>

#include "cli/cli.hpp"
#include "cli/terminal.hpp"
#include "signals.hpp"
#include <fmt/core.h>

#include <holdfast/base/config.hpp>
#include <holdfast/base/exit_code.hpp>
#include <holdfast/base/settings.hpp>
#include <holdfast/dsql/fleet.hpp>

namespace holdfast::app {
namespace {

Config load_config(const Request& request) {
    std::optional<ConfigFile> file;
    if (!request.config_file.empty()) {
        file = read_config_file(request.config_file);
    }
    Settings settings = holdfast_settings();
    std::ranges::copy(dsql::fleet_settings(), std::back_inserter(settings));
    // A command reports its failure itself; log lines before it would be noise.
    std::ranges::find(settings, "log.level", &Setting::key)->fallback = "error";
    return Config::load(
        settings,
        {.flags = request.flags, .environment = &process_environment, .file = std::move(file)});
}

int run(const Request& request, Signals& signals) {
    const Config config = load_config(request);
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
                            .json = request.json,
                            .quiet = request.quiet});
}

int run(int argc, const char* const* argv) {
    Signals signals;
    int status = exit_done;
    try {
        const std::variant<Request, Answer> parsed = parse_command_line(argc, argv);
        if (const auto* answer = std::get_if<Answer>(&parsed)) {
            print(answer->text);
        } else {
            status = run(std::get<Request>(parsed), signals);
        }
    } catch (const std::exception& failure) {
        fmt::print(stderr, "holdfast: {}\n", sentence_of(failure));
        status = exit_code_of(failure);
    }
    return signals.received() == 0 ? status : exit_signal_base + signals.received();
}

}  // namespace
}  // namespace holdfast::app

int main(int argc, char** argv) {
    return holdfast::app::run(argc, argv);
}
