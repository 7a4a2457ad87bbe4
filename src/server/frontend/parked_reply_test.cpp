#include "frontend/parked_reply.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "frontend/test/frontend_fixture.hpp"
#include <gtest/gtest.h>

namespace holdfast::server::frontend::tests {

namespace {

using ParkedShutdown = ParkedReply<api::ShutdownWorkerResponse>;

class ParkedReplies : public testing::Test {
protected:
    rpc::Reply<api::ShutdownWorkerResponse> reply() {
        return rpc::Reply<api::ShutdownWorkerResponse>(
            std::make_shared<rpc::Call>(rpc::CallInfo{.method = "", .deadline = {}, .caller = {}},
                                        [this](const rpc::Answer&) { ++answers; }));
    }

    RungAlarms alarms;
    int answers = 0;
    std::vector<Woken> woken;
    ParkedShutdown parked{alarms, [this](Woken why, rpc::Reply<api::ShutdownWorkerResponse> kept) {
                              woken.push_back(why);
                              std::move(kept).send();
                          }};
};

// News may come on another thread while the handler still sets up the wait.
TEST_F(ParkedReplies, WhatHappensBeforeTheReplyIsThereIsNotLost) {
    parked.set_alarm(alarms.set(Steady{}, [this] { parked.wake(Woken::expired); }));
    parked.wake(Woken::news);
    EXPECT_EQ(answers, 0);
    parked.put(reply());
    EXPECT_EQ(answers, 1);
    EXPECT_EQ(woken, std::vector{Woken::news});
    EXPECT_EQ(alarms.pending(), 0U);
}

TEST_F(ParkedReplies, OnlyTheFirstThingThatHappensCounts) {
    parked.put(reply());
    parked.wake(Woken::expired);
    parked.wake(Woken::news);
    EXPECT_EQ(answers, 1);
    EXPECT_EQ(woken, std::vector{Woken::expired});
}

}  // namespace

}  // namespace holdfast::server::frontend::tests
