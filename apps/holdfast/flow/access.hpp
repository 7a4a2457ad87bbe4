// The workflows of the database that the command line names.
#pragma once

#include <string>
#include <string_view>

#include "command.hpp"

#include <holdfast/flow/client.hpp>
#include <holdfast/flow/store.hpp>
#include <holdfast/sql/database.hpp>

namespace holdfast::app {

class FlowAccess {
public:
    // Creates nothing: a database without the tables is condition_failed, which names the cure.
    explicit FlowAccess(const Context& context);

    [[nodiscard]] flow::Client& client() noexcept { return client_; }
    // not_found if there is no such instance.
    [[nodiscard]] flow::InstanceInfo info(std::string_view id);
    // The same of one that has not ended; else condition_failed, which says that `what` is too
    // late.
    [[nodiscard]] flow::InstanceInfo running(std::string_view id, std::string_view what);
    // The execution that was asked for; 0 is the current one. not_found if it has none of that
    // number, or no more.
    [[nodiscard]] flow::ExecutionId execution_of(const flow::InstanceInfo& info,
                                                 flow::ExecutionId wanted);
    // The database's clock.
    [[nodiscard]] flow::Moment now();

private:
    sql::Database db_;
    flow::Store store_;
    flow::Client client_;
};

}  // namespace holdfast::app
