// Of all who stand for a key, one at a time leads.
//
// The leader holds a lock, which is extended while it leads. A leader that has lost it is told
// before anybody else can have it; what it writes all the same is harmless where its fence is
// checked, and only there: no election can promise more.
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
    std::string owner;  // As its locks say; empty if it is us.
    std::string meta;
    Fence fence{};  // The number of its term.
    ServerTime expires_at{};
    bool ours = false;
};

struct ElectionOptions {
    std::chrono::milliseconds ttl{15'000};  // How long a dead leader stands in the way.
    AutoExtend auto_extend{};
    std::chrono::milliseconds observe_every{2'000};  // How often a candidate looks who leads.
    std::string meta{};                              // For people who ask who leads.
    // Somebody leads who did not before; also if it is us. Whoever leads briefly may go unnoticed.
    std::function<void(const Leader&)> on_new_leader{};
    // We do not lead any more, and did not resign. Called after the leader's function has returned.
    std::function<void(LostReason)> on_lost{};
    Keeper* keeper = nullptr;      // Null: one of its own, with its threads.
    Logger* logger = nullptr;      // Null: silence.
    const Clock* clock = nullptr;  // Null: the machine's.
};

class Election {
public:
    // What a leader does. It should return when the token fires: the term is over then, because
    // the lock is lost, or because we resign. Writes carry the fence of `lock`.
    using Lead = std::function<void(Handle& lock, const std::stop_token& over)>;

    // Requires: `backend`, and the keeper if there is one, outlive this object. Throws
    // invalid_argument unless key, ttl and auto_extend fit and observe_every is positive.
    Election(Backend& backend, std::string_view key, ElectionOptions options = {});
    Election(const Election&) = delete;
    Election& operator=(const Election&) = delete;

    // Stands for election, leads when elected, and stands again when the lead is lost. Blocks until
    // `stop` fires, somebody calls resign, or `lead` returns while we still lead: that is to
    // resign. Afterwards we do not lead, and may run again. All functions are called on this
    // thread; what they throw ends the candidacy and is passed on. A database out of reach is
    // waited for; a failure that waiting cannot cure is thrown. Requires: it is not running
    // already.
    void run(const Lead& lead, const std::stop_token& stop = {});
    // Ends the term and the candidacy. From any thread; returns at once.
    void resign();

    [[nodiscard]] bool leading() const noexcept { return our_fence_ != 0; }
    // Who leads, for those who only want to know; empty if nobody does. Old news when it arrives.
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
