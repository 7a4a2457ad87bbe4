#include "config.hpp"

#include "cli/answer.hpp"
#include "cli/terminal.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/exit_code.hpp>
#include <holdfast/dsql/fleet.hpp>

namespace holdfast::app {
namespace {

// Settings that a dsql:// database would refuse or override. Other databases do not use them, so
// they are only warnings.
void warn_of_dsql(const Config& config) {
    try {
        (void)dsql::fleet_config(config);
    } catch (const InvalidArgument& error) {
        fmt::print(stderr, "holdfast: {}; until then no dsql:// database opens\n", error.what());
    }
    for (const dsql::Overruled& setting : dsql::overruled(config)) {
        fmt::print(stderr, "holdfast: {}\n", setting.why);
    }
}

}  // namespace

int config_show(const Context& context) {
    Json json{{"settings", Json::array()}};
    Table table{{{"key"}, {"value"}, {"source"}}};
    for (const Config::Effective& setting : context.config.effective()) {
        table.add({setting.key, setting.value, setting.source});
        json["settings"].push_back({{"key", setting.key},
                                    {"value", setting.value},
                                    {"source", setting.source},
                                    {"description", setting.description}});
    }
    print(context.json ? json_line(json) + "\n" : table.text());
    warn_of_dsql(context.config);
    return exit_done;
}

}  // namespace holdfast::app
