// Several processes run workflows on one store, and are killed one after another under load. Every
// workflow ends; what its activities wrote together with their answers is there exactly once.
#include <holdfast/flow/flow.hpp>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <holdfast/base/random.hpp>
#include <holdfast/base/uuid.hpp>
#include <holdfast/flow/sql_provider.hpp>
#include <holdfast/sql/schema.hpp>
#include <holdfast/testing/backends.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/crash.hpp>

namespace holdfast {

namespace {

using namespace std::chrono_literals;

constexpr sql::Statement book{"crash.book", "INSERT INTO book (entry) VALUES ($1)"};
constexpr int steps = 3;
// On a machine that is late leases grow to 16 times what was asked for, and one order may have to
// wait for those of several dead processes. What hangs, hangs longer than that.
constexpr std::chrono::seconds patience = 240s;
constexpr std::chrono::seconds lease_asked = 2s;
constexpr std::chrono::seconds lease_max = 16 * lease_asked;

std::int64_t charge(sql::Tx& tx, const std::string& entry) {
    tx.exec(book, entry);
    return 1;
}
// A service with a ledger of its own: it may be asked twice, and does a thing once per key.
constexpr sql::Statement ship_once{
    "crash.ship", "INSERT INTO shipped (entry) VALUES ($1) ON CONFLICT DO NOTHING"};
constexpr sql::Statement note_attempt{
    "crash.note_attempt", "INSERT INTO attempts (entry, attempt, noted) VALUES ($1, $2, $3)"};
sql::Database* service = nullptr;

// Does its work and fails once, after it has left a note. Whatever dies in between, the key stays
// the same, and the attempt after the failure finds the note.
std::string ship(flow::ActivityContext& ctx) {
    const std::string key = ctx.idempotency_key();
    service->run("Ship", {}, ship_once, key);
    const bool noted = ctx.last_heartbeat<int>().has_value() || ctx.last_failure() == nullptr;
    service->run("NoteAttempt", {}, note_attempt, key, ctx.attempt(), noted);
    ctx.heartbeat(ctx.attempt());
    if (ctx.last_failure() == nullptr) {
        throw flow::Failure("Busy", "the courier is on his way");
    }
    return key;
}
flow::Workflow<std::int64_t> order(flow::Context& ctx, std::int64_t number);
flow::Workflow<std::int64_t> collect(flow::Context& ctx, std::int64_t count);
flow::Workflow<std::int64_t> visit(flow::Context& ctx, std::int64_t number);

}  // namespace

}  // namespace holdfast

HOLDFAST_NAME(holdfast::charge, "crash.charge");
HOLDFAST_NAME(holdfast::ship, "crash.ship");
HOLDFAST_NAME(holdfast::order, "crash.order");
HOLDFAST_NAME(holdfast::collect, "crash.collect");
HOLDFAST_NAME(holdfast::visit, "crash.visit");

