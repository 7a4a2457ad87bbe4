// Many dispatchers, workers and administrators at once, on one database: every piece of work goes
// to one of them, and none is lost between them.
#include <atomic>
#include <functional>
#include <iostream>
#include <latch>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "provider/test/provider_fixture.hpp"

#include <holdfast/base/metrics.hpp>

namespace holdfast::flow::tests {

namespace {

class ProviderCrowd : public ProviderStory {
protected:
    // All begin together; returns when all have ended.
    static void together(int count, const std::function<void(int)>& work) {
        std::latch begin(count);
        std::vector<std::jthread> threads;
        threads.reserve(static_cast<std::size_t>(count));
        for (int i = 0; i < count; ++i) {
            threads.emplace_back([&, i] {
                begin.arrive_and_wait();
                work(i);
            });
        }
    }
    // Where rivals do not wait for each other, a call may lose so often that it gives up. It was
    // not applied then, and who calls may insist.
    template <class Call>
    static auto insist(const Call& call) {
        while (true) {
            try {
                return call();
            } catch (const sql::Exhausted& error) {
                EXPECT_EQ(error.outcome(), holdfast::Outcome::not_applied);
            }
        }
    }
    auto claim(milliseconds lease) {
        return insist([&] { return ProviderStory::claim(lease); });
    }
    void start_many(int count) {
        for (int i = 0; i < count; ++i) {
            ASSERT_TRUE(start("i" + std::to_string(i)).created);
        }
    }

    // What several threads have got hold of.
    class Loot {
    public:
        void add(const std::string& what) {
            const std::lock_guard lock(mutex_);
            ++counts_[what];
        }
        [[nodiscard]] std::size_t different() const {
            const std::lock_guard lock(mutex_);
            return counts_.size();
        }
        [[nodiscard]] int most() const {
            int most = 0;
            for (const auto& [what, count] : counts_) {
                most = std::max(most, count);
            }
            return most;
        }

