#include <holdfast/base/clock.hpp>

#include <condition_variable>
#include <ctime>
#include <fstream>
#include <mutex>
#include <string>

namespace holdfast {
namespace {

// The kernel's name for this start of the machine. A process that cannot read it shares one name
// with all others that cannot: then a lease may last too long, but is never taken too early.
std::string read_boot_id() {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string id;
    file >> id;
    return id.empty() ? "unknown" : id;
}

// What a time namespace adds to the kernel's boot time: processes in different namespaces of one
// machine must agree on it.
std::chrono::nanoseconds read_boot_offset() {
    std::ifstream file("/proc/self/timens_offsets");
    std::string clock;
    std::int64_t seconds = 0;
    std::int64_t nanoseconds = 0;
    while (file >> clock >> seconds >> nanoseconds) {
        if (clock == "boottime") {
            return std::chrono::seconds{seconds} + std::chrono::nanoseconds{nanoseconds};
        }
    }
    return std::chrono::nanoseconds{0};
}

class SystemClock final : public Clock {
public:
    [[nodiscard]] Steady steady_now() const override { return std::chrono::steady_clock::now(); }

    [[nodiscard]] Wall wall_now() const override {
        return std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
    }

    [[nodiscard]] std::string boot_id() const override {
        static const std::string id = read_boot_id();
        return id;
    }

    [[nodiscard]] std::chrono::microseconds boot_now() const override {
        static const std::chrono::nanoseconds offset = read_boot_offset();
        timespec time{};
        ::clock_gettime(CLOCK_BOOTTIME, &time);
        return std::chrono::floor<std::chrono::microseconds>(
            std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec} - offset);
    }

    // NOLINTNEXTLINE(modernize-use-nodiscard)
    bool sleep_until(Steady until, const std::stop_token& stop) const override {
        std::mutex mutex;
        std::condition_variable_any wake;
        std::unique_lock lock(mutex);
        wake.wait_until(lock, stop, until, [] { return false; });
        return !stop.stop_requested();
    }
};

}  // namespace

const Clock& system_clock() noexcept {
    static const SystemClock clock;
    return clock;
}

}  // namespace holdfast
