// The demo alone, which `./run demo` builds: on SQLite and PostgreSQL, without the other commands.
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "cli/command_parser.hpp"
#include "demo/command_line.hpp"
#include "program.hpp"

#include <holdfast/base/error.hpp>
#include <holdfast/base/settings.hpp>
#include <holdfast/sql/database.hpp>

namespace holdfast::app {
namespace {

class DemoCommandLine : public CommandParser {
public:
    DemoCommandLine() { add_demo(*this, root_, demo_); }

private:
    DemoRequests demo_;
};

std::variant<Request, Answer> parse_demo_command_line(int argc, const char* const* argv) {
    const auto line = std::make_shared<DemoCommandLine>();
    return keep_alive(line, line->parse({argv + std::min(1, argc), argv + argc}));
}

// Names the program that opens a cluster.
void refuse_dsql(const Context&, Stay, sql::DatabaseOptions& options) {
    options.sources["dsql"] = [](const sql::Url&) -> std::unique_ptr<sql::ConnectionSource> {
        throw InvalidArgument(
            "holdfast-demo opens sqlite: and postgres:// only; run ./run build, then "
            "build/holdfast demo --db dsql://ENDPOINT");
    };
}

}  // namespace
}  // namespace holdfast::app

int main(int argc, char** argv) {
    using namespace holdfast::app;
    return run_program({.parse = &parse_demo_command_line,
                        .settings = holdfast::holdfast_settings(),
                        .add_sources = &refuse_dsql},
                       argc,
                       argv);
}
