// Random histories, compared with a model that is too simple to be wrong: lists of who waits and
// of what is in which state, and the promises of the machine, checked answer by answer.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <holdfast/pool/machine.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::pool {
namespace {

using namespace std::chrono_literals;

struct Move {
    int what = 0;
    unsigned pick = 0;  // Of those it could be about, which one.
};

class Model {
public:
    Model(const Config& config, std::uint64_t seed)
        : config_(config), machine_(config, seed), hasty_(config, seed) {}

    void play(const Move& move) {
        switch (move.what) {
            case 0:
            case 1:
            case 2:
                return borrow(move.pick);
            case 3:
                return cancel(move.pick);
            case 4:
            case 5:
            case 6:
                return give_back(move.pick, false);
            case 7:
                return give_back(move.pick, true);
            case 8:
            case 9:
                return opened(move.pick);
            case 10:
                return open_failed(move.pick);
            case 11:
            case 12:
                return closed(move.pick);
            case 13:
                return pass_time(std::chrono::milliseconds{move.pick % 2000});
            case 14:
                return pass_time(std::chrono::seconds{move.pick % 300});
            case 15:
                return look(move.pick);
            case 16:
                return shed(move.pick);
            default:
                return resize(move.pick);
        }
    }

    // Everybody is answered, everything is closed, whatever the history was.
    void finish() {
        stopped_ = true;
        step(Stop{});
        RC_ASSERT(normal_.empty() && priority_.empty());
        while (!opening_.empty()) {
            opening_.size() % 2 == 0 ? opened(0) : open_failed(0);
        }
        while (!in_use_.empty()) {
            give_back(0, false);
        }
        while (!retiring_.empty()) {
            closed(0);
        }
        RC_ASSERT(ready_.empty());
        RC_ASSERT(machine_.counts().total() == 0);
        RC_ASSERT(machine_.next_wake() == Steady::max());
    }

private:
    struct Waiting {
        WaiterId id{};
        Steady deadline{};
    };

    void borrow(unsigned pick) {
        const Waiting waiter{WaiterId{++waiters_}, now_ + std::chrono::milliseconds{pick % 5000}};
        const Lane lane = pick % 7 == 0 ? Lane::priority : Lane::normal;
        auto& line = lane == Lane::priority ? priority_ : normal_;
        line.push_back(waiter);
        step(Borrow{.waiter = waiter.id, .deadline = waiter.deadline, .lane = lane});
    }

    void cancel(unsigned pick) {
        if (normal_.empty()) {
            return;
        }
        const auto victim = normal_.begin() + static_cast<long>(pick % normal_.size());
        const WaiterId id = victim->id;
        normal_.erase(victim);
        step(Cancel{id});
    }

    void give_back(unsigned pick, bool bad) {
        if (const auto id = take(in_use_, pick)) {
            loose_ = *id;
            step(GiveBack{.connection = *id,
                          .bad = bad ? std::optional(Reason::bad) : std::nullopt});
            settle_loose();
        }
    }

    void opened(unsigned pick) {
        if (const auto id = take(opening_, pick)) {
            loose_ = *id;
            born_[*id] = now_;
            step(Opened{*id});
            settle_loose();
        }
    }

    void open_failed(unsigned pick) {
        if (const auto id = take(opening_, pick)) {
            failures_ = true;
            step(OpenFailed{*id, static_cast<FailureClass>(pick % failure_classes)});
        }
    }

    void closed(unsigned pick) {
        if (const auto id = take(retiring_, pick)) {
            step(Closed{*id});
        }
    }

    void pass_time(std::chrono::nanoseconds by) {
        now_ += by;
        step(Tick{});
        for (const auto* line : {&normal_, &priority_}) {
            for (const Waiting& waiter : *line) {
                RC_ASSERT(now_ < waiter.deadline);
            }
        }
        RC_ASSERT(machine_.next_wake() > now_);
    }

    // Each is given back before anything else happens, but for some that turn out to be dead.
    void look(unsigned pick) {
        step(Look{.looker = looker, .before = now_, .most = static_cast<int>(pick % 4)});
        RC_ASSERT(looked_at_.size() <= pick % 4);
        while (const auto id = take(looked_at_, 0)) {
            loose_ = *id;
            const bool dead = (pick + id->slot) % 3 == 0;
            step(GiveBack{.connection = *id,
                          .bad = dead ? std::optional(Reason::dead) : std::nullopt});
            settle_loose();
        }
    }

    // As many go as must, and none that is needed elsewhere: idle ones at once.
    void shed(unsigned pick) {
        const int excess = static_cast<int>(pick % 4);
        const int idle = static_cast<int>(ready_.size());
        const int closing = static_cast<int>(retiring_.size());
        step(Shed{excess});
        const int gone = idle - static_cast<int>(ready_.size());
        RC_ASSERT(gone == std::clamp(excess - closing, 0, idle));
    }

