#include <holdfast/pool/permits.hpp>

#include <algorithm>

#include <fmt/core.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/error.hpp>

namespace holdfast::pool {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr std::int64_t milli = 1000;  // Tokens are counted in thousandths.
constexpr std::int64_t second_us = 1'000'000;

nanoseconds some_of(nanoseconds whole, Random& random) noexcept {
    return nanoseconds{
        static_cast<std::int64_t>(static_cast<double>(whole.count()) * random.unit())};
}

std::int64_t us(Wall time) noexcept {
    return time.time_since_epoch().count();
}

// What the three have in common: the deadline, and what to do without an answer.
class Wish {
public:
    Wish(const FleetLimits& limits, Steady deadline, Random& random)
        : limits_(limits), deadline_(deadline), random_(random) {}

    [[nodiscard]] const FleetLimits& limits() const noexcept { return limits_; }
    [[nodiscard]] Random& random() const noexcept { return random_; }
    [[nodiscard]] bool in_time(Steady when) const noexcept { return when <= deadline_; }

    [[nodiscard]] PermitStep pause(const Moment& now, nanoseconds nap) const {
        if (now.steady >= deadline_) {
            return NoPermit{};
        }
        return PauseUntil{std::min(now.steady + nap, deadline_)};
    }

    [[nodiscard]] PermitStep pause_in_trouble(const Moment& now) {
        nanoseconds longest = limits_.trouble_nap;
        for (int i = 0; i < troubles_ && longest < limits_.trouble_nap_max; ++i) {
            longest *= 2;
        }
        ++troubles_;
        return pause(now, longest / 2 + some_of(longest / 2, random_));
    }

private:
    const FleetLimits& limits_;
    const Steady deadline_;
    Random& random_;
    int troubles_ = 0;
};

// Zero permits are granted without asking.
class EmptyRequest final : public PermitRequest {
public:
    PermitStep next(const Moment& now) override {
        return Permits{.n = 0, .first = now.steady, .apart = {}};
    }
    PermitStep answered(const Moment& now, const PermitAnswer& /*answer*/) override {
        return next(now);
    }
};

class CounterRequest final : public PermitRequest {
public:
    CounterRequest(const Wish& wish, const PermitConfig& config, int n)
        : wish_(wish), limit_(config.per_second), n_(n) {}

    PermitStep next(const Moment& now) override {
        const auto second = std::chrono::floor<seconds>(now.wall).time_since_epoch().count();
        return CountPermits{.second = second, .n = n_, .limit = limit_};
    }

    PermitStep answered(const Moment& now, const PermitAnswer& answer) override {
        if (std::holds_alternative<Written>(answer)) {
            return Permits{.n = n_, .first = now.steady, .apart = {}};
        }
        if (std::holds_alternative<NotWritten>(answer)) {
            return wish_.pause(now, nap(now));
        }
        return wish_.pause_in_trouble(now);
    }

private:
    [[nodiscard]] nanoseconds nap(const Moment& now) const {
        const FleetLimits& limits = wish_.limits();
        const nanoseconds left = std::chrono::floor<seconds>(now.wall) + seconds{1} - now.wall;
        if (left < limits.counter_near_boundary) {
            return left + some_of(limits.counter_boundary_jitter, wish_.random());
        }
        return limits.counter_nap + some_of(limits.counter_nap_jitter, wish_.random());
    }

    Wish wish_;
    const int limit_;
    const int n_;
};

class BucketRequest final : public PermitRequest {
public:
    BucketRequest(const Wish& wish, const PermitConfig& config, int n)
        : wish_(wish), per_second_(config.per_second), burst_(config.burst), n_(n) {}

    PermitStep next(const Moment& /*now*/) override { return ReadBucket{}; }

    PermitStep answered(const Moment& now, const PermitAnswer& answer) override {
        if (const auto* found = std::get_if<BucketFound>(&answer)) {
            return draw(now, found->state);
        }
        if (std::holds_alternative<Written>(answer)) {
            return Permits{.n = static_cast<int>(n_), .first = now.steady, .apart = {}};
        }
        if (std::holds_alternative<NotWritten>(answer)) {
            return nap(now, wish_.limits().bucket_nap);
        }
        return wish_.pause_in_trouble(now);
    }

private:
    PermitStep draw(const Moment& now, const std::optional<BucketState>& seen) {
        const std::int64_t full = burst_ * milli;
        const std::int64_t now_ms = us(now.wall) / 1000;
        std::int64_t tokens = full;
        // The time of the last refill also tells writers apart, so it must grow with every write.
        std::int64_t refilled_ms = now_ms;
        if (seen) {
            const std::int64_t passed_ms =
                std::clamp<std::int64_t>(now_ms - seen->refilled_ms, 0, full);
            tokens = std::min(full, seen->tokens_milli + passed_ms * per_second_);
            refilled_ms = std::max(now_ms, seen->refilled_ms + 1);
        }
        if (tokens < n_ * milli) {
            const std::int64_t missing = n_ * milli - tokens;
            return nap(now,
                       nanoseconds{std::chrono::milliseconds{1}} * (missing / per_second_ + 1));
        }
        return WriteBucket{
            .next = {.tokens_milli = tokens - n_ * milli, .refilled_ms = refilled_ms},
            .seen = seen};
    }

    PermitStep nap(const Moment& now, nanoseconds least) {
        return wish_.pause(now, least + some_of(least / 2, wish_.random()));
    }

