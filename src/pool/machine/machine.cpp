#include <holdfast/pool/machine.hpp>

#include <algorithm>
#include <utility>

#include "durations.hpp"

#include <holdfast/base/assert.hpp>

namespace holdfast::pool {
namespace {

using std::chrono::nanoseconds;

// Priority first.
constexpr std::array<Lane, 2> lanes_in_order{Lane::priority, Lane::normal};

template <class Enum>
constexpr std::size_t index(Enum value) noexcept {
    return static_cast<std::size_t>(value);
}

}  // namespace

bool Machine::is_open(const Slot& slot) noexcept {
    return slot.state == State::ready || slot.state == State::looked_at ||
           slot.state == State::in_use;
}

std::string_view to_string(Reason reason) noexcept {
    switch (reason) {
        case Reason::expired:
            return "expired";
        case Reason::idle:
            return "idle";
        case Reason::bad:
            return "bad";
        case Reason::dead:
            return "server_closed";
        case Reason::surplus:
            return "surplus";
        case Reason::shutdown:
            return "shutdown";
        case Reason::slot_lost:
            return "slot_lost";
    }
    return "bad";
}

Machine::Machine(const Config& config, std::uint64_t seed) : config_(config), random_(seed) {
    check(config);
    ceiling_ = bound();
    spread_lives(config.target);
}

void Machine::step(Steady now, const Event& event, Actions& out) {
    std::visit([&](const auto& what) { on(now, what, out); }, event);
    retire_replaced(out);
    refill(now, out);
    check_beliefs();
    calm_ = calm();
}

// Whether lending one, or keeping a returned one, has no other effect: there are no waiters, and
// nothing is to be opened, replaced or closed.
bool Machine::calm() const noexcept {
    return !stopped_ && waiting() == 0 && ageing_ == 0 && shed_left_ == 0 && live() >= kept() &&
           live() <= config_.target;
}

// --- Events ---

void Machine::on(Steady now, const Borrow& borrow, Actions& out) {
    if (stopped_) {
        return refuse(borrow.waiter, Refusal::shutdown, out);
    }
    if (const auto slot = take_oldest(now, out)) {
        out.push_back(lend(now, borrow.waiter, *slot));
        return;
    }
    if (borrow.deadline <= now) {
        return refuse(borrow.waiter, Refusal::timeout, out);
    }
    // A borrower during the pause would only wait for the next failure.
    if (unreachable() && now < paused_until_) {
        return refuse(borrow.waiter, Refusal::unavailable, out);
    }
    auto& line = waiting_[index(borrow.lane)];
    const Waiter waiter{.id = borrow.waiter, .deadline = borrow.deadline};
    line.insert(borrow.first ? line.begin() : line.end(), waiter);
    wake_by(borrow.deadline);
}

void Machine::on(Steady /*now*/, const Cancel& cancel, Actions& /*out*/) {
    for (auto& line : waiting_) {
        std::erase_if(line, [&](const Waiter& waiter) { return waiter.id == cancel.waiter; });
    }
}

void Machine::on(Steady now, const GiveBack& back, Actions& out) {
    const auto slot = checked_loan(back.connection);
    const bool shed = shed_left_ > 0;
    shed_left_ -= shed ? 1 : 0;
    if (back.bad) {
        note_loss(now);
        return retire(slot, *back.bad, out);
    }
    if (shed) {
        return retire(slot, Reason::slot_lost, out);
    }
    offer(now, slot, out);
}

void Machine::on(Steady now, const Opened& opened, Actions& out) {
    const auto number = checked(opened.connection, State::opening);
    Slot& slot = slots_[number];
    note_success(slot.birth);
    slot.opened = now;
    // With exactly `guard` left it is usable; with nothing left it is not.
    const nanoseconds unusable_at_end = std::max(config_.guard - nanoseconds{1}, nanoseconds{0});
    slot.unusable_from = now + draw_life() - unusable_at_end;
    opened_once_ = true;
    if (!stopped_) {
        wake_by(ageing_from(slot));
    }
    offer(now, number, out);
}

void Machine::on(Steady now, const OpenFailed& failed, Actions& out) {
    const auto slot = checked(failed.connection, State::opening);
    back_off(now, failed);
    release(slot);
    if (unreachable()) {
        refuse_all(Refusal::unavailable, out);
    }
}

void Machine::on(Steady /*now*/, const Closed& closed, Actions& /*out*/) {
    release(checked(closed.connection, State::retiring));
}

void Machine::on(Steady now, const Tick& /*tick*/, Actions& out) {
    if (stopped_) {
        return;
    }
    refuse_overdue(now, out);
    retire_overdue(now, out);
    note_ageing(now);
    plan_wake();
}

void Machine::on(Steady now, const Resize& resize, Actions& out) {
    HOLDFAST_ASSERT(resize.target >= 1);
    HOLDFAST_ASSERT(resize.target <= target_max);
    if (stopped_) {
        return;
    }
    const int more = resize.target - config_.target;
    config_.target = resize.target;
    spread_lives(std::max(more, 0));
    ceiling_ = std::max(bound(), total());  // Lent connections cannot be revoked.
    while (live() > config_.target && !ready_.empty()) {
        retire(pop_oldest(), Reason::surplus, out);
    }
    refuse_overdue(now, out);
    plan_wake();
}

void Machine::on(Steady /*now*/, const Shed& shed, Actions& out) {
    if (stopped_) {
        return;
    }
    shed_left_ = std::max(shed.connections - count(State::retiring), 0);
    while (shed_left_ > 0 && !ready_.empty()) {
        --shed_left_;
        retire(pop_oldest(), Reason::slot_lost, out);
    }
    shed_left_ = std::min(shed_left_, count(State::in_use) + count(State::looked_at));
}

void Machine::on(Steady now, const Look& look, Actions& out) {
    int left = look.most;
    erase_ready([&](std::uint32_t slot) {
        if (left == 0 || slots_[slot].seen >= look.before) {
            return false;
        }
        --left;
        move(slots_[slot], State::looked_at);
        out.push_back(Lend{.waiter = look.looker,
                           .connection = id_of(slot),
                           .idle = now - slots_[slot].ready_since});
        return true;
    });
}

void Machine::on(Steady /*now*/, const Stop& /*stop*/, Actions& out) {
    stopped_ = true;
    refuse_all(Refusal::shutdown, out);
    while (!ready_.empty()) {
        retire(pop_oldest(), Reason::shutdown, out);
    }
    wake_ = Steady::max();
}

// --- Connections ---

std::uint32_t Machine::checked(ConnectionId connection, State expected) const {
    HOLDFAST_ASSERT(connection.slot < slots_.size());
    HOLDFAST_ASSERT(slots_[connection.slot].birth == connection.birth);
    HOLDFAST_ASSERT(slots_[connection.slot].state == expected);
    return connection.slot;
}

std::uint32_t Machine::checked_loan(ConnectionId connection) const {
    const auto slot = connection.slot;
    const bool looked_at = slot < slots_.size() && slots_[slot].state == State::looked_at;
    return checked(connection, looked_at ? State::looked_at : State::in_use);
}

void Machine::release(std::uint32_t slot) {
    move(slots_[slot], State::closed);
    free_.push_back(slot);
}

// Gives a connection that has just become free to the first waiter, or keeps it.
void Machine::offer(Steady now, std::uint32_t slot, Actions& out) {
    slots_[slot].seen = now;
    if (slots_[slot].state != State::looked_at) {
        slots_[slot].ready_since = now;
    }
    if (stopped_) {
        return retire(slot, Reason::shutdown, out);
    }
    if (now >= slots_[slot].unusable_from) {
        return retire(slot, Reason::expired, out);
    }
    if (live() - ageing_ > config_.target) {
        return retire(slot, Reason::surplus, out);
    }
    if (const auto waiter = next_waiter(now, out)) {
        out.push_back(lend(now, *waiter, slot));
        return;
    }
    keep(slot);
    wake_by(overdue_from(slots_[slot], slots_[slot].ready_since));
}

// Mostly its place is near the end; where many are returned together it can be anywhere. Requires:
// the last one is older.
void Machine::insert_ready(std::uint32_t number) {
    constexpr std::size_t near_max = 8;
    const auto younger_than = [this](std::uint32_t a, std::uint32_t b) {
        return younger(slots_[a], slots_[b]);
    };
    const auto far_end =
        ready_.end() - static_cast<std::ptrdiff_t>(std::min(near_max, ready_.size()));
    auto place = ready_.end() - 1;
    while (place != far_end && !younger_than(*(place - 1), number)) {
        --place;
    }
    if (place == far_end) {
        place = std::upper_bound(ready_.begin(), far_end, number, younger_than);
    }
    ready_.insert(place, number);
}

void Machine::retire(std::uint32_t slot, Reason reason, Actions& out) {
    ageing_ -= std::exchange(slots_[slot].ageing, false) ? 1 : 0;
    move(slots_[slot], State::retiring);
    out.push_back(Close{.connection = id_of(slot), .reason = reason});
}

// Asks about each, the oldest first.
template <class Leaves>
void Machine::erase_ready(Leaves leaves) {
    const auto last = std::remove_if(ready_.rbegin(), ready_.rend(), leaves);
    ready_.erase(ready_.begin(), last.base());
}

std::optional<std::uint32_t> Machine::take_oldest(Steady now, Actions& out) {
    while (!ready_.empty()) {
        const auto slot = pop_oldest();
        if (now < slots_[slot].unusable_from) {
            return slot;
        }
        retire(slot, Reason::expired, out);
    }
    return std::nullopt;
}

void Machine::retire_overdue(Steady now, Actions& out) {
    erase_ready([&](std::uint32_t slot) {
        const bool expired = now >= slots_[slot].unusable_from;
        if (now < overdue_from(slots_[slot], slots_[slot].ready_since)) {
            return false;
        }
        retire(slot, expired ? Reason::expired : Reason::idle, out);
        return true;
    });
}

void Machine::note_ageing(Steady now) noexcept {
    if (config_.lead == nanoseconds{0}) {
        return;
    }
    for (Slot& slot : slots_) {
        if (is_open(slot) && !slot.ageing && now >= ageing_from(slot)) {
            slot.ageing = true;
            ++ageing_;
        }
    }
}

// Those whose replacement is there, or that need none.
void Machine::retire_replaced(Actions& out) {
    if (ageing_ == 0) {
        return;
    }
    erase_ready([&](std::uint32_t slot) {
        if (!slots_[slot].ageing || live() - count(State::opening) <= wanted()) {
            return false;
        }
        retire(slot, Reason::expired, out);
        return true;
    });
}

// --- Waiters ---

std::optional<WaiterId> Machine::next_waiter(Steady now, Actions& out) {
    for (const Lane lane : lanes_in_order) {
        auto& line = waiting_[index(lane)];
        while (!line.empty()) {
            const Waiter waiter = line.front();
            line.pop_front();
            if (now < waiter.deadline) {
                return waiter.id;
            }
            refuse(waiter.id, Refusal::timeout, out);
        }
    }
    return std::nullopt;
}

void Machine::refuse(WaiterId waiter, Refusal why, Actions& out) const {
    out.push_back(Refuse{.waiter = waiter, .why = why, .last_failure = last_failure_});
}

void Machine::refuse_all(Refusal why, Actions& out) {
    for (const Lane lane : lanes_in_order) {
        auto& line = waiting_[index(lane)];
        for (const Waiter& waiter : line) {
            refuse(waiter.id, why, out);
        }
        line.clear();
    }
}

void Machine::refuse_overdue(Steady now, Actions& out) {
    for (const Lane lane : lanes_in_order) {
        std::erase_if(waiting_[index(lane)], [&](const Waiter& waiter) {
            if (now < waiter.deadline) {
                return false;
            }
            refuse(waiter.id, Refusal::timeout, out);
            return true;
        });
    }
}

bool Machine::unreachable() const noexcept {
    const bool fast = config_.fail_fast == FailFast::always ||
                      (config_.fail_fast == FailFast::at_first && !opened_once_);
    return fast && live() == 0 && last_failure_ != FailureClass::full &&
           last_failure_ != FailureClass::rate_limited;
}

// --- Openings ---

// The one formula: as many as are used and waited for, at least min_ready, at most target.
int Machine::wanted() const noexcept {
    return std::min(config_.target, std::max(config_.min_ready, count(State::in_use) + waiting()));
}

// Ageing connections do not count: their replacements come first.
void Machine::refill(Steady now, Actions& out) {
    if (stopped_) {
        return;
    }
    const int need = wanted() - (live() - ageing_);
    if (need <= 0) {
        return;
    }
    if (now < paused_until_) {
        return wake_by(paused_until_);
    }

    const int room =
        std::min(bound() - total(), config_.limits.opening_max - count(State::opening));
    for (int i = 0; i < std::min(need, room); ++i) {
        if (free_.empty()) {
            free_.push_back(static_cast<std::uint32_t>(slots_.size()));
            slots_.emplace_back();
            ++count_[index(State::closed)];
            ready_.reserve(slots_.capacity());  // Giving back must not allocate.
        }
        const auto slot = free_.back();
        free_.pop_back();
        move(slots_[slot], State::opening);
        slots_[slot].birth = ++births_;
        out.push_back(Open{.connection = id_of(slot)});
    }
}

// Openings that were under way together fail together. They count as one failure; otherwise eight
// of them would give the longest pause at the first failure.
void Machine::back_off(Steady now, const OpenFailed& failed) noexcept {
    last_failure_ = failed.failure;
    Pause& pause = pauses_[index(failed.failure)];
    if (failed.connection.birth <= pause.birth) {
        return;
    }
    pause.birth = births_;
    ++pause.failures;

    const Backoff& rule = config_.limits.backoff[index(failed.failure)];
    nanoseconds longest = rule.first;
    for (int i = 1; i < pause.failures && longest < rule.most; ++i) {
        longest *= 2;
    }
    pause.until = now + part_of(std::min(longest, rule.most), random_.unit());
    paused_until_ = std::max(paused_until_, pause.until);
}

// An opening that began before the failure proves nothing about the time after it.
void Machine::note_success(std::uint64_t birth) noexcept {
    last_failure_.reset();
    paused_until_ = {};
    for (Pause& pause : pauses_) {
        if (birth > pause.birth) {
            pause = {};
        }
        paused_until_ = std::max(paused_until_, pause.until);
    }
}

// --- Time ---

void Machine::plan_wake() noexcept {
    wake_ = Steady::max();
    for (const auto slot : ready_) {
        wake_by(overdue_from(slots_[slot], slots_[slot].ready_since));
    }
    if (config_.lead > nanoseconds{0}) {
        for (const Slot& slot : slots_) {
            if (is_open(slot) && !slot.ageing) {
                wake_by(ageing_from(slot));
            }
        }
    }
    for (const auto& line : waiting_) {
        for (const Waiter& waiter : line) {
            wake_by(waiter.deadline);
        }
    }
}

void Machine::wake_by(Steady when) noexcept {
    wake_ = std::min(wake_, when);
}

Steady Machine::ageing_from(const Slot& slot) const noexcept {
    return config_.lead == nanoseconds{0} ? Steady::max() : slot.unusable_from - config_.lead;
}

nanoseconds Machine::draw_life() noexcept {
    const nanoseconds longest = config_.life + config_.life_jitter;
    if (spread_left_ == 0) {
        return config_.life + part_of(config_.life_jitter, random_.unit());
    }

    const nanoseconds shortest =
        std::min(longest,
                 std::max(part_of(config_.life, config_.limits.spread_from),
                          config_.guard + config_.limits.spread_margin));
    const int number = spread_of_ - spread_left_--;
    return shortest + part_of(longest - shortest, (number + random_.unit()) / spread_of_);
}

// Spreads the lives of the next `more` connections evenly.
void Machine::spread_lives(int more) noexcept {
    if (more == 0) {
        return;
    }
    spread_left_ = std::min(spread_left_ + more, config_.target);
    spread_of_ = spread_left_;
}

void Machine::note_loss(Steady now) noexcept {
    if (now - losses_since_ > config_.limits.mass_loss_window) {
        losses_since_ = now;
        losses_ = 0;
    }
    ++losses_;
    if (losses_ * 2 < config_.target) {
        return;
    }
    losses_ = 0;
    spread_lives(config_.target);
}

// --- Counts ---

int Machine::total() const noexcept {
    return live() + count(State::retiring);
}

int Machine::waiting() const noexcept {
    return static_cast<int>(waiting_[0].size() + waiting_[1].size());
}

int Machine::bound() const noexcept {
    return std::min(config_.target + config_.overshoot, config_.slots);
}

Counts Machine::counts() const noexcept {
    return {.opening = count(State::opening),
            .ready = count(State::ready) + count(State::looked_at),
            .in_use = count(State::in_use),
            .retiring = count(State::retiring),
            .waiting = waiting(),
            .target = config_.target,
            .bound = bound()};
}

std::optional<Steady> Machine::oldest() const noexcept {
    std::optional<Steady> first;
    for (const Slot& slot : slots_) {
        if (is_open(slot) && (!first || slot.opened < *first)) {
            first = slot.opened;
        }
    }
    return first;
}

void Machine::check_beliefs() noexcept {
    HOLDFAST_ASSERT(total() <= ceiling_);
    ceiling_ = std::max(bound(), total());
    HOLDFAST_ASSERT(count(State::ready) == static_cast<int>(ready_.size()));
    HOLDFAST_ASSERT(ready_.empty() || waiting() == 0);
    HOLDFAST_ASSERT(count(State::opening) <= config_.limits.opening_max);
}

}  // namespace holdfast::pool
