#include "suites/store_load.hpp"

#include <atomic>
#include <utility>

#include "workers.hpp"
#include <fmt/core.h>

#include <holdfast/bench/latencies.hpp>
#include <holdfast/sql/schema.hpp>
#include <holdfast/store/catalogue.hpp>
#include <holdfast/store/execution.hpp>
#include <holdfast/store/history.hpp>
#include <holdfast/store/task_queue.hpp>

namespace holdfast::bench {
namespace {

using std::chrono::steady_clock;

// What runs weigh in a service that is not asked for much.
constexpr std::size_t info_bytes = 1024;
constexpr std::size_t state_bytes = 128;
constexpr std::size_t events_bytes = 512;
constexpr std::size_t task_bytes = 128;

constexpr int runs_per_client = 16;         // In progress, and updated in turn.
constexpr std::int64_t page_size = 10;      // Of what get_tasks reads,
constexpr std::int64_t queue_tasks = 1000;  // from a queue that holds as many.

store::Blob blob(std::size_t bytes) {
    return {.data = sql::Bytes(bytes, std::byte{0x5a}), .encoding = "Proto3"};
}

// The store's name for the one transaction that it is.
std::string_view operation_of(StoreWork work) noexcept {
    switch (work) {
        case StoreWork::create:
            return "CreateWorkflowExecution";
        case StoreWork::update:
            return "UpdateWorkflowExecution";
        case StoreWork::add_task:
            return "CreateTasks";
        case StoreWork::get_tasks:
            return "GetTasks";
    }
    return "";
}

}  // namespace

std::string_view to_string(StoreWork work) noexcept {
    switch (work) {
        case StoreWork::create:
            return "create";
        case StoreWork::update:
            return "update";
        case StoreWork::add_task:
            return "add_task";
        case StoreWork::get_tasks:
            return "get_tasks";
    }
    return "";
}

struct StoreLoad::Store {
    explicit Store(sql::Database& db) : shards(db), executions(shards), queues(db) {}

    store::Shards shards;
    store::Executions executions;
    store::TaskQueues queues;
};

// One host of the service: what it owns, and where it stands.
class StoreLoad::Client {
public:
    Client(Store& store, store::ShardId shard, std::int64_t first_task)
        : store_(store), lease_{.shard = shard, .range = store::RangeId{1}}, task_(first_task) {
        (void)store_.shards.get_or_create({.id = shard, .range = lease_.range});
        queue_.name = "queue";
    }

    void prepare(StoreWork work) {
        if (work == StoreWork::update) {
            runs_.reserve(runs_per_client);
            for (int i = 0; i < runs_per_client; ++i) {
                runs_.push_back(create());
            }
        }
        if (work == StoreWork::add_task || work == StoreWork::get_tasks) {
            store_.queues.create(queue_, {.range = lease_.range, .info = blob(task_bytes)});
        }
        if (work == StoreWork::get_tasks) {
            std::vector<store::QueueTask> tasks;
            tasks.reserve(queue_tasks);
            for (std::int64_t i = 0; i < queue_tasks; ++i) {
                tasks.push_back({.place = {.pass = 0, .id = ++task_}, .blob = blob(task_bytes)});
            }
            store_.queues.add(queue_, lease_.range, tasks);
        }
    }

    void work(StoreWork work, Random& random) {
        switch (work) {
            case StoreWork::create:
                (void)create();
                return;
            case StoreWork::update:
                update(runs_[next_run_++ % runs_.size()]);
                return;
            case StoreWork::add_task:
                store_.queues.add(
                    queue_,
                    lease_.range,
                    {{.place = {.pass = 0, .id = ++task_}, .blob = blob(task_bytes)}});
                return;
            case StoreWork::get_tasks: {
                const auto first = static_cast<std::int64_t>(random.below(queue_tasks - page_size));
                (void)store_.queues.read(
                    queue_, {.pass = 0, .id = task_ - queue_tasks + 1 + first}, page_size);
                return;
            }
        }
    }

private:
    struct Run {
        store::Mutation next;  // What it is, and will be.
        store::Branch branch;
        std::int64_t txn = 0;
    };

    store::Task task(sql::Timestamp fire = {}) {
        return {.key = {.fire = fire, .id = ++task_}, .blob = blob(task_bytes)};
    }

