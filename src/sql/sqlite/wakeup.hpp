// Wakes one waiting thread.
//
// std::atomic::wait has no deadline and std::counting_semaphore yields the processor several times
// before it sleeps, which costs more than the sleep when dozens of writers wait for one flush.
#pragma once

#include <atomic>
#include <cstdint>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <holdfast/base/clock.hpp>

namespace holdfast::sql::sqlite {

// Collects signals, each a bit. Signalling touches nothing after the waiter can have seen the bit,
// so the waiter may destroy it as soon as `wait` has returned.
class Wakeup {
public:
    void signal(std::uint32_t bit) noexcept {
        const std::uint32_t before = bits_.fetch_or(bit, std::memory_order_acq_rel);
        if ((before & asleep) != 0) {
            // The waiter may be gone by now; waking its address is harmless then.
            ::syscall(SYS_futex, &bits_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
        }
    }

    // Sleeps until one of `wanted` is set, which is returned with the others, or until `deadline`,
    // if there is one.
    [[nodiscard]] std::uint32_t wait(std::uint32_t wanted, const Deadline* deadline) noexcept {
        std::uint32_t seen = bits_.fetch_or(asleep, std::memory_order_acq_rel) | asleep;
        while ((seen & wanted) == 0 && (deadline == nullptr || !deadline->passed())) {
            sleep_while(seen, deadline);
            seen = bits_.load(std::memory_order_acquire);
        }
        return seen;
    }

private:
    static constexpr std::uint32_t asleep = 1U << 31U;

    void sleep_while(std::uint32_t seen, const Deadline* deadline) noexcept {
        timespec until{};
        if (deadline != nullptr) {
            const auto since = deadline->when().time_since_epoch();
            const auto whole = std::chrono::floor<std::chrono::seconds>(since);
            until.tv_sec = static_cast<time_t>(whole.count());
            until.tv_nsec = static_cast<long>(std::chrono::nanoseconds(since - whole).count());
        }
        // A bit that came after `seen` makes the kernel return at once.
        ::syscall(SYS_futex,
                  &bits_,
                  FUTEX_WAIT_BITSET_PRIVATE,
                  seen,
                  deadline == nullptr ? nullptr : &until,
                  nullptr,
                  FUTEX_BITSET_MATCH_ANY);
    }

    static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));
    std::atomic<std::uint32_t> bits_{0};
};

}  // namespace holdfast::sql::sqlite
