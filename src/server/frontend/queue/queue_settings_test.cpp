#include "frontend/queue/queue_settings.hpp"

#include <limits>
#include <optional>
#include <string>

#include "frontend/test/frontend_fixture.hpp"

#include <holdfast/store/catalogue.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/database.hpp>

namespace holdfast::server::frontend::tests {

namespace {

namespace enums = temporal::api::enums::v1;
using rpc::StatusCode;

class RightAway final : public Executor {
public:
    void post(const std::string& /*key*/, Job job) override { std::move(job)(); }
};

class QueueSettingsCalls : public FrontendTest {
protected:
    using Update = api::UpdateTaskQueueConfigRequest;

    QueueSettingsCalls() {
        add_queue_settings(table,
                           {.namespaces = namespaces,
                            .settings = settings,
                            .executor = executor,
                            .clock = clock,
                            .address = "host:7233"});
        add_task_queues(table,
                        std::make_shared<const FrontendParts>(FrontendParts{
                            .namespaces = namespaces,
                            .turns = turns,
                            .matching = matching,
                            .workers = workers,
                            .alarms = alarms,
                            .clock = clock,
                            .queue_settings = [this](const matching::QueueKey& queue) {
                                return settings.find(queue);
                            }}));
        table.open();
    }

    template <class Response, class Request>
    Response ask(const std::string& method, const Request& request) {
        refused_with.reset();
        Response response;
        auto call = std::make_shared<rpc::Call>(
            rpc::CallInfo{.method = workflow_service(method), .deadline = {}, .caller = {}},
            [&](rpc::Answer answer) {
                if (const auto* refusal = std::get_if<rpc::Refusal>(&answer)) {
                    refused_with = *refusal;
                } else {
                    EXPECT_TRUE(response.ParseFromString(std::get<std::string>(answer)));
                }
            });
        table.run(call, request.SerializeAsString());
        return response;
    }
    static Update about(enums::TaskQueueType type = enums::TASK_QUEUE_TYPE_ACTIVITY) {
        Update request;
        request.set_namespace_("home");
        request.set_identity("ann");
        request.set_task_queue("orders");
        request.set_task_queue_type(type);
        return request;
    }
    static Update with_rate(float rate) {
        Update request = about();
        request.mutable_update_queue_rate_limit()->mutable_rate_limit()->set_requests_per_second(
            rate);
        request.mutable_update_queue_rate_limit()->set_reason("too fast");
        return request;
    }
    void update(const Update& request) {
        ask<api::UpdateTaskQueueConfigResponse>("UpdateTaskQueueConfig", request);
        EXPECT_FALSE(refused_with) << refused_with->message;
    }
    std::string refusal_of(const Update& request) {
        ask<api::UpdateTaskQueueConfigResponse>("UpdateTaskQueueConfig", request);
        return refused_with ? refused_with->message : "(taken)";
    }
    api::DescribeTaskQueueResponse describe() {
        api::DescribeTaskQueueRequest request;
        request.set_namespace_("home");
        request.mutable_task_queue()->set_name("orders");
        request.set_task_queue_type(enums::TASK_QUEUE_TYPE_ACTIVITY);
        request.set_report_config(true);
        request.set_include_task_queue_status(true);
        return ask<api::DescribeTaskQueueResponse>("DescribeTaskQueue", request);
    }
    void poll_at(double tasks_per_second) {
        api::PollActivityTaskQueueRequest request;
        request.set_namespace_("home");
        request.mutable_task_queue()->set_name("orders");
        request.mutable_task_queue_metadata()->mutable_max_tasks_per_second()->set_value(
            tasks_per_second);
        deadline = clock.wall_now() + std::chrono::seconds{70};
        begin("PollActivityTaskQueue", request)->cancel();
    }

