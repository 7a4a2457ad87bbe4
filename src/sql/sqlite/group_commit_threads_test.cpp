// Many writers and one flush: who shares a commit, who does not, and what each is told.
#include <atomic>
#include <future>
#include <latch>
#include <stdexcept>
#include <string>
#include <vector>

#include "sqlite/group_commit.hpp"
#include "sqlite/test/driver_fixture.hpp"
#include <gmock/gmock.h>

namespace holdfast::sql::sqlite {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* add = "INSERT INTO orders (id, item) VALUES ($1, 'pen')";
// Both run until they are stopped.
constexpr const char* endless_read =
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
constexpr const char* endless_write =
    "WITH RECURSIVE n (i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n) "
    "INSERT INTO orders (id) SELECT i FROM n";

class GroupCommitStory : public DriverStory {
protected:
    using Body = std::function<void(Session&)>;
    using Pending = std::future<void>;

    // Runs a body on a thread of its own and returns when its request stands in line.
    Pending stand_in_line(Body body, AttemptOptions options = in_time()) {
        Pending outcome = std::async(std::launch::async, [this, body = std::move(body), options] {
            driver_->attempt(options, body);
        });
        await_line(*driver_, ++in_line_);
        return outcome;
    }

    // A batch with `own` as its leader's body and with all `others`, in this order: the leader
    // waits inside its body until they stand in line. Its outcome comes first.
    std::vector<Pending> run_batch(Body own, std::vector<Body> others) {
        std::latch begun{1};
        std::latch complete{1};
        std::vector<Pending> outcomes;
        std::atomic<bool> first_run = true;
        outcomes.push_back(std::async(std::launch::async, [&] {
            driver_->attempt(in_time(), [&](Session& session) {
                if (first_run.exchange(false)) {
                    begun.count_down();
                    complete.wait();
                }
                own(session);
            });
        }));
        begun.wait();
        in_line_ = 0;
        for (Body& body : others) {
            outcomes.push_back(stand_in_line(std::move(body)));
        }
        complete.count_down();
        for (const Pending& outcome : outcomes) {
            outcome.wait();
        }
        return outcomes;
    }

    Body adding(std::int64_t id) {
        return [id, &statement = sql(add)](Session& session) { send(session, statement, id); };
    }

    std::int64_t commits() const { return driver_->driver_stats().commits; }