    // So many may be on their way out, as their age says; the machine may not have noticed yet.
    [[nodiscard]] int ageing() const {
        int count = 0;
        for (const auto* some : {&ready_, &in_use_}) {
            for (const ConnectionId id : *some) {
                count += now_ - born_.at(id) >= shortest_ - config_.guard - config_.lead ? 1 : 0;
            }
        }
        return count + (loose_ ? 1 : 0);
    }

    void resize(unsigned pick) {
        config_.target = static_cast<int>(pick % 6) + 1;
        allowed_ = std::max(allowed_, total());
        step(Resize{config_.target});
    }

    static std::optional<ConnectionId> take(std::set<ConnectionId>& from, unsigned pick) {
        if (from.empty()) {
            return std::nullopt;
        }
        const auto found = std::next(from.begin(), static_cast<long>(pick % from.size()));
        const ConnectionId id = *found;
        from.erase(found);
        return id;
    }

    // What came back and was neither lent nor closed is ready.
    void settle_loose() {
        if (loose_) {
            ready_.insert(*loose_);
        }
        loose_.reset();
        compare();
    }

    void step(const Event& event) {
        actions_.clear();
        machine_.step(now_, event, actions_);
        step_hasty(event);
        for (const Action& action : actions_) {
            std::visit([&](const auto& what) { see(what); }, action);
        }
        if (!loose_) {
            compare();
        }
    }

    // The other one lends and takes back at once where it can. There must be no difference, now or
    // later.
    void step_hasty(const Event& event) {
        Actions said;
        bool done = false;
        if (const auto* borrow = std::get_if<Borrow>(&event)) {
            const auto lend = hasty_.lend_at_once(now_, borrow->waiter);
            done = lend.has_value();
            if (lend) {
                said.push_back(*lend);
            }
        } else if (const auto* back = std::get_if<GiveBack>(&event); back != nullptr) {
            done = !back->bad && hasty_.take_back_at_once(now_, back->connection);
        }
        if (!done) {
            hasty_.step(now_, event, said);
        }
        RC_ASSERT(said == actions_);
        RC_ASSERT(hasty_.counts() == machine_.counts());
        RC_ASSERT(hasty_.next_wake() == machine_.next_wake());
        RC_ASSERT(hasty_.oldest() == machine_.oldest());
    }

    void see(const Open& open) {
        RC_ASSERT(!stopped_);
        RC_ASSERT(births_.insert(open.connection.birth).second);
        opening_.insert(open.connection);
        RC_ASSERT(static_cast<int>(opening_.size()) <= config_.limits.opening_max);
        // Lent ones count: nothing is opened beyond what is used, waited for, or kept.
        const auto live = opening_.size() + ready_.size() + in_use_.size() + (loose_ ? 1 : 0);
        // Only a replacement that comes before the old one ends may be one too many.
        const auto twice = config_.lead > 0s ? static_cast<std::size_t>(ageing()) : 0;
        RC_ASSERT(live <= static_cast<std::size_t>(config_.target) + twice);
        RC_ASSERT(live <= std::max(static_cast<std::size_t>(config_.min_ready),
                                   in_use_.size() + normal_.size() + priority_.size()) +
                              twice);
    }

    void see(const Close& close) {
        if (loose_ == close.connection) {
            loose_.reset();
        } else {
            RC_ASSERT(ready_.erase(close.connection) == 1U);
        }
        retiring_.insert(close.connection);
    }

    void see(const Lend& lend) {
        RC_ASSERT(!stopped_);
        if (lend.waiter == looker) {
            RC_ASSERT(ready_.erase(lend.connection) == 1U);
            looked_at_.insert(lend.connection);
            return;
        }
        auto& line = priority_.empty() ? normal_ : priority_;
        RC_ASSERT(!line.empty());
        RC_ASSERT(line.front().id == lend.waiter);  // First come, first served.
        const bool now_or_never = line.front().deadline <= now_ && loose_ != lend.connection;
        RC_ASSERT(now_ < line.front().deadline || now_or_never);
        line.pop_front();
        RC_ASSERT(now_ - born_.at(lend.connection) <=
                  config_.life + config_.life_jitter - config_.guard);
        if (loose_ == lend.connection) {
            loose_.reset();
        } else {
            for (const ConnectionId other : ready_) {  // The oldest first.
                RC_ASSERT(born_.at(lend.connection) <= born_.at(other));
            }
            RC_ASSERT(ready_.erase(lend.connection) == 1U);
        }
        in_use_.insert(lend.connection);
    }

