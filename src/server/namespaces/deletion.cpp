#include "namespaces/deletion.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "engine/turns.hpp"
#include "executor/alarms.hpp"
#include "executor/executor.hpp"
#include "history/times.hpp"
#include "matching/matching.hpp"
#include "namespaces/namespaces.hpp"

#include <holdfast/base/clock.hpp>
#include <holdfast/base/log.hpp>
#include <holdfast/base/uuid.hpp>
#include <holdfast/store/visibility.hpp>

namespace holdfast::server::namespaces {

namespace {

constexpr std::size_t namespaces_at_once = 100;
constexpr std::chrono::hours look_again{1};  // While a namespace waits for its end.

// One walk after another through the runs of a namespace.
struct Walk {
    std::string namespace_id;
    store::NamespaceId ns;

    // Changed by one job at a time.
    std::optional<store::VisibilityPlace> after{};
    std::set<Uuid> asked{};        // Runs that go as soon as their relatives have been told.
    std::set<Uuid> still_asked{};  // Those that this walk has seen again.
    bool any = false;              // This walk has seen a run.
    bool was_empty = false;        // The one before saw none.

    // Of the runs that are being deleted now.
    std::mutex mutex{};
    std::size_t left = 0;
    bool progress = false;
    std::vector<Uuid> deferred{};
};
using WalkPtr = std::shared_ptr<Walk>;

struct FoundRun {
    std::string workflow_id;
    store::RunId run;
};

}  // namespace

struct Deletion::State : std::enable_shared_from_this<Deletion::State> {
    State(const DeletionParts& of_parts, const DeletionLimits& of_limits)
        : parts(of_parts), limits(of_limits) {}

    void begin(const std::string& namespace_id);
    void step(const WalkPtr& walk);
    void look(const WalkPtr& walk);
    void remove(const WalkPtr& walk, std::vector<FoundRun> found);
    void remove_one(const WalkPtr& walk, const FoundRun& found, engine::Turn& turn);
    void one_done(const WalkPtr& walk);
    void end_walk(const WalkPtr& walk);
    void finish(const WalkPtr& walk);
    void step_after(const WalkPtr& walk, std::chrono::nanoseconds pause);