    std::unique_ptr<Driver> driver_ = open_orders();
    int in_line_ = 0;
};

TEST_F(GroupCommitStory, OneCommitCarriesAllWhoWait) {
    const std::int64_t before = commits();
    std::vector<Pending> outcomes =
        run_batch(adding(1), {adding(2), adding(3), adding(4), adding(5)});
    for (Pending& outcome : outcomes) {
        EXPECT_NO_THROW(outcome.get());
    }
    EXPECT_EQ(commits() - before, 1);
    EXPECT_THAT(order_ids(*driver_), ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(GroupCommitStory, AFailedBodyRollsBackAloneAndTheOthersCommit) {
    const Body throwing = [this](Session& session) {
        send(session, sql(add), 2);
        throw std::runtime_error("changed my mind");
    };
    const Body duplicate = [this](Session& session) {
        send(session, sql(add), 4);
        send(session, sql(add), 1);
    };
    const std::int64_t before = commits();
    std::vector<Pending> outcomes =
        run_batch(adding(1), {throwing, adding(3), duplicate, adding(5)});
    EXPECT_NO_THROW(outcomes[0].get());
    EXPECT_THROW(outcomes[1].get(), std::runtime_error);
    EXPECT_NO_THROW(outcomes[2].get());
    EXPECT_EQ(error_of([&] { outcomes[3].get(); })->error_class(), ErrorClass::duplicate);
    EXPECT_NO_THROW(outcomes[4].get());
    EXPECT_EQ(commits() - before, 1);
    EXPECT_THAT(order_ids(*driver_), ElementsAre(1, 3, 5));
}

TEST_F(GroupCommitStory, ALeaderThatFailsTakesNobodyWithIt) {
    const Body throwing = [this](Session& session) {
        send(session, sql(add), 1);
        throw std::runtime_error("changed my mind");
    };
    std::vector<Pending> outcomes = run_batch(throwing, {adding(2), adding(3)});
    EXPECT_THROW(outcomes[0].get(), std::runtime_error);
    EXPECT_NO_THROW(outcomes[1].get());
    EXPECT_NO_THROW(outcomes[2].get());
    EXPECT_THAT(order_ids(*driver_), ElementsAre(2, 3));
}

// An interrupted write takes the whole physical transaction with it, the others' work included.
TEST_F(GroupCommitStory, ABodyThatDestroysThePhysicalTransactionFailsAloneAndTheOthersRunAgain) {
    std::atomic<int> leader_runs = 0;
    std::atomic<int> innocent_runs = 0;
    std::latch in_line{3};
    std::latch begun{1};
    std::stop_source stop;
    Pending leader = std::async(std::launch::async, [&] {
        driver_->attempt(in_time(), [&](Session& session) {
            if (++leader_runs == 1) {
                begun.count_down();
                in_line.wait();
            }
            send(session, sql(add), 1);
        });
    });
    begun.wait();
    Pending innocent = stand_in_line([&](Session& session) {
        ++innocent_runs;
        send(session, sql(add), 2);
    });
    in_line.count_down();
    Pending offender = stand_in_line(
        [&](Session& session) {
            stop.request_stop();
            send(session, sql(endless_write));
        },
        until(stop.get_token()));
    in_line.count_down();
    Pending later = stand_in_line(adding(4));
    in_line.count_down();

    EXPECT_NO_THROW(leader.get());
    EXPECT_NO_THROW(innocent.get());
    EXPECT_NO_THROW(later.get());
    const auto error = error_of([&] { offender.get(); });
    EXPECT_EQ(error->error_class(), ErrorClass::cancelled);
    EXPECT_EQ(error->outcome(), Outcome::not_applied);
    EXPECT_EQ(leader_runs, 2);
    EXPECT_EQ(innocent_runs, 2);
    EXPECT_THAT(order_ids(*driver_), ElementsAre(1, 2, 4));
}

TEST_F(GroupCommitStory, AFullDiskFailsTheBodyThatFillsIt) {
    const int pages = run(*driver_, "PRAGMA page_count").rows[0].get<int>(0);
    run(*driver_, "PRAGMA max_page_count = " + std::to_string(pages + 2));
    const Body filling = [this](Session& session) {
        send(session, sql("INSERT INTO orders VALUES ($1, $2)"), 3, std::string(100'000, 'x'));
    };
    std::vector<Pending> outcomes = run_batch(adding(1), {adding(2), filling, adding(4)});
    EXPECT_NO_THROW(outcomes[0].get());
    EXPECT_NO_THROW(outcomes[1].get());
    EXPECT_EQ(error_of([&] { outcomes[2].get(); })->state().text(), "53100");
    EXPECT_NO_THROW(outcomes[3].get());
    EXPECT_THAT(order_ids(*driver_), ElementsAre(1, 2, 4));
}

// The worst moment: the log cannot be written, and a refused body has judged by what others wrote.
TEST_F(GroupCommitStory, ACommitThatFailsIsUnknownToAllWhoWroteAndARefusedBodyIsAskedAgain) {
    std::optional<BrokenDisk> broken;
    std::vector<int> seen;
    const Body refused = [&](Session& session) {
        seen.push_back(ask(session, sql("SELECT count(*) FROM orders")).rows[0].get<int>(0));
        if (seen.size() == 1) {
            broken.emplace();  // From here on the batch cannot be committed.
            throw std::runtime_error("somebody was faster");
        }
        broken.reset();
        send(session, sql(add), 3);
    };
    std::vector<Pending> outcomes = run_batch(adding(1), {adding(2), refused});
    for (const std::size_t wrote : {0U, 1U}) {
        const auto error = error_of([&] { outcomes[wrote].get(); });
        EXPECT_EQ(error->outcome(), Outcome::unknown);
        EXPECT_EQ(error->state().text(), "58030");
    }
    EXPECT_NO_THROW(outcomes[2].get());
    EXPECT_THAT(seen, ElementsAre(2, 0)) << "the answer rested on rows that never came to be";
    EXPECT_THAT(order_ids(*driver_), ElementsAre(3));
}

TEST_F(GroupCommitStory, ReadersSeeABatchWholeOrNotAtAll) {
    std::set<std::int64_t> seen_inside{-1};
    const Body looking = [&](Session& session) {
        send(session, sql(add), 3);
        seen_inside = order_ids(*driver_);  // By a reader, in the middle of the batch.
    };
    std::vector<Pending> outcomes = run_batch(adding(1), {adding(2), looking, adding(4)});
    for (Pending& outcome : outcomes) {
        EXPECT_NO_THROW(outcome.get());
    }
    EXPECT_THAT(seen_inside, IsEmpty());
    EXPECT_THAT(order_ids(*driver_), ElementsAre(1, 2, 3, 4));
}

TEST_F(GroupCommitStory, ALeaderReturnsWhenItsOwnWorkIsDone) {
    std::latch begun{1};
    std::latch in_line{1};
    std::latch returned{1};
    Pending leader = std::async(std::launch::async, [&] {
        EXPECT_THROW(driver_->attempt(in_time(),
                                      [&](Session&) {
                                          begun.count_down();
                                          in_line.wait();
                                          throw std::runtime_error("changed my mind");
                                      }),
                     std::runtime_error);
        returned.count_down();
    });
    begun.wait();
    // Would never end if the leader ran it.
    Pending follower = stand_in_line([&](Session& session) {
        returned.wait();
        send(session, sql(add), 2);
    });
    in_line.count_down();
    EXPECT_NO_THROW(follower.get());
    leader.get();
}

class WaitingInLine : public GroupCommitStory {
protected:
    // A writer that is in the middle of a transaction until the test lets go.
    WaitingInLine() {
        busy_ = std::async(std::launch::async, [this] {
            driver_->attempt(in_time(), [this](Session&) {
                begun_.count_down();
                done_.wait();
            });
        });
        begun_.wait();
    }
    void let_go() {
        done_.count_down();
        busy_.get();
    }

    std::atomic<bool> ran_ = false;
    const Body never_ = [this](Session&) { ran_ = true; };

private:
    std::latch begun_{1};
    std::latch done_{1};
    Pending busy_;
};

TEST_F(WaitingInLine, EndsAtTheDeadline) {
    AttemptOptions soon = in_time();
    soon.deadline = Deadline::after(5ms);
    const auto error = error_of([&] { driver_->attempt(soon, never_); });
    EXPECT_EQ(error->error_class(), ErrorClass::deadline);
    EXPECT_EQ(error->outcome(), Outcome::not_applied);
    EXPECT_EQ(driver_->pool_stats().waiting, 0);
    let_go();
    EXPECT_FALSE(ran_);
}

TEST_F(WaitingInLine, EndsWithTheStopToken) {
    std::stop_source stop;
    Pending waiting = stand_in_line(never_, until(stop.get_token()));
    Pending behind =
        std::async(std::launch::async, [&] { driver_->attempt(in_time(), adding(2)); });
    await_line(*driver_, 2);
    stop.request_stop();
    EXPECT_EQ(error_of([&] { waiting.get(); })->error_class(), ErrorClass::cancelled);
    let_go();
    EXPECT_NO_THROW(behind.get());
    EXPECT_FALSE(ran_);
    EXPECT_THAT(order_ids(*driver_), ElementsAre(2));
}

TEST_F(WaitingInLine, DoesNotBeginForAStopThatCameBefore) {
    std::stop_source stop;
    stop.request_stop();
    EXPECT_EQ(error_of([&] { driver_->attempt(until(stop.get_token()), never_); })->error_class(),
              ErrorClass::cancelled);
    let_go();
    EXPECT_EQ(error_of([&] { driver_->attempt(until(stop.get_token()), never_); })->error_class(),
              ErrorClass::cancelled);
    EXPECT_FALSE(ran_);
}

TEST_F(GroupCommitStory, AStopWhileAStatementRunsEndsItAndTheConnectionGoesOn) {
    HOLDFAST_CHECK("store 206");
    for (const char* endless : {endless_read, endless_write}) {
        std::stop_source stop;
        std::latch running{1};
        Pending outcome = std::async(std::launch::async, [&] {
            driver_->attempt(until(stop.get_token()), [&](Session& session) {
                send(session, sql(add), 1);
                running.count_down();
                send(session, sql(endless));
            });
        });
        running.wait();
        stop.request_stop();
        const auto error = error_of([&] { outcome.get(); });
        EXPECT_EQ(error->error_class(), ErrorClass::cancelled);
        EXPECT_EQ(error->outcome(), Outcome::not_applied);
        EXPECT_THAT(order_ids(*driver_), IsEmpty());
    }
    run(*driver_, add, 2);
    EXPECT_THAT(order_ids(*driver_), ElementsAre(2));
}

TEST_F(GroupCommitStory, AStopBeforeTheCommitLeavesNoRow) {
    HOLDFAST_CHECK("store 206");
    std::stop_source stop;
    const Body stopping = [&](Session& session) {
        send(session, sql(add), 2);
        stop.request_stop();
    };
    EXPECT_EQ(error_of([&] { driver_->attempt(until(stop.get_token()), stopping); })->error_class(),
              ErrorClass::cancelled);

    // The same in a batch, which must not notice.
    std::latch begun{1};
    std::latch in_line{1};
    Pending leader = std::async(std::launch::async, [&] {
        driver_->attempt(in_time(), [&](Session& session) {
            begun.count_down();
            in_line.wait();
            send(session, sql(add), 1);
        });
    });
    begun.wait();
    stop = std::stop_source();
    Pending stopped = stand_in_line(stopping, until(stop.get_token()));
    in_line.count_down();
    EXPECT_NO_THROW(leader.get());
    EXPECT_EQ(error_of([&] { stopped.get(); })->error_class(), ErrorClass::cancelled);
    EXPECT_THAT(order_ids(*driver_), ElementsAre(1));
}

TEST_F(GroupCommitStory, ADeadlineEndsAStatement) {
    for (const bool reading : {false, true}) {
        AttemptOptions soon = in_time();
        soon.deadline = Deadline::after(5ms);
        soon.read_only = reading;
        const auto error = error_of([&] { driver_->run(soon, Call{&sql(endless_read), {}}, 0); });
        EXPECT_EQ(error->error_class(), ErrorClass::deadline);
        EXPECT_EQ(error->outcome(), Outcome::not_applied);
    }
    run(*driver_, add, 1);
}

TEST_F(GroupCommitStory, StopRefusesThoseInLineAndInterruptsWhatRuns) {
    std::latch running{1};
    Pending leader = std::async(std::launch::async, [&] {
        driver_->attempt(in_time(), [&](Session& session) {
            running.count_down();
            send(session, sql(endless_write));
        });
    });
    running.wait();
    Pending waiting = stand_in_line(adding(1));
    driver_->stop(Deadline::after(0s));
    EXPECT_EQ(error_of([&] { waiting.get(); })->code(), Code::unavailable);
    EXPECT_EQ(error_of([&] { leader.get(); })->code(), Code::unavailable);
    driver_ = open("");
    EXPECT_THAT(order_ids(*driver_), IsEmpty());
}

// One writer has the database until all others wait, so that some share a commit however quick one
// is; after that it is left to chance.
TEST_F(GroupCommitStory, NobodyIsLostAndNobodyIsDoubledAmongManyWriters) {
    constexpr int writers = 64;
    constexpr int each = 20;
    run(*driver_, "CREATE TABLE effects (writer INTEGER, n INTEGER)");
    const std::int64_t before = commits();
    const Rendered& effect = sql("INSERT INTO effects VALUES ($1, $2)");
    std::latch begun{1};
    std::latch complete{1};
    {
        std::vector<std::jthread> threads;
        threads.emplace_back([&] {
            driver_->attempt(in_time(), [&](Session&) {
                begun.count_down();
                complete.wait();
            });
        });
        begun.wait();
        for (int writer = 0; writer < writers; ++writer) {
            threads.emplace_back([&, writer] {
                for (int n = 0; n < each; ++n) {
                    const std::array<Param, 2> args{Param(writer), Param(n)};
                    driver_->run(in_time(), Call{&effect, args}, 0);
                }
            });
        }
        await_line(*driver_, writers);
        complete.count_down();
    }
    const Rows counts =
        run(*driver_, "SELECT count(*), count(DISTINCT writer * 1000 + n) FROM effects").rows;
    EXPECT_EQ(counts[0].get<int>(0), writers * each);
    EXPECT_EQ(counts[0].get<int>(1), writers * each);
    EXPECT_LT(commits() - before, writers * each);
}

TEST_F(GroupCommitStory, AReaderAmongWritersSeesWholeTransactions) {
    std::atomic<int> writing = 4;
    std::vector<std::jthread> threads;
    for (int writer = 0; writer < 4; ++writer) {
        threads.emplace_back([&, writer, &insert = sql(add)] {
            for (int n = 0; n < 25; ++n) {
                driver_->attempt(in_time(), [&](Session& session) {
                    send(session, insert, 1000 * writer + 2 * n);
                    send(session, insert, 1000 * writer + 2 * n + 1);
                });
            }
            --writing;
        });
    }
    while (writing > 0) {
        EXPECT_EQ(order_ids(*driver_).size() % 2, 0U);
    }
    threads.clear();
    EXPECT_THAT(order_ids(*driver_), SizeIs(200));
}

TEST_F(GroupCommitStory, MoreReadersThanConnectionsTakeTurns) {
    run(*driver_, add, 1);
    const Rendered& count = sql("SELECT count(*) FROM orders");
    {
        std::vector<std::jthread> threads;
        for (int reader = 0; reader < 24; ++reader) {
            threads.emplace_back([&] {
                EXPECT_EQ(driver_->run(read_only(), Call{&count, {}}, 0).rows[0].get<int>(0), 1);
            });
        }
    }
    EXPECT_LE(driver_->pool_stats().opened, 9);  // Eight readers and the writer.
}

}  // namespace
}  // namespace holdfast::sql::sqlite