    void see(const Refuse& refuse) {
        auto& line = contains(priority_, refuse.waiter) ? priority_ : normal_;
        const auto found = std::find_if(line.begin(), line.end(), [&](const Waiting& waiter) {
            return waiter.id == refuse.waiter;
        });
        RC_ASSERT(found != line.end());
        switch (refuse.why) {
            case Refusal::timeout:
                RC_ASSERT(found->deadline <= now_);
                break;
            case Refusal::shutdown:
                RC_ASSERT(stopped_);
                break;
            case Refusal::unavailable:
                RC_ASSERT(config_.fail_fast != FailFast::never && failures_);
                RC_ASSERT(opening_.empty() && ready_.empty() && in_use_.empty());
                break;
        }
        line.erase(found);
    }

    static bool contains(const std::deque<Waiting>& line, WaiterId id) {
        return std::any_of(
            line.begin(), line.end(), [&](const Waiting& waiter) { return waiter.id == id; });
    }

    [[nodiscard]] int total() const {
        return static_cast<int>(opening_.size() + ready_.size() + looked_at_.size() +
                                in_use_.size() + retiring_.size());
    }

    void compare() {
        const Counts counts = machine_.counts();
        RC_ASSERT(counts.opening == static_cast<int>(opening_.size()));
        RC_ASSERT(counts.ready == static_cast<int>(ready_.size() + looked_at_.size()));
        RC_ASSERT(counts.in_use == static_cast<int>(in_use_.size()));
        RC_ASSERT(counts.retiring == static_cast<int>(retiring_.size()));
        RC_ASSERT(counts.waiting == static_cast<int>(normal_.size() + priority_.size()));
        RC_ASSERT(counts.bound == std::min(config_.target + config_.overshoot, config_.slots));
        RC_ASSERT(counts.total() <= std::max(counts.bound, allowed_));
        allowed_ = std::min(allowed_, total());
        RC_ASSERT(ready_.empty() || counts.waiting == 0);
        for (const auto* line : {&normal_, &priority_}) {
            for (const Waiting& waiter : *line) {
                RC_ASSERT(machine_.next_wake() <= waiter.deadline);
            }
        }
        if (!stopped_ && counts.waiting > 0 && counts.total() < counts.bound &&
            counts.live() < counts.target && counts.opening < counts.waiting &&
            looked_at_.empty()) {
            const bool paused = now_ < machine_.paused_until();
            RC_ASSERT(paused || counts.opening == config_.limits.opening_max);
            RC_ASSERT(!paused || machine_.next_wake() <= machine_.paused_until());
        }
    }

    static constexpr WaiterId looker{0};

    Config config_;
    Machine machine_;
    Machine hasty_;
    const std::chrono::nanoseconds shortest_ = 4min;  // Four tenths of ten minutes.
    Steady now_{1h};
    Actions actions_;
    std::uint64_t waiters_ = 0;
    std::deque<Waiting> normal_;
    std::deque<Waiting> priority_;
    std::set<ConnectionId> opening_;
    std::set<ConnectionId> ready_;
    std::set<ConnectionId> looked_at_;
    std::set<ConnectionId> in_use_;
    std::set<ConnectionId> retiring_;
    std::optional<ConnectionId> loose_;  // Just came back or was just opened.
    std::map<ConnectionId, Steady> born_;
    std::set<std::uint64_t> births_;
    int allowed_ = 0;  // What a pool that was made smaller may still hold.
    bool failures_ = false;
    bool stopped_ = false;
};

// Bounds, order, no lost waiter, every question answered once, all closed in the end.
RC_GTEST_PROP(MachineModel, KeepsItsPromisesInEveryHistory, ()) {
    Config config;
    config.target = *rc::gen::inRange(1, 7);
    config.min_ready = *rc::gen::element(0, 0, 2, 6);
    config.overshoot = *rc::gen::inRange(0, 2);
    config.slots = *rc::gen::element(1, 3, 100);
    config.life = 10min;
    config.life_jitter = 1min;
    config.guard = *rc::gen::element(0s, 45s);
    config.idle_max = 2min;
    config.lead = *rc::gen::element(0s, 30s);
    config.fail_fast = *rc::gen::element(FailFast::never, FailFast::at_first, FailFast::always);
    config.limits.opening_max = *rc::gen::inRange(1, 4);

    Model model(config, *rc::gen::arbitrary<std::uint64_t>());
    const auto steps = *rc::gen::inRange(0, 400);
    for (int i = 0; i < steps; ++i) {
        Move move;
        move.what = *rc::gen::inRange(0, 18);
        move.pick = *rc::gen::inRange(0U, 10'000U);
        model.play(move);
    }
    model.finish();
}

}  // namespace
}  // namespace holdfast::pool
