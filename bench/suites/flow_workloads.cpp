#include "suites/flow_workloads.hpp"

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace holdfast::bench {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds slow_task{10};
constexpr milliseconds payload_task{5};

std::atomic<std::int64_t> worked_ns = 0;

// The work that is being measured around. A machine that is busy lets it take longer.
void work_for(milliseconds time) {
    const auto began = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(time);
    worked_ns += std::chrono::nanoseconds{std::chrono::steady_clock::now() - began}.count();
}

}  // namespace

double worked_seconds() {
    return static_cast<double>(worked_ns.load()) / 1e9;
}

std::int64_t step(std::int64_t value) {
    return value + 1;
}

std::string process_task(std::string input) {
    return "processed: " + input;
}

std::string process_task_slowly(std::string input) {
    work_for(slow_task);
    return process_task(std::move(input));
}

std::string pattern(std::size_t kilobytes) {
    constexpr std::string_view text =
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ!@#$%^&*()";
    std::string result;
    result.reserve(kilobytes * 1024 + text.size());
    while (result.size() < kilobytes * 1024) {
        result += text;
    }
    result.resize(kilobytes * 1024);
    return result;
}

PayloadResult make_payload(PayloadInput input, std::int64_t kilobytes) {
    work_for(payload_task);
    return {.input = std::move(input),
            .payload = pattern(static_cast<std::size_t>(kilobytes)),
            .size_kb = kilobytes};
}

flow::Workflow<std::int64_t> chain(flow::Context& ctx, std::int64_t steps) {
    std::int64_t value = 0;
    for (std::int64_t i = 0; i < steps; ++i) {
        value = co_await ctx.activity<&step>(value);
    }
    co_return value;
}

flow::Workflow<std::string> parallel(flow::Context& ctx, std::int64_t tasks) {
    std::vector<flow::Op<std::string>> running;
    for (std::int64_t i = 0; i < tasks; ++i) {
        running.push_back(ctx.activity<&process_task>(fmt::format("task-{}", i)));
    }
    const std::vector<std::string> done = co_await flow::all(std::move(running));
    co_return fmt::format("{} tasks", done.size());
}

flow::Workflow<std::string> parallel_slow(flow::Context& ctx, std::int64_t tasks) {
    std::vector<flow::Op<std::string>> running;
    for (std::int64_t i = 0; i < tasks; ++i) {
        running.push_back(ctx.activity<&process_task_slowly>(fmt::format("task-{}", i)));
    }
    const std::vector<std::string> done = co_await flow::all(std::move(running));
    co_return fmt::format("{} tasks", done.size());
}

flow::Workflow<std::int64_t> fanout(flow::Context& ctx, std::int64_t tasks) {
    std::vector<flow::Op<std::int64_t>> running;
    for (std::int64_t i = 0; i < tasks; ++i) {
        running.push_back(ctx.activity<&step>(i));
    }
    std::int64_t sum = 0;
    for (const std::int64_t value : co_await flow::all(std::move(running))) {
        sum += value;
    }
    co_return sum;
}

void Awake::add(std::chrono::microseconds late) {
    const std::lock_guard lock(mutex_);
    late_us_.push_back(static_cast<double>(late.count()));
}

std::size_t Awake::count() {
    const std::lock_guard lock(mutex_);
    return late_us_.size();
}

std::vector<double> Awake::take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(late_us_, {});
}

Awake& awake() {
    static Awake all;
    return all;
}

flow::Workflow<flow::Unit> nap(flow::Context& ctx, std::int64_t until_ms) {
    const flow::Moment due{milliseconds{until_ms}};
    co_await ctx.sleep_until(due);
    awake().add(std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::system_clock::now() - due));
    co_return flow::Unit{};
}

flow::Workflow<flow::Unit> endless(flow::Context& ctx) {
    std::int64_t answered = 0;
    ctx.on(poke_update, [&answered](std::int64_t by) { return answered += by; });
    for (std::int64_t poke = 1; poke != 0;) {
        poke = co_await ctx.receive(pokes);
    }
    co_return flow::Unit{};
}

flow::Workflow<std::string> large_child(flow::Context& ctx, PayloadInput input) {
    PayloadInput ten{.index = input.index, .data = pattern(10)};
    PayloadResult small = co_await ctx.activity<&make_payload>(ten, 10);
    PayloadInput twenty_five{.index = input.index, .data = pattern(25)};
    PayloadResult medium = co_await ctx.activity<&make_payload>(twenty_five, 50);
    co_return pattern(50);
}

// 30 activities of its own, and 5 children with 2 each.
flow::Workflow<std::string> large(flow::Context& ctx) {
    for (std::int64_t i = 0; i < 20; ++i) {
        PayloadInput input{.index = i, .data = pattern(i < 6 ? 10 : 25)};
        const std::int64_t size = i < 6 ? 10 : (i < 12 ? 50 : 100);
        PayloadResult result = co_await ctx.activity<&make_payload>(input, size);
    }
    std::vector<flow::Op<std::string>> children;
    for (std::int64_t i = 0; i < 5; ++i) {
        PayloadInput input{.index = i, .data = pattern(50)};
        children.push_back(ctx.child<&large_child>(input));
    }
    const std::vector<std::string> answers = co_await flow::all(std::move(children));
    for (std::int64_t i = 0; i < 10; ++i) {
        PayloadInput input{.index = i, .data = "brief"};
        PayloadResult result = co_await ctx.activity<&make_payload>(input, 10);
    }
    co_return pattern(100);
}

flow::Registry workloads() {
    flow::Registry registry;
    registry.activity<&step>()
        .activity<&process_task>()
        .activity<&process_task_slowly>()
        .activity<&make_payload>()
        .workflow<&chain>()
        .workflow<&parallel>()
        .workflow<&parallel_slow>()
        .workflow<&fanout>()
        .workflow<&nap>()
        .workflow<&endless>()
        .workflow<&large>()
        .workflow<&large_child>();
    return registry;
}

}  // namespace holdfast::bench
