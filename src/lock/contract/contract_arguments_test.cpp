// What every backend refuses, and what it accepts: stop tokens, keys, ids, leases.
#include "test/lock_fixture.hpp"
#include <fmt/core.h>

#include <holdfast/base/manual_clock.hpp>

namespace holdfast::lock::tests {
namespace {

class LockArguments : public LockStory {
protected:
    static std::stop_token stopped() {
        const std::stop_source source;
        source.request_stop();
        return source.get_token();
    }
    // The error of each of the three calls that take a key.
    std::vector<std::optional<LockError>> errors_by_key(const std::string& key) {
        return {lock_error_of([&] { (void)locks.acquire(key, 1s); }),
                lock_error_of([&] { (void)locks.is_locked(key); }),
                lock_error_of([&] { (void)locks.find(key); })};
    }
};

void expect_aborted(const std::optional<LockError>& error) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::aborted);
    EXPECT_NE(std::string_view(error->what()).find("aborted"), std::string_view::npos);
    EXPECT_FALSE(error->indeterminate());
}

void expect_invalid(const std::optional<LockError>& error, std::string_view text) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::invalid_argument);
    EXPECT_NE(std::string_view(error->what()).find(text), std::string_view::npos) << error->what();
}

TEST_P(LockArguments, AStoppedTokenKeepsEveryCallFromAsking) {
    HOLDFAST_CHECK("locks C1");
    HOLDFAST_CHECK("locks C2");
    HOLDFAST_CHECK("locks C3");
    HOLDFAST_CHECK("locks C4");
    HOLDFAST_CHECK("locks C5");
    const Grant held = take("held");
    expect_aborted(lock_error_of([&] { (void)locks.acquire("k", 1s, {.stop = stopped()}); }));
    expect_aborted(lock_error_of([&] { locks.release(held.lock_id, {.stop = stopped()}); }));
    expect_aborted(lock_error_of([&] { locks.extend(held.lock_id, 1s, {.stop = stopped()}); }));
    expect_aborted(lock_error_of([&] { (void)locks.is_locked("k", {.stop = stopped()}); }));
    expect_aborted(lock_error_of([&] { (void)locks.find("k", {.stop = stopped()}); }));
    expect_aborted(
        lock_error_of([&] { (void)locks.find_by_id(held.lock_id, {.stop = stopped()}); }));
    EXPECT_FALSE(locks.is_locked("k"));
    EXPECT_TRUE(locks.release(held.lock_id).ok);
}

TEST_P(LockArguments, ATokenThatHasNotFiredChangesNothing) {
    HOLDFAST_CHECK("locks C6");
    HOLDFAST_CHECK("locks C8");
    const std::stop_source source;
    const CallOptions options{.stop = source.get_token()};
    const auto grant = std::get<Grant>(locks.acquire("k", 10s, {.stop = source.get_token()}));
    EXPECT_TRUE(locks.is_locked("k", options));
    EXPECT_TRUE(locks.find("k", options));
    EXPECT_TRUE(locks.extend(grant.lock_id, 10s, options).ok);

    source.request_stop();
    expect_aborted(lock_error_of([&] { locks.extend(grant.lock_id, 10s, options); }));
    expect_aborted(lock_error_of([&] { (void)locks.is_locked("k", options); }));
    EXPECT_TRUE(locks.release(grant.lock_id).ok);
}

// Arguments come before the token: a mistake is reported as one, whatever else happens.
TEST_P(LockArguments, AMistakeIsReportedBeforeAStoppedToken) {
    expect_invalid(lock_error_of([&] { (void)locks.acquire("", 1s, {.stop = stopped()}); }),
                   "must not be empty");
    expect_invalid(lock_error_of([&] { locks.extend(LockId::fresh(), 0ms, {.stop = stopped()}); }),
                   "ttlMs");
}

class LockWaits : public LockStory {};

