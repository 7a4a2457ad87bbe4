// The cost of a borrow without contention, and with it.
#include <memory>
#include <stop_token>

#include <benchmark/benchmark.h>

#include <holdfast/base/metrics.hpp>
#include <holdfast/pool/machine.hpp>
#include <holdfast/pool/pool.hpp>

namespace holdfast::pool {
namespace {

using namespace std::chrono_literals;

struct Nothing final : Connection {
    [[nodiscard]] bool usable() noexcept override { return true; }
};

struct NothingOpener final : Opener {
    [[nodiscard]] std::unique_ptr<Connection> open(Deadline,
                                                   std::stop_token,
                                                   OpenPhases&) override {
        return std::make_unique<Nothing>();
    }
};

void machine_borrow_and_return(benchmark::State& state) {
    Config config;
    config.target = static_cast<int>(state.range(0));
    config.min_ready = config.target;
    config.limits.opening_max = config.target;
    Machine machine(config, 1);
    const Steady now{1h};
    Actions actions;
    machine.step(now, Tick{}, actions);
    const Actions opens = actions;
    for (const Action& open : opens) {
        machine.step(now, Opened{std::get<Open>(open).connection}, actions);
    }
    for ([[maybe_unused]] auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
        actions.clear();
        machine.step(now, Borrow{.waiter = WaiterId{1}, .deadline = now + 5s}, actions);
        const auto lent = std::get<Lend>(actions[0]).connection;
        machine.step(now, GiveBack{.connection = lent}, actions);
    }
}
BENCHMARK(machine_borrow_and_return)->Arg(1)->Arg(16)->Arg(1000);

// Threads share 16 connections: up to 16 threads only the mutex is contended, then the queue grows.
void pool_acquire_and_return(benchmark::State& state) {
    static Metrics metrics;
    static NothingOpener opener;
    static std::unique_ptr<Pool> pool;
    if (state.thread_index() == 0) {
        Config config;
        config.target = 16;
        config.min_ready = 16;
        pool = std::make_unique<Pool>(
            config, opener, system_clock(), &metrics, null_logger(), "bench");
        if (!pool->wait_ready(16, Deadline::after(10s), {})) {
            state.SkipWithError("not ready");
        }
    }
    for ([[maybe_unused]] auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
        const Loan loan = pool->acquire(Deadline::after(10s), {});
        benchmark::DoNotOptimize(&*loan);
    }
}
BENCHMARK(pool_acquire_and_return)->Threads(1)->Threads(2)->Threads(8)->Threads(32)->UseRealTime();

}  // namespace
}  // namespace holdfast::pool
