// Keys and lock ids never show where people look: logs, messages, reports.
#include "test/lock_fixture.hpp"
#include <fmt/core.h>

#include <holdfast/base/log_capture.hpp>
#include <holdfast/lock/telemetry.hpp>
#include <holdfast/lock/with_lock.hpp>

namespace holdfast::lock::tests {
namespace {

constexpr std::string_view secret_key = "customer/4711/salary";

class LockSecrets : public LockStory {
protected:
    // Whatever was said: neither the key nor the id of a lock is in it.
    void expect_discreet(const std::string& said, const LockId& id) {
        EXPECT_EQ(said.find("salary"), std::string::npos) << said;
        EXPECT_EQ(said.find(id.reveal()), std::string::npos) << said;
    }
    CapturingLogger log;
    Locks talkative{db, {.logger = &log}};
};

TEST_P(LockSecrets, StayOutOfReportsAndLogs) {
    HOLDFAST_CHECK("locks N20");
    const auto grant = std::get<Grant>(talkative.acquire(secret_key, 60s));
    for (const auto& info : {talkative.find(secret_key), talkative.find_by_id(grant.lock_id)}) {
        ASSERT_TRUE(info);
        expect_discreet(info->key_hash + info->lock_id_hash + to_string(info->fence),
                        grant.lock_id);
    }
    EXPECT_TRUE(talkative.release(grant.lock_id).ok);
    db.tamper("UPDATE holdfast_fences SET fence = 90000000000001");  // Now it has something to say.
    const auto warned = std::get<Grant>(talkative.acquire(secret_key, 60s));
    EXPECT_GT(log.lines().size(), 0U) << "or nothing was tested";
    for (const std::string& line : log.lines()) {
        expect_discreet(line, warned.lock_id);
    }
}

// The messages of everything that can go wrong; the context has the names, for the caller alone.
TEST_P(LockSecrets, StayOutOfMessages) {
    HOLDFAST_CHECK("locks N20");
    const auto grant = std::get<Grant>(talkative.acquire(secret_key, 60s));
    const LockId id = grant.lock_id;
    const auto stopped = [] {
        std::stop_source source;
        source.request_stop();
        return source.get_token();
    };
    std::vector<std::function<void()>> failing{
        [&] { (void)talkative.acquire(secret_key, -1s); },
        [&] { (void)talkative.acquire(secret_key, 1s, {.stop = stopped()}); },
        [&] { (void)talkative.acquire(std::string(secret_key) + std::string("\0", 1), 1s); },
        [&] { (void)talkative.acquire(std::string(secret_key) + std::string(600, 'x'), 1s); },
        [&] { (void)talkative.extend(id, 0s); },
        [&] { (void)LockId::parse(id.reveal() + "x"); },
    };
    const auto expect_all_discreet = [&](std::size_t at_least) {
        std::size_t failed = 0;
        for (const auto& call : failing) {
            if (const auto error = lock_error_of(call)) {
                ++failed;
                expect_discreet(error->what(), id);
                expect_discreet(describe(std::make_exception_ptr(*error)), id);
            }
        }
        EXPECT_EQ(failed, at_least) << "or nothing was tested";
    };
    expect_all_discreet(failing.size());

    db.tamper("ALTER TABLE holdfast_locks RENAME TO elsewhere");
    failing = {[&] { (void)talkative.acquire(secret_key, 1s); },
               [&] { (void)talkative.release(id); },
               [&] { (void)talkative.extend(id, 1s); },
               [&] { (void)talkative.is_locked(secret_key); },
               [&] { (void)talkative.find_by_id(id); }};
    expect_all_discreet(failing.size());
    const auto error = lock_error_of(failing[0]);
    EXPECT_EQ(error->context().key, secret_key);
    EXPECT_EQ(lock_error_of(failing[1])->context().lock_id, id.reveal());
    for (const std::string& line : log.lines()) {
        expect_discreet(line, id);
    }
}

// Everything that an event says, as a program would log it.
std::string dump(const Event& event) {
    return fmt::format("{} {} {} {} {} {} {} {} {} {} {}",
                       to_string(event.type),
                       to_string(event.result),
                       event.reason,
                       event.key_hash,
                       event.lock_id_hash,
                       event.fence ? to_string(*event.fence) : "",
                       event.code ? to_string(*event.code) : "",
                       event.attempt,
                       event.duration.count(),
                       event.key.value_or(""),
                       event.lock_id.value_or(""));
}

// All that can come of a call, directly and by way of a handle.
TEST_P(LockSecrets, StayOutOfEvents) {
    HOLDFAST_CHECK("locks N20");
    std::vector<std::string> said;
    const auto keep = [&](const Event& event) { said.push_back(dump(event)); };
    Observed observed(talkative, {.on_event = keep});
    Observed raw(talkative, {.on_event = keep, .include_raw = true});

    const auto grant = std::get<Grant>(observed.acquire(secret_key, 60s));
    EXPECT_TRUE(is_busy(observed.acquire(secret_key, 60s)));
    EXPECT_TRUE(observed.extend(grant.lock_id, 60s).ok);
    EXPECT_TRUE(observed.is_locked(secret_key));
    EXPECT_TRUE(observed.find(secret_key));
    EXPECT_TRUE(observed.find_by_id(grant.lock_id));
    EXPECT_TRUE(observed.find_raw(secret_key)) << "what is raw goes to the caller alone";
    EXPECT_TRUE(observed.release(grant.lock_id).ok);
    EXPECT_FALSE(observed.release(grant.lock_id).ok);
    EXPECT_FALSE(observed.extend(grant.lock_id, 60s).ok);
    EXPECT_TRUE(lock_error_of([&] { (void)observed.acquire(secret_key, -1s); }));
    WithLock scope{.key = std::string(secret_key), .ttl = 60s};
    const LockId held =
        with_lock(observed, scope, [](Handle& lock) { return lock.grant().lock_id; });

    EXPECT_GE(said.size(), 13U) << "or nothing was tested";
    for (const std::string& line : said) {
        expect_discreet(line, grant.lock_id);
        expect_discreet(line, held);
    }
    EXPECT_FALSE(raw.is_locked(secret_key));
    EXPECT_NE(said.back().find(secret_key), std::string::npos) << "the search would find it";
}

INSTANTIATE_TEST_SUITE_P(Every, LockSecrets, every_setting(), setting_name);

}  // namespace
}  // namespace holdfast::lock::tests