    holdfast::test::Database db{holdfast::test::Backend::sqlite, store::schema_part()};
    task_queues::Settings settings{*db, matching};
    RightAway executor;
    rpc::Dispatch table{log};
    std::optional<rpc::Refusal> refused_with;
};

TEST_F(QueueSettingsCalls, AnOperatorsRateRulesOverThatOfTheWorkerAndIsDescribed) {
    HOLDFAST_CHECK("server Q36");
    poll_at(5);
    EXPECT_EQ(describe().effective_rate_limit().rate_limit_source(),
              enums::RATE_LIMIT_SOURCE_WORKER);
    update(with_rate(2));
    const auto described = describe();
    EXPECT_EQ(described.effective_rate_limit().rate_limit_source(), enums::RATE_LIMIT_SOURCE_API);
    EXPECT_EQ(described.effective_rate_limit().requests_per_second(), 2.0F);
    EXPECT_EQ(described.task_queue_status().rate_per_second(), 2.0);
    const auto& rate = described.config().queue_rate_limit();
    EXPECT_EQ(rate.rate_limit().requests_per_second(), 2.0F);
    EXPECT_EQ(rate.metadata().reason(), "too fast");
    EXPECT_EQ(rate.metadata().update_identity(), "ann");
    EXPECT_TRUE(rate.metadata().has_update_time());
    EXPECT_EQ(matching.view({home_id, "orders", matching::QueueType::activity}).configured_rate,
              2.0);
}

TEST_F(QueueSettingsCalls, ARateThatIsTakenBackLeavesItsMetadata) {
    HOLDFAST_CHECK("server Q40");
    update(with_rate(2));
    Update request = about();
    request.mutable_update_queue_rate_limit()->set_reason("fast enough");
    update(request);
    const auto described = describe();
    EXPECT_EQ(described.effective_rate_limit().rate_limit_source(),
              enums::RATE_LIMIT_SOURCE_SYSTEM);
    EXPECT_FALSE(described.config().queue_rate_limit().has_rate_limit());
    EXPECT_EQ(described.config().queue_rate_limit().metadata().reason(), "fast enough");
}

TEST_F(QueueSettingsCalls, WeightsAreSetAndUnsetKeyByKey) {
    Update request = about(enums::TASK_QUEUE_TYPE_WORKFLOW);
    (*request.mutable_set_fairness_weight_overrides())["a"] = 2;
    (*request.mutable_set_fairness_weight_overrides())["b"] = 3;
    update(request);
    request = about(enums::TASK_QUEUE_TYPE_WORKFLOW);
    request.add_unset_fairness_weight_overrides("a");
    const auto response = ask<api::UpdateTaskQueueConfigResponse>("UpdateTaskQueueConfig", request);
    EXPECT_EQ(response.config().fairness_weight_overrides().size(), 1U);
    EXPECT_EQ(response.config().fairness_weight_overrides().at("b"), 3.0F);
    EXPECT_TRUE(describe().config().fairness_weight_overrides().empty()) << "of another type";
}

TEST_F(QueueSettingsCalls, AWorkflowQueueHasNoRate) {
    HOLDFAST_CHECK("server Q38");
    Update request = with_rate(1);
    request.set_task_queue_type(enums::TASK_QUEUE_TYPE_WORKFLOW);
    EXPECT_EQ(refusal_of(request), "Setting rate limit on workflow task queues is not allowed.");
    request.clear_update_queue_rate_limit();
    request.mutable_update_fairness_key_rate_limit_default();
    EXPECT_EQ(refusal_of(request),
              "Setting fairness key rate limit on workflow task queues is not allowed.");
}

TEST_F(QueueSettingsCalls, WhatMakesNoSenseIsRefused) {
    HOLDFAST_CHECK("server Q39");
    EXPECT_EQ(refusal_of(with_rate(-1)),
              "RequestsPerSecond for UpdateQueueRateLimit rate limit must be non-negative.");
    EXPECT_EQ(refusal_of(with_rate(std::numeric_limits<float>::quiet_NaN())),
              "RequestsPerSecond for UpdateQueueRateLimit rate limit must be non-negative.");
    Update request = with_rate(1);
    request.mutable_update_queue_rate_limit()->set_reason(std::string(1001, 'x'));
    EXPECT_EQ(refusal_of(request), "Reason field too long (max 1000 characters).");
    request = about();
    request.add_unset_fairness_weight_overrides("a");
    (*request.mutable_set_fairness_weight_overrides())["a"] = 1;
    EXPECT_EQ(refusal_of(request), "The weight of fairness key a is both set and unset.");
    for (int i = 0; i < 1001; ++i) {
        (*request.mutable_set_fairness_weight_overrides())[std::to_string(i)] = 1;
    }
    EXPECT_EQ(refusal_of(request), "More than 1000 fairness weight overrides.");
    for (const float weight : {0.0F, -1.0F, std::numeric_limits<float>::infinity()}) {
        request = about();
        (*request.mutable_set_fairness_weight_overrides())["a"] = weight;
        EXPECT_NE(refusal_of(request), "(taken)") << weight;
    }
    request = about(enums::TASK_QUEUE_TYPE_UNSPECIFIED);
    EXPECT_NE(refusal_of(request), "(taken)");
    request = about();
    request.clear_task_queue();
    EXPECT_EQ(refusal_of(request), "missing task queue name");
    EXPECT_EQ(describe().config().ByteSizeLong(), 0U) << "nothing was stored";
}

TEST_F(QueueSettingsCalls, NoMoreWeightsThanAThousandAreKept) {
    HOLDFAST_CHECK("server Q39");
    Update request = about();
    for (int i = 0; i < 1000; ++i) {
        (*request.mutable_set_fairness_weight_overrides())[std::to_string(i)] = 1;
    }
    update(request);
    request = about();
    (*request.mutable_set_fairness_weight_overrides())["one more"] = 1;
    EXPECT_EQ(refusal_of(request), "More than 1000 fairness weight overrides.");
    EXPECT_EQ(describe().config().fairness_weight_overrides().size(), 1000U);
}

TEST_F(QueueSettingsCalls, ARateOfKeysIsNotBuilt) {
    Update request = about();
    auto& rate = *request.mutable_update_fairness_key_rate_limit_default();
    rate.mutable_rate_limit()->set_requests_per_second(-1);
    EXPECT_EQ(refusal_of(request),
              "RequestsPerSecond for UpdateFairnessKeyRateLimitDefault rate limit must be "
              "non-negative.");
    rate.mutable_rate_limit()->set_requests_per_second(1);
    refusal_of(request);
    ASSERT_TRUE(refused_with);
    EXPECT_EQ(refused_with->code, StatusCode::unimplemented);
}

TEST_F(QueueSettingsCalls, SettingsOutliveTheProcess) {
    Update request = with_rate(2);
    (*request.mutable_set_fairness_weight_overrides())["a"] = 2;
    update(request);
    const matching::QueueKey queue{home_id, "orders", matching::QueueType::activity};
    matching::Matching later(clock, alarms);
    task_queues::Settings again(*db, later);
    EXPECT_EQ(again.find(queue).ByteSizeLong(), 0U);
    again.open(home_id);
    EXPECT_EQ(again.find(queue).DebugString(), settings.find(queue).DebugString());
    EXPECT_EQ(later.view(queue).configured_rate, 2.0);
}

TEST_F(QueueSettingsCalls, AQueueHasOnePartitionPerType) {
    HOLDFAST_CHECK("server Q11");
    api::ListTaskQueuePartitionsRequest request;
    request.set_namespace_("home");
    request.mutable_task_queue()->set_name("orders");
    const auto response =
        ask<api::ListTaskQueuePartitionsResponse>("ListTaskQueuePartitions", request);
    ASSERT_EQ(response.activity_task_queue_partitions_size(), 1);
    ASSERT_EQ(response.workflow_task_queue_partitions_size(), 1);
    EXPECT_EQ(response.workflow_task_queue_partitions(0).key(), "orders");
    EXPECT_EQ(response.workflow_task_queue_partitions(0).owner_host_name(), "host:7233");
    request.clear_task_queue();
    ask<api::ListTaskQueuePartitionsResponse>("ListTaskQueuePartitions", request);
    EXPECT_EQ(refused_with->message, "taskQueue is not set");
}

}  // namespace

}  // namespace holdfast::server::frontend::tests
