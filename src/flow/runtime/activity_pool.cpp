#include "runtime/activity_pool.hpp"

#include <algorithm>
#include <utility>

#include "runtime/activity_pool_shared.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/log.hpp>
#include <holdfast/flow_engine/limits.hpp>

namespace holdfast::flow {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds renewal_pause{1'000};
constexpr std::chrono::milliseconds undecided_pause{100};

FailureInfo failure_now() {
    try {
        throw;
    } catch (const Failure& failure) {
        return failure.info();
    } catch (const std::exception& error) {
        return Failure("", error.what()).info();
    } catch (...) {
        return Failure("", "something that is no std::exception was thrown").info();
    }
}

ActivityAnswer answered(const ActivityKey& key, std::variant<Payload, FailureInfo> result) {
    return ActivityAnswer{.event = key.event, .result = std::move(result)};
}

std::variant<Payload, FailureInfo> bounded(Payload result) {
    if (result.json.size() > payload_bytes_max) {
        return FailureInfo{
            .type = "LimitExceeded",
            .message = fmt::format(
                "the result has {} bytes; at most {}", result.json.size(), payload_bytes_max),
            .retryable = false};
    }
    return result;
}

// Best effort: if the database cannot be reached, the lease runs out instead.
void give_back(Provider& provider,
               Logger& logger,
               const ClaimedActivity& claim,
               milliseconds delay,
               bool ignore_attempt) noexcept {
    try {
        provider.abandon_activity(claim.task.key, claim.token, delay, ignore_attempt);
    } catch (const std::exception& error) {
        logger.warn("an activity could not be given back",
                    {{"instance", claim.task.key.instance}, {"error", error.what()}});
    }
}

// Trouble of the database, not of the activity: whether its writes are there is unknown, or they
// are not, and it has to be looked at again.
bool undecided(const Error& error) {
    return error.outcome() == holdfast::Outcome::unknown || error.code() == Code::unavailable ||
           error.code() == Code::conflict || error.code() == Code::exhausted ||
           error.code() == Code::deadline;
}

}  // namespace

namespace {

// For the metric.
std::string_view outcome_of(bool cancelled, bool transactional, const ActivityAnswer* answer) {
    if (cancelled) {
        return "cancelled";
    }
    if (answer == nullptr) {
        return transactional ? "committed" : "given_back";
    }
    return std::holds_alternative<Payload>(answer->result) ? "success" : "error";
}

}  // namespace

ActivityPool::ActivityPool(Provider& provider,
                           const Registry& registry,
                           const RuntimeOptions& options,
                           std::shared_ptr<Meters> meters,
                           Hooks hooks)
    : shared_(std::make_shared<Shared>(
          provider, registry, options, std::move(meters), std::move(hooks))) {
    if (!options.manual) {
        for (int i = 0; i < options.activity_threads; ++i) {
            spawn();
        }
    }
}

ActivityPool::~ActivityPool() = default;

void ActivityPool::spawn() {
    threads_.emplace_back([shared = shared_] { work(shared); });
}

bool ActivityPool::reserve(const ActivityTask& task) {
    Shared& shared = *shared_;
    if (shared.options.activity_threads == 0 || !shared.options.tags.admits(task.tag) ||
        shared.registry.find_activity(task.name) == nullptr) {
        return false;
    }
    const std::lock_guard lock(shared.mutex);
    if (shared.closed || shared.taken() >= shared.allowed()) {
        return false;
    }
    if (task.must_begin && shared.free_threads() == 0) {
        shared.wants_thread = true;
        return false;
    }
    ++shared.reserved;
    shared.promised += task.must_begin ? 1 : 0;
    return true;
}

void ActivityPool::unreserve(const ActivityTask& task) {
    const std::lock_guard lock(shared_->mutex);
    shared_->release(task);
}

void ActivityPool::add(ClaimedActivity claim, bool reserved) {
    Shared& shared = *shared_;
    auto job = std::make_shared<Job>(std::move(claim));
    {
        const std::lock_guard lock(shared.mutex);
        if (reserved) {
            shared.release(job->claim.task);
        }
        if (reserved || !job->claim.task.must_begin || shared.free_threads() > 0) {
            shared.enqueue(std::move(job));
            return;
        }
        shared.wants_thread = true;
    }
    give_back(shared.provider, shared.logger, job->claim, milliseconds{0}, true);
}

milliseconds ActivityPool::lease() const {
    return shared_->lease.get();
}

int ActivityPool::room() const {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->closed || shared_->options.activity_threads == 0) {
        return 0;
    }
    return std::max(0, shared_->allowed() - shared_->taken());
}

