#include "flow_workloads.hpp"

#include <thread>
#include <vector>

#include <fmt/core.h>

namespace holdfast::bench {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds slow_task{10};
constexpr milliseconds payload_task{5};

}  // namespace

std::int64_t step(std::int64_t value) {
    return value + 1;
}

std::string process_task(std::string input) {
    return "processed: " + input;
}

std::string process_task_slowly(std::string input) {
    std::this_thread::sleep_for(slow_task);  // The work that is being measured around.
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

std::string make_payload(std::string input, std::int64_t kilobytes) {
    std::this_thread::sleep_for(payload_task);
    return input.substr(0, 16) + pattern(static_cast<std::size_t>(kilobytes));
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

flow::Workflow<flow::Unit> nap(flow::Context& ctx, std::int64_t duration) {
    const milliseconds pause{duration};
    co_await ctx.sleep(pause);
    co_return flow::Unit{};
}

flow::Workflow<flow::Unit> endless(flow::Context& ctx) {
    for (std::int64_t poke = 1; poke != 0;) {
        poke = co_await ctx.receive(pokes);
    }
    co_return flow::Unit{};
}

flow::Workflow<std::string> large_child(flow::Context& ctx, std::string input) {
    std::string small = co_await ctx.activity<&make_payload>(input, 10);
    std::string medium = co_await ctx.activity<&make_payload>(small, 50);
    co_return medium;
}

flow::Workflow<std::string> large(flow::Context& ctx) {
    const std::string ten = pattern(10);
    const std::string twenty_five = pattern(25);
    const std::string fifty = pattern(50);
    for (int i = 0; i < 20; ++i) {
        const std::string& input = i < 6 ? ten : twenty_five;
        const std::int64_t size = i < 6 ? 10 : (i < 12 ? 50 : 100);
        std::string result = co_await ctx.activity<&make_payload>(input, size);
    }
    std::vector<flow::Op<std::string>> children;
    for (int i = 0; i < 5; ++i) {
        children.push_back(ctx.child<&large_child>(fifty));
    }
    const std::vector<std::string> answers = co_await flow::all(std::move(children));
    const std::string brief = "brief";
    for (int i = 0; i < 10; ++i) {
        std::string result = co_await ctx.activity<&make_payload>(brief, 10);
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
