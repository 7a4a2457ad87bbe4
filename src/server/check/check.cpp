#include <holdfast/server/check.hpp>

#include <optional>
#include <utility>

#include "engine/codec.hpp"
#include "history/checker/checker.hpp"
#include <fmt/format.h>
#include <temporal/api/enums/v1/workflow.pb.h>

#include <holdfast/store/execution.hpp>
#include <holdfast/store/history.hpp>
#include <holdfast/store/namespace.hpp>
#include <holdfast/store/shard.hpp>
#include <holdfast/store/visibility.hpp>

namespace holdfast::server {

namespace {

constexpr std::int64_t namespaces_of_a_page = 100;
constexpr std::int64_t runs_of_a_page = 500;
constexpr std::int64_t nodes_of_a_page = 256;
constexpr store::ShardId the_shard{1};

class Reader {
public:
    explicit Reader(sql::Database& db)
        : namespaces_(db),
          visibility_(db),
          shards_(db),
          executions_(shards_),
          histories_(shards_) {}

    // Calls `each` with every namespace until it returns false.
    template <class Each>
    void for_namespaces(const Each& each) const {
        store::NamespaceId after{};
        while (true) {
            const auto page = namespaces_.list(namespaces_of_a_page, after);
            for (const store::Namespace& one : page) {
                if (!each(one)) {
                    return;
                }
                after = one.id;
            }
            if (static_cast<std::int64_t>(page.size()) < namespaces_of_a_page) {
                return;
            }
        }
    }

    [[nodiscard]] std::int64_t count(store::NamespaceId ns) const {
        return visibility_.count(ns, "");
    }

    // False if `seen` said so.
    bool check(const store::Namespace& in,
               const std::function<bool(const CheckedRun&)>& seen) const {
        std::optional<store::VisibilityPlace> after;
        do {
            const auto page = visibility_.list(in.id, "", runs_of_a_page, after);
            for (const store::VisibilityRecord& record : page.records) {
                const auto checked = check(in, record);
                if (checked && !seen(*checked)) {
                    return false;
                }
            }
            after = page.next;
        } while (after);
        return true;
    }

private:
    // Nothing if the run is gone.
    [[nodiscard]] std::optional<CheckedRun> check(const store::Namespace& in,
                                                  const store::VisibilityRecord& record) const {
        CheckedRun checked{.namespace_name = in.name,
                           .workflow_id = record.workflow_id,
                           .run_id = record.run.text(),
                           .problems = {}};
        const auto execution = executions_.find(
            the_shard, {.ns = in.id, .workflow_id = record.workflow_id}, record.run);
        if (execution) {
            try {
                const engine::StoredRun stored = engine::decode_run(*execution);
                check_history(stored, checked);
                check_list_entry(stored, in, record, checked);
            } catch (const store::DamagedData& damage) {
                checked.problems.emplace_back(damage.what());
            }
            if (!checked.problems.empty() && !is_there(in, record)) {
                return std::nullopt;  // Deleted while it was read.
            }
        } else if (is_there(in, record)) {
            checked.problems.emplace_back("lists have the run, and it has no state");
        } else {
            return std::nullopt;
        }
        return checked;
    }

    [[nodiscard]] bool is_there(const store::Namespace& in,
                                const store::VisibilityRecord& record) const {
        return visibility_.find(in.id, record.run).has_value();
    }

    // Up to what the state knows: later events were added since it was read.
    void check_history(const engine::StoredRun& stored, CheckedRun& checked) const {
        const std::int64_t next = stored.run.next_event_id();
        history::Checker checker;
        store::ReadRequest request{.shard = the_shard,
                                   .branch = stored.meta.branch,
                                   .max_event = next,
                                   .page_size = nodes_of_a_page};
        try {
            do {
                const auto page = histories_.read(request);
                for (const store::Node& node : page.nodes) {
                    temporal::api::history::v1::History batch;
                    engine::decode(node.events, batch);
                    for (const auto& event : batch.events()) {
                        checker.see(event);
                        ++checked.events;
                    }
                }
                request.after = page.next;
            } while (request.after);
        } catch (const store::NotFound&) {
            checked.problems.emplace_back("the history of the run is missing");
            return;
        }
        checked.problems = checker.problems();
        if (checked.events != next - 1) {
            checked.problems.push_back(fmt::format(
                "the state has seen {} events, and the history has {}", next - 1, checked.events));
        }
    }

    // The entry is written in the transaction of the run, but it was read before the run.
    void check_list_entry(const engine::StoredRun& stored,
                          const store::Namespace& in,
                          const store::VisibilityRecord& record,
                          CheckedRun& checked) const {
        const auto status_in = [](const store::VisibilityRecord& entry) {
            return static_cast<int>(entry.status);
        };
        const int status = stored.run.status();
        if (status_in(record) == status) {
            return;
        }
        const auto now = visibility_.find(in.id, record.run);
        if (!now || now->version > stored.meta.version || status_in(*now) == status) {
            return;
        }
        checked.problems.push_back(
            fmt::format("lists say {}, and its state says {}",
                        temporal::api::enums::v1::WorkflowExecutionStatus_Name(status_in(*now)),
                        temporal::api::enums::v1::WorkflowExecutionStatus_Name(status)));
    }

    store::Namespaces namespaces_;
    store::Visibility visibility_;
    store::Shards shards_;
    store::Executions executions_;
    store::History histories_;
};

}  // namespace

std::int64_t count_runs(sql::Database& db) {
    const Reader reader(db);
    std::int64_t runs = 0;
    reader.for_namespaces([&](const store::Namespace& one) {
        runs += reader.count(one.id);
        return true;
    });
    return runs;
}

void check_runs(sql::Database& db, const std::function<bool(const CheckedRun&)>& seen) {
    const Reader reader(db);
    reader.for_namespaces([&](const store::Namespace& one) { return reader.check(one, seen); });
}

}  // namespace holdfast::server