int ActivityPool::free_threads() const {
    const std::lock_guard lock(shared_->mutex);
    return shared_->free_threads();
}

std::size_t ActivityPool::sessions() const {
    const std::lock_guard lock(shared_->mutex);
    std::set<std::string_view> distinct;
    for (const auto& [key, job] : shared_->held) {
        if (const std::optional<std::string>& session = job->claim.task.session) {
            distinct.insert(*session);
        }
    }
    return distinct.size();
}

void ActivityPool::cancel(const ActivityKey& key) {
    Shared& shared = *shared_;
    const std::lock_guard lock(shared.mutex);
    const auto found = shared.held.find(key);
    if (found == shared.held.end()) {
        return;
    }
    const std::shared_ptr<Job> job = found->second;
    shared.ask_to_stop(*job);
    if (!job->running && !job->ended) {
        std::erase(shared.queue, job);
        shared.held.erase(found);
        shared.quiet.notify_all();
    }
}

void ActivityPool::settled(const ActivityKey& key, const Uuid& token) {
    Shared& shared = *shared_;
    bool full = false;
    {
        const std::lock_guard lock(shared.mutex);
        const auto found = shared.held.find(key);
        if (found != shared.held.end() && found->second->claim.token == token) {
            full = shared.taken() >= shared.allowed();
            shared.held.erase(found);
        }
        shared.quiet.notify_all();
    }
    if (full) {
        shared.hooks.room();
    }
}

// --- running
// ---------------------------------------------------------------------------------------

void ActivityPool::work(const std::shared_ptr<Shared>& shared) {
    for (;;) {
        std::shared_ptr<Job> job;
        {
            std::unique_lock lock(shared->mutex);
            shared->work.wait(lock, [&] { return shared->stopping || shared->has_work(); });
            if (shared->stopping) {
                return;
            }
            job = std::move(shared->queue.front());
            shared->queue.pop_front();
            shared->last_taken = steady_clock::now();
            job->running = true;
            job->thread = std::this_thread::get_id();
            ++shared->running;
        }
        run(*shared, job);
        const std::lock_guard lock(shared->mutex);
        if (job->given_up) {
            shared->stuck.erase(job->thread);  // Its place was filled by another thread.
            shared->quiet.notify_all();
            return;
        }
    }
}

bool ActivityPool::run_one() {
    std::shared_ptr<Job> job;
    {
        const std::lock_guard lock(shared_->mutex);
        if (shared_->queue.empty()) {
            return false;
        }
        job = std::move(shared_->queue.front());
        shared_->queue.pop_front();
        job->running = true;
        ++shared_->running;
    }
    run(*shared_, job);
    return true;
}

void ActivityPool::run(Shared& shared, const std::shared_ptr<Job>& job) {
    const Steady began = steady_clock::now();
    const ClaimedActivity& claim = job->claim;
    const Registry::Activity* const activity = shared.registry.find_activity(claim.task.name);
    if (claim.attempt > shared.options.max_attempts) {
        ++shared.meters->poisoned;
        finish(shared,
               job,
               answered(claim.task.key,
                        FailureInfo{.kind = FailureKind::poison,
                                    .type = "Poison",
                                    .message = fmt::format(
                                        "the activity {}#{} was tried {} times (at most {})",
                                        claim.task.name,
                                        claim.task.key.event,
                                        claim.attempt - 1,
                                        shared.options.max_attempts),
                                    .retryable = false}),
               false);
        return;
    }
    if (activity == nullptr) {
        const int doublings = std::clamp(claim.attempt - 1, 0, 6);
        give_back(shared.provider,
                  shared.logger,
                  claim,
                  std::min(shared.options.unregistered_first * (1 << doublings),
                           shared.options.unregistered_max),
                  false);
        finish(shared, job, std::nullopt, true);
        return;
    }
    std::optional<ActivityAnswer> answer;
    bool committed = false;
    try {
        answer = answer_of(shared, *job);
        committed = !answer.has_value();
    } catch (const Error& error) {
        committed = activity->transactional && undecided(error);
        if (committed) {  // No answer: if the row is still ours, it is run again.
            give_back(shared.provider, shared.logger, claim, undecided_pause, false);
        } else {
            answer = answered(claim.task.key, failure_now());
        }
    } catch (...) {
        answer = answered(claim.task.key, failure_now());
    }
    ++shared.meters->activities;
    const auto took =
        std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - began);
    shared.meters->ran(
        claim,
        outcome_of(job->stop.stop_requested(), committed, answer ? &*answer : nullptr),
        took);
    {
        const std::lock_guard lock(shared.mutex);
        shared.mean_us += (static_cast<double>(took.count()) - shared.mean_us) / 16.0;
        shared.mean_us = std::max(shared.mean_us, 1.0);
    }
    finish(shared, job, std::move(answer), committed);
}

