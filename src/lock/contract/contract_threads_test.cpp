// The contract of locks with several who want the same at once, and what people build on it:
// workers under one key, handles, with_lock.
#include <algorithm>
#include <atomic>
#include <latch>
#include <stdexcept>

#include "test/lock_fixture.hpp"

#include <holdfast/lock/handle.hpp>
#include <holdfast/lock/with_lock.hpp>

namespace holdfast::lock::tests {
namespace {

class LockCrowd : public LockStory {
protected:
    // Patient: a crowd on a busy machine takes its time.
    static WithLock patient(std::string key) {
        WithLock options{.key = std::move(key), .ttl = 60s};
        options.acquisition.timeout = 60s;
        options.acquisition.max_retries = 10'000;
        options.acquisition.max_delay = 20ms;
        return options;
    }
};

TEST_P(LockCrowd, DifferentKeysDoNotDisturbEachOther) {
    HOLDFAST_CHECK("locks C32");
    HOLDFAST_CHECK("locks C44");
    HOLDFAST_CHECK("locks E5");
    HOLDFAST_CHECK("locks E29");
    // No thread leaves before all three are inside: if they waited for each other, none would
    // leave.
    std::latch inside(3);
    all_at_once(3, [&](int i) {
        with_lock(
            locks, patient("k" + std::to_string(i)), [&](Handle&) { inside.arrive_and_wait(); });
    });
    for (const std::string key : {"k0", "k1", "k2"}) {
        EXPECT_FALSE(locks.is_locked(key));
    }
}

TEST_P(LockCrowd, OfFiveAtOnceOneSucceeds) {
    HOLDFAST_CHECK("locks C35");
    HOLDFAST_CHECK("locks E1");
    std::atomic<int> granted = 0;
    std::atomic<int> busy = 0;
    std::latch answered(5);
    all_at_once(5, [&](int) {
        const Acquired answer = locks.acquire("k", 60s);
        ++(is_granted(answer) ? granted : busy);
        answered.arrive_and_wait();
        if (is_granted(answer)) {
            EXPECT_TRUE(locks.release(std::get<Grant>(answer).lock_id).ok);
        }
    });
    EXPECT_EQ(granted, 1);
    EXPECT_EQ(busy, 4);
    EXPECT_FALSE(locks.is_locked("k"));
}

// The first fence ever is drawn by fifty at once.
TEST_P(LockCrowd, OfFiftyWhoWantANewKeyOneGetsItWithTheFirstFence) {
    HOLDFAST_CHECK("locks N3");
    std::atomic<int> granted = 0;
    std::atomic<std::uint64_t> fence = 0;
    all_at_once(50, [&](int) {
        const Acquired answer = locks.acquire("k", 60s, {.deadline = Deadline::after(60s)});
        if (is_granted(answer)) {
            ++granted;
            fence = value_of(std::get<Grant>(answer).fence);
        }
    });
    EXPECT_EQ(granted, 1);
    EXPECT_EQ(fence, 1U);
    EXPECT_EQ(locks.find("k").value().fence, Fence{1});
    EXPECT_TRUE(locks.release(locks.find_raw("k").value().lock_id).ok);
    EXPECT_GT(value_of(take("k").fence), 1U);
}

TEST_P(LockCrowd, ManyWhoLookSeeTheSame) {
    HOLDFAST_CHECK("locks C55");
    const Grant grant = take("k", 60s);
    all_at_once(5, [&](int) {
        const auto found = locks.find("k");
        ASSERT_TRUE(found);
        EXPECT_EQ(found->fence, grant.fence);
        EXPECT_EQ(found->expires_at, grant.expires_at);
    });
}

TEST_P(LockCrowd, WrongReleasesAtOnceAreAllRefused) {
    HOLDFAST_CHECK("locks C62");
    const Grant grant = take("k", 60s);
    all_at_once(5, [&](int) { EXPECT_FALSE(locks.release(LockId::fresh()).ok); });
    EXPECT_TRUE(locks.is_locked("k"));
    std::atomic<int> released = 0;
    all_at_once(5, [&](int) { released += locks.release(grant.lock_id).ok ? 1 : 0; });
    EXPECT_EQ(released, 1) << "a release succeeds once";
}

TEST_P(LockCrowd, WorkersUnderALockLoseNoUpdate) {
    HOLDFAST_CHECK("locks E2");
    HOLDFAST_CHECK("locks E3");
    HOLDFAST_CHECK("locks E6");
    HOLDFAST_CHECK("locks E27");
    HOLDFAST_CHECK("locks E33");
    int counter = 0;  // Neither is guarded by anything but the lock.
    std::vector<int> entries;
    std::vector<Fence> fences;
    all_at_once(10, [&](int i) {
        with_lock(locks, patient("k"), [&](Handle& lock) {
            const int seen = counter;
            std::this_thread::yield();
            counter = seen + 1;
            entries.push_back(i);
            fences.push_back(lock.fence());
        });
    });
    EXPECT_EQ(counter, 10);
    std::ranges::sort(entries);
    EXPECT_EQ(std::ranges::adjacent_find(entries), entries.end());
    EXPECT_EQ(std::ranges::adjacent_find(fences, std::greater_equal{}), fences.end())
        << "in the order of their fences";
    EXPECT_FALSE(locks.is_locked("k"));
}

// ---- Handles
// -------------------------------------------------------------------------------------

class LockScopes : public LockStory {};

TEST_P(LockScopes, TheEndOfAScopeGivesTheLockBack) {
    HOLDFAST_CHECK("locks E13");
    HOLDFAST_CHECK("locks E14");
    HOLDFAST_CHECK("locks E37");
    HOLDFAST_CHECK("locks E38");
    {
        const Handle handle = acquire_handle(locks, "k", 60s);
        EXPECT_TRUE(handle.ok());
        EXPECT_TRUE(locks.is_locked("k"));
    }
    EXPECT_FALSE(locks.is_locked("k"));
    EXPECT_THROW(
        {
            const Handle handle = acquire_handle(locks, "k", 60s);
            throw std::runtime_error("in the middle of the work");
        },
        std::runtime_error);
    EXPECT_FALSE(locks.is_locked("k"));
}

TEST_P(LockScopes, AHandleReleasesOnceAndExtends) {
    HOLDFAST_CHECK("locks E15");
    HOLDFAST_CHECK("locks E16");
    HOLDFAST_CHECK("locks E18");
    HOLDFAST_CHECK("locks E20");
    HOLDFAST_CHECK("locks E36");
    Handle handle = acquire_handle(locks, "k", 10s);
    const ServerTime first = handle.expires_at();
    db.advance_clock(9s);
    EXPECT_TRUE(handle.extend(10s).ok);
    EXPECT_GT(handle.expires_at(), first);
    db.advance_clock(9s);
    EXPECT_TRUE(locks.is_locked("k")) << "past the first lease";
    EXPECT_TRUE(handle.release().ok);
    EXPECT_FALSE(locks.is_locked("k"));
    EXPECT_FALSE(handle.release().ok);
    EXPECT_FALSE(handle.extend(10s).ok);
}

TEST_P(LockScopes, AHandleThatGotNothingDisturbsNobody) {
    HOLDFAST_CHECK("locks E17");
    const Grant owner = take("k", 60s);
    {
        Handle other = acquire_handle(locks, "k", 60s);
        EXPECT_FALSE(other.ok());
        EXPECT_FALSE(other.release().ok);
        EXPECT_FALSE(other.extend(1s).ok);
    }
    EXPECT_TRUE(locks.is_locked("k"));
    EXPECT_TRUE(locks.release(owner.lock_id).ok);
}

TEST_P(LockScopes, NestedScopesEndFromTheInside) {
    HOLDFAST_CHECK("locks E19");
    HOLDFAST_CHECK("locks E21");
    {
        const Handle outer = acquire_handle(locks, "outer", 60s);
        {
            const Handle inner = acquire_handle(locks, "inner", 60s);
            EXPECT_TRUE(locks.is_locked("inner"));
        }
        EXPECT_FALSE(locks.is_locked("inner"));
        EXPECT_TRUE(locks.is_locked("outer"));
    }
    EXPECT_FALSE(locks.is_locked("outer"));
    all_at_once(3, [&](int i) {
        const Handle handle = acquire_handle(locks, "k" + std::to_string(i), 60s);
        EXPECT_TRUE(handle.ok());
    });
    EXPECT_EQ(locks.list().size(), 0U);
}

// ---- with_lock
// -----------------------------------------------------------------------------------

TEST_P(LockScopes, TheFunctionRunsUnderTheLockAndItsAnswerComesBack) {
    HOLDFAST_CHECK("locks E22");
    HOLDFAST_CHECK("locks E23");
    HOLDFAST_CHECK("locks E28");
    HOLDFAST_CHECK("locks E30");
    HOLDFAST_CHECK("locks E32");
    struct Receipt {
        int number;
        std::string text;
    };
    const auto number = with_lock(locks, {.key = "k"}, [&](Handle& lock) {
        EXPECT_TRUE(locks.is_locked("k"));
        EXPECT_EQ(locks.find("k").value().fence, lock.fence());
        return 42;
    });
    EXPECT_EQ(number, 42);
    EXPECT_FALSE(locks.is_locked("k"));
    EXPECT_EQ(with_lock(locks, {.key = "k"}, [](Handle&) { return std::string("text"); }), "text");
    const auto receipt = with_lock(locks, {.key = "k"}, [](Handle&) { return Receipt{7, "paid"}; });
    EXPECT_EQ(receipt.number, 7);
    EXPECT_EQ(receipt.text, "paid");
    bool ran = false;
    with_lock(locks, {.key = "k"}, [&](Handle&) { ran = true; });
    EXPECT_TRUE(ran);
    EXPECT_FALSE(locks.is_locked("k"));
}

TEST_P(LockScopes, TheFunctionsExceptionComesOutAndTheLockIsFree) {
    HOLDFAST_CHECK("locks E24");
    HOLDFAST_CHECK("locks E25");
    EXPECT_THROW(with_lock(locks, {.key = "k"}, [](Handle&) { throw std::logic_error("no"); }),
                 std::logic_error);
    EXPECT_FALSE(locks.is_locked("k"));
    // The same from another thread, by way of a future.
    EXPECT_THROW(with_lock(locks,
                           {.key = "k"},
                           [](Handle&) {
                               return std::async(std::launch::async,
                                                 []() -> int { throw std::out_of_range("later"); })
                                   .get();
                           }),
                 std::out_of_range);
    EXPECT_FALSE(locks.is_locked("k"));
}

TEST_P(LockScopes, WhoWaitsTooLongGivesUpAndTheHolderEndsInPeace) {
    HOLDFAST_CHECK("locks E26");
    with_lock(locks, {.key = "k", .ttl = 60s}, [&](Handle& lock) {
        WithLock impatient{.key = "k"};
        impatient.acquisition.timeout = 300ms;
        const auto error =
            lock_error_of([&] { with_lock(locks, impatient, [](Handle&) { FAIL(); }); });
        ASSERT_TRUE(error);
        EXPECT_EQ(error->lock_code(), LockCode::acquisition_timeout);
        EXPECT_EQ(locks.find("k").value().fence, lock.fence());
    });
    EXPECT_FALSE(locks.is_locked("k"));
    EXPECT_EQ(db.number("SELECT count(*) FROM holdfast_locks_waiters"), 0) << "it left the line";
}

INSTANTIATE_TEST_SUITE_P(Every, LockCrowd, every_setting_of_a_crowd(), setting_name);
INSTANTIATE_TEST_SUITE_P(Every, LockScopes, every_setting(), setting_name);

}  // namespace
}  // namespace holdfast::lock::tests
