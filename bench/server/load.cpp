#include "load.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "worker.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/uuid.hpp>
#include <holdfast/bench/latencies.hpp>

namespace holdfast::server_bench {
namespace {

using Clock = std::chrono::steady_clock;

namespace enums = temporal::api::enums::v1;
namespace rpc = temporal::api::workflowservice::v1;

// For what is in flight to end, and for all that waits or is open.
constexpr std::chrono::seconds flight_patience{60};
constexpr std::chrono::minutes patience{10};

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

void wait_for(Link& link,
              const std::function<bool()>& enough,
              const LoadOptions& options,
              std::chrono::nanoseconds time = patience) {
    if (!link.run(enough, Deadline::after(time), options.stop)) {
        throw Error(Code::unavailable,
                    Outcome::unknown,
                    "the server did not end the workflows of the benchmark in time");
    }
}

// Clients that each have one workflow at a time.
class Clients {
public:
    Clients(Link& link, const Plan& plan, WorkerPlace place, int in_flight)
        : link_(link),
          plan_(plan),
          place_(std::move(place)),
          in_flight_(in_flight),
          prefix_(Uuid::v4().text()) {}

    // Starts workflows while `more` says so. With `results`, a client waits for the end of each.
    void begin(std::function<bool()> more, bool results) {
        more_ = std::move(more);
        results_ = results;
        for (int i = 0; i < in_flight_ && (i == 0 || more_()); ++i) {
            start();
        }
    }

    [[nodiscard]] bool idle() const noexcept { return busy_ == 0; }
    [[nodiscard]] std::int64_t done() const noexcept { return done_; }
    [[nodiscard]] std::int64_t started() const noexcept { return number_; }
    bench::Latencies& latencies() { return latencies_; }
    [[nodiscard]] std::string id_of(std::int64_t number) const {
        return fmt::format("{}-{}", prefix_, number);
    }

private:
    struct Client {
        std::string id;
        std::string run;
        Clock::time_point begin;
        int sent = 0;  // Signals or updates.
    };

    void start();
    void proceed(Client client);
    void signal(Client client);
    void update(Client client);
    void await(Client client, std::string token);
    void end(const Client& client);

