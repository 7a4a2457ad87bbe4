// Candidates on threads of their own, on every backend. Leases end when the database's clock is
// moved, or when the lock is taken by force; no test waits for time to pass.
#include <condition_variable>
#include <deque>
#include <future>

#include <gtest/gtest.h>

#include <holdfast/lock/election.hpp>
#include <holdfast/lock/locks.hpp>
#include <holdfast/testing/backends.hpp>
#include <holdfast/testing/database.hpp>

namespace holdfast::lock {
namespace {

using namespace std::chrono_literals;

constexpr auto soon = 60s;  // Far more than anything here takes.

// What happened to a candidate, in order.
class Diary {
public:
    void note(std::string what) {
        const std::lock_guard lock(mutex_);
        entries_.push_back(std::move(what));
        changed_.notify_all();
    }
    // The next entry, as soon as there is one.
    std::string next() {
        std::unique_lock lock(mutex_);
        if (!changed_.wait_for(lock, soon, [&] { return !entries_.empty(); })) {
            return "nothing happened";
        }
        std::string first = std::move(entries_.front());
        entries_.pop_front();
        return first;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::string> entries_;
};

std::string number(Fence fence) {
    return std::to_string(value_of(fence));
}

// A candidate on a thread of its own.
class Candidate {
public:
    Candidate(sql::Database& db, const std::string& name)
        : locks_(db, {.owner = name}),
          election_(locks_,
                    "leader",
                    {.ttl = 10s,
                     // Often enough that a moved clock is noticed at once.
                     .auto_extend = {.interval = 50ms},
                     .observe_every = 50ms,
                     .meta = "zone of " + name,
                     .on_new_leader =
                         [this](const Leader& leader) {
                             diary.note(leader.ours
                                            ? "I lead " + number(leader.fence)
                                            : leader.owner + " leads " + number(leader.fence));
                         },
                     .on_lost =
                         [this](LostReason reason) {
                             diary.note("lost: " + std::string(to_string(reason)));
                         }}),
          run_(std::async(std::launch::async, [this] {
              election_.run(
                  [this](Handle& lock, const std::stop_token& over) {
                      diary.note("elected " + number(lock.fence()));
                      system_clock().sleep_until(std::chrono::steady_clock::now() + soon, over);
                      diary.note(over.stop_requested() ? "term over" : "waited too long");
                  },
                  stop_.get_token());
              diary.note("left");
          })) {}
    ~Candidate() { stop_.request_stop(); }
    Candidate(const Candidate&) = delete;
    Candidate& operator=(const Candidate&) = delete;

    Election& election() { return election_; }
    Locks& locks() { return locks_; }
    void stop() { stop_.request_stop(); }

    Diary diary;

private:
    Locks locks_;
    Election election_;
    std::stop_source stop_;
    std::future<void> run_;  // Joined before what it uses goes.
};

class ElectionThreads : public testing::TestWithParam<test::Backend> {
protected:
    void expect_elected(Candidate& who, const std::string& fence) {
        EXPECT_EQ(who.diary.next(), "I lead " + fence);
        EXPECT_EQ(who.diary.next(), "elected " + fence);
    }

