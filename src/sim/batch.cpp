#include <holdfast/sim/batch.hpp>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/units.hpp>
#include <holdfast/pool/config.hpp>
#include <holdfast/sim/simulation.hpp>

namespace holdfast::sim {
namespace {

Outcome run_one(const Job& job, const std::stop_token& stop) {
    Watch watch;
    watch.stop = stop;
    Result result = simulate(*job.scenario, job.seed, watch);
    return {.seed = job.seed,
            .events = result.events,
            .figures = figures_of(*job.scenario, result),
            .violations = std::move(result.violations)};
}

// Threads take the next job until there is none or somebody has failed.
class Batch {
public:
    Batch(std::span<const Job> jobs, const BatchOptions& options)
        : jobs_(jobs), options_(options), outcomes_(jobs.size()) {}

    std::vector<Outcome> run() {
        const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
        const std::size_t wanted =
            options_.threads == 0 ? cores : std::min(options_.threads, threads_max);
        {
            std::vector<std::jthread> threads;
            for (std::size_t i = 1; i < std::min(wanted, jobs_.size()); ++i) {
                threads.emplace_back([this] { work(); });
            }
            work();
        }
        if (failure_) {
            std::rethrow_exception(failure_);
        }
        return std::move(outcomes_);
    }

private:
    void work() {
        for (std::size_t i = next_++; i < jobs_.size(); i = next_++) {
            try {
                outcomes_[i] = run_one(jobs_[i], options_.stop);
            } catch (...) {
                const std::scoped_lock lock(mutex_);
                failure_ = failure_ ? failure_ : std::current_exception();
                next_ = jobs_.size();
                return;
            }
            const std::scoped_lock lock(mutex_);
            ++done_;
            if (options_.progress) {
                options_.progress(done_);
            }
        }
    }

    std::span<const Job> jobs_;
    const BatchOptions& options_;
    std::vector<Outcome> outcomes_;
    std::atomic<std::size_t> next_ = 0;
    std::mutex mutex_;
    std::size_t done_ = 0;
    std::exception_ptr failure_;
};

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc{} && end == text.data() + text.size();
    return whole ? std::optional(value) : std::nullopt;
}

// "A..B/STEP" as texts, or "A..B" of numbers; nothing if it does not look like that.
std::optional<std::vector<std::string>> parse_range(std::string_view text) {
    const auto dots = text.find("..");
    if (dots == std::string_view::npos) {
        return std::nullopt;
    }
    const auto slash = std::min(text.find('/', dots), text.size());
    const std::string_view from = text.substr(0, dots);
    const std::string_view to = text.substr(dots + 2, slash - dots - 2);
    const std::string_view step = slash == text.size() ? "1" : text.substr(slash + 1);
    const bool plain = parse_number<std::int64_t>(step).has_value();
    const auto number = [&](std::string_view part) {
        const auto found = parse_number<std::int64_t>(part);
        return plain && found ? *found : parse_duration(part).count();
    };
    const std::int64_t by = number(step);
    const std::int64_t first = number(from);
    const std::int64_t last = number(to);
    if (by <= 0 || last < first || (last - first) / by >= static_cast<std::int64_t>(runs_max)) {
        throw InvalidArgument(fmt::format("'{}' is no range; write 10..50/10", text));
    }
    std::vector<std::string> values;
    for (std::int64_t value = first; value <= last; value += by) {
        values.push_back(plain ? fmt::format("{}", value) : format_duration(Time{value}));
    }
    return values;
}

}  // namespace

std::vector<Outcome> run_batch(std::span<const Job> jobs, const BatchOptions& options) {
    return Batch(jobs, options).run();
}

std::vector<std::uint64_t> parse_seeds(std::string_view text) {
    const auto dots = text.find("..");
    const auto first = parse_number<std::uint64_t>(text.substr(0, dots));
    const auto last =
        dots == std::string_view::npos ? first : parse_number<std::uint64_t>(text.substr(dots + 2));
    if (!first || !last || *last < *first || *last - *first >= runs_max) {
        throw InvalidArgument(
            fmt::format("'{}' are no seeds; write 7, or 1..200, at most {}", text, runs_max));
    }
    std::vector<std::uint64_t> seeds;
    for (std::uint64_t seed = *first; seeds.size() <= *last - *first; ++seed) {
        seeds.push_back(seed);
    }
    return seeds;
}

