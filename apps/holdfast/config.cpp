#include "config.hpp"

#include "answer.hpp"
#include "terminal.hpp"

#include <holdfast/base/exit_code.hpp>

namespace holdfast::app {

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
    return exit_done;
}

}  // namespace holdfast::app
