// Any text is a query for workers, which then matches a worker or not, or is refused as one.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "workers/worker_query.hpp"

#include <holdfast/base/assert.hpp>
#include <holdfast/base/error.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace holdfast::server::workers;
    Heartbeat worker;
    worker.set_worker_instance_key("key");
    worker.set_task_queue("queue");
    worker.mutable_start_time()->set_seconds(1'704'067'200);
    try {
        const WorkerQuery query({reinterpret_cast<const char*>(data), size});
        static_cast<void>(query.matches(worker));
    } catch (const holdfast::InvalidArgument& error) {
        HOLDFAST_ASSERT(std::string_view(error.what()).starts_with("malformed query: "));
    }
    return 0;
}
