// The benchmark of servers alone, which `holdfast bench server` runs: the other commands do not
// load its libraries.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <string_view>
#include <variant>

#include "bench/command_line.hpp"
#include "program.hpp"
#include <fmt/core.h>

#include <holdfast/base/exit_code.hpp>
#include <holdfast/base/settings.hpp>
#include <holdfast/server_bench/server_suite.hpp>

namespace holdfast::app {
namespace {

class ServerBenchCommandLine : public CommandParser {
public:
    ServerBenchCommandLine() { add_bench(*this, root_, bench_, &bench_server); }

private:
    BenchRequest bench_;
};

std::variant<Request, Answer> parse_server_bench(int argc, const char* const* argv) {
    const auto line = std::make_shared<ServerBenchCommandLine>();
    return keep_alive(line, line->parse({argv + std::min(1, argc), argv + argc}));
}

// The child that is measured.
int run_measured(const char* url) {
    try {
        return server_bench::serve_measured(url);
    } catch (const std::exception& failure) {
        fmt::print(stderr, "holdfast: {}\n", failure.what());
        return exit_code_of(failure);
    }
}

}  // namespace
}  // namespace holdfast::app

int main(int argc, char** argv) {
    using namespace holdfast::app;
    constexpr int words_of_child = 3;
    if (argc == words_of_child &&
        std::string_view(argv[1]) == holdfast::server_bench::measured_word) {
        return run_measured(argv[2]);
    }
    return run_program({.parse = &parse_server_bench,
                        .settings = holdfast::holdfast_settings(),
                        .add_sources = nullptr},
                       argc,
                       argv);
}
