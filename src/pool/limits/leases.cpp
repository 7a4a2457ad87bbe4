#include <holdfast/pool/leases.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include "durations.hpp"
#include <fmt/core.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/hex.hpp>

namespace holdfast::pool {
namespace {

using std::chrono::nanoseconds;

}  // namespace

LeaseId new_lease_id() {
    std::array<std::byte, 16> bytes{};
    secure_random(bytes);
    return to_hex(bytes);
}

std::string_view to_string(LeaseDenial why) noexcept {
    switch (why) {
        case LeaseDenial::full:
            return "full";
        case LeaseDenial::unanswered:
            return "unanswered";
        case LeaseDenial::timeout:
            return "timeout";
    }
    return "full";
}

Leases::Leases(const LeasesConfig& config,
               const FleetLimits& limits,
               std::uint64_t seed,
               std::function<LeaseId()> new_id)
    : config_(config), limits_(limits), random_(seed), new_id_(std::move(new_id)) {
    if (config.limit < 1) {
        throw InvalidArgument(
            fmt::format("a limit of {} connections is not valid; give 1 or more", config.limit));
    }
}

void Leases::step(Steady now, const LeaseEvent& event, LeaseActions& out) {
    if (now >= alive_until_) {  // Others may have reaped them.
        for (const LeaseId& lease : held_) {
            if (!local_.contains(lease)) {
                lost_.insert(lease);
            }
        }
    }
    std::visit([&](const auto& what) { on(now, what, out); }, event);
    ask_again(now, out);
    beat(now, out);
    plan_wake(now);
}

void Leases::on(Steady now, const WantLease& want, LeaseActions& out) {
    if (degraded_) {
        if (used() >= config_.local_cap) {
            out.push_back(LeaseDenied{.wish = want.wish, .why = LeaseDenial::unanswered});
            return;
        }
        const LeaseId lease = new_id_();
        held_.insert(lease);
        local_.insert(lease);
        out.push_back(LeaseGranted{.wish = want.wish, .lease = lease, .local = true});
        return;
    }
    wishes_.emplace(
        new_id_(),
        Wish{.id = want.wish, .deadline = want.deadline, .token = new_id_(), .again = now});
}

void Leases::on(Steady now, const LeaveLease& leave, LeaseActions& /*out*/) {
    for (auto& [lease, wish] : wishes_) {
        if (wish.id == leave.wish && wish.wanted) {
            wish.wanted = false;
            if (!wish.asked) {
                forget(now, LeaseId(lease));
            }
            return;
        }
    }
}

void Leases::on(Steady now, const GiveLeaseBack& back, LeaseActions& /*out*/) {
    const bool was_held = held_.erase(back.lease) == 1;
    HOLDFAST_ASSERT(was_held);
    if (local_.erase(back.lease) == 1) {
        return;
    }
    LeaseId ended = back.lease;
    const auto heir = inherited_.find(back.lease);
    if (heir != inherited_.end()) {
        ended = heir->second;
        inherited_.erase(heir);
        lost_.erase(back.lease);  // It may have been lost once more, with the one it stands for.
    } else if (lost_.erase(back.lease) == 0 && !lost_.empty()) {
        // It does not matter which connection was closed: one that has lost its lease takes it on.
        const LeaseId without = *lost_.begin();
        lost_.erase(lost_.begin());
        inherited_.emplace(without, back.lease);
        ended = without;
    }
    release(now, ended);
}

void Leases::on(Steady now, const LeaseAcquired& acquired, LeaseActions& out) {
    const auto found = wishes_.find(acquired.lease);
    HOLDFAST_ASSERT(found != wishes_.end());
    Wish& wish = found->second;
    wish.asked = false;
    note_answer(acquired.answer != LeaseAnswer::unanswered);
    switch (acquired.answer) {
        case LeaseAnswer::done:
            if (!wish.wanted) {
                wish.doubtful = true;
                return forget(now, acquired.lease);
            }
            held_.insert(acquired.lease);
            out.push_back(LeaseGranted{.wish = wish.id, .lease = acquired.lease});
            wishes_.erase(found);
            return;
        case LeaseAnswer::full:
            wish.doubtful = false;
            return deny(now, acquired.lease, LeaseDenial::full, out);
        case LeaseAnswer::conflict:
        case LeaseAnswer::throttled:
        case LeaseAnswer::unanswered:  // An earlier try of the same call may have been applied.
            wish.doubtful = true;
            break;
    }
    if (!wish.wanted) {
        return forget(now, acquired.lease);
    }
    wish.again = now + nap(acquired.answer, ++wish.tries);
    if (degraded_) {
        deny(now, acquired.lease, LeaseDenial::unanswered, out);
    } else if (wish.again > wish.deadline) {
        deny(now, acquired.lease, LeaseDenial::timeout, out);
    }
}

void Leases::on(Steady now, const LeaseReleased& released, LeaseActions& /*out*/) {
    const auto found = releases_.find(released.lease);
    HOLDFAST_ASSERT(found != releases_.end());
    note_answer(released.answer != LeaseAnswer::unanswered);
    if (released.answer == LeaseAnswer::done) {
        releases_.erase(found);
        return;
    }
    Release& release = found->second;
    release.asked = false;
    ++release_retries_;
    release.again = now + nap(released.answer, ++release.tries);
}

void Leases::on(Steady now, const HeartAnswered& heart, LeaseActions& out) {
    beating_ = false;
    note_answer(heart.done || heart.throttled);
    if (heart.done) {
        alive_until_ = beat_asked_ + limits_.owner_lease -
                       std::max(limits_.block_safety_min, limits_.owner_lease / 6);
        beat_at_ = beat_asked_ + part_of(limits_.heartbeat_every, 0.9 + 0.1 * random_.unit());
        return;
    }
    const nanoseconds nap = std::min(limits_.store_retry, limits_.heartbeat_every / 4);
    beat_at_ = now + nap / 2 + part_of(nap / 2, random_.unit());
    if (degraded_) {
        deny_waiting(now, LeaseDenial::unanswered, out, [](const Wish&) { return true; });
    }
}

void Leases::on(Steady now, const LeasesTick& /*tick*/, LeaseActions& out) {
    deny_waiting(
        now, LeaseDenial::timeout, out, [&](const Wish& wish) { return now >= wish.deadline; });
}

// After some failures in a row the local cap takes over; the first answer ends that.
void Leases::note_answer(bool answered) noexcept {
    failures_ = answered ? 0 : failures_ + 1;
    degraded_ = config_.local_cap > 0 && failures_ >= limits_.breaker_failures;
}

void Leases::release(Steady now, const LeaseId& lease) {
    releases_.emplace(lease, Release{.token = new_id_(), .again = now});
}

// The wish has ended. If the lease may exist, it is released.
void Leases::forget(Steady now, const LeaseId& lease) {
    if (wishes_.at(lease).doubtful) {
        release(now, lease);
    }
    wishes_.erase(lease);
}

void Leases::deny(Steady now, const LeaseId& lease, LeaseDenial why, LeaseActions& out) {
    if (wishes_.at(lease).wanted) {
        out.push_back(LeaseDenied{.wish = wishes_.at(lease).id, .why = why});
    }
    forget(now, lease);
}

template <class Which>
void Leases::deny_waiting(Steady now, LeaseDenial why, LeaseActions& out, Which&& which) {
    std::vector<LeaseId> chosen;
    for (const auto& [lease, wish] : wishes_) {
        if (!wish.asked && which(wish)) {
            chosen.push_back(lease);
        }
    }
    for (const LeaseId& lease : chosen) {
        deny(now, lease, why, out);
    }
}

// No acquisition before a heartbeat was answered: a lease without a living owner is reaped.
void Leases::ask_again(Steady now, LeaseActions& out) {
    for (auto& [lease, wish] : wishes_) {
        if (!wish.asked && now >= wish.again && now < alive_until_) {
            wish.asked = true;
            out.push_back(AcquireLease{.lease = lease, .token = wish.token});
        }
    }
    for (auto& [lease, release] : releases_) {
        if (!release.asked && now >= release.again) {
            release.asked = true;
            out.push_back(ReleaseLease{.lease = lease, .token = release.token});
        }
    }
}

void Leases::beat(Steady now, LeaseActions& out) {
    if (beating_ || !needs_heart() || now < beat_at_) {
        return;
    }
    beating_ = true;
    beat_asked_ = now;
    out.push_back(BeatHeart{});
}

bool Leases::needs_heart() const noexcept {
    return !wishes_.empty() || held_.size() > local_.size() || degraded_;
}

nanoseconds Leases::nap(LeaseAnswer answer, int tries) {
    if (answer == LeaseAnswer::conflict) {
        return limits_.conflict_nap + part_of(limits_.conflict_nap_jitter, random_.unit());
    }
    nanoseconds longest = limits_.release_retry_first;
    for (int i = 1; i < tries && longest < limits_.release_retry_most; ++i) {
        longest *= 2;
    }
    longest = std::min(longest, limits_.release_retry_most);
    return longest / 2 + part_of(longest / 2, random_.unit());
}

int Leases::excess() const noexcept {
    if (degraded_) {
        return lost_.empty() ? 0 : std::max(used() - config_.local_cap, 0);
    }
    return static_cast<int>(lost_.size() + local_.size());
}

void Leases::plan_wake(Steady now) noexcept {
    wake_ = Steady::max();
    for (const auto& [lease, wish] : wishes_) {
        if (wish.asked) {
            continue;
        }
        wake_ = std::min(wake_, wish.deadline);
        if (now < alive_until_) {
            wake_ = std::min(wake_, wish.again);
        }
    }
    for (const auto& [lease, release] : releases_) {
        if (!release.asked) {
            wake_ = std::min(wake_, release.again);
        }
    }
    if (needs_heart() && !beating_) {
        wake_ = std::min(wake_, beat_at_);
    }
    if (used() > 0 && now < alive_until_) {
        wake_ = std::min(wake_, alive_until_);
    }
}

std::vector<LeaseId> leases_to_reap(std::span<const OwnerSeen> owners,
                                    std::span<const LeaseSeen> leases,
                                    Wall now,
                                    const FleetLimits& limits) {
    const auto dead_before = now - std::chrono::ceil<std::chrono::microseconds>(limits.steal_after);
    std::set<std::string_view> living;
    for (const OwnerSeen& owner : owners) {
        if (owner.alive_until >= dead_before) {
            living.insert(owner.owner);
        }
    }
    std::vector<LeaseId> dead;
    const auto unowned = std::chrono::ceil<std::chrono::microseconds>(limits.unowned_lease);
    for (const LeaseSeen& lease : leases) {
        const bool alive = lease.owner.empty() ? lease.created + unowned >= dead_before
                                               : living.contains(lease.owner);
        if (!alive) {
            dead.push_back(lease.lease);
        }
    }
    return dead;
}

}  // namespace holdfast::pool
