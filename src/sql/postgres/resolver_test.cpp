// Names of servers while the name server is slow, silent or wrong.
#include "postgres/resolver.hpp"

#include <condition_variable>
#include <future>
#include <mutex>

#include <gmock/gmock.h>

#include <holdfast/base/error.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::sql::postgres {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// A name server that answers when it is told to. Its callers share its ownership, also threads that
// are left behind.
struct SlowNames {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;
    int asked = 0;
    int answered = 0;

    Addresses answer(const std::string& host) {
        std::unique_lock lock(mutex);
        ++asked;
        changed.notify_all();
        changed.wait(lock, [&] { return open; });
        ++answered;
        changed.notify_all();
        return host == "none.example" ? Addresses{.numeric = {}, .error = "unknown"}
                                      : Addresses{.numeric = {"192.0.2.1", "::1"}, .error = {}};
    }
    void let_go() {
        const std::lock_guard lock(mutex);
        open = true;
        changed.notify_all();
    }
    template <class Condition>
    [[nodiscard]] bool wait(Condition condition) {
        std::unique_lock lock(mutex);
        return changed.wait_for(lock, 20s, condition);
    }
};

class ResolverStory : public testing::Test {
protected:
    [[nodiscard]] Resolver resolver() const {
        return Resolver([names = names](const std::string& host) { return names->answer(host); });
    }
    [[nodiscard]] static ConnectParams to(const char* host, const char* port = "5432") {
        return {{"host", host}, {"port", port}};
    }
    static std::string failure(Resolver& resolver,
                               const ConnectParams& params,
                               Deadline deadline,
                               const std::stop_token& stop) {
        try {
            (void)resolver.resolve(params, deadline, stop);
            return "it was known";
        } catch (const DatabaseError& error) {
            EXPECT_EQ(error.code(), Code::unavailable);
            EXPECT_EQ(error.outcome(), Outcome::not_applied);
            return error.what();
        }
    }

    std::shared_ptr<SlowNames> names = std::make_shared<SlowNames>();
};

TEST_F(ResolverStory, EveryAddressOfANameIsTriedUnderThatName) {
    names->let_go();
    Resolver resolver = this->resolver();
    const ConnectParams one = resolver.resolve(to("db.example"), Deadline::after(20s), {});
    EXPECT_EQ(one.at("host"), "db.example,db.example") << "what the certificate is checked for";
    EXPECT_EQ(one.at("hostaddr"), "192.0.2.1,::1");
    EXPECT_EQ(one.at("port"), "5432");
    EXPECT_FALSE(
        resolver.resolve({{"host", "db.example"}}, Deadline::after(20s), {}).contains("port"));
    const ConnectParams many = resolver.resolve(
        to("none.example,127.0.0.1,db.example", "1,2,3"), Deadline::after(20s), {});
    EXPECT_EQ(many.at("host"), "127.0.0.1,db.example,db.example");
    EXPECT_EQ(many.at("hostaddr"), ",192.0.2.1,::1");
    EXPECT_EQ(many.at("port"), "2,3,3");
    EXPECT_THAT(failure(resolver, to("none.example"), Deadline::after(20s), {}),
                HasSubstr("could not translate host name \"none.example\" to address: unknown, at "
                          "stage resolve"));
}

TEST_F(ResolverStory, WhatIsNoNameIsLeftAlone) {
    Resolver resolver = this->resolver();
    const Deadline past = Deadline::at(Steady::min());
    for (const char* host : {"127.0.0.1", "::1", "/run/postgresql", "@abstract", ""}) {
        EXPECT_EQ(resolver.resolve(to(host), past, {}), to(host)) << host;
    }
    ConnectParams known = to("db.example");
    known["hostaddr"] = "192.0.2.7";
    EXPECT_EQ(resolver.resolve(known, past, {}), known);
    EXPECT_EQ(names->asked, 0);
}

TEST_F(ResolverStory, ASilenceEndsAtTheDeadlineOrWhenToldToStop) {
    HOLDFAST_CHECK("connections +open.stage_timeout");
    std::stop_source stop;
    {
        Resolver resolver = this->resolver();
        EXPECT_THAT(failure(resolver, to("db.example"), Deadline::after(50ms), {}),
                    HasSubstr("took too long at stage resolve"));
        auto waiting = std::async(std::launch::async, [&] {
            return failure(resolver, to("db.example"), Deadline::after(1h), stop.get_token());
        });
        stop.request_stop();
        EXPECT_THAT(waiting.get(), HasSubstr("was stopped at stage resolve"));
    }
    // No call waits for the thread that was left behind, and there is one for the name, not two.
    EXPECT_TRUE(names->wait([&] { return names->asked == 1; }));
    names->let_go();
    EXPECT_TRUE(names->wait([&] { return names->answered == 1; }));
}

TEST_F(ResolverStory, ThoseWhoWantTheSameNameShareOneAnswer) {
    Resolver resolver = this->resolver();
    const auto ask = [&] { return resolver.resolve(to("db.example"), Deadline::after(20s), {}); };
    auto first = std::async(std::launch::async, ask);
    ASSERT_TRUE(names->wait([&] { return names->asked == 1; }));
    auto second = std::async(std::launch::async, ask);
    EXPECT_THAT(failure(resolver, to("db.example"), Deadline::after(10ms), {}),
                HasSubstr("took too long"));
    EXPECT_TRUE(names->wait([&] { return names->asked == 1; }));
    names->let_go();
    EXPECT_EQ(first.get(), second.get());
    (void)ask();
    EXPECT_GE(names->answered, 2) << "answers are not kept: the next opening asks again";
}

TEST_F(ResolverStory, TheSystemKnowsThisMachine) {
    const Addresses here = look_up("localhost");
    EXPECT_FALSE(here.numeric.empty()) << here.error;
    EXPECT_FALSE(look_up("a..b").error.empty());
}

}  // namespace
}  // namespace holdfast::sql::postgres
