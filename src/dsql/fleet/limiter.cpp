#include "fleet/limiter.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/random.hpp>
#include <holdfast/pool/pool.hpp>

namespace holdfast::dsql {
namespace {

constexpr std::array<const char*, 3> mode_names{"local", "fleet", "share"};

double share_of(const LimiterOptions& options) {
    const double equal = static_cast<double>(options.fleet.per_second) / options.fleet_size;
    return options.store ? std::min(options.local_per_second, equal) : options.local_per_second;
}

int share_of_burst(const LimiterOptions& options) {
    const bool counter = options.fleet.algorithm == pool::PermitAlgorithm::counter;
    const int at_once = counter ? options.fleet.per_second : options.fleet.burst;
    return std::max(1, std::min(options.local_burst, at_once / options.fleet_size));
}

LimiterOptions checked(LimiterOptions options) {
    if (options.fleet_size < 1) {
        throw InvalidArgument(
            fmt::format("a fleet size of {} is not valid; give 1 or more", options.fleet_size));
    }
    if (options.store) {
        check(options.fleet);
    }
    return options;
}

}  // namespace

struct Limiter::Meters {
    explicit Meters(Metrics* metrics) {
        if (metrics == nullptr) {
            return;
        }
        for (std::size_t i = 0; i < mode_names.size(); ++i) {
            const std::pair<std::string_view, std::string_view> mode{"mode", mode_names[i]};
            acquired[i] = metrics->counter(
                "dsql_rate_limiter_acquires_total", "Permits to open a connection", {mode});
            failed[i] = metrics->counter("dsql_rate_limiter_acquire_failures_total",
                                         "Permits that were not granted",
                                         {mode, {"reason", "timeout"}});
            waited[i] = metrics->histogram("dsql_rate_limiter_wait_seconds",
                                           "Time spent waiting for a permit",
                                           latency_bounds(),
                                           {mode});
        }
        tokens = metrics->gauge(
            "dsql_rate_limiter_tokens", "Tokens in the local bucket", {{"mode", "local"}});
        open =
            metrics->gauge("dsql_rate_limiter_breaker_open",
                           "1 while the shared store does not answer and the local share is used");
    }