    Run create() {
        store::Snapshot made;
        made.workflow = {.ns = ns_, .workflow_id = fmt::format("workflow-{}", ++created_)};
        made.current = {.run = store::RunId::random(),
                        .create_request_id = "request",
                        .state = store::RunState::running,
                        .start_time = started_,
                        .request_ids = {{"request", store::started_event}}};
        made.record = {.next_event_id = 2, .db_record_version = 1, .state = blob(state_bytes)};
        made.info = blob(info_bytes);
        made.tasks[store::Category::transfer] = {task()};
        store_.executions.create({.lease = lease_, .snapshot = made});
        Run run;
        static_cast<store::RunWrite&>(run.next) = made;
        run.branch = store::History::new_branch(store::TreeId::random());
        return run;
    }

    void update(Run& run) {
        const std::int64_t first = run.next.record.next_event_id - 1;
        const std::int64_t previous = std::exchange(run.txn, ++task_);
        ++run.next.record.next_event_id;
        ++run.next.record.db_record_version;
        run.next.tasks[store::Category::transfer] = {task()};
        run.next.tasks[store::Category::timer] = {task(started_)};
        store_.executions.update({.lease = lease_,
                                  .mutation = run.next,
                                  .history = {{.branch = run.branch,
                                               .is_new_branch = previous == 0,
                                               .node = {.id = first,
                                                        .txn_id = run.txn,
                                                        .previous_txn_id = previous,
                                                        .events = blob(events_bytes)}}}});
    }

    Store& store_;
    store::ShardLease lease_;
    const store::NamespaceId ns_ = store::NamespaceId::random();
    store::TaskQueueKey queue_{.ns = ns_};
    const sql::Timestamp started_{std::chrono::microseconds{1'700'000'000'000'000}};
    std::int64_t task_;  // The last one.
    std::int64_t created_ = 0;
    std::vector<Run> runs_;
    std::size_t next_run_ = 0;
};

StoreLoad::StoreLoad(std::string url, sql::DatabaseOptions options, const std::stop_token& stop)
    : url_(std::move(url)), options_(std::move(options)) {
    options_.metrics = &metrics_;
    options_.name = "store";
    open(1);
    sql::schema_apply(*db_, store::schema_part(), {.stop = stop});
}

StoreLoad::~StoreLoad() = default;

void StoreLoad::open(int clients) {
    if (db_ && options_.connections == clients) {
        return;
    }
    crowd_ = {};
    store_.reset();
    db_.reset();
    options_.connections = clients;
    db_ = std::make_unique<sql::Database>(url_, options_);
    store_ = std::make_unique<Store>(*db_);
}

void StoreLoad::gather(StoreWork work, Sharing sharing, int count) {
    constexpr std::int64_t ids_per_client = 1'000'000'000;
    const bool here =
        crowd_.work == work && crowd_.sharing == sharing && std::ssize(crowd_.clients) == count;
    if (here) {
        return;
    }
    crowd_ = {.work = work, .sharing = sharing};
    crowd_.clients.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
        if (sharing == Sharing::own_shards || i == 0) {
            ++shards_;
        }
        crowd_.clients.push_back(
            std::make_unique<Client>(*store_, store::ShardId{shards_}, i * ids_per_client));
        crowd_.clients.back()->prepare(work);
    }
}

double StoreLoad::conflicts(StoreWork work) const {
    double all = 0;
    for (const std::string_view code : {"", "OC000", "OC001"}) {
        all += metrics_.value(
            "holdfast_sql_tx_conflicts_total",
            {{"operation", operation_of(work)}, {"db", options_.name}, {"occ_code", code}});
    }
    return all;
}

Work StoreLoad::run(StoreWork work,
                    Sharing sharing,
                    int clients,
                    std::chrono::nanoseconds time,
                    const std::stop_token& stop) {
    open(clients);
    gather(work, sharing, clients);
    Latencies latencies;
    std::atomic<std::size_t> next = 0;
    const sql::DriverStats before = db_->driver_stats();
    const double conflicts_before = conflicts(work);
    Work done = run_workers(clients, time, stop, [&](Random& random) {
        thread_local Client* mine = nullptr;  // Every round has threads of its own.
        if (mine == nullptr) {
            mine = crowd_.clients[next++].get();
        }
        const auto began = steady_clock::now();
        mine->work(work, random);
        latencies.add(steady_clock::now() - began);
    });
    const sql::DriverStats after = db_->driver_stats();
    const auto grown = [](std::int64_t from, std::int64_t to) {
        return static_cast<double>(to - from);
    };
    done.counts = {{"round_trips_per_tx", grown(before.round_trips, after.round_trips)},
                   {"statements_per_tx", grown(before.statements, after.statements)},
                   {"commits_per_tx", grown(before.commits, after.commits)},
                   {"retries_share", conflicts(work) - conflicts_before}};
    latencies.add_to(done.figures);
    return done;
}

}  // namespace holdfast::bench
