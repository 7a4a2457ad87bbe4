// Leader election: of all candidates for a key, one at a time leads.
//
// The leader holds a lock, which is extended while it leads. A leader that has lost it is told
// before another candidate can acquire it. Later writes of the old leader are harmless only where
// its fence is checked: no election can promise more.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include <holdfast/lock/handle.hpp>
#include <holdfast/lock/keeper.hpp>

namespace holdfast::lock {

struct Leader {
    std::string owner;  // The owner of its lock; empty if it is this candidate.
    std::string meta;
    Fence fence{};  // The fence of its term.
    ServerTime expires_at{};
    bool ours = false;
};

struct ElectionOptions {
    std::chrono::milliseconds ttl{15'000};  // How long a dead leader blocks the election.
    AutoExtend auto_extend{};
    std::chrono::milliseconds observe_every{2'000};  // How often a candidate reads who leads.
    std::string meta{};                              // Shown with the lock.
    // Called for each new leader, this candidate included. A short term may go unnoticed.
    std::function<void(const Leader&)> on_new_leader{};
    // This candidate has lost the lead without resigning. Called after the leader's function has
    // returned.
    std::function<void(LostReason)> on_lost{};
    Keeper* keeper = nullptr;      // Null: one of its own, with its threads.
    Logger* logger = nullptr;      // Null: silence.
    const Clock* clock = nullptr;  // Null: the machine's.
};

class Election {
public:
    // The work of the leader. It should return when the token fires: then the term is over, because
    // the lock is lost or the candidate resigns. Writes carry the fence of `lock`.
    using Lead = std::function<void(Handle& lock, const std::stop_token& over)>;

    // Requires: `backend`, and the keeper if there is one, outlive this object. Throws
    // invalid_argument unless key, ttl and auto_extend fit and observe_every is positive.
    Election(Backend& backend, std::string_view key, ElectionOptions options = {});
    Election(const Election&) = delete;
    Election& operator=(const Election&) = delete;

    // Stands for election, leads when elected, and stands again when the lead is lost. Blocks until
    // `stop` fires, resign is called, or `lead` returns during its term, which also resigns.
    // Afterwards the candidate does not lead, and may run again. All functions are called on this
    // thread; what they throw ends the candidacy and is passed on. `run` waits for an unreachable
    // database, and throws failures that waiting cannot cure. Requires: it is not running already.
    void run(const Lead& lead, const std::stop_token& stop = {});
    // Ends the term and the candidacy. From any thread; returns at once.
    void resign();

    [[nodiscard]] bool leading() const noexcept { return our_fence_ != 0; }
    // The current leader, without standing for election; empty if there is none. May be out of date
    // when it is returned.
    [[nodiscard]] std::optional<Leader> observe(const CallOptions& options = {});

private:
    class Candidacy;

    std::optional<Handle> wait_until_elected(const std::stop_token& over);
    // False if the lead was lost.
    bool serve(Handle& lock, const Lead& lead, const std::stop_token& over);
    void look_who_leads();
    void announce(const Leader& leader);

    Backend& backend_;
    std::string key_;
    ElectionOptions options_;
    std::unique_ptr<Keeper> own_keeper_;
    Keeper* keeper_;
    Fence newest_{};  // Of the leaders that were announced.
    std::atomic<std::uint64_t> our_fence_ = 0;
    std::mutex mutex_;
    std::optional<std::stop_source> running_;
};

}  // namespace holdfast::lock