// A note that is not kept costs the next attempt some work, and this one nothing. One that is
// refused says that nobody wants the result any more.
void ActivityPool::beat(Shared& shared, Job& job, const Payload& progress) {
    const ClaimedActivity& claim = job.claim;
    try {
        const bool kept = shared.provider.heartbeat(claim.task.key, claim.token, progress);
        // Whoever was asked already may be here because of that, under the lock.
        if (!kept && !job.stop.stop_requested()) {
            const std::lock_guard lock(shared.mutex);
            shared.ask_to_stop(job);
        }
    } catch (const std::exception& error) {
        shared.meters->failed("heartbeat");
        shared.logger.warn("a heartbeat could not be kept",
                           {{"instance", claim.task.key.instance}, {"error", error.what()}});
    }
}

// Empty: it was transactional, and its answer is committed or was not wanted.
std::optional<ActivityAnswer> ActivityPool::answer_of(Shared& shared, Job& job) {
    const ClaimedActivity& claim = job.claim;
    const Registry::Activity& activity = *shared.registry.find_activity(claim.task.name);
    ActivityContext context(
        claim, job.stop.get_token(), shared.logger, [&](const Payload& progress) {
            beat(shared, job, progress);
        });
    if (!activity.transactional) {
        return answered(claim.task.key, bounded(activity.run(context, nullptr, claim.task.input)));
    }
    const bool done =
        shared.provider.end_activity_in_transaction(claim.task.key, claim.token, [&](sql::Tx& tx) {
            Payload result = activity.run(context, &tx, claim.task.input);
            return answered(claim.task.key, bounded(std::move(result)));
        });
    if (done) {
        shared.hooks.mailed(claim.task.key.instance);
    }
    return std::nullopt;
}

void ActivityPool::finish(Shared& shared,
                          const std::shared_ptr<Job>& job,
                          std::optional<ActivityAnswer> answer,
                          bool committed) {
    bool free = false;
    {
        const std::lock_guard lock(shared.mutex);
        const bool stalled = shared.stalled();
        --shared.running;
        job->running = false;
        job->ended = true;
        if (committed || job->given_up) {
            shared.let_go(job);
        }
        shared.quiet.notify_all();
        if (job->given_up) {
            return;
        }
        free = (shared.wants_thread || stalled) && shared.free_threads() > 0;
        shared.wants_thread = shared.wants_thread && !free;
    }
    if (committed || free) {
        shared.hooks.room();
    }
    if (committed) {
        return;
    }
    shared.hooks.ended(ActivityEnd{
        .key = job->claim.task.key, .token = job->claim.token, .answer = std::move(answer)});
}

// --- keeping
// ----------------------------------------------------------------------------------------

// Also gives others what waits here behind something long.
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
        const Steady done = steady_clock::now();
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
        give_back(shared.provider, shared.logger, job->claim, milliseconds{0}, true);
    }
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
        return;  // Whoever stops the pool gives up what is left.
    }
    for (auto it = shared.held.begin(); it != shared.held.end();) {
        Job& job = *it->second;
        const bool overdue = job.running && job.stop.stop_requested() &&
                             now - job.stopped_at >= shared.options.cancel_grace;
        if (!overdue ||
            std::cmp_greater_equal(shared.stuck.size(), shared.options.stuck_activities_max)) {
            ++it;
            continue;
        }
        job.given_up = true;
        shared.stuck.insert(job.thread);
        shared.logger.warn(
            "an activity does not end after it was cancelled",
            {{"instance", job.claim.task.key.instance}, {"activity", job.claim.task.name}});
        it = shared.held.erase(it);
        spawn();
    }
}

void ActivityPool::close() {
    const std::lock_guard lock(shared_->mutex);
    shared_->closed = true;
}

bool ActivityPool::idle() const {
    const std::lock_guard lock(shared_->mutex);
    return shared_->held.empty();
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
        // Before they are given back: a look that is under way may bring them here once more.
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
        give_back(shared.provider, shared.logger, job->claim, milliseconds{0}, true);
    }
    for (std::thread& thread : threads) {
        if (stuck.contains(thread.get_id())) {
            thread.detach();  // It touches nothing of ours any more.
        } else {
            thread.join();  // It may be about to say how its activity has ended.
        }
    }
    return report;
}

}  // namespace holdfast::flow
