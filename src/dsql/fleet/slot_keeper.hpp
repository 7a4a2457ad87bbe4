// The slots of one process at one endpoint: a thread that decides which blocks to take, renew and
// give back, and a few that call the store, so that many blocks are renewed before the first runs
// out although each answer takes a while.
//
// An opening acquires a slot first; that needs no I/O unless a block has to be taken. When blocks
// are lost, the holders of connections are told how many to close.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "fleet/fleet_store.hpp"
#include "fleet/shed_registry.hpp"

#include <holdfast/base/clock.hpp>
#include <holdfast/base/log.hpp>
#include <holdfast/base/metrics.hpp>
#include <holdfast/pool/slot_blocks.hpp>
#include <holdfast/pool/workers.hpp>

namespace holdfast::dsql {

struct SlotKeeperOptions {
    std::shared_ptr<DynamoClient> client{};
    std::string table{};
    std::string endpoint{};
    FleetMember member{};
    pool::SlotBlocksConfig blocks{};
    pool::FleetLimits limits{};
    std::chrono::nanoseconds call_patience = std::chrono::seconds{5};
    int calls_max = 8;             // Concurrent calls to the store.
    const Clock* clock = nullptr;  // Null: the machine's.
    Metrics* metrics = nullptr;
    Logger* logger = nullptr;
};

// Safe to share between threads.
class SlotKeeper {
public:
    // Invalid_argument for settings that cannot work.
    explicit SlotKeeper(SlotKeeperOptions options);
    ~SlotKeeper();  // As stop().
    SlotKeeper(const SlotKeeper&) = delete;
    SlotKeeper& operator=(const SlotKeeper&) = delete;

    // Registers a holder of up to `target` slots; `shed` is called from the keeper's thread.
    [[nodiscard]] ShedRegistry::Id join(int target, ShedRegistry::Shed shed);
    // Afterwards `shed` is not called any more.
    void leave(ShedRegistry::Id holder);

    // Waits for a block if necessary. Throws pool::OpenError (full) if there is none by the
    // deadline, cancelled if the stop token fires.
    [[nodiscard]] pool::SlotId acquire(Deadline deadline, const std::stop_token& stop);
    void release(pool::SlotId slot);

    struct View {
        int capacity = 0;
        int used = 0;
        int blocks = 0;
        bool degraded = false;
    };
    [[nodiscard]] View view() const;

    // Gives all blocks back, if all slots were released; else they expire. May be repeated.
    void stop();

private:
    struct Meters;

    void run(const std::stop_token& stop);
    void finish(std::unique_lock<std::mutex>& lock);
    void step(const pool::SlotEvent& event);
    void perform(const pool::SlotAction& action, const std::stop_token& stop);
    [[nodiscard]] pool::SlotEvent carry_out(const pool::SlotAction& action,
                                            Deadline deadline,
                                            const std::stop_token& stop);
    [[nodiscard]] pool::SlotEvent renew(int block, Deadline deadline, const std::stop_token& stop);
    void report(const pool::SlotAction& action);
    void say(const char* event, int block);
    void shed(std::unique_lock<std::mutex>& lock);
    void publish();
    void wake() noexcept;

    const SlotKeeperOptions options_;
    Logger& logger_;
    const Clock& clock_;
    const std::unique_ptr<Meters> meters_;
    BlockStore store_;

    mutable std::mutex mutex_;
    std::condition_variable_any changed_;
    pool::SlotBlocks blocks_;
    bool poked_ = false;
    bool wants_changed_ = false;
    bool stopped_ = false;
    int under_way_ = 0;                  // Actions queued for the workers or in progress.
    std::optional<Deadline> last_call_;  // For giving everything back at the end.
    ShedRegistry holders_;               // Not under the mutex: `shed` is called without it.
    pool::Workers<pool::SlotAction> workers_;
    std::jthread thread_;  // Last: it uses all of the above.
};

}  // namespace holdfast::dsql
