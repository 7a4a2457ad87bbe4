// The workflows that are measured.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <holdfast/flow/flow.hpp>
#include <holdfast/flow/json.hpp>

namespace holdfast::bench {

std::int64_t step(std::int64_t value);
std::string process_task(std::string input);
std::string process_task_slowly(std::string input);

// What the large payload scenario carries around.
struct PayloadInput {
    std::int64_t index = 0;
    std::string data;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PayloadInput, index, data)
struct PayloadResult {
    PayloadInput input;
    std::string payload;
    std::int64_t size_kb = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PayloadResult, input, payload, size_kb)

PayloadResult make_payload(PayloadInput input, std::int64_t kilobytes);

flow::Workflow<std::int64_t> chain(flow::Context& ctx, std::int64_t steps);
flow::Workflow<std::string> parallel(flow::Context& ctx, std::int64_t tasks);
flow::Workflow<std::string> parallel_slow(flow::Context& ctx, std::int64_t tasks);
flow::Workflow<std::int64_t> fanout(flow::Context& ctx, std::int64_t tasks);
// Sleeps until then, and tells `awake` of it.
flow::Workflow<flow::Unit> nap(flow::Context& ctx, std::int64_t until_ms);
flow::Workflow<flow::Unit> endless(flow::Context& ctx);
flow::Workflow<std::string> large(flow::Context& ctx);
flow::Workflow<std::string> large_child(flow::Context& ctx, PayloadInput input);

[[nodiscard]] flow::Registry workloads();

// How long activities that take their time have taken in this process, all together.
[[nodiscard]] double worked_seconds();

// The text of the large payload scenario, cut to so many kilobytes.
[[nodiscard]] std::string pattern(std::size_t kilobytes);

// One message to `endless`: it takes it, and waits for the next.
inline constexpr flow::Channel<std::int64_t> pokes{"poke"};
// The same, with an answer.
inline constexpr flow::Update<std::int64_t(std::int64_t)> poke_update{"poke"};

// When naps of this process were over, against when they should have been.
class Awake {
public:
    void add(std::chrono::microseconds late);
    [[nodiscard]] std::size_t count();
    // What was added since the last time.
    [[nodiscard]] std::vector<double> take();

private:
    std::mutex mutex_;
    std::vector<double> late_us_;
};
Awake& awake();

}  // namespace holdfast::bench

HOLDFAST_NAME(holdfast::bench::step, "bench.step");
HOLDFAST_NAME(holdfast::bench::process_task, "bench.process_task");
HOLDFAST_NAME(holdfast::bench::process_task_slowly, "bench.process_task_slowly");
HOLDFAST_NAME(holdfast::bench::make_payload, "bench.make_payload");
HOLDFAST_NAME(holdfast::bench::chain, "bench.chain");
HOLDFAST_NAME(holdfast::bench::parallel, "bench.parallel");
HOLDFAST_NAME(holdfast::bench::parallel_slow, "bench.parallel_slow");
HOLDFAST_NAME(holdfast::bench::fanout, "bench.fanout");
HOLDFAST_NAME(holdfast::bench::nap, "bench.nap");
HOLDFAST_NAME(holdfast::bench::endless, "bench.endless");
HOLDFAST_NAME(holdfast::bench::large, "bench.large");
HOLDFAST_NAME(holdfast::bench::large_child, "bench.large_child");