    Wish wish_;
    const std::int64_t per_second_;
    const std::int64_t burst_;
    const std::int64_t n_;
};

class ReserveRequest final : public PermitRequest {
public:
    ReserveRequest(const Wish& wish, const PermitConfig& config, int n, PermitMemory& memory)
        : wish_(wish),
          memory_(memory),
          n_(n),
          // Rounded up: 30 a second must not become 30 and a little.
          period_us_((second_us + config.per_second - 1) / config.per_second),
          burst_us_((config.burst - 1) * period_us_),
          ahead_us_(burst_us_ + std::chrono::ceil<microseconds>(config.wait_max).count()) {}

    PermitStep next(const Moment& now) override {
        exchanges_ = 0;
        return write(now, memory_.clock_us);
    }

    PermitStep answered(const Moment& now, const PermitAnswer& answer) override {
        if (const auto* written = std::get_if<Written>(&answer)) {
            memory_.clock_us = written->value;
            return granted(now, written->value);
        }
        const auto* refused = std::get_if<NotWritten>(&answer);
        if (refused == nullptr) {
            return wish_.pause_in_trouble(now);
        }
        memory_.clock_us = refused->value;
        const std::int64_t now_us = us(now.wall);
        if (refused->value && *refused->value > now_us + ahead_us_) {
            return wait_for_room(now, *refused->value);
        }
        if (++exchanges_ >= wish_.limits().exchanges_max) {
            return wish_.pause_in_trouble(now);
        }
        return write(now, refused->value);
    }

private:
    // The one that fits the clock as it was seen last.
    [[nodiscard]] PermitStep write(const Moment& now, std::optional<std::int64_t> clock_us) const {
        const std::int64_t now_us = us(now.wall);
        if (clock_us && *clock_us >= now_us) {
            return AdvanceClock{
                .by_us = n_ * period_us_, .from_us = now_us, .to_us = now_us + ahead_us_};
        }
        return SetClock{.to_us = now_us + n_ * period_us_, .before_us = now_us};
    }

    // A reservation that comes after the deadline is lost, but only for us.
    [[nodiscard]] PermitStep granted(const Moment& now, std::int64_t clock_us) const {
        const std::int64_t usable_us = clock_us - n_ * period_us_ - burst_us_;
        const Permits permits{.n = static_cast<int>(n_),
                              .first = now.steady + microseconds{usable_us - us(now.wall)},
                              .apart = microseconds{period_us_}};
        if (!wish_.in_time(permits.first + permits.apart * (n_ - 1))) {
            return NoPermit{};
        }
        return permits;
    }

    [[nodiscard]] PermitStep wait_for_room(const Moment& now, std::int64_t clock_us) const {
        const microseconds until_room{clock_us - ahead_us_ - us(now.wall)};
        if (!wish_.in_time(now.steady + until_room)) {
            return NoPermit{};
        }
        return wish_.pause(now, until_room + some_of(wish_.limits().trouble_nap, wish_.random()));
    }

    Wish wish_;
    PermitMemory& memory_;
    const std::int64_t n_;
    const std::int64_t period_us_;
    const std::int64_t burst_us_;
    const std::int64_t ahead_us_;
    int exchanges_ = 0;
};

}  // namespace

std::string_view to_string(PermitAlgorithm algorithm) noexcept {
    switch (algorithm) {
        case PermitAlgorithm::counter:
            return "counter";
        case PermitAlgorithm::bucket:
            return "bucket";
        case PermitAlgorithm::reserve:
            return "reserve";
    }
    return "reserve";
}

void check(const PermitConfig& config) {
    constexpr int rate_max = 1'000'000;
    if (config.per_second < 1 || config.per_second > rate_max) {
        throw InvalidArgument(
            fmt::format("a limit of {} new connections a second is not valid; give 1 to {}",
                        config.per_second,
                        rate_max));
    }
    if (config.burst < 1 || config.burst > rate_max) {
        throw InvalidArgument(fmt::format(
            "a burst of {} new connections is not valid; give 1 to {}", config.burst, rate_max));
    }
    if (config.wait_max <= nanoseconds{0}) {
        throw InvalidArgument("the longest wait for a permit must be positive");
    }
}

std::unique_ptr<PermitRequest> request_permits(const PermitConfig& config,
                                               const FleetLimits& limits,
                                               int n,
                                               Steady deadline,
                                               PermitMemory& memory,
                                               Random& random) {
    check(config);
    const int most =
        config.algorithm == PermitAlgorithm::counter ? config.per_second : config.burst;
    if (n > most) {
        throw InvalidArgument(
            fmt::format("{} permits at once are never granted; the limit is {}", n, most));
    }
    if (n <= 0) {
        return std::make_unique<EmptyRequest>();
    }
    const Wish wish(limits, deadline, random);
    switch (config.algorithm) {
        case PermitAlgorithm::counter:
            return std::make_unique<CounterRequest>(wish, config, n);
        case PermitAlgorithm::bucket:
            return std::make_unique<BucketRequest>(wish, config, n);
        case PermitAlgorithm::reserve:
            break;
    }
    return std::make_unique<ReserveRequest>(wish, config, n, memory);
}

// The date was written between `sent` and `received`, and its fraction of a second was cut off.
void ClockSkew::observe(Wall sent, Wall received, std::chrono::sys_seconds date) {
    const microseconds least = sent - (date + seconds{1});
    const microseconds most = received - date;
    if (least > most) {
        return;  // Our clock was set back during the call, so the answer proves nothing.
    }
    least_ = std::max(least_.value_or(least), least);
    most_ = std::min(most_.value_or(most), most);
    if (*least_ > *most_) {  // A clock was set: earlier ranges are void.
        least_ = least;
        most_ = most;
    }
}

microseconds ClockSkew::ahead() const noexcept {
    const microseconds zero{0};
    return std::clamp(zero, least_.value_or(zero), most_.value_or(zero));
}

}  // namespace holdfast::pool
