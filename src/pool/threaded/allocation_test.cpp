// Lending and taking back must not allocate: they are on the path of every transaction.
#include <cstdlib>
#include <new>

#include "machine/test/machine_fixture.hpp"
#include "threaded/test/fake_opener.hpp"
#include <gtest/gtest.h>

#include <holdfast/base/metrics.hpp>
#include <holdfast/pool/machine.hpp>
#include <holdfast/pool/pool.hpp>

namespace {

thread_local long allocations = 0;  // By this thread: the pool's own threads are not meant.

}  // namespace

void* operator new(std::size_t size) {
    ++allocations;
    if (void* memory = std::malloc(size == 0 ? 1 : size)) {
        return memory;
    }
    throw std::bad_alloc();
}
// What must begin at a cache line, as the machine's slots do.
void* operator new(std::size_t size, std::align_val_t alignment) {
    ++allocations;
    const auto step = static_cast<std::size_t>(alignment);
    if (void* memory = std::aligned_alloc(step, (size / step + 1) * step)) {
        return memory;
    }
    throw std::bad_alloc();
}
// Not inline: g++ 12 would see what was new'd be freed.
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory,
                                       std::size_t /*size*/,
                                       std::align_val_t /*alignment*/) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept {
    std::free(memory);
}

namespace holdfast::pool {
namespace {

using namespace std::chrono_literals;

TEST(Allocation, TheMachineLendsAndTakesBackWithout) {
    Config config;
    config.target = 8;
    config.min_ready = 8;
    Script pool(config);
    pool.tell(Tick{});
    pool.open_all();
    const long before = allocations;
    for (std::uint64_t i = 0; i < 1000; ++i) {
        pool.borrow(WaiterId{i}, 5s);
        const ConnectionId connection = std::get<Lend>(pool.said.at(0)).connection;
        pool.advance(1ms);
        pool.tell(GiveBack{.connection = connection});
    }
    EXPECT_EQ(allocations, before);
}

TEST(Allocation, ABorrowFromThePoolThatFindsAConnectionNeedsNone) {
    FakeOpener server;
    Metrics metrics;
    Pool pool(Config{}, server, system_clock(), &metrics, null_logger(), "lean");
    {
        const Loan loan = pool.acquire(Deadline::after(20s), {});
    }
    const long before = allocations;
    for (int i = 0; i < 1000; ++i) {
        const Loan loan = pool.acquire(Deadline::after(20s), {});
    }
    EXPECT_EQ(allocations, before);
}

// Without this, the two above would pass if nothing were counted.
TEST(Allocation, IsCounted) {
    const long before = allocations;
    void* const memory = ::operator new(100);  // Called by name, a compiler may not leave it out.
    EXPECT_EQ(allocations, before + 1);
    ::operator delete(memory);
    constexpr std::align_val_t line{64};
    ::operator delete(::operator new(100, line), line);
    EXPECT_EQ(allocations, before + 2);
}

}  // namespace
}  // namespace holdfast::pool
