// The activity pool apart from running activities: leases, time limits, and its own stop.
#include <algorithm>
#include <utility>

#include "runtime/activity_pool.hpp"
#include "runtime/activity_pool_shared.hpp"

#include <holdfast/base/assert.hpp>
#include <holdfast/base/log.hpp>

namespace holdfast::flow {
namespace {

constexpr std::chrono::milliseconds renewal_pause{1'000};

}  // namespace

// Also gives queued activities back that wait here behind long ones.
void ActivityPool::tick(Steady now) {
    Shared& shared = *shared_;
    std::vector<std::pair<ActivityKey, Uuid>> due;
    std::vector<Steady> since;
    {
        const std::lock_guard lock(shared.mutex);
        const auto pause =
            std::min<std::chrono::nanoseconds>(renewal_pause, shared.options.activity_lease / 3);
        for (const auto& [key, job] : shared.held) {
            if (now - job->renewed >= pause) {
                due.emplace_back(key, job->claim.token);
                since.push_back(job->renewed);
            }
        }
    }
    if (!due.empty()) {
        const std::vector<bool> kept = shared.provider.renew_activities(due, shared.lease.get());
        const Steady done = shared.clock.steady_now();
        const std::lock_guard lock(shared.mutex);
        for (std::size_t i = 0; i < due.size(); ++i) {
            shared.lease.looked_after(done - since[i], done);
            const auto found = shared.held.find(due[i].first);
            if (found == shared.held.end() || found->second->claim.token != due[i].second) {
                continue;
            }
            if (kept[i]) {
                found->second->renewed = now;
            } else if (!found->second->ended) {
                shared.ask_to_stop(*found->second);
            }
        }
    }
    std::vector<std::shared_ptr<Job>> waiting;
    {
        const std::lock_guard lock(shared.mutex);
        waiting = shared.take_what_waits();
    }
    for (const std::shared_ptr<Job>& job : waiting) {
        shared.give_back(job->claim, milliseconds{0}, true);
    }
    end_what_overran(now);
    const int free_before = free_threads();
    give_up_on_stuck(now);
    if (free_threads() > free_before) {
        shared.hooks.room();
    }
}

// A plain function cannot be killed. Its result is fenced off, and another thread takes its place.
void ActivityPool::give_up_on_stuck(Steady now) {
    Shared& shared = *shared_;
    const std::lock_guard lock(shared.mutex);
    if (shared.stopping) {
        return;  // stop() gives up what is left.
    }
    const auto overdue = [&](const Job& job) {
        return job.running && job.stop.stop_requested() &&
               now - job.stopped_at >= shared.options.cancel_grace &&
               std::cmp_less(shared.stuck.size(), shared.options.stuck_activities_max);
    };
    const auto give_up = [&](Job& job) {
        job.given_up = true;
        shared.stuck.insert(job.thread);
        shared.logger.warn(
            "an activity does not end after it was asked to stop",
            {{"instance", job.claim.task.key.instance}, {"activity", job.claim.task.name}});
        spawn();
    };
    std::erase_if(shared.held, [&](const auto& one) {
        const bool gone = overdue(*one.second);
        if (gone) {
            give_up(*one.second);
        }
        return gone;
    });
    shared.quiet.notify_all();
    std::erase_if(shared.overdue, [&](const std::shared_ptr<Job>& job) {
        const bool gone = overdue(*job);
        if (gone) {
            give_up(*job);
        }
        return gone;
    });
}

// Ends attempts that exceed their time limit, even if their code still runs. A transactional one
// is only asked to stop: its row is locked until it ends, and then it is rolled back.
void ActivityPool::end_what_overran(Steady now) {
    Shared& shared = *shared_;
    std::vector<std::shared_ptr<Job>> late;
    {
        const std::lock_guard lock(shared.mutex);
        for (const auto& [key, job] : shared.held) {
            if (job->running && !job->ended && job->overran(now)) {
                late.push_back(job);
            }
        }
        std::erase_if(late, [&](const std::shared_ptr<Job>& job) {
            shared.ask_to_stop(*job);
            const auto* const activity = shared.registry.find_activity(job->claim.task.name);
            return activity == nullptr || activity->transactional;
        });
        for (const std::shared_ptr<Job>& job : late) {
            job->timed_out = true;
            shared.let_go(job);
            shared.overdue.insert(job);
        }
    }
    for (const std::shared_ptr<Job>& job : late) {
        const std::optional<milliseconds> limit = job->limit();
        HOLDFAST_ASSERT(limit.has_value());  // It has run for longer.
        shared.hooks.ended(end_of(shared, *job, timeout_failure(*limit)));
    }
}

Steady ActivityPool::next_limit() const {
    const std::lock_guard lock(shared_->mutex);
    Steady next = Steady::max();
    for (const auto& [key, job] : shared_->held) {
        if (const auto limit = job->limit(); limit && job->running && !job->stop.stop_requested()) {
            next = std::min(next, job->began + *limit);
        }
    }
    return next;
}

void ActivityPool::close() {
    const std::lock_guard lock(shared_->mutex);
    shared_->closed = true;
}

bool ActivityPool::idle() const {
    const std::lock_guard lock(shared_->mutex);
    return shared_->held.empty();
}

void ActivityPool::wait_idle(std::chrono::nanoseconds most) {
    std::unique_lock lock(shared_->mutex);
    shared_->quiet.wait_for(lock, most, [this] { return shared_->held.empty(); });
}

DrainReport ActivityPool::stop(milliseconds grace) {
    Shared& shared = *shared_;
    DrainReport report;
    std::vector<std::shared_ptr<Job>> left;
    std::vector<std::thread> threads;
    std::set<std::thread::id> stuck;
    {
        std::unique_lock lock(shared.mutex);
        shared.closed = true;
        for (const auto& [key, job] : shared.held) {
            job->drained = true;
            shared.ask_to_stop(*job);
            if (!job->running && !job->ended) {
                left.push_back(job);
            }
        }
        shared.queue.clear();
        shared.quiet.wait_for(lock, grace, [&] { return shared.running == 0; });
        for (const auto& [key, job] : shared.held) {
            if (job->running) {
                job->given_up = true;
                shared.stuck.insert(job->thread);
                left.push_back(job);
            }
        }
        for (const std::shared_ptr<Job>& job : shared.overdue) {
            job->given_up = true;
            shared.stuck.insert(job->thread);
        }
        shared.overdue.clear();
        report.activities_abandoned += std::exchange(shared.handed_back, 0);
        // Before they are given back: a poll that is under way may claim them here once more.
        for (const std::shared_ptr<Job>& job : left) {
            shared.let_go(job);
            const bool first = shared.left_behind.insert(job->claim.task.key).second;
            report.activities_abandoned += first ? 1 : 0;
        }
        shared.stopping = true;
        shared.work.notify_all();
        threads = std::exchange(threads_, {});
        stuck = shared.stuck;
    }
    report.activities_stuck = static_cast<int>(stuck.size());
    for (const std::shared_ptr<Job>& job : left) {
        shared.give_back(job->claim, milliseconds{0}, true);
    }
    for (std::thread& thread : threads) {
        if (stuck.contains(thread.get_id())) {
            thread.detach();  // It uses nothing of this object any more.
        } else {
            thread.join();  // It may be about to report how its activity has ended.
        }
    }
    shared.detach_provider();
    return report;
}

}  // namespace holdfast::flow