// The acquisition waits for a transaction that will not end; the token must free its caller.
TEST_P(LockWaits, ATokenThatFiresDuringAnAcquisitionEndsIt) {
    HOLDFAST_CHECK("locks C7");
    (void)take("k");
    let_the_lease_end();
    static constexpr sql::Statement hold_counter{
        "test.hold_counter",
        "UPDATE holdfast_fences SET key_debug = key_debug WHERE fence_key = 'fence:k' RETURNING 1"};
    OpenTransaction other(db.open(1), hold_counter);
    // A busy machine can be late once. Code that notices a token only when something else happens
    // is late every time.
    std::chrono::nanoseconds fastest = 1h;
    for (int i = 0; i < 5; ++i) {
        std::stop_source source;
        Steady fired{};
        std::jthread stopper([&] {
            EXPECT_TRUE(db.wait_until_blocked());
            fired = std::chrono::steady_clock::now();
            source.request_stop();
        });
        const auto error = lock_error_of([&] {
            (void)locks.acquire(
                "k", 60s, {.stop = source.get_token(), .deadline = Deadline::after(60s)});
        });
        const auto ended = std::chrono::steady_clock::now();
        stopper.join();
        expect_aborted(error);
        fastest = std::min<std::chrono::nanoseconds>(fastest, ended - fired);
    }
    EXPECT_LT(fastest, 500ms);
    other.let_go();
    EXPECT_TRUE(is_granted(locks.acquire("k", 10s))) << "nothing was left behind";
}

// At whatever moment: there is a grant, or there was a refusal and then nothing is left behind.
TEST_P(LockArguments, ATokenThatFiresAtAnyMomentLeavesAGrantOrNothing) {
    HOLDFAST_CHECK("locks C7");
    int granted = 0;
    for (int i = 0; i < 40; ++i) {
        std::stop_source source;
        const std::jthread stopper([&] {
            for (int yields = 0; yields < i * 20; ++yields) {
                std::this_thread::yield();
            }
            source.request_stop();
        });
        try {
            const Acquired answer = locks.acquire("k", 60s, {.stop = source.get_token()});
            ++granted;
            EXPECT_TRUE(locks.release(std::get<Grant>(answer).lock_id).ok);
        } catch (const LockError& error) {
            EXPECT_EQ(error.lock_code(), LockCode::aborted) << error.what();
            // What may have been taken all the same is given back in the background.
            const Deadline deadline = Deadline::after(20s);
            while (error.indeterminate() && locks.is_locked("k") && !deadline.passed()) {
            }
            EXPECT_FALSE(locks.is_locked("k"));
        }
    }
    EXPECT_TRUE(is_granted(locks.acquire("k", 10s)));
    RecordProperty("granted", std::to_string(granted));
}

TEST_P(LockArguments, AKeyHasOneTo512BytesOfText) {
    HOLDFAST_CHECK("locks C9");
    HOLDFAST_CHECK("locks C10");
    HOLDFAST_CHECK("locks C11");
    HOLDFAST_CHECK("locks C53");
    HOLDFAST_CHECK("locks N12");
    const auto statements = db->driver_stats().statements;
    for (const auto& error : errors_by_key("")) {
        expect_invalid(error, "Key must not be empty");
    }
    for (const auto& error : errors_by_key(std::string(600, 'x'))) {
        expect_invalid(error, "exceeds maximum length");
    }
    for (const std::string& bad : {std::string("a\0b", 3),
                                   std::string("\xED\xA0\x80"),      // A lone surrogate.
                                   std::string("\xC0\xAF"),          // Longer than it need be.
                                   std::string("\xF4\x90\x80\x80"),  // Beyond the last character.
                                   std::string("caf\xC3")}) {
        for (const auto& error : errors_by_key(bad)) {
            expect_invalid(error, "Key must");
        }
    }
    EXPECT_EQ(db->driver_stats().statements, statements) << "the database was asked";

    const std::string longest(512, 'x');
    const Grant grant = take(longest);
    EXPECT_TRUE(locks.is_locked(longest));
    EXPECT_TRUE(locks.release(grant.lock_id).ok);
}