namespace holdfast {

namespace {

// A parcel, a payment in the same transaction as its answer, and a timer, again and again.
flow::Workflow<std::int64_t> order(flow::Context& ctx, std::int64_t number) {
    std::int64_t paid = 0;
    for (int i = 0; i < steps; ++i) {
        co_await ctx.activity<&ship>().retry({.attempts = 2, .first = 5ms});
        const std::string entry = ctx.instance() + "/" + std::to_string(i);
        const std::int64_t one = co_await ctx.activity<&charge>(entry);
        paid += one;
        co_await ctx.sleep(10ms);
    }
    co_return number + paid - steps;
}

constexpr flow::Channel<std::int64_t> numbers{"numbers"};
constexpr std::int64_t crowd = 10'000;
constexpr std::int64_t portion = 500;

// Reads the numbers from 0 on and books each portion. Answers how many came in order.
flow::Workflow<std::int64_t> collect(flow::Context& ctx, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t number = co_await ctx.receive(numbers);
        if (number != i) {
            co_return i;
        }
        if (number % portion == portion - 1) {
            const std::string entry = "portion/" + std::to_string(number);
            const std::int64_t booked = co_await ctx.activity<&charge>(entry);
            ctx.status(number + booked);
        }
    }
    co_return count;
}

// Number 0 takes its process down, each time that it runs.
flow::Workflow<std::int64_t> visit(flow::Context& ctx, std::int64_t number) {
    if (number == 0) {
        std::_Exit(0);
    }
    ctx.status(number);
    co_return number;
}

flow::Registry registry() {
    flow::Registry all;
    all.activity<&charge>()
        .activity<&ship>()
        .workflow<&order>()
        .workflow<&collect>()
        .workflow<&visit>();
    return all;
}

flow::RuntimeOptions quick() {
    flow::RuntimeOptions options;
    options.workflow_lease = lease_asked;
    options.activity_lease = lease_asked;
    options.poll_max = 200ms;
    return options;
}

class FlowKill : public testing::TestWithParam<test::Backend> {
protected:
    FlowKill() {
        sql::schema_apply(*db, flow::schema_part(), {});
        db.execute("CREATE TABLE book (entry TEXT NOT NULL) {strict}");
        db.execute("CREATE TABLE shipped (entry TEXT NOT NULL PRIMARY KEY) {strict}");
        db.execute(
            "CREATE TABLE attempts (entry TEXT NOT NULL, attempt {bigint} NOT NULL, "
            "noted {bool} NOT NULL) {strict}");
        db.close();
    }

    // Starts orders and waits for them, for ever.
    void work_until_killed(test::Witness& witness, std::int64_t life) const {
        sql::Database own(db.url(), test::quick_options());
        service = &own;
        flow::Store store(own);
        const flow::Runtime runtime(store, registry(), quick());
        flow::Client client(store);
        std::vector<std::jthread> clients;
        clients.reserve(4);
        for (std::int64_t c = 0; c < 4; ++c) {
            clients.emplace_back([&, c] {
                for (std::int64_t n = 0;; ++n) {
                    const std::int64_t number = (life * 4 + c) * 1'000'000 + n;
                    const std::string id = "order-" + std::to_string(number);
                    client.start<&order>(id, number);
                    if (!client.result<&order>(id, patience)) {
                        std::abort();  // No order may fail, whichever dies.
                    }
                    witness.acknowledged(number);
                }
            });
        }
    }

    // Works through the crowd and tells how far it is, for ever.
    void collect_until_killed(test::Witness& witness) const {
        sql::Database own(db.url(), test::quick_options());
        flow::Store store(own);
        flow::Client client(store);
        std::int64_t seen = client.info("crowd").value().status_version;
        const flow::Runtime runtime(store, registry(), quick());
        for (;;) {
            const flow::InstanceInfo info = client.wait_for_status("crowd", seen, patience);
            seen = info.status_version;
            witness.acknowledged(seen);
            if (is_final(info.status)) {
                std::this_thread::sleep_for(1ms);  // It was too fast for the killer.
            }
        }
    }

    // Until all have ended, or this process has.
    void visit_all(std::int64_t count) const {
        sql::Database own(db.url(), test::quick_options());
        flow::Store store(own);
        flow::RuntimeOptions options = quick();
        options.max_attempts = 5;
        const flow::Runtime runtime(store, registry(), options);
        flow::Client client(store);
        for (std::int64_t i = 0; i < count; ++i) {
            (void)client.wait("visit-" + std::to_string(i), patience);
        }
    }

