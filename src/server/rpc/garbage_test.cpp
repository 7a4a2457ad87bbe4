// What a client may send that means no good, or nothing at all.
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/test/server_fixture.hpp"
#include "frontend/namespace/namespace_service.hpp"
#include "frontend/queue/queue_settings.hpp"
#include "rpc/test/random_message_fixture.hpp"
#include "task_queues/settings.hpp"
#include <google/protobuf/descriptor.h>

#include <holdfast/api/services.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::server::engine::tests {
namespace {

// The whole table of methods, over a server that has a run with an activity.
class GarbageTest : public ServerTest {
protected:
    GarbageTest() {
        const char* const given = std::getenv("HOLDFAST_SEED");
        seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
        random.emplace(seed);
        frontend::add_namespace_service(table,
                                        {.db = *db,
                                         .namespaces = process->namespaces,
                                         .executor = process->executor,
                                         .clock = clock});
        frontend::add_workflow_service(
            table,
            {.namespaces = process->namespaces,
             .turns = process->engine,
             .matching = process->matching,
             .workers = process->workers,
             .alarms = process->alarms,
             .clock = clock,
             .check_attributes = frontend::attribute_check(process->namespaces)});
        frontend::add_queue_settings(table,
                                     {.namespaces = process->namespaces,
                                      .settings = settings,
                                      .executor = process->executor,
                                      .clock = clock});
        frontend::add_unbuilt(table);
        table.open();
    }

    // Sends `request` and then leaves; an answer that is none, or INTERNAL, fails the test.
    void send(const std::string& method, const std::string& request) {
        std::optional<rpc::Answer> answer;
        const auto call = std::make_shared<rpc::Call>(
            rpc::CallInfo{.method = method, .deadline = clock.wall_now() + 70s, .caller = {}},
            [&](rpc::Answer given) { answer = std::move(given); });
        table.run(call, request);
        process->executor.run_all();
        call->cancel();
        process->executor.run_all();
        ASSERT_TRUE(answer) << method;
        if (const auto* const refusal = std::get_if<rpc::Refusal>(&*answer)) {
            EXPECT_NE(refusal->code, rpc::StatusCode::internal)
                << method << ": " << refusal->message;
        }
    }

    // A run whose workflow task and activity have tokens.
    std::vector<std::string> tokens_of_a_run() {
        start("order");
        const auto task = poll().response();
        EXPECT_EQ(complete(task, {activity_command("a")}).refusal(), nullptr);
        const auto activity = poll_activity();
        return {task.task_token(), activity.response().task_token(), "", "\x0a\x00", "{}"};
    }

    std::uint64_t seed = 0;
    std::optional<Random> random;
    task_queues::Settings settings{*db, process->matching};
    rpc::Dispatch table{log};
};

TEST_P(GarbageTest, AnyBytesToAnyMethodGetAStatus) {
    SCOPED_TRACE("HOLDFAST_SEED=" + std::to_string(seed));
    rpc::tests::RandomMessages messages(*random, {""}, {""});
    for (const std::string& method : table.methods()) {
        for (int i = 0; i < 5; ++i) {
            send(method, messages.bytes(200));
        }
    }
    EXPECT_NE(start("order").run_id(), "") << "the server works as before";
}

// These parse, so they reach what lies behind the first check.
TEST_P(GarbageTest, AnyMessageToAnyMethodGetsAStatus) {
    SCOPED_TRACE("HOLDFAST_SEED=" + std::to_string(seed));
    rpc::tests::RandomMessages messages(*random,
                                        {"default",
                                         "order",
                                         "queue",
                                         "a",
                                         "",
                                         "__stack_trace",
                                         "WorkflowId = 'order'",
                                         "11111111-1111-4111-8111-111111111111",
                                         std::string(1001, 'x')},
                                        tokens_of_a_run());
    // After these the others would find no namespace.
    const std::set<std::string> last{"DeleteNamespace", "DeprecateNamespace", "UpdateNamespace"};
    std::size_t sent = 0;
    for (const auto* service : holdfast::api::services()) {
        if (service->name() != "WorkflowService" && service->name() != "OperatorService") {
            continue;
        }
        for (int i = 0; i < service->method_count(); ++i) {
            const auto& method = *service->method(i);
            if (last.contains(method.name())) {
                continue;
            }
            const auto* const prototype =
                google::protobuf::MessageFactory::generated_factory()->GetPrototype(
                    method.input_type());
            ASSERT_NE(prototype, nullptr) << method.full_name();
            for (int each = 0; each < 10; ++each, ++sent) {
                const std::unique_ptr<google::protobuf::Message> request(prototype->New());
                messages.fill(*request);
                send("/" + service->full_name() + "/" + method.name(),
                     request->SerializePartialAsString());
            }
        }
    }
    EXPECT_GT(sent, 1200U);
    EXPECT_NE(start("another").run_id(), "") << "the server works as before";
    restart();
    EXPECT_NE(history("another"), "") << "and so does what it stored";
}

INSTANTIATE_TEST_SUITE_P(File,
                         GarbageTest,
                         testing::Values(test::Backend::sqlite),
                         test::backend_name);

}  // namespace
}  // namespace holdfast::server::engine::tests
