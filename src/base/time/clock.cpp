#include <holdfast/base/clock.hpp>

#include <condition_variable>
#include <mutex>

namespace holdfast {
namespace {

class SystemClock final : public Clock {
public:
    [[nodiscard]] Steady steady_now() const override { return std::chrono::steady_clock::now(); }

    [[nodiscard]] Wall wall_now() const override {
        return std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
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