// A file would return invalid text as it is, and break the code that prints it.
TEST_P(LockArguments, NotesOwnersAndPrefixesAreText) {
    const auto statements = db->driver_stats().statements;
    for (const std::string& bad : {std::string("a\0b", 3), std::string("caf\xC3")}) {
        expect_invalid(lock_error_of([&] { (void)locks.acquire("k", 1s, {.meta = bad}); }),
                       "meta must");
        expect_invalid(lock_error_of([&] { Locks(db, {.owner = bad}); }), "owner must");
        expect_invalid(lock_error_of([&] { (void)locks.list({.prefix = bad}); }), "prefix must");
        expect_invalid(lock_error_of([&] { (void)locks.list({.after = bad}); }), "after must");
    }
    EXPECT_EQ(db->driver_stats().statements, statements) << "the database was asked";

    (void)std::get<Grant>(locks.acquire("cafe\xCC\x81/1", 10s, {.meta = "cafe\xCC\x81"}));
    for (const std::string prefix : {"caf\xC3\xA9/", "cafe\xCC\x81/"}) {
        const auto found = locks.list({.prefix = prefix});
        ASSERT_EQ(found.size(), 1U) << "however it is spelt";
        EXPECT_EQ(found[0].meta, "cafe\xCC\x81") << "a note is kept as it is";
        EXPECT_TRUE(locks.list({.after = prefix + "1"}).empty());
    }
}

// An id is a type of its own: what has not its form never gets as far as a call.
TEST_P(LockArguments, ALockIdHasItsForm) {
    HOLDFAST_CHECK("locks C12");
    HOLDFAST_CHECK("locks C13");
    HOLDFAST_CHECK("locks C54");
    HOLDFAST_CHECK("locks U-B 10");
    const auto statements = db->driver_stats().statements;
    for (const std::string bad : {"",
                                  "too-short",
                                  "abcdefghijklmnopqrstuvw",
                                  "abcdefghijklmnopqrstu+",
                                  "abcdefghijklmnopqrstu=",
                                  "abcdefghijklmnopqrstu\n"}) {
        const auto refused = [&](auto call) {
            const auto error = lock_error_of([&] { call(LockId::parse(bad)); });
            expect_invalid(error, "Invalid lockId format");
            if (!bad.empty()) {
                EXPECT_EQ(std::string_view(error->what()).find(bad), std::string_view::npos);
            }
        };
        refused([&](const LockId& id) { locks.release(id); });
        refused([&](const LockId& id) { locks.extend(id, 1s); });
        refused([&](const LockId& id) { (void)locks.find_by_id(id); });
    }
    EXPECT_EQ(db->driver_stats().statements, statements);
}

