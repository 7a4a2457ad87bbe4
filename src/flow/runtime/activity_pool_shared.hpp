// What the pool of activities shares with its threads, which may outlive it.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/activity_pool.hpp"

#include <holdfast/base/clock.hpp>
#include <holdfast/base/log.hpp>

namespace holdfast::flow {

struct ActivityPool::Job {
    Job(ClaimedActivity what, Steady now) : claim(std::move(what)), claimed(now) {}
    ClaimedActivity claim;
    // Smaller ones come first: what was asked for earlier, or goes ahead of it.
    Moment rank =
        claim.task.must_begin ? Moment::min() : claim.queued.value_or(claim.now) - claim.task.ahead;
    std::stop_source stop;
    const Steady claimed;
    Steady renewed = claimed;
    Steady stopped_at{};  // When it was asked to stop.
    bool running = false;
    std::thread::id thread{};  // That runs it.
    bool ended = false;        // Has run; its answer is on its way.
    bool given_up = false;     // Whatever it still returns is ignored.
    bool drained = false;      // Asked to stop because the process does.
    // It took longer than an attempt may, and that was its end: what it still returns is void.
    bool timed_out = false;
    Steady began{};  // When a thread took it.

    // How long an attempt may take; empty: as long as it needs.
    [[nodiscard]] std::optional<milliseconds> limit() const {
        const std::optional<ActivityRetry>& retry = claim.task.retry;
        return retry && retry->per_try_ms ? std::optional(milliseconds{*retry->per_try_ms})
                                          : std::nullopt;
    }
    [[nodiscard]] bool overran(Steady now) const {
        const std::optional<milliseconds> most = limit();
        return most && now - began >= *most;
    }
};

struct ActivityPool::Shared {
    Shared(Provider& p,
           const Registry& r,
           const RuntimeOptions& o,
           std::shared_ptr<Meters> m,
           std::shared_ptr<Unserved> u,
           Hooks h)
        : provider(p),
          registry(r),
          options(o),
          meters(std::move(m)),
          unserved(std::move(u)),
          hooks(std::move(h)),
          clock(o.clock != nullptr ? *o.clock : system_clock()),
          logger(o.logger != nullptr ? *o.logger : null_logger()),
          lease(o.activity_lease) {}

    Provider& provider;
    const Registry registry;
    const RuntimeOptions options;
    const std::shared_ptr<Meters> meters;
    const std::shared_ptr<Unserved> unserved;
    const Hooks hooks;
    const Clock& clock;
    Logger& logger;
    LeaseLength lease;

    mutable std::mutex mutex;
    std::condition_variable_any work;
    std::condition_variable quiet;
    std::deque<std::shared_ptr<Job>> queue;
    std::map<ActivityKey, std::shared_ptr<Job>> held;
    std::set<std::shared_ptr<Job>> overdue;  // Timed out, and still running.
    int handed_back = 0;  // Attempts that failed because the process stops: others run them.
    std::set<ActivityKey> left_behind;  // Given back by stop(): a late poll may claim it again.
    int reserved = 0;
    int promised = 0;  // Of those, how many must begin at once.
    int running = 0;
    std::set<std::thread::id> stuck;  // Threads whose activity was given up and has not ended.
    bool closed = false;
    bool stopping = false;
    bool wants_thread = false;  // The store has one that must begin at once and could not here.
    double mean_us = 1'000.0;   // Of the last activities.
    Steady last_taken = clock.steady_now();  // From the queue, by a thread.

    // Apart from `mutex`, which is held while stop callbacks run, and those may send heartbeats.
    std::mutex provider_mutex;
    std::condition_variable provider_left;
    int provider_calls = 0;
    bool provider_detached = false;