    Link& link_;
    const Plan plan_;
    const WorkerPlace place_;
    const int in_flight_;
    const std::string prefix_;
    std::function<bool()> more_;
    bool results_ = true;
    std::int64_t number_ = 0;
    std::int64_t busy_ = 0;
    std::int64_t done_ = 0;
    bench::Latencies latencies_;
};

void Clients::start() {
    Client client{.id = id_of(number_++), .run = {}, .begin = Clock::now()};
    ++busy_;
    rpc::StartWorkflowExecutionRequest request;
    request.set_namespace_(place_.name_space);
    request.set_workflow_id(client.id);
    request.mutable_workflow_type()->set_name(std::string(plan_.name));
    request.mutable_task_queue()->set_name(place_.task_queue);
    request.set_request_id(client.id);
    request.set_identity("holdfast-bench");
    set_payload(*request.mutable_input());
    const auto done = [this, client = std::move(client)](
                          const grpc::Status& status,
                          rpc::StartWorkflowExecutionResponse& answer) mutable {
        require(status, "StartWorkflowExecution");
        client.run = answer.run_id();
        proceed(std::move(client));
    };
    link_.call<rpc::StartWorkflowExecutionResponse>(
        "StartWorkflowExecution", std::move(request), done);
}

void Clients::proceed(Client client) {
    if (!results_) {
        end(client);
    } else if (plan_.kind == PlanKind::signals && client.sent < plan_.steps) {
        signal(std::move(client));
    } else if (plan_.kind == PlanKind::update && client.sent < plan_.steps) {
        update(std::move(client));
    } else {
        await(std::move(client), {});
    }
}

void Clients::signal(Client client) {
    rpc::SignalWorkflowExecutionRequest request;
    request.set_namespace_(place_.name_space);
    request.mutable_workflow_execution()->set_workflow_id(client.id);
    request.mutable_workflow_execution()->set_run_id(client.run);
    request.set_signal_name("go");
    request.set_request_id(fmt::format("{}-{}", client.id, ++client.sent));
    set_payload(*request.mutable_input());
    const auto done = [this, client = std::move(client)](
                          const grpc::Status& status,
                          rpc::SignalWorkflowExecutionResponse&) mutable {
        require(status, "SignalWorkflowExecution");
        proceed(std::move(client));
    };
    link_.call<rpc::SignalWorkflowExecutionResponse>(
        "SignalWorkflowExecution", std::move(request), done);
}

rpc::UpdateWorkflowExecutionRequest update_request(const std::string& name_space,
                                                   const std::string& workflow,
                                                   const std::string& id) {
    rpc::UpdateWorkflowExecutionRequest request;
    request.set_namespace_(name_space);
    request.mutable_workflow_execution()->set_workflow_id(workflow);
    request.mutable_wait_policy()->set_lifecycle_stage(
        enums::UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED);
    auto& update = *request.mutable_request();
    update.mutable_meta()->set_update_id(id);
    update.mutable_input()->set_name("go");
    set_payload(*update.mutable_input()->mutable_args());
    return request;
}

void Clients::update(Client client) {
    const std::string id = fmt::format("{}-{}", client.id, ++client.sent);
    rpc::UpdateWorkflowExecutionRequest request = update_request(place_.name_space, client.id, id);
    const auto done = [this, client = std::move(client)](
                          const grpc::Status& status,
                          rpc::UpdateWorkflowExecutionResponse&) mutable {
        require(status, "UpdateWorkflowExecution");
        proceed(std::move(client));
    };
    link_.call<rpc::UpdateWorkflowExecutionResponse>(
        "UpdateWorkflowExecution", std::move(request), done);
}

// As the SDKs do: a read that waits for the closing event.
void Clients::await(Client client, std::string token) {
    rpc::GetWorkflowExecutionHistoryRequest request;
    request.set_namespace_(place_.name_space);
    request.mutable_execution()->set_workflow_id(client.id);
    request.mutable_execution()->set_run_id(client.run);
    request.set_wait_new_event(true);
    request.set_history_event_filter_type(enums::HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT);
    request.set_next_page_token(std::move(token));
    const auto done = [this, client = std::move(client)](
                          const grpc::Status& status,
                          rpc::GetWorkflowExecutionHistoryResponse& answer) mutable {
        if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
            await(std::move(client), {});
            return;
        }
        require(status, "GetWorkflowExecutionHistory");
        if (answer.history().events().empty() && !answer.next_page_token().empty()) {
            await(std::move(client), answer.next_page_token());
            return;
        }
        const auto& events = answer.history().events();
        if (events.empty() ||
            events.rbegin()->event_type() != enums::EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED) {
            throw Error(Code::internal,
                        Outcome::not_applied,
                        fmt::format("workflow {} did not end as completed", client.id));
        }
        end(client);
    };
    link_.call<rpc::GetWorkflowExecutionHistoryResponse>(
        "GetWorkflowExecutionHistory", std::move(request), done);
}

void Clients::end(const Client& client) {
    latencies_.add(Clock::now() - client.begin);
    ++done_;
    --busy_;
    if (more_()) {
        start();
    }
}

WorkerPlace place_of(const LoadOptions& options) {
    return {.name_space = options.name_space, .task_queue = "bench-" + Uuid::v4().text()};
}

double read(const std::function<double()>& figure) {
    return figure ? figure() : 0;
}

// Ends workflows of `open_plan`, so many calls at a time.
class Ender {
public:
    Ender(Link& link, const Clients& clients, const WorkerPlace& place)
        : link_(link), clients_(clients), place_(place) {}

    void begin(int calls) {
        for (int i = 0; i < calls; ++i) {
            next();
        }
    }

private:
    void next() {
        if (number_ >= clients_.started()) {
            return;
        }
        rpc::SignalWorkflowExecutionRequest request;
        request.set_namespace_(place_.name_space);
        request.mutable_workflow_execution()->set_workflow_id(clients_.id_of(number_++));
        request.set_signal_name("go");
        link_.call<rpc::SignalWorkflowExecutionResponse>(
            "SignalWorkflowExecution",
            std::move(request),
            [this](const grpc::Status& status, rpc::SignalWorkflowExecutionResponse&) {
                require(status, "SignalWorkflowExecution");
                next();
            });
    }

    Link& link_;
    const Clients& clients_;
    const WorkerPlace& place_;
    std::int64_t number_ = 0;
};

}  // namespace

bench::Work run_plan(Link& link,
                     const Plan& plan,
                     const LoadOptions& options,
                     std::chrono::nanoseconds time) {
    const WorkerPlace place = place_of(options);
    Worker worker(link, place, plan, options.in_flight);
    Clients clients(link, plan, place, options.in_flight);
    worker.start();
    Clients first(link, plan, place, 1);
    first.begin([] { return false; }, true);
    wait_for(link, [&] { return first.idle(); }, options, flight_patience);
    if (options.warm) {
        options.warm();
    }
    const auto begin = Clock::now();
    clients.begin([&] { return Clock::now() - begin < time; }, true);
    wait_for(link, [&] { return clients.idle(); }, options, time + flight_patience);
    bench::Work work{.operations = static_cast<double>(clients.done()),
                     .seconds = seconds_since(begin),
                     .counts = {}};
    clients.latencies().add_to(work.figures);
    worker.stop(options.stop);
    return work;
}