    std::array<Counter, 3> acquired;
    std::array<Counter, 3> failed;
    std::array<Histogram, 3> waited;
    Gauge tokens;
    Gauge open;
};

Limiter::Limiter(LimiterOptions options)
    : options_(checked(std::move(options))),
      clock_(options_.clock == nullptr ? system_clock() : *options_.clock),
      logger_(options_.logger == nullptr ? null_logger() : *options_.logger),
      meters_(std::make_unique<Meters>(options_.metrics)),
      share_rate_(share_of(options_)),
      own_(options_.local_per_second, options_.local_burst),
      share_(share_rate_, share_of_burst(options_)),
      breaker_(options_.limits),
      pace_(options_.limits) {
    if (options_.store) {
        logger_.info("limiter.ready",
                     {{"mode", to_string(options_.fleet.algorithm)},
                      {"rate", options_.fleet.per_second},
                      {"burst", options_.fleet.burst},
                      {"table", options_.store->table()},
                      {"endpoint", options_.store->endpoint()},
                      {"fleet_size", options_.fleet_size},
                      {"share", share_rate_}});
    } else {
        logger_.info("limiter.ready",
                     {{"mode", "local"},
                      {"rate", options_.local_per_second},
                      {"burst", options_.local_burst}});
    }
}

Limiter::~Limiter() = default;

void Limiter::acquire(Deadline deadline, const std::stop_token& stop) {
    const Steady began = clock_.steady_now();
    const Deadline end = deadline.earlier(Deadline::at(began + options_.limits.permit_wait));
    Mode used = Mode::local;
    double part = 1;
    {
        const std::lock_guard lock(mutex_);
        used = mode(began);
        part = pace_.part(began);
    }
    // The server refused connections despite the fleet's permits: the local bucket applies as well.
    if (used == Mode::local || part < 1) {
        acquire_local(own_, options_.local_per_second, Mode::local, end, stop);
    }
    if (used == Mode::fleet && !acquire_fleet(end, stop)) {
        used = Mode::share;
    }
    if (used == Mode::share) {
        acquire_local(share_, share_rate_, Mode::share, end, stop);
    }
    const auto index = static_cast<std::size_t>(used);
    meters_->acquired[index].add();
    meters_->waited[index].observe(
        std::chrono::duration<double>(clock_.steady_now() - began).count());
}

void Limiter::refused() {
    const std::lock_guard lock(mutex_);
    pace_.refused(clock_.steady_now());
}

bool Limiter::degraded() const {
    const std::lock_guard lock(mutex_);
    return breaker_.open();
}

Limiter::Mode Limiter::mode(Steady now) {
    if (!options_.store) {
        return Mode::local;
    }
    return breaker_.may_ask(now) ? Mode::fleet : Mode::share;
}

void Limiter::acquire_local(pool::TokenBucket& bucket,
                            double full_rate,
                            Mode as,
                            Deadline deadline,
                            const std::stop_token& stop) {
    const Steady began = clock_.steady_now();
    pool::WaiterId self{};
    const auto serve = [&](Steady now) {
        bucket.set_rate(now, full_rate * pace_.part(now));
        while (const auto next = bucket.serve(now)) {
            served_.insert(*next);
        }
    };
    bool in_line = false;
    {
        const std::lock_guard lock(mutex_);
        const Steady now = clock_.steady_now();
        self = pool::WaiterId{++waiters_};
        serve(now);
        in_line = bucket.enter(now, self, deadline.when());
    }
    while (in_line) {
        Steady wake;
        {
            const std::lock_guard lock(mutex_);
            const Steady now = clock_.steady_now();
            serve(now);
            meters_->tokens.set(own_.tokens(now));
            if (served_.erase(self) == 1) {
                return;
            }
            if (deadline.passed(now) || stop.stop_requested()) {
                bucket.leave(self);
                in_line = false;
            }
            wake = bucket.next_wake(now);
        }
        if (in_line) {
            static_cast<void>(clock_.sleep_until(std::min(wake, deadline.when()), stop));
        }
    }
    if (stop.stop_requested()) {
        throw Error(Code::cancelled, Outcome::not_applied, "waiting for a permit was cancelled");
    }
    give_up(as, clock_.steady_now() - began, 1);
}

bool Limiter::acquire_fleet(Deadline deadline, const std::stop_token& stop) {
    const Steady began = clock_.steady_now();
    int attempts = 0;
    pool::PermitMemory memory;
    {
        const std::lock_guard lock(mutex_);
        memory = memory_;
    }
    const auto request = request_permits(
        options_.fleet, options_.limits, 1, deadline.when(), memory, thread_random());
    pool::PermitStep step = request->next(now());
    for (;;) {
        if (const auto* write = std::get_if<pool::PermitWrite>(&step)) {
            ++attempts;
            const pool::PermitAnswer answer = ask(*write, deadline, stop);
            if (!is_heard(answer) && degraded()) {
                return false;
            }
            step = request->answered(now(), answer);
        } else if (const auto* pause = std::get_if<pool::PauseUntil>(&step)) {
            sleep(pause->when, deadline, stop);
            step = request->next(now());
        } else {
            break;
        }
    }
    {
        const std::lock_guard lock(mutex_);
        memory_ = memory;
    }
    const auto* permits = std::get_if<pool::Permits>(&step);
    if (permits == nullptr) {
        give_up(Mode::fleet, clock_.steady_now() - began, attempts);
    }
    sleep(permits->first, deadline, stop);
    return true;
}

pool::PermitAnswer Limiter::ask(const pool::PermitWrite& write,
                                Deadline deadline,
                                const std::stop_token& stop) {
    try {
        const pool::PermitAnswer answer = options_.store->ask(write, deadline, stop);
        note(true, {});
        return answer;
    } catch (const Error& error) {
        if (stop.stop_requested()) {
            throw;
        }
        if (error.code() == Code::conflict) {
            note(true, {});
            return pool::Throttled{};
        }
        note(false, error.what());
        return pool::NoAnswer{};
    }
}

void Limiter::note(bool answered, const std::string& cause) {
    bool changed = false;
    bool skewed = false;
    const auto ahead = options_.store->client().ahead();
    {
        const std::lock_guard lock(mutex_);
        changed = answered ? breaker_.answered() : breaker_.failed(clock_.steady_now());
        if (changed && !answered) {  // The fleet's burst may just have been spent.
            share_.drain(clock_.steady_now());
        }
        skewed = !std::exchange(warned_of_skew_,
                                std::chrono::abs(ahead) > options_.limits.skew_warning) &&
                 warned_of_skew_;
        meters_->open.set(breaker_.open() ? 1 : 0);
    }
    if (skewed) {
        logger_.warn("limiter.skew",
                     {{"ahead_seconds", std::chrono::duration<double>(ahead).count()}});
    }
    if (changed && answered) {
        logger_.warn("limiter.breaker", {{"state", "closed"}});
    } else if (changed) {
        logger_.warn("limiter.breaker",
                     {{"state", "open"}, {"failures", options_.limits.breaker_failures}});
        logger_.error("limiter.fallback", {{"cause", cause}, {"share", share_rate_}});
    }
}

void Limiter::sleep(Steady until, Deadline deadline, const std::stop_token& stop) const {
    if (!clock_.sleep_until(std::min(until, deadline.when()), stop)) {
        throw Error(Code::cancelled, Outcome::not_applied, "waiting for a permit was cancelled");
    }
}

void Limiter::give_up(Mode as, std::chrono::nanoseconds waited, int attempts) {
    const char* const name = mode_names[static_cast<std::size_t>(as)];
    meters_->failed[static_cast<std::size_t>(as)].add();
    logger_.warn("limiter.timeout",
                 {{"mode", name},
                  {"waited_seconds", std::chrono::duration<double>(waited).count()},
                  {"attempts", attempts}});
    throw pool::OpenError(
        pool::FailureClass::rate_limited,
        Code::unavailable,
        fmt::format("no permit to open a connection in time (limit: {}); open fewer connections "
                    "or raise the limit",
                    name));
}

pool::Moment Limiter::now() const {
    return {.steady = clock_.steady_now(), .wall = options_.store->client().wall_now()};
}

}  // namespace holdfast::dsql
