#include "runtime/activity_pool.hpp"

#include <algorithm>
#include <utility>

#include "runtime/activity_pool_shared.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/log.hpp>
#include <holdfast/base/random.hpp>
#include <holdfast/flow_engine/limits.hpp>

namespace holdfast::flow {
namespace {

constexpr std::chrono::milliseconds undecided_pause{100};

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

// A failure of the database, not of the activity: its writes are not applied, or the outcome is
// unknown, and it has to be checked again.
bool undecided(const Error& error) {
    return error.outcome() == holdfast::Outcome::unknown || error.code() == Code::unavailable ||
           error.code() == Code::conflict || error.code() == Code::exhausted ||
           error.code() == Code::deadline;
}

// For the metric.
std::string_view outcome_of(bool cancelled, const ActivityEnd* end) {
    if (cancelled) {
        return "cancelled";
    }
    if (end == nullptr) {
        return "committed";
    }
    if (end->again) {
        return "retried";
    }
    const auto& answer = end->answer;
    return answer && std::holds_alternative<Payload>(answer->result) ? "success" : "error";
}

double random_unit() {
    constexpr double steps = 1U << 20U;
    return static_cast<double>(thread_random().below(1U << 20U)) / steps;
}

FailureInfo poisoned(const ClaimedActivity& claim, int max_attempts) {
    return FailureInfo{.kind = FailureKind::poison,
                       .type = "Poison",
                       .message = fmt::format("the activity {}#{} was tried {} times (at most {})",
                                              claim.task.name,
                                              claim.task.key.event,
                                              claim.attempt - 1,
                                              max_attempts),
                       .retryable = false};
}

}  // namespace

ActivityPool::ActivityPool(Provider& provider,
                           const Registry& registry,
                           const RuntimeOptions& options,
                           std::shared_ptr<Meters> meters,
                           std::shared_ptr<Unserved> unserved,
                           Hooks hooks)
    : shared_(std::make_shared<Shared>(
          provider, registry, options, std::move(meters), std::move(unserved), std::move(hooks))) {
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
    auto job = std::make_shared<Job>(std::move(claim), shared.clock.steady_now());
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
    shared.give_back(job->claim, milliseconds{0}, true);
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
            shared->last_taken = shared->clock.steady_now();
            job->running = true;
            job->began = shared->last_taken;
            job->thread = std::this_thread::get_id();
            ++shared->running;
        }
        run(*shared, job);
        const std::lock_guard lock(shared->mutex);
        if (job->given_up) {
            shared->stuck.erase(job->thread);  // Another thread has taken its place.
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
        job->began = shared_->clock.steady_now();
        ++shared_->running;
    }
    run(*shared_, job);
    return true;
}

// Why it must end without another attempt; empty if it may begin. An attempt that reported its
// failure did not end its process: only the others count towards poison.
std::optional<FailureInfo> ActivityPool::refusal(Shared& shared, const ClaimedActivity& claim) {
    if (claim.attempt - 1 - claim.failures >= shared.options.max_attempts) {
        ++shared.meters->poisoned;
        return poisoned(claim, shared.options.max_attempts);
    }
    return total_exceeded(claim);
}

ActivityEnd ActivityPool::end_of(const Shared& shared,
                                 const Job& job,
                                 std::variant<Payload, FailureInfo> result) {
    const auto took =
        std::chrono::duration_cast<milliseconds>(shared.clock.steady_now() - job.claimed);
    return end_of_attempt(job.claim, std::move(result), took, random_unit());
}