    // A workflow waits with all its messages; no worker has seen it. They are sent in turns of
    // another one, which costs a commit per portion and not one per message.
    void start_the_crowd() {
        db.reopen();
        {
            flow::Store store(*db);
            flow::Client client(store);
            client.start_by_name({}, "crash.sender", "sender", flow::Payload{"[]"});
            const auto claims = client.provider().claim_instances({});
            ASSERT_EQ(claims.size(), 1U);
            client.start<&collect>("crowd", crowd);
            flow::TurnCommit turn;
            turn.instance = "sender";
            turn.token = claims[0].token;
            turn.consumed = {claims[0].messages.at(0).position};
            turn.begun = {.name = "crash.sender", .version = "1.0.0", .parent = {}};
            turn.events.push_back({.id = 1,
                                   .time_ms = claims[0].now.time_since_epoch().count(),
                                   .body = flow::WorkflowStarted{.name = "crash.sender",
                                                                 .version = "1.0.0",
                                                                 .input = flow::Payload{"[]"},
                                                                 .parent = {},
                                                                 .status = {}}});
            for (std::int64_t sent = 0; sent < crowd;) {
                turn.next_token = Uuid::v4();
                turn.messages.clear();
                for (const std::int64_t end = sent + portion; sent < end; ++sent) {
                    flow::ChannelMessage message{"numbers", flow::Payload{std::to_string(sent)}};
                    turn.messages.push_back(
                        {.instance = "crowd", .message = {.body = std::move(message)}});
                }
                ASSERT_EQ(client.provider().commit_turns(std::span(&turn, 1)).at(0),
                          flow::Committed::yes);
                turn.token = turn.next_token;
                turn.leased = false;
                turn.last_event = 1;
                turn.begun.reset();
                turn.events.clear();
                turn.consumed.clear();
            }
        }
        db.close();
    }

    test::Database db{test::that_forks(GetParam())};
};

TEST_P(FlowKill, EveryWorkflowEndsAndEveryChargeHappensOnce) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment does not change.
    const bool soak = std::getenv("HOLDFAST_SOAK") != nullptr;
    const int kills = soak ? 60 : GetParam() == test::Backend::dsql ? 4 : 8;
    constexpr std::size_t processes = 4;
    Random random(1);
    std::vector<std::int64_t> acknowledged;
    std::deque<std::unique_ptr<test::Victim>> alive;
    std::int64_t life = 0;
    const auto spawn = [&] {
        const std::int64_t number = life++;
        alive.push_back(std::make_unique<test::Victim>(
            [this, number](test::Witness& witness) { work_until_killed(witness, number); }));
    };
    while (alive.size() < processes) {
        spawn();
    }
    const auto began = std::chrono::steady_clock::now();
    for (int kill = 0; kill < kills; ++kill) {
        const auto victim = alive.begin() + static_cast<std::ptrdiff_t>(random.below(alive.size()));
        const auto seen = (*victim)->kill_after(1 + random.below(20), Deadline::after(patience));
        acknowledged.insert(acknowledged.end(), seen.begin(), seen.end());
        alive.erase(victim);
        spawn();
        if (soak) {  // A minute, with a kill every second.
            std::this_thread::sleep_until(began + (kill + 1) * 1s);
        }
    }
    for (const auto& victim : alive) {
        const auto seen = victim->kill_after(1, Deadline::after(patience));
        acknowledged.insert(acknowledged.end(), seen.begin(), seen.end());
    }
    alive.clear();

    // The workers that are left take everything over as the leases run out, and none is longer than
    // it may be.
    db.reopen();
    const std::int64_t now_us = db.lease_now_us();
    for (const char* held : {"SELECT COALESCE(max(locked_until_us), 0) FROM flow_instances",
                             "SELECT COALESCE(max(available_at_us), 0) FROM flow_activities"}) {
        EXPECT_LE(db.number(held) - now_us, std::chrono::microseconds{lease_max}.count());
    }
    service = &*db;
    flow::Store store(*db);
    flow::Runtime runtime(store, registry(), quick());
    flow::Client client(store);
    flow::ListInstances all{.limit = 1000};
    std::int64_t orders = 0;
    do {
        const flow::InstancePage page = client.list(all);
        for (const flow::InstanceInfo& info : page.instances) {
            ++orders;
            EXPECT_EQ(client.wait(info.instance, patience).status, flow::Status::completed)
                << info.instance;
        }
        all.page = page.next;
    } while (!all.page.empty());
    EXPECT_TRUE(runtime.drain(10s).clean());