bench::Work run_backlog(Link& link, const LoadOptions& options, std::int64_t count) {
    const WorkerPlace place = place_of(options);
    const Plan& hello = plans().front();
    Clients clients(link, hello, place, options.in_flight);
    const auto begin = Clock::now();
    clients.begin([&] { return clients.started() < count; }, false);
    wait_for(link, [&] { return clients.idle(); }, options);
    const double starts_per_s = static_cast<double>(clients.done()) / seconds_since(begin);
    const double resident = read(options.resident_bytes);

    Worker worker(link, place, hello, options.in_flight);
    const auto drain = Clock::now();
    worker.start();
    wait_for(link, [&] { return worker.completed() >= clients.started(); }, options);
    bench::Work work{.operations = static_cast<double>(worker.completed()),
                     .seconds = seconds_since(drain),
                     .counts = {},
                     .figures = {{"starts_per_s", starts_per_s}}};
    if (options.resident_bytes) {
        work.figures.push_back({"waiting_resident_mb", resident / 1e6});
    }
    worker.stop(options.stop);
    return work;
}

bench::Work run_open(Link& link, const LoadOptions& options, std::int64_t count) {
    const WorkerPlace place = place_of(options);
    Worker worker(link, place, open_plan, options.in_flight);
    Clients clients(link, open_plan, place, options.in_flight);
    worker.start();
    const double resident_before = read(options.resident_bytes);
    const auto begin = Clock::now();
    clients.begin([&] { return clients.started() < count; }, false);
    wait_for(link, [&] { return clients.idle() && worker.begun() >= clients.started(); }, options);
    const auto opened = static_cast<double>(clients.started());
    bench::Work work{
        .operations = opened, .seconds = seconds_since(begin), .counts = {}, .figures = {}};

    if (options.resident_bytes) {
        const double resident = options.resident_bytes();
        work.figures.push_back({"open_resident_mb", resident / 1e6});
        work.figures.push_back({"bytes_per_open", (resident - resident_before) / opened});
    }
    if (options.cpu_seconds) {
        constexpr std::chrono::seconds rest{1};
        const double cpu_before = options.cpu_seconds();
        (void)link.run([] { return false; }, Deadline::after(rest), options.stop);
        work.figures.push_back(
            {"open_cpu_percent", 100 * (options.cpu_seconds() - cpu_before) / 1.0});
    }
    Ender ender(link, clients, place);
    ender.begin(options.in_flight);
    wait_for(link, [&] { return worker.completed() >= clients.started(); }, options);
    worker.stop(options.stop);
    return work;
}

namespace {

// One call, in its turn.
template <class Reply, class Request>
grpc::Status call_now(Link& link,
                      const char* method,
                      Request request,
                      const std::stop_token& stop) {
    grpc::Status answered;
    bool over = false;
    link.call<Reply>(method, std::move(request), [&](const grpc::Status& status, Reply&) {
        answered = status;
        over = true;
    });
    (void)link.run([&] { return over; }, Deadline::after(2 * brief_timeout), stop);
    return answered;
}

}  // namespace

void require_namespace(Link& link, const std::string& name, const std::stop_token& stop) {
    rpc::RegisterNamespaceRequest registration;
    registration.set_namespace_(name);
    constexpr int day_seconds = 86'400;
    registration.mutable_workflow_execution_retention_period()->set_seconds(day_seconds);
    const grpc::Status registered = call_now<rpc::RegisterNamespaceResponse>(
        link, "RegisterNamespace", std::move(registration), stop);
    if (registered.error_code() != grpc::StatusCode::ALREADY_EXISTS) {
        require(registered, "RegisterNamespace");
    }
    // Some servers look for new namespaces every few seconds only.
    const auto deadline = Deadline::after(brief_timeout);
    for (;;) {
        rpc::DescribeTaskQueueRequest request;
        request.set_namespace_(name);
        request.mutable_task_queue()->set_name("holdfast-bench");
        request.set_task_queue_type(enums::TASK_QUEUE_TYPE_WORKFLOW);
        const grpc::Status status = call_now<rpc::DescribeTaskQueueResponse>(
            link, "DescribeTaskQueue", std::move(request), stop);
        if (status.ok() || deadline.remaining() <= std::chrono::nanoseconds{0}) {
            require(status, "DescribeTaskQueue");
            return;
        }
        constexpr std::chrono::milliseconds pause{200};
        (void)link.run([] { return false; }, Deadline::after(pause), stop);
    }
}

bool has_updates(Link& link, const std::string& name, const std::stop_token& stop) {
    const grpc::Status status = call_now<rpc::UpdateWorkflowExecutionResponse>(
        link,
        "UpdateWorkflowExecution",
        update_request(name, "holdfast-bench-" + Uuid::v4().text(), "1"),
        stop);
    return status.error_code() == grpc::StatusCode::NOT_FOUND;
}

}  // namespace holdfast::server_bench
