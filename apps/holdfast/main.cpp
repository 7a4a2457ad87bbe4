// The binary: all commands, all settings, all databases.
#include <algorithm>
#include <iterator>

#include "cli/cli.hpp"
#include "dsql/database_source.hpp"
#include "program.hpp"
#include "server/settings.hpp"

#include <holdfast/base/settings.hpp>
#include <holdfast/dsql/fleet.hpp>

namespace holdfast::app {
namespace {

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
    return run_program(
        {.parse = &parse_command_line, .settings = all_settings(), .add_sources = &add_dsql_source},
        argc,
        argv);
}
