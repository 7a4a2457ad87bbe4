// The connection pool as a pure state machine.
//
// It decides which borrower gets which connection, when one is opened and when one is retired; it
// has no threads, no clock and does no I/O. A driver passes events with their times, and carries
// out the answers: the threaded pool of pool.hpp, and the simulator with time of its own.
//
//     Opening -> Ready <-> InUse -> Retiring -> Closed
//
// At all times opening + ready + in_use + retiring <= min(target + overshoot, slots). What is lent
// counts as there: lending never makes room for an opening.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/random.hpp>
#include <holdfast/pool/config.hpp>

namespace holdfast::pool {

// Chosen by the driver; unique among those that wait.
enum class WaiterId : std::uint64_t {};

// Chosen by the machine. `slot` is small and used again once the connection is closed, so a driver
// can keep connections in an array; `birth` never repeats.
struct ConnectionId {
    std::uint32_t slot = 0;
    std::uint64_t birth = 0;

    friend auto operator<=>(const ConnectionId&, const ConnectionId&) = default;
};

// Priority is for borrowers that free something, e.g. the release of a lock. They go before all
// others; among themselves they keep their order.
enum class Lane { normal, priority };

// Why a connection is closed.
enum class Reason {
    expired,  // Less than `guard` of its life is left.
    idle,     // Not borrowed for `idle_max`.
    bad,      // Reported by its borrower.
    dead,     // Found dead before it was lent: the server has closed it.
    surplus,  // The pool became smaller.
    shutdown,
    slot_lost,  // The right to hold it is gone.
};
inline constexpr std::size_t reasons = 7;

[[nodiscard]] std::string_view to_string(Reason reason) noexcept;

// --- What happened ---

// Answered by exactly one Lend or Refuse, unless Cancel comes first. A deadline that has passed
// means: now or never.
struct Borrow {
    WaiterId waiter{};
    Steady deadline{};
    Lane lane = Lane::normal;
    bool first = false;  // It was lent a dead connection: goes ahead of its lane.
};

// No effect if the waiter is not waiting any more.
struct Cancel {
    WaiterId waiter{};
};

struct GiveBack {
    ConnectionId connection;
    std::optional<Reason> bad{};  // Empty: it can serve again.
};

struct Opened {
    ConnectionId connection;
};

struct OpenFailed {
    ConnectionId connection;
    FailureClass failure = FailureClass::other;
};

struct Closed {
    ConnectionId connection;
};

// Time has passed. Wanted at next_wake(); harmless at any moment.
struct Tick {};

struct Resize {
    int target = 1;
};

// The number of connections to close, because the right to hold them is gone: idle ones now, lent
// ones when they are returned. Those being closed count. Replaces the earlier number; 0 cancels it.
struct Shed {
    int connections = 0;
};

// Checks idle connections, to find dead ones. Answered by a Lend of each that has not been used or
// checked since `before`, at most `most` of them; each is given back at once, and its idle time is
// not reset. `looker` is not the id of a waiter.
struct Look {
    WaiterId looker{};
    Steady before{};
    int most = 1;
};

// No borrower is served any more. Idle connections are closed now, the others when they are
// returned.
struct Stop {};

using Event = std::
    variant<Borrow, Cancel, GiveBack, Opened, OpenFailed, Closed, Tick, Resize, Shed, Look, Stop>;

// --- What to do ---

// To be answered by exactly one Opened or OpenFailed.
struct Open {
    ConnectionId connection;
    friend bool operator==(const Open&, const Open&) = default;
};

// To be answered by exactly one Closed.
struct Close {
    ConnectionId connection;
    Reason reason = Reason::bad;
    friend bool operator==(const Close&, const Close&) = default;
};

// To be answered by exactly one GiveBack.
struct Lend {
    WaiterId waiter{};
    ConnectionId connection;
    std::chrono::nanoseconds idle{};  // How long it was not used.
    friend bool operator==(const Lend&, const Lend&) = default;
};

enum class Refusal {
    timeout,      // The waiter's deadline has passed.
    unavailable,  // fail_fast: nothing is open, and opening fails.
    shutdown,
};

struct Refuse {
    WaiterId waiter{};
    Refusal why = Refusal::timeout;
    std::optional<FailureClass> last_failure{};  // Set while the latest opening is a failed one.
    friend bool operator==(const Refuse&, const Refuse&) = default;
};

using Action = std::variant<Open, Close, Lend, Refuse>;
using Actions = std::vector<Action>;

struct Counts {
    int opening = 0;
    int ready = 0;  // Includes those being checked.
    int in_use = 0;
    int retiring = 0;
    int waiting = 0;
    int target = 0;
    int bound = 0;  // min(target + overshoot, slots)

