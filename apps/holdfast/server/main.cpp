// The server alone, which `holdfast server` runs: the other commands do not load its libraries.
#include <algorithm>
#include <iterator>
#include <memory>
#include <variant>

#include "dsql/database_source.hpp"
#include "program.hpp"
#include "server/command_line.hpp"
#include "server/settings.hpp"
#include "server/test_server_words.hpp"

#include <holdfast/base/settings.hpp>
#include <holdfast/dsql/fleet.hpp>

namespace holdfast::app {
namespace {

class ServerCommandLine : public CommandParser {
public:
    ServerCommandLine() {
        add_server(*this,
                   root_,
                   server_,
                   {.start_dev = &server_start_dev,
                    .start_test = &server_start_test,
                    .run = &server_run,
                    .check = &server_check});
    }

private:
    ServerRequest server_;
};

std::variant<Request, Answer> parse_server_command_line(int argc, const char* const* argv) {
    const auto line = std::make_shared<ServerCommandLine>();
    return keep_alive(line,
                      line->parse(with_test_server_verb({argv + std::min(1, argc), argv + argc})));
}

Settings all_settings() {
    Settings settings = holdfast_settings();
    std::ranges::copy(dsql::fleet_settings(), std::back_inserter(settings));
    std::ranges::copy(server_settings(), std::back_inserter(settings));
    return settings;
}

}  // namespace
}  // namespace holdfast::app

int main(int argc, char** argv) {
    using namespace holdfast::app;
    return run_program({.parse = &parse_server_command_line,
                        .settings = all_settings(),
                        .add_sources = &add_dsql_source},
                       argc,
                       argv);
}