    const DeletionParts parts;
    const DeletionLimits limits;
    std::atomic<bool> stopped = false;
    std::mutex mutex;
    std::set<std::string> under_way;
};

Deletion::Deletion(const DeletionParts& parts, const DeletionLimits& limits)
    : state_(std::make_shared<State>(parts, limits)) {}

Deletion::~Deletion() {
    stop();
}

void Deletion::stop() noexcept {
    state_->stopped = true;
}

void Deletion::start() {
    std::string last;
    for (;;) {
        const std::vector<NamespacePtr> some =
            state_->parts.namespaces.list(namespaces_at_once, last);
        if (some.empty()) {
            return;
        }
        for (const NamespacePtr& held : some) {
            if (held->info.has_delete_after()) {
                begin(held->id);
            }
            last = held->id;
        }
    }
}

void Deletion::begin(const std::string& namespace_id) {
    state_->begin(namespace_id);
}

void Deletion::State::begin(const std::string& namespace_id) {
    const std::optional<Uuid> id = Uuid::parse(namespace_id);
    {
        const std::lock_guard lock(mutex);
        if (!id || !under_way.insert(namespace_id).second) {
            return;
        }
    }
    auto walk = std::make_shared<Walk>();
    walk->namespace_id = namespace_id;
    walk->ns = {*id};
    step(walk);
}

void Deletion::State::step_after(const WalkPtr& walk, std::chrono::nanoseconds pause) {
    if (stopped) {
        return;
    }
    parts.alarms.set(parts.clock.steady_now() + pause, [weak = weak_from_this(), walk] {
        if (const auto state = weak.lock()) {
            state->step(walk);
        }
    });
}

void Deletion::State::step(const WalkPtr& walk) {
    if (stopped) {
        return;
    }
    parts.executor.post("deletion of " + walk->namespace_id, [state = shared_from_this(), walk] {
        if (state->stopped) {
            return;
        }
        try {
            state->look(walk);
        } catch (const std::exception& error) {
            state->parts.log.warn("namespace not deleted; trying again",
                                  {{"namespace", walk->namespace_id}, {"error", error.what()}});
            state->step_after(walk, state->limits.long_pause);
        }
    });
}

void Deletion::State::look(const WalkPtr& walk) {
    const store::Visibility runs(parts.db);
    const store::VisibilityPage page = runs.list(walk->ns, "", limits.runs_at_once, walk->after);
    walk->after = page.next;
    std::vector<FoundRun> found;
    for (const store::VisibilityRecord& record : page.records) {
        walk->any = true;
        if (walk->asked.contains(record.run.value)) {
            walk->still_asked.insert(record.run.value);
        } else {
            found.push_back({.workflow_id = record.workflow_id, .run = record.run});
        }
    }
    if (found.empty()) {
        end_walk(walk);
    } else {
        remove(walk, std::move(found));
    }
}

void Deletion::State::remove(const WalkPtr& walk, std::vector<FoundRun> found) {
    walk->left = found.size();
    for (FoundRun& run : found) {
        const engine::WorkflowKey key{.namespace_id = walk->namespace_id,
                                      .workflow_id = run.workflow_id};
        parts.turns.in_turn(
            key, [state = shared_from_this(), walk, run = std::move(run)](engine::Turn& turn) {
                if (state->stopped) {
                    return;
                }
                try {
                    state->remove_one(walk, run, turn);
                } catch (const std::exception& error) {
                    state->parts.log.warn("run of a deleted namespace not deleted; trying again",
                                          {{"workflow", run.workflow_id}, {"error", error.what()}});
                }
                state->one_done(walk);
            });
    }
}

void Deletion::State::remove_one(const WalkPtr& walk, const FoundRun& found, engine::Turn& turn) {
    const std::string run_id = found.run.text();
    if (turn.remove(run_id)) {  // There is none: what is listed is left from a crash.
        store::Visibility(parts.db).remove(walk->ns, found.run);
    }
    const auto still = turn.find(run_id);
    const bool deferred = std::holds_alternative<const history::state::Run*>(still);
    const std::lock_guard lock(walk->mutex);
    walk->progress = true;
    if (deferred) {
        walk->deferred.push_back(found.run.value);
    }
}

void Deletion::State::one_done(const WalkPtr& walk) {
    {
        const std::lock_guard lock(walk->mutex);
        if (--walk->left != 0) {
            return;
        }
    }
    for (const Uuid& run : std::exchange(walk->deferred, {})) {
        walk->still_asked.insert(run);
    }
    end_walk(walk);
}

// Of a page; and of the walk, if there is no other page.
void Deletion::State::end_walk(const WalkPtr& walk) {
    if (walk->after) {
        step_after(walk, limits.pause);
        return;
    }
    walk->asked = std::exchange(walk->still_asked, {});
    const bool empty = !std::exchange(walk->any, false);
    const bool progress = std::exchange(walk->progress, false);
    if (empty && std::exchange(walk->was_empty, true)) {
        finish(walk);
        return;
    }
    walk->was_empty = empty;
    step_after(walk, progress ? limits.pause : limits.long_pause);
}

void Deletion::State::finish(const WalkPtr& walk) {
    const NamespacePtr held = parts.namespaces.find_id(walk->namespace_id);
    if (held) {
        const auto left = history::time_of(held->info.delete_after()) - parts.clock.wall_now();
        if (left > std::chrono::nanoseconds{0}) {
            step_after(walk, std::min<std::chrono::nanoseconds>(left, look_again));
            return;
        }
        parts.namespaces.remove(walk->namespace_id);
        parts.log.info("namespace deleted", {{"namespace", held->name}});
    }
    parts.matching.forget(walk->namespace_id);
    const std::lock_guard lock(mutex);
    under_way.erase(walk->namespace_id);
}

}  // namespace holdfast::server::namespaces
