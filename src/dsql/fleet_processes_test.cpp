// A fleet of processes on one emulator of DynamoDB: what they promise each other holds, though some
// are killed and the emulator goes away and comes back.
#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <numeric>
#include <vector>

#include "dynamodb.hpp"
#include "lease_keeper.hpp"
#include "limiter.hpp"
#include "slot_keeper.hpp"
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <holdfast/base/random.hpp>
#include <holdfast/pool/pool.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/crash.hpp>
#include <holdfast/testing/dynamodb.hpp>
#include <holdfast/testing/temp_dir.hpp>

namespace holdfast::dsql {
namespace {

using namespace std::chrono_literals;

constexpr int processes = 8;
constexpr const char* table = "fleet";
constexpr const char* endpoint = "abc.dsql.us-east-1.on.aws";

std::shared_ptr<DynamoClient> client_of(const std::string& url) {
    return std::make_shared<DynamoClient>(DynamoOptions{
        .region = "us-east-1",
        .endpoint = url,
        .credentials = fixed_credentials(
            {.access_key_id = "AKIDEXAMPLE", .secret_access_key = "fake", .session_token = {}}),
        .call_timeout = 1s,
        .retry_pause = 10ms});
}

void sleep_for(std::chrono::nanoseconds time) {
    static_cast<void>(system_clock().sleep_until(std::chrono::steady_clock::now() + time, {}));
}

std::int64_t now_us() {
    return std::chrono::floor<std::chrono::microseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

class FleetProcesses : public testing::Test {
protected:
    void SetUp() override {
        if (!test::DynamoEmulator::program()) {
            GTEST_SKIP() << "the emulator of DynamoDB is not there; ./run test fetches it";
        }
        emulator = std::make_unique<test::DynamoEmulator>((folder / "tables.db").string());
        ASSERT_TRUE(client_of(emulator->url())->create_table(table, Deadline::after(20s), {}));
    }

    test::TempDir folder;
    std::unique_ptr<test::DynamoEmulator> emulator;
};

TEST_F(FleetProcesses, NeverGetMorePermitsThanTheLimitPromises) {
    constexpr int rate = 40;
    constexpr int burst = 20;
    const std::string url = emulator->url();
    const auto run_for = 4s;
    std::vector<std::unique_ptr<test::Victim>> fleet;
    fleet.reserve(processes);
    for (int i = 0; i < processes; ++i) {
        fleet.push_back(std::make_unique<test::Victim>([&](test::Witness& witness) {
            LimiterOptions options{
                .store = std::make_shared<PermitStore>(client_of(url), table, endpoint),
                .fleet = {.per_second = rate, .burst = burst},
                .fleet_size = processes};
            options.limits.breaker_probe = 100ms;
            Limiter limiter(options);
            const Deadline end = Deadline::after(run_for);
            while (!end.passed()) {
                limiter.acquire(Deadline::after(20s), {});
                witness.acknowledged(now_us());
            }
        }));
    }
    sleep_for(1500ms);
    emulator->stop();
    sleep_for(500ms);
    emulator->start();
    std::vector<std::int64_t> grants;
    for (const auto& member : fleet) {
        const auto some = member->join(Deadline::after(60s));
        grants.insert(grants.end(), some.begin(), some.end());
    }
    std::sort(grants.begin(), grants.end());
    EXPECT_GE(grants.size(), rate * 2U);
    // A machine that is busy reports a permit later than it was usable. While the store was away
    // everybody had a share of the burst, besides.
    constexpr std::int64_t late_us = 500'000;
    constexpr std::int64_t shares = burst + processes;
    for (std::size_t first = 0; first < grants.size(); ++first) {
        for (const std::int64_t window_us : {200'000, 1'000'000, 3'000'000}) {
            const auto last =
                std::upper_bound(grants.begin(), grants.end(), grants[first] + window_us);
            const auto count = last - grants.begin() - static_cast<std::ptrdiff_t>(first);
            ASSERT_LE(count, burst + shares + rate * (window_us + late_us) / 1'000'000);
        }
    }
}

// Memory that all processes see: how many slots each of them holds, and when it last said so.
class Board {
public:
    struct Line {
        std::atomic<int> held = 0;
        std::atomic<std::int64_t> written_us = 0;
    };
    struct Shared {
        std::array<Line, processes> lines;
        std::atomic<bool> over = false;
    };

    Board()
        : shared_(*new(::mmap(
              nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                      Shared) {}
    ~Board() { ::munmap(&shared_, sizeof(Shared)); }
    Board(const Board&) = delete;
    Board& operator=(const Board&) = delete;

    // Everybody may end.
    void end() { shared_.over = true; }
    [[nodiscard]] bool over() const { return shared_.over; }

    void write(int process, std::size_t held) {
        Line& line = shared_.lines[static_cast<std::size_t>(process)];
        line.held = static_cast<int>(held);
        line.written_us = now_us();
    }
    [[nodiscard]] int sum() const {
        return std::accumulate(
            shared_.lines.begin(), shared_.lines.end(), 0, [](int all, const Line& line) {
                return all + line.held;
            });
    }
    // Whether a process that holds something has not been able to run for a while. It cannot have
    // shed what it lost meanwhile.
    [[nodiscard]] bool somebody_sleeps() const {
        constexpr std::int64_t a_while_us = 500'000;
        return std::any_of(shared_.lines.begin(), shared_.lines.end(), [](const Line& line) {
            return line.held > 0 && now_us() - line.written_us > a_while_us;
        });
    }

private:
    Shared& shared_;
};

constexpr int slots_in_all = 20;

SlotKeeperOptions keeper(const std::string& url, const char* service) {
    SlotKeeperOptions options{
        .client = client_of(url),
        .table = table,
        .endpoint = endpoint,
        .member = this_process(service),
        .blocks = {.size = 2, .count = slots_in_all / 2, .ttl = 3s, .renew_every = 300ms}};
    options.limits.block_safety_min = 500ms;
    options.limits.steal_after = 1s;
    options.limits.block_empty_max = 200ms;
    options.limits.block_short_first = 50ms;
    options.limits.block_short_most = 200ms;
    options.limits.store_retry = 100ms;
    return options;
}

TEST_F(FleetProcesses, NeverHoldMoreSlotsThanThereAreAndTheDeadGiveTheirsBack) {
    HOLDFAST_CHECK("connections +slot.crash");
    const std::string url = emulator->url();
    Board board;
    const auto work = [&](int self, std::chrono::nanoseconds run_for, bool keep) {
        return [&board, self, run_for, keep, url](test::Witness& witness) {
            SlotKeeper slots(keeper(url, keep ? "dead" : "worker"));
            std::atomic<int> shed = 0;
            const auto holder = slots.join(6, [&](int excess) { shed = excess; });
            std::vector<pool::SlotId> held;
            Random random(static_cast<std::uint64_t>(self) + 1);
            const auto release = [&] {
                board.write(self, held.size() - 1);
                slots.release(held.back());
                held.pop_back();
            };
            const Deadline end = Deadline::after(run_for);
            while (!end.passed() || !board.over()) {
                const auto failure = test::code_of([&] {
                    if (held.size() < 6) {
                        held.push_back(slots.acquire(Deadline::after(50ms), {}));
                        board.write(self, held.size());
                        if (board.sum() > slots_in_all && !board.somebody_sleeps()) {
                            throw std::runtime_error("more slots are held than there are");
                        }
                        witness.acknowledged(self);
                    }
                });
                const bool full = failure == Code::exhausted || held.size() == 6;
                while (!held.empty() && !keep &&
                       (shed.exchange(0) > 0 || (full && random.below(3) != 0))) {
                    release();
                }
                board.write(self, held.size());
                sleep_for(5ms);
            }
            while (!held.empty()) {
                release();
            }
            slots.leave(holder);
        };
    };
    // One takes what it can get and is killed; for the others the rest is not enough.
    auto dead = std::make_unique<test::Victim>(work(0, 0s, true));
    dead->wait_for(6, Deadline::after(30s));
    std::vector<std::unique_ptr<test::Victim>> fleet;
    fleet.reserve(processes);
    for (int i = 1; i < processes; ++i) {
        fleet.push_back(std::make_unique<test::Victim>(work(i, 12s, false)));
    }
    sleep_for(500ms);
    (void)dead->kill_after(6, Deadline::after(10s));
    const Steady killed = std::chrono::steady_clock::now();
    board.write(0, 0);  // Its connections died with it.
    int most = 0;
    std::chrono::nanoseconds back{0};
    // Its time to live, the allowance and a little for the search are 6 s on a quiet machine.
    while (most <= slots_in_all - 6 && back < 30s) {
        sleep_for(1ms);
        most = std::max(most, board.sum());
        back = std::chrono::steady_clock::now() - killed;
    }
    emulator->stop();  // What they own lasts for a while; nobody counts it twice afterwards.
    sleep_for(500ms);
    emulator->start();
    board.end();
    for (const auto& member : fleet) {
        (void)member->join(Deadline::after(60s));  // Throws if one saw too many.
    }
    EXPECT_GT(most, slots_in_all - 6) << "what the dead one held came back";
    for (int i = 0; i < slots_in_all / 2; ++i) {
        const auto item =
            client_of(url)->get(table, block_key(endpoint, i), Deadline::after(9s), {});
        const bool given_back = !item || dynamo::text(*item, "owner_id").value_or("").empty();
        EXPECT_TRUE(given_back || dynamo::text(*item, "service_name") == "dead")
            << "block " << i << ": only what nobody took from the dead one is still its own";
    }
}

// In the other way of counting nothing comes back by itself: a survivor must find what the dead one
// held, and the counter must be exact afterwards.
TEST_F(FleetProcesses, CountLeasesExactlyThoughOneOfThemIsKilled) {
    HOLDFAST_CHECK("connections +lease.crash");
    constexpr int limit = 6;
    const std::string url = emulator->url();
    const auto keeper = [url] {
        LeaseKeeperOptions options{.client = client_of(url),
                                   .table = table,
                                   .endpoint = endpoint,
                                   .member = this_process("worker"),
                                   .leases = {.limit = limit}};
        options.limits.owner_lease = 1500ms;
        options.limits.heartbeat_every = 300ms;
        options.limits.block_safety_min = 300ms;
        options.limits.steal_after = 500ms;
        options.limits.reaper_lease = 500ms;
        options.limits.store_retry = 100ms;
        return options;
    };
    test::Victim dead([&](test::Witness& witness) {
        LeaseKeeper leases(keeper());
        std::vector<pool::LeaseId> held;
        for (int i = 0; i < 4; ++i) {
            held.push_back(leases.acquire(Deadline::after(20s), {}));
            witness.acknowledged(i);
        }
        sleep_for(60s);
    });
    (void)dead.kill_after(4, Deadline::after(30s));
    const Steady killed = std::chrono::steady_clock::now();
    test::Victim survivor([&](test::Witness& witness) {
        LeaseKeeper leases(keeper());
        std::vector<pool::LeaseId> held;
        while (held.size() < limit) {  // Two are free; the rest must come back.
            if (!test::code_of([&] { held.push_back(leases.acquire(Deadline::after(5s), {})); })) {
                witness.acknowledged(static_cast<std::int64_t>(held.size()));
            } else {
                sleep_for(20ms);
            }
        }
        for (const pool::LeaseId& lease : held) {
            leases.release(lease);
        }
        leases.stop();
    });
    EXPECT_EQ(survivor.join(Deadline::after(60s)).size(), limit);
    EXPECT_LE(std::chrono::steady_clock::now() - killed, 30s);
    LeaseStore store(client_of(url), table, endpoint, this_process("test"), {});
    EXPECT_EQ(store.count(Deadline::after(9s), {})->active, 0);
    EXPECT_TRUE(store.find(Deadline::after(9s), {}).leases.empty());
}

}  // namespace
}  // namespace holdfast::dsql
