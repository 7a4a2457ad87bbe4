// Events for every call, with hashes unless raw identifiers are asked for.
#include <holdfast/lock/telemetry.hpp>

#include "test/fake_backend.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/lock/handle.hpp>
#include <holdfast/lock/key.hpp>
#include <holdfast/lock/with_lock.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::lock::tests {
namespace {

using namespace std::chrono_literals;

const LockId some_id = LockId::parse("abcdefghijklmnopqrstuv");
const LockInfo some_info{.key_hash = "k", .lock_id_hash = "i", .fence = Fence{9}};

class Telemetry : public testing::Test {
protected:
    SleepwalkingClock clock;
    FakeBackend backend{clock};
    std::vector<Event> events;
    std::function<void(const Event&)> keep = [this](const Event& event) {
        events.push_back(event);
    };
    Observed hashed{backend, {.on_event = keep, .clock = &clock}};
    Observed raw{backend, {.on_event = keep, .include_raw = true, .clock = &clock}};

    Event last() {
        EXPECT_FALSE(events.empty());
        return events.empty() ? Event{} : events.back();
    }
    void expect_nothing_raw() {
        EXPECT_FALSE(last().key);
        EXPECT_FALSE(last().lock_id);
    }
};

TEST_F(Telemetry, AGrantIsToldExactly) {
    HOLDFAST_CHECK("locks U-H 30");
    HOLDFAST_CHECK("locks U-H 33");
    backend.on_acquire = [this](int, const AcquireCall& call) {
        clock.advance(3ms);
        return Acquired{backend.grant(call)};
    };
    const Acquired answer = hashed.acquire("invoice/7", 1s, {.lock_id = some_id, .attempt = 4});
    ASSERT_EQ(events.size(), 1U);
    const Event event = events[0];
    EXPECT_EQ(event.type, EventType::acquire);
    EXPECT_EQ(event.result, EventResult::ok);
    EXPECT_EQ(event.reason, "");
    EXPECT_EQ(event.key_hash, hashed_name("invoice/7"));
    EXPECT_EQ(event.lock_id_hash, hashed_name(some_id.reveal()));
    EXPECT_EQ(event.fence, std::get<Grant>(answer).fence);
    EXPECT_EQ(event.attempt, 4);
    EXPECT_EQ(event.duration, 3ms);
    EXPECT_FALSE(event.code);
    expect_nothing_raw();
}

TEST_F(Telemetry, BusyHasItsReason) {
    HOLDFAST_CHECK("locks U-H 31");
    backend.on_acquire = [](int, const AcquireCall&) { return Acquired{Busy{}}; };
    (void)hashed.acquire("invoice/7", 1s);
    EXPECT_EQ(last().result, EventResult::fail);
    EXPECT_EQ(last().reason, "locked");
    EXPECT_EQ(last().lock_id_hash, "");
    EXPECT_FALSE(last().fence);
}

TEST_F(Telemetry, RawIdentifiersComeOnRequest) {
    HOLDFAST_CHECK("locks U-H 32");
    HOLDFAST_CHECK("locks U-H 38");
    HOLDFAST_CHECK("locks U-H 41");
    HOLDFAST_CHECK("locks U-H 44");
    HOLDFAST_CHECK("locks U-H 48");
    HOLDFAST_CHECK("locks U-H 49");
    (void)raw.acquire("invoice/7", 1s, {.lock_id = some_id});
    EXPECT_EQ(last().key, "invoice/7");
    EXPECT_EQ(last().lock_id, some_id.reveal());
    raw.release(some_id);
    EXPECT_FALSE(last().key);
    EXPECT_EQ(last().lock_id, some_id.reveal());
    raw.extend(some_id, 1s);
    EXPECT_EQ(last().lock_id, some_id.reveal());
    (void)raw.is_locked("invoice/7");
    EXPECT_EQ(last().key, "invoice/7");
    (void)raw.find("invoice/7");
    EXPECT_EQ(last().key, "invoice/7");
    (void)raw.find_by_id(some_id);
    EXPECT_EQ(last().lock_id, some_id.reveal());
}

TEST_F(Telemetry, APredicateDecidesByTheEvent) {
    HOLDFAST_CHECK("locks U-H 34");
    const RawPredicate only_failures = [](const Event& event) {
        EXPECT_FALSE(event.key);
        EXPECT_NE(event.key_hash, "");
        return event.result == EventResult::fail;
    };
    Observed observed{backend, {.on_event = keep, .include_raw = only_failures}};
    (void)observed.is_locked("invoice/7");
    EXPECT_EQ(last().key, "invoice/7");
    backend.locked = true;
    (void)observed.is_locked("invoice/7");
    EXPECT_FALSE(last().key);
}

TEST_F(Telemetry, APredicateThatThrowsHidesThem) {
    HOLDFAST_CHECK("locks U-H 35");
    Observed observed{backend,
                      {.on_event = keep, .include_raw = RawPredicate([](const Event&) -> bool {
                                             throw std::runtime_error("no");
                                         })}};
    (void)observed.acquire("invoice/7", 1s);
    ASSERT_EQ(events.size(), 1U);
    expect_nothing_raw();
}

TEST_F(Telemetry, ReleasesAndExtensionsSayWhyNot) {
    HOLDFAST_CHECK("locks U-H 36");
    HOLDFAST_CHECK("locks U-H 37");
    HOLDFAST_CHECK("locks U-H 39");
    HOLDFAST_CHECK("locks U-H 40");
    HOLDFAST_CHECK("locks U-P 126");
    hashed.release(some_id);
    EXPECT_EQ(last().type, EventType::release);
    EXPECT_EQ(last().result, EventResult::ok);
    EXPECT_EQ(last().reason, "");
    EXPECT_EQ(last().lock_id_hash, hashed_name(some_id.reveal()));
    EXPECT_EQ(last().key_hash, "");
    expect_nothing_raw();
    hashed.extend(some_id, 1s);
    EXPECT_EQ(last().type, EventType::extend);
    EXPECT_EQ(last().result, EventResult::ok);
    EXPECT_EQ(last().lock_id_hash, hashed_name(some_id.reveal()));

    const auto reason_of = [&](std::optional<Missing> why) {
        backend.on_release = [why](int, const ReleaseCall&) { return Released{.why = why}; };
        backend.on_extend = [why](int, const ExtendCall&) { return Extended{.why = why}; };
        hashed.release(some_id);
        EXPECT_EQ(last().result, EventResult::fail);
        const std::string_view reason = last().reason;
        hashed.extend(some_id, 1s);
        EXPECT_EQ(last().result, EventResult::fail);
        EXPECT_EQ(last().reason, reason);
        return reason;
    };
    EXPECT_EQ(reason_of(Missing::expired), "expired");
    EXPECT_EQ(reason_of(Missing::not_found), "not-found");
    EXPECT_EQ(reason_of(std::nullopt), "");
}

TEST_F(Telemetry, IsLockedHasNoReason) {
    HOLDFAST_CHECK("locks U-H 42");
    HOLDFAST_CHECK("locks U-H 43");
    backend.locked = true;
    EXPECT_TRUE(hashed.is_locked("invoice/7"));
    EXPECT_EQ(last().type, EventType::is_locked);
    EXPECT_EQ(last().result, EventResult::ok);
    EXPECT_EQ(last().key_hash, hashed_name("invoice/7"));
    backend.locked = false;
    EXPECT_FALSE(hashed.is_locked("invoice/7"));
    EXPECT_EQ(last().result, EventResult::fail);
    EXPECT_EQ(last().reason, "");
    expect_nothing_raw();
}

TEST_F(Telemetry, FindsAreFoundOrNot) {
    HOLDFAST_CHECK("locks U-H 45");
    HOLDFAST_CHECK("locks U-H 46");
    HOLDFAST_CHECK("locks U-H 47");
    EXPECT_FALSE(hashed.find("invoice/7"));
    EXPECT_EQ(last().type, EventType::find);
    EXPECT_EQ(last().result, EventResult::fail);
    EXPECT_EQ(last().reason, "");
    backend.info = some_info;
    EXPECT_TRUE(hashed.find("invoice/7"));
    EXPECT_EQ(last().result, EventResult::ok);
    EXPECT_EQ(last().key_hash, hashed_name("invoice/7"));
    EXPECT_EQ(last().fence, Fence{9});
    EXPECT_TRUE(hashed.find_by_id(some_id));
    EXPECT_EQ(last().lock_id_hash, hashed_name(some_id.reveal()));
    EXPECT_EQ(last().key_hash, "");
    expect_nothing_raw();
}

TEST_F(Telemetry, ACallbackThatThrowsDoesNoHarm) {
    HOLDFAST_CHECK("locks U-H 50");
    HOLDFAST_CHECK("locks U-H 51");
    int calls = 0;
    Observed observed{backend, {.on_event = [&](const Event&) {
                          ++calls;
                          throw std::runtime_error("the dashboard is down");
                      }}};
    const Acquired answer = observed.acquire("invoice/7", 1s);
    ASSERT_TRUE(std::holds_alternative<Grant>(answer));
    const LockId id = std::get<Grant>(answer).lock_id;
    EXPECT_TRUE(observed.extend(id, 1s).ok);
    EXPECT_FALSE(observed.is_locked("invoice/7"));
    EXPECT_FALSE(observed.find("invoice/7"));
    EXPECT_TRUE(observed.release(id).ok);
    EXPECT_EQ(calls, 5);
}

TEST_F(Telemetry, CapabilitiesAndPlacesPassThrough) {
    HOLDFAST_CHECK("locks U-H 52");
    EXPECT_EQ(&hashed.capabilities(), &backend.capabilities());
    struct Nowhere final : WaitTicket {
        bool join() override { return true; }
        void wait(Steady, const std::stop_token&) override {}
        void arrived() noexcept override {}
    };
    backend.on_line_up = [](const LockId&, Deadline) { return std::make_unique<Nowhere>(); };
    const auto ticket = hashed.line_up("invoice/7", some_id, soon());
    EXPECT_NE(dynamic_cast<Nowhere*>(ticket.get()), nullptr);
    hashed.abandon(some_id, 7s);
    ASSERT_EQ(backend.abandoned().size(), 1U);
    EXPECT_EQ(backend.abandoned()[0].lock_id, some_id);
    EXPECT_TRUE(events.empty());
}

TEST_F(Telemetry, ErrorsAreToldAndPassedOnUnchanged) {
    backend.on_acquire = [this](int, const AcquireCall&) -> Acquired {
        clock.advance(2s);
        throw LockError(LockCode::network_timeout, "no answer");
    };
    const auto error = lock_error_of([&] { (void)hashed.acquire("invoice/7", 1s); });
    ASSERT_TRUE(error);
    EXPECT_STREQ(error->what(), "no answer");
    EXPECT_EQ(last().result, EventResult::error);
    EXPECT_EQ(last().code, LockCode::network_timeout);
    EXPECT_EQ(last().key_hash, hashed_name("invoice/7"));
    EXPECT_EQ(last().duration, 2s);

    backend.on_release = [](int, const ReleaseCall&) -> Released { throw std::logic_error("bug"); };
    EXPECT_THROW(hashed.release(some_id), std::logic_error);
    EXPECT_EQ(last().code, LockCode::internal);
}

TEST_F(Telemetry, AKeyThatIsNoTextStillMakesAnEvent) {
    backend.on_acquire = [](int, const AcquireCall&) -> Acquired {
        throw LockError(LockCode::invalid_argument);
    };
    EXPECT_THROW((void)hashed.acquire("\xff\xfe", 1s), LockError);
    EXPECT_EQ(last().result, EventResult::error);
    EXPECT_EQ(last().key_hash, "");
}

// What a handle, or with_lock, does through the wrapper is seen.
TEST_F(Telemetry, HandlesAreObserved) {
    {
        Handle lock = acquire_handle(hashed, "invoice/7", 1s, {}, {.clock = &clock});
        lock.extend(1s);
    }
    std::vector<EventType> types;
    for (const Event& event : events) {
        types.push_back(event.type);
    }
    EXPECT_THAT(types,
                testing::ElementsAre(EventType::acquire, EventType::extend, EventType::release));
}

TEST_F(Telemetry, WaitersNumberTheirAttempts) {
    backend.on_acquire = [this](int number, const AcquireCall& call) {
        return number < 3 ? Acquired{Busy{}} : Acquired{backend.grant(call)};
    };
    (void)acquire_waiting(hashed, "invoice/7", 1s, {.clock = &clock});
    ASSERT_EQ(events.size(), 3U);
    EXPECT_EQ(events[0].attempt, 1);
    EXPECT_EQ(events[2].attempt, 3);
}

TEST_F(Telemetry, ASecretChangesTheHashes) {
    Observed own{backend, {.on_event = keep, .hash_secret = "of this deployment"}};
    (void)own.is_locked("invoice/7");
    EXPECT_EQ(last().key_hash, hashed_name("invoice/7", "of this deployment"));
    EXPECT_NE(last().key_hash, hashed_name("invoice/7"));
}

TEST_F(Telemetry, WithoutACallbackNothingIsHashed) {
    Observed silent{backend, {}};
    EXPECT_FALSE(silent.is_locked("invoice/7"));
    EXPECT_EQ(backend.finds().size(), 1U);
}

TEST_F(Telemetry, ReadingAsksTheBackendAndHandsOnTheToken) {
    HOLDFAST_CHECK("locks U-H 10");
    HOLDFAST_CHECK("locks U-H 11");
    HOLDFAST_CHECK("locks U-H 12");
    HOLDFAST_CHECK("locks U-H 13");
    HOLDFAST_CHECK("locks U-H 14");
    backend.info = some_info;
    const std::stop_source source;
    const CallOptions options{.stop = source.get_token()};
    EXPECT_EQ(hashed.find("invoice/7", options)->fence, Fence{9});
    EXPECT_EQ(hashed.find_by_id(some_id, options)->fence, Fence{9});
    const auto calls = backend.finds();
    ASSERT_EQ(calls.size(), 2U);
    EXPECT_EQ(calls[0].what, "find");
    EXPECT_EQ(calls[0].about, "invoice/7");
    EXPECT_EQ(calls[0].options.stop, source.get_token());
    EXPECT_EQ(calls[1].what, "find_by_id");
    EXPECT_EQ(calls[1].about, some_id.reveal());
    EXPECT_EQ(calls[1].options.stop, source.get_token());
}

template <class Info>
constexpr bool shows_identifiers =
    requires(Info info) { info.key; } || requires(Info info) { info.lock_id; };

TEST_F(Telemetry, RawDataNeedsACallOfItsOwn) {
    HOLDFAST_CHECK("locks U-H 5");
    HOLDFAST_CHECK("locks U-H 15");
    HOLDFAST_CHECK("locks U-H 17");
    HOLDFAST_CHECK("locks U-H 18");
    static_assert(!shows_identifiers<LockInfo>);
    static_assert(shows_identifiers<RawLockInfo>);
    EXPECT_FALSE(hashed.find_raw("invoice/7"));
    EXPECT_FALSE(hashed.find_raw_by_id(some_id));
    backend.raw_info = RawLockInfo{
        .info = some_info, .key = "invoice/7", .lock_id = some_id, .owner = "host:1", .meta = ""};
    EXPECT_EQ(hashed.find_raw("invoice/7")->key, "invoice/7");
    EXPECT_EQ(hashed.find_raw_by_id(some_id)->lock_id, some_id);
    EXPECT_EQ(last().fence, Fence{9});
    expect_nothing_raw();
}

TEST_F(Telemetry, OwnsAsksForTheId) {
    HOLDFAST_CHECK("locks U-H 20");
    HOLDFAST_CHECK("locks U-H 21");
    EXPECT_FALSE(owns(backend, some_id));
    backend.info = some_info;
    EXPECT_TRUE(owns(backend, some_id));
    EXPECT_EQ(backend.finds().back().about, some_id.reveal());
}

}  // namespace
}  // namespace holdfast::lock::tests