    test::Database db{GetParam(), schema_part()};
};

TEST_P(ElectionThreads, OneLeadsAndTheOthersKnowWho) {
    Candidate ann(db, "ann");
    expect_elected(ann, "1");
    Candidate bob(db, "bob");
    EXPECT_EQ(bob.diary.next(), "ann leads 1");
    EXPECT_TRUE(ann.election().leading());
    EXPECT_FALSE(bob.election().leading());

    const std::optional<Leader> seen = bob.election().observe();
    ASSERT_TRUE(seen);
    EXPECT_EQ(seen->owner, "ann");
    EXPECT_EQ(seen->meta, "zone of ann");
    EXPECT_FALSE(seen->ours);
    EXPECT_TRUE(ann.election().observe()->ours);
}

TEST_P(ElectionThreads, WhoResignsIsFollowedAtOnceAndMayStandAgain) {
    Candidate ann(db, "ann");
    expect_elected(ann, "1");
    Candidate bob(db, "bob");
    EXPECT_EQ(bob.diary.next(), "ann leads 1");
    ann.election().resign();
    EXPECT_EQ(ann.diary.next(), "term over");
    EXPECT_EQ(ann.diary.next(), "left") << "to resign is not to lose";
    EXPECT_FALSE(ann.election().leading());
    const std::string bobs = bob.diary.next();
    EXPECT_TRUE(bobs.starts_with("I lead ")) << bobs;

    std::stop_source at_once;
    at_once.request_stop();
    bool led = false;
    ann.election().run([&](Handle&, const std::stop_token&) { led = true; }, at_once.get_token());
    EXPECT_FALSE(led);
}

// The danger: the leader does not know yet, and the database has a new one already.
TEST_P(ElectionThreads, ALeaderWhoseLeaseRanOutIsReplacedAndTold) {
    Candidate ann(db, "ann");
    expect_elected(ann, "1");
    // From here on Ann's extensions come too late, by the only clock that counts.
    db.advance_clock(20s);
    EXPECT_EQ(ann.diary.next(), "term over");
    EXPECT_EQ(ann.diary.next(), "lost: " + std::string(to_string(LostReason::refused)));
    expect_elected(ann, "2");  // There was no other candidate.
}

TEST_P(ElectionThreads, ALeadTakenByForceIsLostAndStoodForAgain) {
    Candidate ann(db, "ann");
    expect_elected(ann, "1");
    Candidate bob(db, "bob");
    EXPECT_EQ(bob.diary.next(), "ann leads 1");
    ASSERT_TRUE(bob.locks().force_release("leader", Fence{1}));
    EXPECT_EQ(ann.diary.next(), "term over");
    EXPECT_EQ(ann.diary.next(), "lost: " + std::string(to_string(LostReason::refused)));
    // One of the two leads next, with a later fence, and the other learns of it.
    const std::string anns = ann.diary.next();
    const std::string bobs = bob.diary.next();
    EXPECT_NE(anns.starts_with("I lead "), bobs.starts_with("I lead ")) << anns << ", " << bobs;
    EXPECT_FALSE(anns.ends_with(" 1"));
}

TEST_P(ElectionThreads, AStoppedLeaderGivesTheLeadBack) {
    {
        Candidate ann(db, "ann");
        expect_elected(ann, "1");
        ann.stop();
        EXPECT_EQ(ann.diary.next(), "term over");
        EXPECT_EQ(ann.diary.next(), "left");
    }
    Locks locks(db);
    EXPECT_FALSE(locks.is_locked("leader"));
}

TEST_P(ElectionThreads, ALeaderThatReturnsHasResignedAndOneThatThrowsPassesItOn) {
    Locks locks(db);
    Election election(locks, "leader");
    int terms = 0;
    election.run([&](Handle&, const std::stop_token& over) {
        ++terms;
        EXPECT_TRUE(election.leading());
        EXPECT_FALSE(over.stop_requested());
        EXPECT_THROW(election.run({}), LockError) << "one candidacy at a time";
    });
    EXPECT_EQ(terms, 1);
    EXPECT_FALSE(election.observe());
    EXPECT_THROW(election.run([](Handle&, const std::stop_token&) {
        throw std::runtime_error("the leader has given up");
    }),
                 std::runtime_error);
    EXPECT_FALSE(election.leading());
    EXPECT_FALSE(election.observe()) << "the lock must not outlive the candidacy";
}

TEST_P(ElectionThreads, SettingsThatCannotWorkAreRefused) {
    Locks locks(db);
    EXPECT_THROW(Election(locks, ""), LockError);
    EXPECT_THROW(Election(locks, "leader", {.ttl = 0ms}), LockError);
    EXPECT_THROW(Election(locks, "leader", {.observe_every = 0ms}), LockError);
    EXPECT_THROW(Election(locks, "leader", {.ttl = 1s, .auto_extend = {.interval = 600ms}}),
                 LockError);
}

INSTANTIATE_TEST_SUITE_P(Every, ElectionThreads, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::lock
