// The shared store of permits as a few numbers, and a fleet that draws on it in time of its own.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <vector>

#include <holdfast/pool/permits.hpp>

namespace holdfast::pool {

class FakePermitStore {
public:
    [[nodiscard]] PermitAnswer ask(const PermitWrite& write) {
        ++calls;
        return std::visit([this](const auto& what) { return on(what); }, write);
    }

    int calls = 0;
    std::map<std::int64_t, int> counts;
    std::optional<BucketState> bucket;
    std::optional<std::int64_t> clock_us;

private:
    PermitAnswer on(const CountPermits& what) {
        int& count = counts[what.second];
        if (count + what.n > what.limit) {
            return NotWritten{};
        }
        count += what.n;
        return Written{count};
    }
    PermitAnswer on(const ReadBucket& /*what*/) { return BucketFound{bucket}; }
    PermitAnswer on(const WriteBucket& what) {
        const bool same = bucket.has_value() == what.seen.has_value() &&
                          (!bucket || bucket->refilled_ms == what.seen->refilled_ms);
        if (!same) {
            return NotWritten{};
        }
        bucket = what.next;
        return Written{};
    }
    PermitAnswer on(const AdvanceClock& what) {
        if (!clock_us || *clock_us < what.from_us || *clock_us > what.to_us) {
            return NotWritten{clock_us};
        }
        *clock_us += what.by_us;
        return Written{*clock_us};
    }
    PermitAnswer on(const SetClock& what) {
        if (clock_us && *clock_us >= what.before_us) {
            return NotWritten{clock_us};
        }
        clock_us = what.to_us;
        return Written{*clock_us};
    }
};

// Contenders that always want one more permit, each with a clock that is off by its own skew and a
// way to the store that takes its time.
class FakeFleet {
public:
    static constexpr Steady start{std::chrono::hours{1}};
    static constexpr Wall wall_start{std::chrono::seconds{1'800'000'000}};

    struct Grant {
        Steady asked;
        Steady usable;
    };

    FakeFleet(const PermitConfig& config, int contenders, std::uint64_t seed)
        : config_(config), random_(seed), skew_(static_cast<std::size_t>(contenders)) {
        members_.resize(skew_.size());
    }

    void set_skew(std::size_t contender, std::chrono::microseconds skew) {
        skew_[contender] = skew;
    }

    // Everybody asks again and again, for so long.
    void run(std::chrono::nanoseconds time) {
        for (std::size_t i = 0; i < members_.size(); ++i) {
            begin(start, i);
        }
        while (!events_.empty() && events_.top().when < start + time) {
            const Event event = events_.top();
            events_.pop();
            Member& member = members_[event.member];
            const Moment now = moment(event.when, event.member);
            if (event.kind == Kind::arrival) {
                member.answer = store.ask(member.write);
                events_.push({event.when + way(), event.member, Kind::answer});
            } else if (event.kind == Kind::answer) {
                act(event.when, event.member, member.request->answered(now, member.answer));
            } else if (event.kind == Kind::pause) {
                act(event.when, event.member, member.request->next(now));
            } else {
                begin(event.when, event.member);
            }
        }
        std::sort(grants.begin(), grants.end(), [](const Grant& a, const Grant& b) {
            return a.usable < b.usable;
        });
    }

    // The most permits that became usable within any `window` that begins at `from` or later.
    [[nodiscard]] int most_within(std::chrono::nanoseconds window, Steady from) const {
        std::size_t most = 0;
        std::size_t first = 0;
        for (std::size_t last = 0; last < grants.size(); ++last) {
            if (grants[last].usable < from) {
                first = last + 1;
                continue;
            }
            while (grants[last].usable - grants[first].usable >= window) {
                ++first;
            }
            most = std::max(most, last - first + 1);
        }
        return static_cast<int>(most);
    }

    FakePermitStore store;
    std::vector<Grant> grants;
    int given_up = 0;

private:
    enum class Kind { wish, arrival, answer, pause };
    struct Event {
        Steady when;
        std::size_t member = 0;
        Kind kind = Kind::wish;
        bool operator<(const Event& other) const { return when > other.when; }
    };
    struct Member {
        PermitMemory memory;
        std::unique_ptr<PermitRequest> request;
        Steady asked{};
        PermitWrite write;
        PermitAnswer answer;
    };

    [[nodiscard]] Moment moment(Steady now, std::size_t member) const {
        const auto passed = std::chrono::floor<std::chrono::microseconds>(now - start);
        return {.steady = now, .wall = wall_start + passed + skew_[member]};
    }

    std::chrono::nanoseconds way() {  // 1.5 to 6 ms: a round trip of 3 to 12.
        return std::chrono::microseconds{1500 + static_cast<std::int64_t>(random_.below(4500))};
    }

    void begin(Steady now, std::size_t number) {
        Member& member = members_[number];
        member.asked = now;
        member.request =
            request_permits(config_, limits_, 1, now + config_.wait_max, member.memory, random_);
        act(now, number, member.request->next(moment(now, number)));
    }

    void act(Steady now, std::size_t number, const PermitStep& step) {
        Member& member = members_[number];
        if (const auto* write = std::get_if<PermitWrite>(&step)) {
            member.write = *write;
            events_.push({now + way(), number, Kind::arrival});
        } else if (const auto* pause = std::get_if<PauseUntil>(&step)) {
            events_.push({pause->when, number, Kind::pause});
        } else if (const auto* permits = std::get_if<Permits>(&step)) {
            const Steady usable = std::max(now, permits->first);
            grants.push_back({.asked = member.asked, .usable = usable});
            events_.push({usable, number, Kind::wish});
        } else {
            ++given_up;
            events_.push({now + std::chrono::seconds{1}, number, Kind::wish});
        }
    }

    PermitConfig config_;
    FleetLimits limits_;
    Random random_;
    std::vector<std::chrono::microseconds> skew_;
    std::vector<Member> members_;
    std::priority_queue<Event> events_;
};

}  // namespace holdfast::pool