    [[nodiscard]] int live() const noexcept { return opening + ready + in_use; }
    [[nodiscard]] int total() const noexcept { return live() + retiring; }
    friend bool operator==(const Counts&, const Counts&) = default;
};

// Not safe to share between threads. Events that break a rule above (a second Opened, a GiveBack of
// a connection that was not lent) violate an invariant and stop the process.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): what is hot begins at a cache line.
class Machine {
public:
    // Requires: check(config) accepts it. The same seed and events give the same actions.
    Machine(const Config& config, std::uint64_t seed);

    // Appends to `out`; the caller empties it. Requires: `now` never goes back. Lending and taking
    // back do not allocate once `out` has grown.
    void step(Steady now, const Event& event, Actions& out);

    // Borrow and GiveBack as step() does them, where nothing follows but that one connection is
    // lent, or kept for the next: as it is nearly always. So there is no list of answers, and
    // next_wake() stays as it is. Empty or false: nothing was done; call step().
    [[nodiscard]] std::optional<Lend> lend_at_once(Steady now, WaiterId waiter);
    [[nodiscard]] bool take_back_at_once(Steady now, ConnectionId connection);

    // When a Tick is wanted if nothing happens before; Steady::max() if never. Never too late;
    // too early if the cause has gone since, until the next Tick.
    [[nodiscard]] Steady next_wake() const noexcept { return wake_; }

    [[nodiscard]] Counts counts() const noexcept;
    [[nodiscard]] bool stopped() const noexcept { return stopped_; }
    // When the oldest of those ready and in use was opened; empty if there is none.
    [[nodiscard]] std::optional<Steady> oldest() const noexcept;
    // Failures of this class in a row.
    [[nodiscard]] int failures(FailureClass failure) const noexcept {
        return pauses_[static_cast<std::size_t>(failure)].failures;
    }
    // When openings may go on after a failure; in the past if they are not paused.
    [[nodiscard]] Steady paused_until() const noexcept { return paused_until_; }

private:
    enum class State : std::uint8_t { closed, opening, ready, looked_at, in_use, retiring };

    // Threads hand the machine to each other with every borrow, so what one writes there should lie
    // in few cache lines, and in no more than it needs.
    static constexpr std::size_t cache_line = 64;

    struct alignas(cache_line) Slot {
        State state = State::closed;
        std::uint64_t birth = 0;
        Steady opened{};
        Steady unusable_from{};  // From here on less than `guard` of its life is left.
        Steady ready_since{};
        Steady seen{};        // When it was last known to be alive.
        bool ageing = false;  // Its replacement is due, or there.
    };

    [[nodiscard]] static bool is_open(const Slot& slot) noexcept;

    struct Waiter {
        WaiterId id{};
        Steady deadline{};
    };

    struct Pause {
        int failures = 0;         // In a row.
        std::uint64_t birth = 0;  // The newest opening at the latest failure.
        Steady until{};
    };

    void on(Steady now, const Borrow& borrow, Actions& out);
    void on(Steady now, const Cancel& cancel, Actions& out);
    void on(Steady now, const GiveBack& back, Actions& out);
    void on(Steady now, const Opened& opened, Actions& out);
    void on(Steady now, const OpenFailed& failed, Actions& out);
    void on(Steady now, const Closed& closed, Actions& out);
    void on(Steady now, const Tick& tick, Actions& out);
    void on(Steady now, const Resize& resize, Actions& out);
    void on(Steady now, const Shed& shed, Actions& out);
    void on(Steady now, const Look& look, Actions& out);
    void on(Steady now, const Stop& stop, Actions& out);

    [[nodiscard]] std::uint32_t checked(ConnectionId connection, State expected) const;
    [[nodiscard]] std::uint32_t checked_loan(ConnectionId connection) const;
    [[nodiscard]] ConnectionId id_of(std::uint32_t slot) const noexcept {
        return {.slot = slot, .birth = slots_[slot].birth};
    }
    [[nodiscard]] int count(State state) const noexcept {
        return count_[static_cast<std::size_t>(state)];
    }
    [[nodiscard]] int live() const noexcept {
        return count(State::opening) + count(State::ready) + count(State::looked_at) +
               count(State::in_use);
    }
    [[nodiscard]] int total() const noexcept;
    [[nodiscard]] int waiting() const noexcept;
    [[nodiscard]] int wanted() const noexcept;
    // How many stay open without demand.
    [[nodiscard]] int kept() const noexcept { return std::min(config_.min_ready, config_.target); }
    [[nodiscard]] int bound() const noexcept;
    void move(Slot& slot, State to) noexcept {
        --count_[static_cast<std::size_t>(slot.state)];
        ++count_[static_cast<std::size_t>(to)];
        slot.state = to;
    }
    void release(std::uint32_t slot);