    std::cout << orders << " orders, " << acknowledged.size() << " answered before the end; "
              << kills << " processes were killed on the way\n";
    EXPECT_GE(orders, static_cast<std::int64_t>(acknowledged.size()));
    EXPECT_EQ(db.number("SELECT count(*) FROM book"), orders * steps) << "none missing";
    EXPECT_EQ(db.number("SELECT count(DISTINCT entry) FROM book"), orders * steps) << "none twice";
    EXPECT_EQ(db.number("SELECT count(*) FROM shipped"), orders * steps);
    EXPECT_EQ(db.number("SELECT count(*) FROM (SELECT entry FROM attempts GROUP BY entry "
                        "HAVING max(attempt) < 2) a"),
              0)
        << "every parcel took two attempts at least";
    EXPECT_EQ(db.number("SELECT count(*) FROM attempts WHERE NOT noted"), 0);
    EXPECT_EQ(db.number("SELECT count(*) FROM flow_activities"), 0);
    EXPECT_EQ(db.number("SELECT count(*) FROM flow_messages"), 0);
}

// A turn takes a portion of the crowd; the process dies before, in and after the commit of one.
TEST_P(FlowKill, ACrowdOfSignalsIsReadOnceAndInOrder) {
    ASSERT_NO_FATAL_FAILURE(start_the_crowd());
    constexpr int kills = 4;
    Random random(2);
    for (int kill = 0; kill < kills; ++kill) {
        test::Victim worker([this](test::Witness& witness) { collect_until_killed(witness); });
        const auto seen = worker.kill_after(1 + random.below(3), Deadline::after(patience));
        std::cout << "killed at status " << seen.back() << '\n';
    }
    db.reopen();
    flow::Store store(*db);
    flow::Runtime runtime(store, registry(), quick());
    flow::Client client(store);
    const auto collected = client.result<&collect>("crowd", patience);
    ASSERT_TRUE(collected) << collected.failure().text();
    EXPECT_EQ(*collected, crowd) << "so many came in order";
    std::int64_t next = 0;
    for (const flow::Event& event : client.history("crowd")) {
        if (const auto* received = std::get_if<flow::MessageReceived>(&event.body)) {
            ASSERT_EQ(received->data.json, std::to_string(next++));
        }
    }
    EXPECT_EQ(next, crowd);
    EXPECT_EQ(db.number("SELECT count(*) FROM book"), crowd / portion);
    EXPECT_EQ(db.number("SELECT count(DISTINCT entry) FROM book"), crowd / portion);
    EXPECT_EQ(db.number("SELECT count(*) FROM flow_messages"), 0);
    EXPECT_TRUE(runtime.drain(10s).clean());
}

// The process claims all that wait, begins with the oldest, and dies of it.
TEST_P(FlowKill, OnlyTheWorkflowThatKillsItsProcessIsPoison) {
    constexpr std::int64_t visits = 30;
    constexpr int lives_max = 60;
    db.reopen();
    {
        flow::Store store(*db);
        flow::Client client(store);
        for (std::int64_t i = 0; i < visits; ++i) {
            client.start<&visit>("visit-" + std::to_string(i), i);
        }
    }
    int lives = 0;
    for (bool ended = false; !ended && lives < lives_max; ++lives) {
        db.close();
        test::Victim worker([this](test::Witness&) { visit_all(visits); });
        (void)worker.join(Deadline::after(patience));
        db.reopen();
        db.execute("UPDATE flow_instances SET locked_until_us = 0");  // Its leases have run out.
        ended = db.number(
                    "SELECT count(*) FROM flow_instances WHERE status IN "
                    "('pending', 'running')") == 0;
    }
    std::cout << lives << " processes\n";
    flow::Store store(*db);
    flow::Client client(store);
    const flow::InstanceInfo guilty = client.info("visit-0").value();
    ASSERT_EQ(guilty.status, flow::Status::failed);
    EXPECT_EQ(flow::Client::failure_of(guilty).kind, flow::FailureKind::poison);
    EXPECT_EQ(db.number("SELECT count(*) FROM flow_instances WHERE status = 'completed'"),
              visits - 1);
}

INSTANTIATE_TEST_SUITE_P(Every, FlowKill, test::every_backend(), test::backend_name);

}  // namespace

}  // namespace holdfast
