// The shared store of permits as a few numbers, and a fleet that draws on it in time of its own.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <vector>

#include <holdfast/pool/breaker.hpp>
#include <holdfast/pool/permits.hpp>
#include <holdfast/pool/token_bucket.hpp>

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

// Processes whose openers always want one more permit, each process with a clock that is off by its
// own skew and a way to the store that takes its time. Where the store is not heard a process has
// an equal share of the limit, as a breaker says.
class FakeFleet {
public:
    static constexpr Steady start{std::chrono::hours{1}};
    static constexpr Wall wall_start{std::chrono::seconds{1'800'000'000}};

    struct Grant {
        Steady asked;
        Steady usable;
        bool shared = true;  // Else out of the share of the process.
    };

    FakeFleet(const PermitConfig& config, int processes, std::uint64_t seed, int openers = 1)
        : config_(config), random_(seed) {
        const double share = static_cast<double>(config.per_second) / processes;
        const int burst = std::max(1, config.burst / processes);
        for (int i = 0; i < processes; ++i) {
            processes_.emplace_back(limits_, TokenBucket(share, burst));
        }
        members_.resize(processes_.size() * static_cast<std::size_t>(openers));
    }

    void set_skew(std::size_t process, std::chrono::microseconds skew) {
        processes_[process].skew = skew;
    }
    // From then on, for so long, no call of this process is answered.
    void cut_off(std::size_t process, Steady from, std::chrono::nanoseconds time) {
        processes_[process].cut_from = from;
        processes_[process].cut_until = from + time;
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
                member.answer = reach_store(event.when, event.member);
                events_.push({event.when + way(), event.member, Kind::answer});
            } else if (event.kind == Kind::answer) {
                hear(event.when, event.member);
            } else if (event.kind == Kind::pause) {
                act(event.when, event.member, member.request->next(now));
            } else if (event.kind == Kind::turn) {
                serve_share(event.when, event.member);
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
    int calls_per_second_max = 1'000'000;  // More are refused: as many as one item bears.
    std::vector<Grant> grants;
    int given_up = 0;
    int throttled = 0;

private:
    enum class Kind { wish, arrival, answer, pause, turn };
    struct Event {
        Steady when;
        std::size_t member = 0;
        Kind kind = Kind::wish;
        bool operator<(const Event& other) const { return when > other.when; }
    };
    struct Process {
        Process(const FleetLimits& limits, const TokenBucket& bucket)
            : breaker(limits), share(bucket) {}

        std::chrono::microseconds skew{};
        Steady cut_from = Steady::max();
        Steady cut_until = Steady::max();
        Breaker breaker;
        TokenBucket share;
        Steady turn = Steady::max();  // When the line before the share is looked at.
        PermitMemory memory;
    };
    struct Member {
        std::unique_ptr<PermitRequest> request;
        Steady asked{};
        PermitWrite write;
        PermitAnswer answer;
    };

    [[nodiscard]] Process& process_of(std::size_t member) {
        return processes_[member % processes_.size()];
    }

    [[nodiscard]] Moment moment(Steady now, std::size_t member) {
        const auto passed = std::chrono::floor<std::chrono::microseconds>(now - start);
        return {.steady = now, .wall = wall_start + passed + process_of(member).skew};
    }

    std::chrono::nanoseconds way() {  // 1.5 to 6 ms: a round trip of 3 to 12.
        return std::chrono::microseconds{1500 + static_cast<std::int64_t>(random_.below(4500))};
    }

    PermitAnswer reach_store(Steady now, std::size_t number) {
        const Process& process = process_of(number);
        if (now >= process.cut_from && now < process.cut_until) {
            return NoAnswer{};
        }
        const auto second = std::chrono::floor<std::chrono::seconds>(now.time_since_epoch());
        calls_ = second == calls_in_ ? calls_ + 1 : 1;
        calls_in_ = second;
        if (calls_ > calls_per_second_max) {
            ++throttled;
            return Throttled{};
        }
        return store.ask(members_[number].write);
    }

    void begin(Steady now, std::size_t number) {
        Member& member = members_[number];
        Process& process = process_of(number);
        member.asked = now;
        if (!process.breaker.may_ask(now)) {
            return enter_share(now, number);
        }
        member.request =
            request_permits(config_, limits_, 1, now + config_.wait_max, process.memory, random_);
        act(now, number, member.request->next(moment(now, number)));
    }

    void hear(Steady now, std::size_t number) {
        Member& member = members_[number];
        Process& process = process_of(number);
        if (is_heard(member.answer)) {
            process.breaker.answered();
        } else {
            if (process.breaker.failed(now)) {
                process.share.drain(now);
            }
            if (process.breaker.open()) {
                return enter_share(now, number);
            }
        }
        act(now, number, member.request->answered(moment(now, number), member.answer));
    }

    void enter_share(Steady now, std::size_t number) {
        TokenBucket& share = process_of(number).share;
        if (!share.enter(now, WaiterId{number}, now + config_.wait_max)) {
            ++given_up;
            return events_.push({now + std::chrono::seconds{1}, number, Kind::wish});
        }
        plan_turn(now, number);
    }

    void plan_turn(Steady now, std::size_t number) {
        Process& process = process_of(number);
        const Steady when = process.share.next_wake(now);
        if (when < process.turn) {
            process.turn = when;
            events_.push({when, number, Kind::turn});
        }
    }

    void serve_share(Steady now, std::size_t number) {
        process_of(number).turn = Steady::max();
        TokenBucket& share = process_of(number).share;
        while (const auto served = share.serve(now)) {
            const auto lucky = static_cast<std::size_t>(*served);
            grants.push_back({.asked = members_[lucky].asked, .usable = now, .shared = false});
            events_.push({now, lucky, Kind::wish});
        }
        plan_turn(now, number);
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
    std::vector<Process> processes_;
    std::vector<Member> members_;
    std::priority_queue<Event> events_;
    int calls_ = 0;
    std::chrono::nanoseconds calls_in_{-1};
};

}  // namespace holdfast::pool