    void offer(Steady now, std::uint32_t slot, Actions& out);
    [[nodiscard]] Lend lend(Steady now, WaiterId waiter, std::uint32_t number) noexcept;
    [[nodiscard]] static bool younger(const Slot& a, const Slot& b) noexcept;
    void keep(std::uint32_t number);
    void insert_ready(std::uint32_t slot);
    void retire(std::uint32_t slot, Reason reason, Actions& out);
    [[nodiscard]] std::uint32_t pop_oldest() noexcept;
    template <class Leaves>
    void erase_ready(Leaves leaves);
    [[nodiscard]] std::optional<std::uint32_t> take_oldest(Steady now, Actions& out);
    void retire_overdue(Steady now, Actions& out);
    void note_ageing(Steady now) noexcept;
    void retire_replaced(Actions& out);

    [[nodiscard]] std::optional<WaiterId> next_waiter(Steady now, Actions& out);
    void refuse(WaiterId waiter, Refusal why, Actions& out) const;
    void refuse_all(Refusal why, Actions& out);
    void refuse_overdue(Steady now, Actions& out);
    [[nodiscard]] bool unreachable() const noexcept;

    void refill(Steady now, Actions& out);
    void back_off(Steady now, const OpenFailed& failed) noexcept;
    void note_success(std::uint64_t birth) noexcept;
    void plan_wake() noexcept;
    void wake_by(Steady when) noexcept;
    [[nodiscard]] Steady overdue_from(const Slot& slot, Steady idle_since) const noexcept;
    [[nodiscard]] Steady ageing_from(const Slot& slot) const noexcept;

    [[nodiscard]] std::chrono::nanoseconds draw_life() noexcept;
    void spread_lives(int more) noexcept;
    void note_loss(Steady now) noexcept;
    [[nodiscard]] bool calm() const noexcept;
    void check_beliefs() noexcept;

    Config config_;
    Random random_;

    std::vector<Slot> slots_;
    std::vector<std::uint32_t> free_;  // Slots in state closed.
    // Slots in state ready, the oldest last. It is the oldest that are lent, so they are taken from
    // the end and mostly come back to it.
    alignas(cache_line) std::vector<std::uint32_t> ready_;
    std::array<int, 6> count_{};  // Slots by state.
    bool stopped_ = false;
    bool calm_ = false;  // As of the latest step; lending and taking back at once do not change it.
    std::uint64_t births_ = 0;
    int ageing_ = 0;     // Of those ready, being checked and in use.
    int shed_left_ = 0;  // How many more to close when they are returned.
    int ceiling_ = 0;    // The bound; more only while a pool that was made smaller comes down.

    std::array<std::deque<Waiter>, 2> waiting_;  // By lane, first come first served.
    Steady wake_ = Steady::max();

    std::array<Pause, failure_classes> pauses_{};
    Steady paused_until_{};
    std::optional<FailureClass> last_failure_;
    bool opened_once_ = false;

    int spread_left_ = 0;  // How many of the present generation are still to be opened,
    int spread_of_ = 0;    // and how many it has.
    int losses_ = 0;       // Since losses_since_.
    Steady losses_since_{};
};

// --- Inline for speed: every transaction runs this twice ---

inline std::optional<Lend> Machine::lend_at_once(Steady now, WaiterId waiter) {
    if (!calm_ || ready_.empty() || now >= slots_[ready_.back()].unusable_from) {
        return std::nullopt;
    }
    return lend(now, waiter, pop_oldest());
}

inline bool Machine::take_back_at_once(Steady now, ConnectionId connection) {
    if (!calm_ || connection.slot >= slots_.size()) {
        return false;
    }
    Slot& slot = slots_[connection.slot];
    const bool lent = slot.birth == connection.birth && slot.state == State::in_use;
    if (!lent || now >= slot.unusable_from || overdue_from(slot, now) < wake_) {
        return false;
    }
    slot.seen = now;
    slot.ready_since = now;
    keep(connection.slot);
    return true;
}

inline Lend Machine::lend(Steady now, WaiterId waiter, std::uint32_t number) noexcept {
    Slot& slot = slots_[number];
    move(slot, State::in_use);
    return {.waiter = waiter,
            .connection = {.slot = number, .birth = slot.birth},
            .idle = now - slot.ready_since};
}

inline void Machine::keep(std::uint32_t number) {
    Slot& slot = slots_[number];
    move(slot, State::ready);
    if (ready_.empty() || younger(slots_[ready_.back()], slot)) {
        ready_.push_back(number);
        return;
    }
    insert_ready(number);
}

inline bool Machine::younger(const Slot& a, const Slot& b) noexcept {
    return a.opened != b.opened ? a.opened > b.opened : a.birth > b.birth;
}

inline std::uint32_t Machine::pop_oldest() noexcept {
    const auto slot = ready_.back();
    ready_.pop_back();
    return slot;
}

// When a connection that is ready, and idle since then, has to be closed.
inline Steady Machine::overdue_from(const Slot& slot, Steady idle_since) const noexcept {
    const bool spare = live() - ageing_ > kept();
    return spare ? std::min(slot.unusable_from, idle_since + config_.idle_max) : slot.unusable_from;
}

}  // namespace holdfast::pool
