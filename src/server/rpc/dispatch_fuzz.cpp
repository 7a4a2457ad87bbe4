// Any bytes, sent to any method of the table, are answered with a status that is not INTERNAL, and
// leave a server that works. The whole server stands below: engine, queues, and a store in memory.
// The first two bytes of an input name the method.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/engine.hpp"
#include "executor/alarms.hpp"
#include "executor/executor.hpp"
#include "frontend/frontend.hpp"
#include "frontend/namespace/namespace_service.hpp"
#include "frontend/queue/queue_settings.hpp"
#include "matching/matching.hpp"
#include "namespaces/namespaces.hpp"
#include "rpc/dispatch.hpp"
#include "task_queues/settings.hpp"
#include "workers/registry.hpp"

#include <holdfast/base/assert.hpp>
#include <holdfast/base/log.hpp>
#include <holdfast/base/manual_clock.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/sql/schema.hpp>
#include <holdfast/store/catalogue.hpp>

namespace {

using namespace holdfast;
using namespace holdfast::server;

class Queued final : public Executor {
public:
    void post(const std::string& /*key*/, Job job) override { jobs_.push_back(std::move(job)); }
    void run_all() {
        while (!jobs_.empty()) {
            Job job = std::move(jobs_.front());
            jobs_.pop_front();
            std::move(job)();
        }
    }

private:
    std::deque<Job> jobs_;
};

// Time stands still.
class Silent final : public Alarms {
public:
    AlarmId set(Steady /*at*/, Job /*ring*/) override { return AlarmId{++last_}; }
    bool cancel(AlarmId /*alarm*/) override { return true; }

private:
    std::uint64_t last_ = 0;
};

struct Whole {
    Whole() {
        sql::schema_apply(db, store::schema_part(), {});
        namespaces.open();
        matching.connect(engine);
        frontend::add_namespace_service(
            dispatch, {.db = db, .namespaces = namespaces, .executor = executor, .clock = clock});
        frontend::add_workflow_service(dispatch,
                                       {.namespaces = namespaces,
                                        .turns = engine,
                                        .matching = matching,
                                        .workers = workers,
                                        .alarms = alarms,
                                        .clock = clock,
                                        .check_attributes = frontend::attribute_check(namespaces)});
        frontend::add_queue_settings(
            dispatch,
            {.namespaces = namespaces, .settings = settings, .executor = executor, .clock = clock});
        frontend::add_unbuilt(dispatch);
        engine.start();
        dispatch.open();
        methods = dispatch.methods();
    }

    sql::Database db{"sqlite::memory:"};
    ManualClock clock;
    Queued executor;
    Silent alarms;
    Logger& log = null_logger();
    matching::Matching matching{clock, alarms};
    workers::Registry workers{clock};
    task_queues::Settings settings{db, matching};
    namespaces::Registry namespaces{db};
    engine::Engine engine{{.db = db,
                           .clock = clock,
                           .executor = executor,
                           .alarms = alarms,
                           .matching = matching,
                           .namespaces = namespaces,
                           .log = log}};
    rpc::Dispatch dispatch{log};
    std::vector<std::string> methods;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static Whole whole;
    if (size < 2) {
        return 0;
    }
    const std::size_t method = (std::size_t{data[0]} << 8U | data[1]) % whole.methods.size();
    const std::string_view request(reinterpret_cast<const char*>(data) + 2, size - 2);
    const auto call = std::make_shared<rpc::Call>(
        rpc::CallInfo{.method = whole.methods[method],
                      .deadline = whole.clock.wall_now() + std::chrono::seconds{70},
                      .caller = {}},
        [](const rpc::Answer& answer) {
            const auto* const refusal = std::get_if<rpc::Refusal>(&answer);
            HOLDFAST_ASSERT(refusal == nullptr || refusal->code != rpc::StatusCode::internal);
        });
    whole.dispatch.run(call, request);
    whole.executor.run_all();
    call->cancel();  // One that waits.
    whole.executor.run_all();
    return 0;
}