    private:
        mutable std::mutex mutex_;
        std::map<std::string, int> counts_;
    };
};

TEST_P(ProviderCrowd, TenDispatchersGetTenInstances) {
    HOLDFAST_CHECK("runtime concurrent_instance_fetching");
    start_many(10);
    Loot loot;
    std::atomic<int> empty = 0;
    together(10, [&](int) {
        if (const auto claim = this->claim(1h)) {
            loot.add(claim->instance);
        } else {
            ++empty;
        }
    });
    // An empty answer means that there is no work, not that a race was lost.
    EXPECT_EQ(empty, 0);
    EXPECT_EQ(loot.different(), 10U);
    EXPECT_EQ(loot.most(), 1);
}

// As runtimes do: each asks for as many as it can use, and all see the same. Where transactions do
// not wait for a row, a claim that loses one race loses all that it wanted to take.
TEST_P(ProviderCrowd, RivalsWhoWantManyLoseFewRaces) {
    constexpr int instances = 96;
    constexpr int dispatchers = 8;
    start_many(instances);
    Metrics metrics;
    sql::DatabaseOptions options = db.options();
    options.metrics = &metrics;
    options.name = "crowd";
    sql::Database crowded(db.url(), options);
    Loot loot;
    std::atomic<int> asked = 0;
    together(dispatchers, [&](int) {
        SqlProvider own(crowded);
        while (loot.different() < instances) {
            ++asked;
            for (const auto& one :
                 insist([&] { return own.claim_instances({.lease = 1h, .count = 32}); })) {
                loot.add(one.instance);
            }
        }
    });
    EXPECT_EQ(loot.most(), 1);
    const double lost =
        metrics.value("holdfast_sql_tx_conflicts_total",
                      {{"operation", "ClaimInstances"}, {"db", "crowd"}, {"occ_code", "OC000"}});
    std::cout << lost << " races lost, " << asked << " claims\n";
    EXPECT_LE(lost, instances) << "less than one for each that was claimed";
}

TEST_P(ProviderCrowd, OneInstanceHasOneWinner) {
    HOLDFAST_CHECK("runtime multi_threaded_lock_contention");
    HOLDFAST_CHECK("runtime concurrent_filtered_fetch_no_double_lock");
    for (const auto& versions :
         {std::optional<ReplayVersions>{}, std::optional(ReplayVersions{})}) {
        start(versions ? "filtered" : "plain");
        std::atomic<int> winners = 0;
        together(8, [&](int) {
            winners += static_cast<int>(insist([&] {
                                            return provider.claim_instances(
                                                {.lease = 1h, .versions = versions});
                                        }).size());
        });
        EXPECT_EQ(winners, 1);
    }
}

TEST_P(ProviderCrowd, NoInstanceIsClaimedTwice) {
    HOLDFAST_CHECK("runtime multi_threaded_no_duplicate_processing");
    start_many(20);
    Loot loot;
    together(40, [&](int) {
        if (const auto claim = this->claim(1h)) {
            loot.add(claim->instance);
        }
    });
    EXPECT_EQ(loot.most(), 1);
    for (const auto& rest : claim_all()) {
        loot.add(rest);
    }
    EXPECT_EQ(loot.different(), 20U);
    EXPECT_EQ(loot.most(), 1);
}

TEST_P(ProviderCrowd, ASilentOwnersInstanceGoesToOneOther) {
    HOLDFAST_CHECK("runtime multi_threaded_lock_expiration_recovery");
    HOLDFAST_CHECK("runtime concurrent_lock_attempts_respect_expiration");
    start("a");
    (void)claimed("a", 5s);
    std::atomic<int> winners = 0;
    const auto rush = [&](int) { winners += this->claim(1h) ? 1 : 0; };
    together(8, rush);
    EXPECT_EQ(winners, 0) << "nobody before the lease is over";
    db.advance_clock(5s);
    together(8, rush);
    EXPECT_EQ(winners, 1) << "and one after it";
}

TEST_P(ProviderCrowd, OneTokenCommitsOnce) {
    HOLDFAST_CHECK("runtime concurrent_ack_prevention");
    start("a");
    const auto claim = claimed("a", 1h);
    std::atomic<int> committed = 0;
    together(8, [&](int) {
        const Committed answer = insist([&] { return commit(turn(claim).schedules(2, "charge")); });
        EXPECT_NE(answer, Committed::rejected);
        committed += answer == Committed::yes ? 1 : 0;
    });
    EXPECT_EQ(committed, 1);
    EXPECT_EQ(rows("flow_activities", "a"), 1);
    EXPECT_EQ(history("a"), (std::vector<EventId>{1, 2}));
}

TEST_P(ProviderCrowd, ASessionHasOneOwner) {
    HOLDFAST_CHECK("runtime concurrent_session_claim_only_one_wins");
    queue("a", {"one", "two", "three", "four"}, {.session = "s"});
    std::mutex mutex;
    std::set<std::string> owners;
    together(4, [&](int i) {
        const std::string owner = "worker" + std::to_string(i);
        const SessionClaim session{.owner = owner, .lease = 1h};
        if (!insist([&] {
                 return provider.claim_activities({.lease = 1h, .session = session});
             }).empty()) {
            const std::lock_guard lock(mutex);
            owners.insert(owner);
        }
    });
    EXPECT_EQ(owners.size(), 1U);
}

TEST_P(ProviderCrowd, NoActivityIsTakenTwice) {
    std::vector<std::string> names(40);
    for (std::size_t i = 0; i < names.size(); ++i) {
        names[i] = "n" + std::to_string(i);
    }
    queue("a", names);
    Loot loot;
    together(8, [&](int) {
        for (int round = 0; round < 5; ++round) {
            for (const auto& one :
                 insist([&] { return provider.claim_activities({.lease = 1h, .count = 2}); })) {
                loot.add(one.task.name);
                EXPECT_TRUE(insist([&] { return end(one); }));
            }
        }
    });
    EXPECT_EQ(loot.most(), 1);
    for (const auto& rest : take_all()) {
        loot.add(rest);
    }
    EXPECT_EQ(loot.different(), names.size());
    EXPECT_EQ(loot.most(), 1);
}

// Every instance has three turns, each of which writes one event and, but for the last, sends the
// instance the mail for the next. A lost turn would end the chain, a doubled one would show twice.
TEST_P(ProviderCrowd, NoTurnIsLostOrDoubled) {
    HOLDFAST_CHECK("runtime +dispatchers_lose_and_double_nothing");
    // All of them try the same candidates here, and most lose their race where none waits.
    const int instances = GetParam().backend == test::Backend::dsql ? 40 : 200;
    constexpr int dispatchers = 8;
    constexpr EventId turns_each = 3;
    const int turns_all = instances * static_cast<int>(turns_each);
    start_many(instances);

    std::atomic<int> turns = 0;
    together(dispatchers, [&](int) {
        for (int seen = turns; seen < turns_all; seen = turns) {
            const auto claims =
                insist([&] { return provider.claim_instances({.lease = 1h, .count = 4}); });
            std::vector<TurnCommit> batch;
            for (const auto& claim : claims) {
                ClaimedTurn next = turn(claim);
                if (claim.last_event > 0) {
                    next.records(next.next_event(), SignalReceived{"go", text("now")});
                }
                if (next.next_event() > turns_each) {
                    next.commit.status = Status::completed;
                } else {
                    next.sends(claim.instance, SignalMessage{"go", text("now")});
                }
                batch.push_back(next.commit);
            }
            for (const Committed answer : insist([&] { return provider.commit_turns(batch); })) {
                EXPECT_EQ(answer, Committed::yes) << "nobody else can have had it";
                ++turns;
                turns.notify_all();
            }
            if (claims.empty()) {
                turns.wait(seen);  // Others hold what there is; their commits bring more.
            }
        }
    });

    EXPECT_EQ(turns, turns_all);
    for (int i = 0; i < instances; ++i) {
        const std::string instance = "i" + std::to_string(i);
        EXPECT_EQ(history(instance), (std::vector<EventId>{1, 2, 3})) << instance;
        EXPECT_EQ(info(instance).status, Status::completed) << instance;
    }
    EXPECT_EQ(provider.stats().messages, 0);
}

// Answers, signals and turns of a few instances at the same time, so that their mailboxes are hot.
TEST_P(ProviderCrowd, NoMailIsLostUnderLoad) {
    constexpr int senders = 6;
    constexpr int each = 20;
    for (const char* id : {"a", "b"}) {
        begin(id);
    }
    std::atomic<int> read = 0;
    std::atomic<int> sent = 0;
    together(senders + 2, [&](int i) {
        if (i < senders) {
            for (int n = 0; n < each; ++n) {
                EXPECT_EQ(insist([&] { return signal(n % 2 == 0 ? "a" : "b"); }),
                          Delivery::delivered);
                ++sent;
                sent.notify_all();
            }
            return;
        }
        while (read < senders * each) {
            const int seen = sent;
            const auto claim = this->claim(1h);
            if (claim) {
                EXPECT_EQ(insist([&] { return commit(turn(*claim)); }), Committed::yes);
                read += static_cast<int>(claim->messages.size());
                ++sent;  // The other reader may have to look again.
                sent.notify_all();
            } else if (read < senders * each) {
                sent.wait(seen);
            }
        }
        ++sent;
        sent.notify_all();
    });
    EXPECT_EQ(read, senders * each);
    EXPECT_EQ(provider.stats().messages, 0);
}

TEST_P(ProviderCrowd, ATreeIsDeletedAsAWholeWhileItGrows) {
    HOLDFAST_CHECK("runtime +delete_against_a_concurrent_child_start");
    for (int round = 0; round < 12; ++round) {
        const std::string root = "r" + std::to_string(round);
        const std::string child = root + "/kid";
        start(root);
        const auto claim = claimed(root, 1h);
        Committed answer = Committed::rejected;
        together(2, [&](int i) {
            if (i == 0) {
                answer = insist([&] { return commit(turn(claim).starts_child(2, child)); });
            } else {
                EXPECT_GE(insist([&] { return provider.delete_tree(root, true); }).instances, 1);
            }
        });
        EXPECT_NE(answer, Committed::rejected);
        EXPECT_FALSE(provider.info(root));
        EXPECT_FALSE(provider.info(child)) << "a child must not outlive its parent's deletion";
        EXPECT_TRUE(history(root).empty());
        EXPECT_TRUE(idle());
    }
}

// Rarer conflicts than elsewhere: in a crowd, one can be unlucky more often than it may try.
INSTANTIATE_TEST_SUITE_P(Every,
                         ProviderCrowd,
                         testing::Values(Setting{test::Backend::sqlite},
                                         Setting{test::Backend::postgres},
                                         Setting{test::Backend::postgres, 5},
                                         Setting{test::Backend::dsql}),
                         setting_name);

}  // namespace

}  // namespace holdfast::flow::tests