void ActivityPool::run(Shared& shared, const std::shared_ptr<Job>& job) {
    const ClaimedActivity& claim = job->claim;
    const Registry::Activity* const activity = shared.registry.find_activity(claim.task.name);
    if (std::optional<FailureInfo> why = refusal(shared, claim)) {
        ActivityEnd end{.key = claim.task.key, .token = claim.token};
        end.answer = ActivityAnswer{.event = claim.task.key.event, .result = std::move(*why)};
        if (claim.attempt > 2) {
            end.answer->attempt = claim.attempt - 1;
        }
        finish(shared, job, std::move(end), false);
        return;
    }
    if (activity == nullptr) {
        leave(shared, claim);
        finish(shared, job, std::nullopt, false);
        return;
    }
    std::optional<ActivityEnd> end;
    bool threw = false;
    try {
        end = end_of_run(shared, *job);
    } catch (const Error& error) {
        threw = !activity->transactional || !undecided(error);
        if (threw) {
            end = end_of(shared, *job, failure_now());
        } else {  // No answer: if the claim still holds, it runs again.
            shared.with_provider([&] { shared.give_back(claim, undecided_pause, false); });
        }
    } catch (...) {
        threw = true;
        end = end_of(shared, *job, failure_now());
    }
    ++shared.meters->activities;
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(
        shared.clock.steady_now() - job->began);
    shared.meters->ran(claim, outcome_of(job->stop.stop_requested(), end ? &*end : nullptr), took);
    {
        const std::lock_guard lock(shared.mutex);
        shared.mean_us += (static_cast<double>(took.count()) - shared.mean_us) / 16.0;
        shared.mean_us = std::max(shared.mean_us, 1.0);
    }
    finish(shared, job, std::move(end), threw);
}

// No such activity here. Best effort, as for any that is given back.
void ActivityPool::leave(Shared& shared, const ClaimedActivity& claim) {
    shared.unserved->missing("activity " + claim.task.name, claim.now);
    try {
        shared.provider.leave_activity(
            claim.task.key, claim.token, shared.unserved->pause(claim.unserved_tries));
    } catch (const std::exception& error) {
        shared.logger.warn("an activity could not be given back",
                           {{"instance", claim.task.key.instance}, {"error", error.what()}});
    }
}

// A lost heartbeat costs the next attempt some work, and this one nothing. A refused one means that
// the activity was cancelled or the claim is lost.
void ActivityPool::beat(Shared& shared, Job& job, const Payload& progress) {
    const ClaimedActivity& claim = job.claim;
    bool kept = true;
    try {
        shared.with_provider(
            [&] { kept = shared.provider.heartbeat(claim.task.key, claim.token, progress); });
        // If it was asked to stop already, this may run in a stop callback, under the lock.
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
std::optional<ActivityEnd> ActivityPool::end_of_run(Shared& shared, Job& job) {
    const ClaimedActivity& claim = job.claim;
    const Registry::Activity& activity = *shared.registry.find_activity(claim.task.name);
    ActivityContext context(
        claim, job.stop.get_token(), shared.logger, [&](const Payload& progress) {
            beat(shared, job, progress);
        });
    if (!activity.transactional) {
        return end_of(shared, job, bounded(activity.run(context, nullptr, claim.task.input)));
    }
    const bool done =
        shared.provider.end_activity_in_transaction(claim.task.key, claim.token, [&](sql::Tx& tx) {
            Payload result = activity.run(context, &tx, claim.task.input);
            if (job.overran(shared.clock.steady_now())) {  // It is rolled back and has no effect.
                throw Failure(timeout_failure(*job.limit()));
            }
            return end_of(shared, job, bounded(std::move(result))).answer.value();
        });
    if (done) {
        shared.hooks.mailed(claim.task.key.instance);
    }
    return std::nullopt;
}

// Without an end it is settled already. One that failed after the stopping process asked it to stop
// is given back: the attempt does not count, and other workers run it.
void ActivityPool::finish(Shared& shared,
                          const std::shared_ptr<Job>& job,
                          std::optional<ActivityEnd> end,
                          bool threw) {
    bool free = false;
    bool hands_back = false;
    {
        const std::lock_guard lock(shared.mutex);
        const bool stalled = shared.stalled();
        --shared.running;
        job->running = false;
        job->ended = true;
        shared.overdue.erase(job);
        hands_back = threw && job->drained && !job->given_up && !job->timed_out;
        // Counted once, although a poll that is under way may claim it here again.
        if (hands_back && shared.left_behind.insert(job->claim.task.key).second) {
            ++shared.handed_back;
        }
        if (job->timed_out || hands_back) {
            end.reset();
        }
        if (!end || job->given_up) {
            shared.let_go(job);
        }
        shared.quiet.notify_all();
        if (job->given_up) {
            return;
        }
        free = (shared.wants_thread || stalled) && shared.free_threads() > 0;
        shared.wants_thread = shared.wants_thread && !free;
    }
    if (hands_back) {
        shared.give_back(job->claim, milliseconds{0}, true);
    }
    if (!end || free) {
        shared.hooks.room();
    }
    if (end) {
        shared.hooks.ended(std::move(*end));
    }
}

}  // namespace holdfast::flow
