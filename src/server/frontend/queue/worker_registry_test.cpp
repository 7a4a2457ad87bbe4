#include <string>
#include <vector>

#include "frontend/test/frontend_fixture.hpp"

#include <holdfast/testing/check.hpp>

namespace holdfast::server::frontend::tests {

namespace {

namespace enums = temporal::api::enums::v1;

using rpc::StatusCode;

class WorkerRegistryCalls : public FrontendTest {
protected:
    void report(const std::string& key,
                const std::string& queue = "orders",
                enums::WorkerStatus status = enums::WORKER_STATUS_RUNNING) {
        api::RecordWorkerHeartbeatRequest request;
        request.set_namespace_("home");
        auto& heartbeat = *request.add_worker_heartbeat();
        heartbeat.set_worker_instance_key(key);
        heartbeat.set_task_queue(queue);
        heartbeat.set_status(status);
        heartbeat.mutable_host_info()->set_host_name("host of " + key);
        call<api::RecordWorkerHeartbeatResponse>("RecordWorkerHeartbeat", request);
    }
    api::ListWorkersRequest listing(const std::string& query = {}) {
        api::ListWorkersRequest request;
        request.set_namespace_("home");
        request.set_query(query);
        return request;
    }
    std::vector<std::string> listed(const api::ListWorkersRequest& request) {
        std::vector<std::string> keys;
        const auto response = call<api::ListWorkersResponse>("ListWorkers", request);
        for (const auto& worker : response.workers()) {
            keys.push_back(worker.worker_instance_key());
        }
        return keys;
    }
    std::int64_t count(const std::string& query = {}) {
        api::CountWorkersRequest request;
        request.set_namespace_("home");
        request.set_query(query);
        return call<api::CountWorkersResponse>("CountWorkers", request).count();
    }
    using Keys = std::vector<std::string>;
};

TEST_F(WorkerRegistryCalls, AWorkerThatReportsIsListedInBothForms) {
    HOLDFAST_CHECK("server Q50");
    report("ann");
    const auto response = call<api::ListWorkersResponse>("ListWorkers", listing());
    ASSERT_EQ(response.workers_size(), 1);
    ASSERT_EQ(response.workers_info_size(), 1);
    EXPECT_EQ(response.workers(0).host_name(), "host of ann");
    EXPECT_EQ(response.workers_info(0).worker_heartbeat().task_queue(), "orders");
    api::DescribeWorkerRequest request;
    request.set_namespace_("home");
    request.set_worker_instance_key("ann");
    EXPECT_EQ(call<api::DescribeWorkerResponse>("DescribeWorker", request)
                  .worker_info()
                  .worker_heartbeat()
                  .worker_instance_key(),
              "ann");
}

TEST_F(WorkerRegistryCalls, AWorkerThatHasShutDownOrIsSilentIsNotListed) {
    HOLDFAST_CHECK("server Q51");
    HOLDFAST_CHECK("server F86");
    report("ann");
    report("bob");
    report("cid");
    report("ann", "orders", enums::WORKER_STATUS_SHUTDOWN);
    EXPECT_EQ(listed(listing()), (Keys{"bob", "cid"}));
    api::ShutdownWorkerRequest shutdown;
    shutdown.set_namespace_("home");
    shutdown.mutable_worker_heartbeat()->set_worker_instance_key("bob");
    shutdown.mutable_worker_heartbeat()->set_status(enums::WORKER_STATUS_SHUTDOWN);
    call<api::ShutdownWorkerResponse>("ShutdownWorker", shutdown);
    EXPECT_EQ(listed(listing()), Keys{"cid"});
    clock.advance(std::chrono::minutes{5});
    EXPECT_EQ(listed(listing()), Keys{});
}

TEST_F(WorkerRegistryCalls, PagesFollowTheKeys) {
    HOLDFAST_CHECK("server Q53");
    for (const char* key : {"cid", "ann", "bob"}) {
        report(key);
    }
    auto request = listing();
    request.set_page_size(1);
    Keys keys;
    do {
        const auto page = call<api::ListWorkersResponse>("ListWorkers", request);
        ASSERT_EQ(page.workers_size(), 1);
        keys.push_back(page.workers(0).worker_instance_key());
        request.set_next_page_token(page.next_page_token());
    } while (!request.next_page_token().empty());
    EXPECT_EQ(keys, (Keys{"ann", "bob", "cid"}));
    request.set_next_page_token("random");
    EXPECT_EQ(refused("ListWorkers", request),
              rpc::Refusal(StatusCode::invalid_argument, "invalid next_page_token"));
}

TEST_F(WorkerRegistryCalls, AnUnknownWorkerIsNotFoundAndCountsAgreeWithLists) {
    HOLDFAST_CHECK("server Q54");
    api::DescribeWorkerRequest request;
    request.set_namespace_("home");
    EXPECT_EQ(refused("DescribeWorker", request).code, StatusCode::invalid_argument);
    request.set_worker_instance_key("ann");
    EXPECT_EQ(refused("DescribeWorker", request),
              rpc::Refusal(StatusCode::not_found, "Worker ann not found"));
    report("ann", "orders");
    report("bob", "payments");
    report("cid", "payments");
    for (const char* query : {"", "TaskQueue = 'payments'", "TaskQueue IS NULL"}) {
        EXPECT_EQ(count(query), std::ssize(listed(listing(query)))) << query;
    }
    EXPECT_EQ(count("TaskQueue = 'payments'"), 2);
    EXPECT_EQ(refused("ListWorkers", listing("TaskQueue =")).code, StatusCode::invalid_argument);
}

TEST_F(WorkerRegistryCalls, WorkersOfTheServersOwnQueuesAreListedIfAskedFor) {
    report("ann", "temporal-sys-per-ns-tq");
    EXPECT_EQ(listed(listing()), Keys{});
    EXPECT_EQ(count(), 0);
    auto request = listing();
    request.set_include_system_workers(true);
    EXPECT_EQ(listed(request), Keys{"ann"});
}

TEST_F(WorkerRegistryCalls, CommandsToWorkersAreNotEnabled) {
    HOLDFAST_CHECK("server Q55");
    HOLDFAST_CHECK("server F87");
    EXPECT_EQ(refused("FetchWorkerConfig", api::FetchWorkerConfigRequest()),
              rpc::Refusal(StatusCode::unimplemented, "FetchWorkerConfig command is not enabled."));
    EXPECT_EQ(
        refused("UpdateWorkerConfig", api::UpdateWorkerConfigRequest()),
        rpc::Refusal(StatusCode::unimplemented, "UpdateWorkerConfig command is not enabled."));
}

}  // namespace

}  // namespace holdfast::server::frontend::tests