Axis parse_axis(std::string_view text) {
    const auto equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) {
        throw InvalidArgument(fmt::format("'{}' is no sweep; write KEY=1,5,9 or KEY=1..9/2", text));
    }
    Axis axis{.key = std::string(text.substr(0, equals)), .values = {}};
    std::string_view rest = text.substr(equals + 1);
    if (auto range = parse_range(rest)) {
        axis.values = std::move(*range);
        return axis;
    }
    while (true) {
        const auto comma = rest.find(',');
        axis.values.emplace_back(rest.substr(0, comma));
        if (comma == std::string_view::npos) {
            return axis;
        }
        rest.remove_prefix(comma + 1);
    }
}

std::vector<std::vector<Override>> combinations(std::span<const Axis> axes) {
    std::vector<std::vector<Override>> all{{}};
    for (const Axis& axis : axes) {
        std::vector<std::vector<Override>> longer;
        if (all.size() * axis.values.size() > runs_max) {
            throw InvalidArgument(fmt::format("a sweep has at most {} points", runs_max));
        }
        for (const auto& so_far : all) {
            for (const std::string& value : axis.values) {
                longer.push_back(so_far);
                longer.back().push_back({axis.key, value});
            }
        }
        all = std::move(longer);
    }
    return all;
}

std::string Bounds::text(std::int64_t value) const {
    return unit == Time{0} ? fmt::format("{}", value) : format_duration(value * unit);
}

Bounds parse_bounds(std::string_view text) {
    const auto refuse = [&] {
        return InvalidArgument(fmt::format(
            "'{}' has no bounds; write KEY=LOW..HIGH, as in defaults.targetReady=10..500", text));
    };
    const auto equals = text.find('=');
    if (equals == std::string_view::npos && !text.empty()) {
        return {.key = std::string(text), .low = 1, .high = pool::target_max, .open = true};
    }
    const auto dots = text.find("..", std::min(equals, text.size()));
    if (equals == std::string_view::npos || equals == 0 || dots == std::string_view::npos) {
        throw refuse();
    }
    Bounds bounds{.key = std::string(text.substr(0, equals))};
    const std::string_view from = text.substr(equals + 1, dots - equals - 1);
    const std::string_view to = text.substr(dots + 2);
    const auto low = parse_number<std::int64_t>(from);
    const auto high = parse_number<std::int64_t>(to);
    if (low && high) {
        bounds.low = *low;
        bounds.high = *high;
    } else {
        const Time shortest = parse_duration(from);
        const Time longest = parse_duration(to);
        const bool whole =
            (shortest % std::chrono::seconds{1} + longest % std::chrono::seconds{1}) == Time{0};
        bounds.unit = whole ? Time{std::chrono::seconds{1}} : Time{std::chrono::milliseconds{1}};
        bounds.low = shortest / bounds.unit;
        bounds.high = longest / bounds.unit;
    }
    if (bounds.low < 0 || bounds.high < bounds.low) {
        throw refuse();
    }
    return bounds;
}

Bounds narrowed(Bounds bounds, const std::function<bool(std::int64_t)>& passes) {
    bool passed = false;
    for (std::int64_t value = bounds.low; value <= bounds.high; value *= 2) {
        if (passes(value)) {
            passed = true;
            bounds.low = value;
        } else if (passed) {
            bounds.high = value - 1;
        }
    }
    bounds.high = passed ? bounds.high : bounds.low - 1;
    return bounds;
}

std::int64_t largest_passing(std::int64_t low,
                             std::int64_t high,
                             const std::function<bool(std::int64_t)>& passes) {
    std::int64_t known = low - 1;  // The largest that is known to pass.
    while (known < high) {
        const std::int64_t middle = known + (high - known + 1) / 2;
        if (passes(middle)) {
            known = middle;
        } else {
            high = middle - 1;
        }
    }
    return known;
}

}  // namespace holdfast::sim