    // A process claims about this much work ahead, so that short activities need few claims and
    // long ones are left to other workers.
    static constexpr std::chrono::microseconds work_in_hand{50'000};
    static constexpr double in_hand_per_thread_max = 16.0;
    // All threads are busy with something long: what waits here could be begun elsewhere.
    static constexpr std::chrono::milliseconds stalled_after{1'000};
    [[nodiscard]] bool stalled() const {
        return !options.manual && idle_threads() <= 0 &&
               clock.steady_now() - last_taken >= stalled_after;
    }
    [[nodiscard]] int allowed() const {
        if (stalled()) {
            return std::max(options.activity_threads, 1);
        }
        const double per_thread = std::clamp(
            static_cast<double>(work_in_hand.count()) / mean_us, 1.0, in_hand_per_thread_max);
        return static_cast<int>(per_thread * std::max(options.activity_threads, 1));
    }
    // Calls the provider from an activity's thread. Nothing happens if stop() has left the thread
    // behind: the provider may be destroyed.
    template <class Body>
    void with_provider(const Body& body) {
        {
            const std::lock_guard lock(provider_mutex);
            if (provider_detached) {
                return;
            }
            ++provider_calls;
        }
        struct Leave {
            Shared& shared;
            ~Leave() {
                const std::lock_guard lock(shared.provider_mutex);
                --shared.provider_calls;
                shared.provider_left.notify_all();
            }
        };
        const Leave leave{*this};
        body();
    }
    // Waits for calls under way.
    void detach_provider() {
        std::unique_lock lock(provider_mutex);
        provider_detached = true;
        provider_left.wait(lock, [this] { return provider_calls == 0; });
    }
    // Best effort: if the database cannot be reached, the lease runs out instead.
    void give_back(const ClaimedActivity& claim,
                   milliseconds delay,
                   bool ignore_attempt) const noexcept {
        try {
            provider.abandon_activity(claim.task.key, claim.token, delay, ignore_attempt);
        } catch (const std::exception& error) {
            logger.warn("an activity could not be given back",
                        {{"instance", claim.task.key.instance}, {"error", error.what()}});
        }
    }
    [[nodiscard]] int taken() const { return static_cast<int>(held.size()) + reserved; }
    // Threads without work, but for those that a place is reserved for.
    [[nodiscard]] int idle_threads() const {
        return options.activity_threads - (running - static_cast<int>(stuck.size()));
    }
    [[nodiscard]] int free_threads() const {
        return std::max(0, idle_threads() - static_cast<int>(queue.size()) - reserved);
    }
    // Whether a thread may take the next one. A thread stays free for each one that must begin at
    // once.
    [[nodiscard]] bool has_work() const {
        return !queue.empty() &&
               (promised == 0 || queue.front()->claim.task.must_begin || promised < idle_threads());
    }
    void enqueue(std::shared_ptr<Job> job) {
        auto place = queue.end();
        while (place != queue.begin() && (*std::prev(place))->rank > job->rank) {
            --place;
        }
        held[job->claim.task.key] = job;
        queue.insert(place, std::move(job));
        work.notify_one();
    }
    void release(const ActivityTask& task) {
        --reserved;
        if (task.must_begin) {
            --promised;
            work.notify_all();
        }
    }
    // Queued activities, if none will begin here soon. Those of sessions stay.
    [[nodiscard]] std::vector<std::shared_ptr<Job>> take_what_waits() {
        std::vector<std::shared_ptr<Job>> taken_out;
        if (!stalled()) {
            return taken_out;
        }
        std::erase_if(queue, [&](const std::shared_ptr<Job>& job) {
            if (job->claim.task.session || job->claim.task.must_begin) {
                return false;
            }
            taken_out.push_back(job);
            return true;
        });
        for (const std::shared_ptr<Job>& job : taken_out) {
            let_go(job);
        }
        return taken_out;
    }
    // Unless another claim has taken its place.
    void let_go(const std::shared_ptr<Job>& job) {
        const auto found = held.find(job->claim.task.key);
        if (found != held.end() && found->second == job) {
            held.erase(found);
            quiet.notify_all();
        }
    }
    void ask_to_stop(Job& job) {
        if (!job.stop.stop_requested()) {
            job.stopped_at = clock.steady_now();
            job.stop.request_stop();
        }
    }
};

}  // namespace holdfast::flow