TEST_P(LockArguments, ALeaseIsPositiveAndBounded) {
    HOLDFAST_CHECK("locks C14");
    HOLDFAST_CHECK("locks C15");
    HOLDFAST_CHECK("locks C16");
    HOLDFAST_CHECK("locks U-B 14");
    for (const auto ttl : {-1ms, 0ms}) {
        expect_invalid(lock_error_of([&] { (void)locks.acquire("k", ttl); }), "positive");
        expect_invalid(lock_error_of([&] { locks.extend(LockId::fresh(), ttl); }), "positive");
    }
    expect_invalid(lock_error_of([&] { (void)locks.acquire("k", ttl_max + 1ms); }), "maximum");
    ManualClock ours;  // By which not even the shortest is over when it is granted.
    Locks brief(db, {.clock = &ours});
    const auto row = [&](std::string_view what, const Grant& grant) {
        return db.number(fmt::format(
            "SELECT {} FROM holdfast_locks WHERE lock_id = '{}'", what, grant.lock_id.reveal()));
    };
    // What is stored is a time of the clock of leases; in a file that has an epoch of its own.
    const std::string shown =
        GetParam().backend == test::Backend::sqlite
            ? "expires_at_ms - (SELECT number * 140737488000000 - began_us FROM holdfast_boots) "
              "/ 1000"
            : "expires_at_ms";
    for (const std::chrono::milliseconds ttl : {100ms, 1000ms, 30'000ms, 3'600'000ms}) {
        const std::string key = std::to_string(ttl.count());
        const auto grant = std::get<Grant>(brief.acquire("taken/" + key, ttl));
        EXPECT_EQ(row("expires_at_ms - acquired_at_ms", grant), ttl.count());
        EXPECT_EQ(row(shown, grant), grant.expires_at.time_since_epoch().count());

        const Grant other = take("extended/" + key);
        const Extended extended = locks.extend(other.lock_id, ttl);
        EXPECT_TRUE(extended.ok);
        EXPECT_EQ(row(shown, other), extended.expires_at.time_since_epoch().count());
        EXPECT_GE(row("expires_at_ms - acquired_at_ms", other), ttl.count());
    }
}

TEST_P(LockArguments, AnUnknownIdIsNeitherReleasedNorExtended) {
    HOLDFAST_CHECK("locks C17");
    HOLDFAST_CHECK("locks C18");
    HOLDFAST_CHECK("locks C46");
    HOLDFAST_CHECK("locks U-B 7");
    HOLDFAST_CHECK("locks U-B 12");
    const LockId nobody = LockId::fresh();
    const Released released = locks.release(nobody);
    EXPECT_FALSE(released.ok);
    EXPECT_EQ(released.why, Missing::not_found);
    const Extended extended = locks.extend(nobody, 1s);
    EXPECT_FALSE(extended.ok);
    EXPECT_EQ(extended.why, Missing::not_found);
}

TEST_P(LockArguments, AnUnknownKeyOrIdIsNotFoundAndIsNoError) {
    HOLDFAST_CHECK("locks C19");
    HOLDFAST_CHECK("locks C20");
    HOLDFAST_CHECK("locks C50");
    HOLDFAST_CHECK("locks C51");
    const LockId nobody = LockId::fresh();
    EXPECT_FALSE(locks.is_locked("nothing"));
    EXPECT_EQ(locks.find("nothing"), std::nullopt);
    EXPECT_EQ(locks.find_by_id(nobody), std::nullopt);
    EXPECT_FALSE(locks.find_raw("nothing"));
    EXPECT_FALSE(locks.find_raw_by_id(nobody));
}

TEST_P(LockArguments, KeysAreWhateverTheirOwnerSays) {
    HOLDFAST_CHECK("locks C21");
    HOLDFAST_CHECK("locks C22");
    HOLDFAST_CHECK("locks U-B 19");
    for (const std::string key : {"a:b:c",
                                  "path/to/it",
                                  "with-dash",
                                  "with_underscore",
                                  "with.dot",
                                  " blanks  ",
                                  "%_like'\"\\;--",
                                  "\xF0\x9F\x94\x92",                             // A lock.
                                  "caf\xC3\xA9",                                  // Composed.
                                  "\xE3\x83\xAD\xE3\x83\x83\xE3\x82\xAF",         // Japanese.
                                  "\xD0\xB7\xD0\xB0\xD0\xBC\xD0\xBE\xD0\xBA"}) {  // Cyrillic.
        const Grant grant = take(key);
        const auto found = locks.find_raw(key);
        ASSERT_TRUE(found) << key;
        EXPECT_EQ(found->key, key);
        EXPECT_EQ(locks.find_raw_by_id(grant.lock_id).value().key, key);
        EXPECT_TRUE(locks.release(grant.lock_id).ok);
        EXPECT_FALSE(locks.is_locked(key));
    }
    const Grant composed = take("caf\xC3\xA9");
    EXPECT_TRUE(is_busy(locks.acquire("cafe\xCC\x81", 1s))) << "the same word, spelt otherwise";
    EXPECT_TRUE(locks.release(composed.lock_id).ok);
}

TEST_P(LockArguments, AStormOfMistakesLeavesTheBackendWorking) {
    HOLDFAST_CHECK("locks C23");
    HOLDFAST_CHECK("locks C24");
    for (int i = 0; i < 10; ++i) {
        for (const auto& body :
             std::vector<std::function<void()>>{[&] { (void)locks.acquire("", 1s); },
                                                [&] { (void)locks.acquire("k", -1ms); },
                                                [&] { locks.release(LockId::parse("bad")); },
                                                [&] { locks.extend(LockId::parse("bad"), 1s); },
                                                [&] { (void)locks.is_locked(""); },
                                                [&] { (void)locks.find(""); }}) {
            const auto error = lock_error_of(body);
            ASSERT_TRUE(error);
            EXPECT_EQ(error->lock_code(), LockCode::invalid_argument);
            EXPECT_EQ(error->code(), Code::invalid_argument);
            EXPECT_NE(std::string_view(error->what()), "");
        }
    }
    const Grant grant = take("k");
    EXPECT_TRUE(locks.release(grant.lock_id).ok);
}

INSTANTIATE_TEST_SUITE_P(Every, LockArguments, every_setting(), setting_name);
// Not on DSQL, where transactions do not block each other.
INSTANTIATE_TEST_SUITE_P(Every,
                         LockWaits,
                         testing::Values(Setting{test::Backend::sqlite},
                                         Setting{test::Backend::postgres},
                                         Setting{test::Backend::postgres, true}),
                         setting_name);

}  // namespace
}  // namespace holdfast::lock::tests
