#include "workers.hpp"

#include <atomic>
#include <cstdint>
#include <exception>
#include <latch>
#include <mutex>
#include <thread>
#include <vector>

namespace holdfast::bench {

Work run_workers(int workers,
                 std::chrono::nanoseconds time,
                 const std::stop_token& stop,
                 const std::function<void(Random&)>& operation) {
    using Clock = std::chrono::steady_clock;
    std::latch everybody_ready{workers + 1};
    std::atomic<bool> failed = false;
    std::atomic<std::int64_t> operations = 0;
    std::mutex mutex;
    std::exception_ptr failure;
    Clock::time_point begin;  // Written before the latch opens, read after it.

    const auto work = [&] {
        Random random{secure_seed()};
        std::int64_t done = 0;
        everybody_ready.arrive_and_wait();
        try {
            // The first operation is done in any case, so that a short round has a figure.
            do {
                operation(random);
                ++done;
            } while (!failed && !stop.stop_requested() && Clock::now() - begin < time);
        } catch (...) {
            const std::lock_guard lock(mutex);
            failed = true;
            if (!failure) {
                failure = std::current_exception();
            }
        }
        operations += done;
    };

    std::vector<std::jthread> threads;
    threads.reserve(static_cast<std::size_t>(workers));
    for (int i = 0; i < workers; ++i) {
        threads.emplace_back(work);
    }
    begin = Clock::now();
    everybody_ready.arrive_and_wait();
    threads.clear();  // Joins.
    const std::chrono::duration<double> took = Clock::now() - begin;
    if (failure) {
        std::rethrow_exception(failure);
    }
    return {.operations = static_cast<double>(operations.load()),
            .seconds = took.count(),
            .counts = {}};
}

}  // namespace holdfast::bench
