#include "config.hpp"

#include "terminal.hpp"
#include <nlohmann/json.hpp>

#include <holdfast/base/exit_code.hpp>

namespace holdfast::app {

int config_show(const Context& context) {
    nlohmann::ordered_json json{{"settings", nlohmann::ordered_json::array()}};
    Table table{{{"key"}, {"value"}, {"source"}}};
    for (const Config::Effective& setting : context.config.effective()) {
        table.add({setting.key, setting.value, setting.source});
        json["settings"].push_back({{"key", setting.key},
                                    {"value", setting.value},
                                    {"source", setting.source},
                                    {"description", setting.description}});
    }
    print(context.json ? json.dump() + "\n" : table.text());
    return exit_done;
}

}  // namespace holdfast::app
