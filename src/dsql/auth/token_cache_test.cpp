#include <holdfast/dsql/token_cache.hpp>

#include "auth/test/token_cache_fixture.hpp"
#include <gmock/gmock.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::dsql {
namespace {

using namespace std::chrono_literals;
using holdfast::test::code_of;
using tests::soon;
using tests::TokenCacheStory;

const Wall noon = std::chrono::sys_days{std::chrono::year{2026} / 6 / 15} + 12h;

TokenLife quarter_hour_until(Wall expiry) {
    return {.birth = expiry - 15min, .expiry = expiry};
}

TEST(TokenLife, IsOverAtItsExpiry) {
    HOLDFAST_CHECK("connections token.valid.future");
    HOLDFAST_CHECK("connections token.valid.past");
    HOLDFAST_CHECK("connections token.valid.now");
    EXPECT_TRUE(is_usable(quarter_hour_until(noon + 15min), noon));
    EXPECT_FALSE(is_usable(quarter_hour_until(noon - 5min), noon));
    EXPECT_FALSE(is_usable(quarter_hour_until(noon), noon));
}

TEST(TokenLife, IsRefreshedAfterFourFifths) {
    HOLDFAST_CHECK("connections token.refresh.fresh");
    HOLDFAST_CHECK("connections token.refresh.half");
    HOLDFAST_CHECK("connections token.refresh.79");
    HOLDFAST_CHECK("connections token.refresh.81");
    HOLDFAST_CHECK("connections token.refresh.expired");
    const auto due_at_percent = [](int percent) {
        return refresh_time(quarter_hour_until(noon + 15min)) <= noon + 900s * percent / 100;
    };
    EXPECT_FALSE(due_at_percent(0));
    EXPECT_FALSE(due_at_percent(50));
    EXPECT_FALSE(due_at_percent(79));
    EXPECT_TRUE(due_at_percent(81));
    EXPECT_TRUE(due_at_percent(150));
}

TEST(TokenLife, KeepsAMarginForTheOpening) {
    HOLDFAST_CHECK("connections +cache.margin");
    const auto usable = [](std::chrono::seconds life, std::chrono::seconds left) {
        return is_usable({.birth = noon, .expiry = noon + life}, noon + life - left);
    };
    EXPECT_TRUE(usable(900s, 90s)) << "a tenth of its life";
    EXPECT_FALSE(usable(900s, 89s));
    EXPECT_TRUE(usable(120s, 30s)) << "but 30 s at least";
    EXPECT_FALSE(usable(120s, 29s));
    EXPECT_TRUE(usable(20s, 10s)) << "and never more than half of it";
    EXPECT_FALSE(usable(20s, 9s));
}

TEST(TokenKeys, DifferInAnyOfTheirParts) {
    HOLDFAST_CHECK("connections key.identity");
    const TokenKey key{.host = "h", .region = "r"};
    const TokenKey same{.host = "h", .region = "r", .user = "admin", .life = 15min};
    EXPECT_EQ(key, same);
    EXPECT_NE(key, (TokenKey{.host = "x", .region = "r"}));
    EXPECT_NE(key, (TokenKey{.host = "h", .region = "x"}));
    EXPECT_NE(key, (TokenKey{.host = "h", .region = "r", .user = "x"}));
    EXPECT_NE(key, (TokenKey{.host = "h", .region = "r", .life = 14min}));
}

TEST(TokenDefaults, AreTheDocumentedOnes) {
    HOLDFAST_CHECK("connections const.defaults");
    EXPECT_EQ(token_life_default, 15min);
    EXPECT_EQ(admin_user, "admin");
    EXPECT_EQ(refresh_time({.birth = noon, .expiry = noon + 15min}), noon + 12min);
}

TEST_F(TokenCacheStory, BeginsEmptyAndNeedsAProvider) {
    HOLDFAST_CHECK("connections cache.construct");
    HOLDFAST_CHECK("connections open.no_token_source");
    EXPECT_EQ(cache.size(), 0U);
    EXPECT_EQ(code_of([] { TokenCache nobody(nullptr); }), Code::invalid_argument);
}

TEST_F(TokenCacheStory, AKeyIsSignedOnceAndThenAtHand) {
    HOLDFAST_CHECK("connections cache.size");
    const Token first = get();
    EXPECT_EQ(first.life.birth, clock.wall_now());
    EXPECT_EQ(first.life.expiry, clock.wall_now() + 15min);
    EXPECT_EQ(get().text, first.text);
    EXPECT_EQ(provider->asked, 1);
    EXPECT_EQ(metrics.value("dsql_token_cache_misses"), 1);
    EXPECT_EQ(metrics.value("dsql_token_cache_hits"), 1);
    EXPECT_EQ(metrics.value("dsql_token_generation_seconds", {{"outcome", "ok"}}), 1);
    EXPECT_EQ(cache.size(), 1U);
    key.user = "app";
    EXPECT_NE(get().text, first.text);
    EXPECT_EQ(cache.size(), 2U);
}

TEST_F(TokenCacheStory, ClearingForgetsAll) {
    HOLDFAST_CHECK("connections cache.clear");
    const Token first = get();
    key.user = "app";
    (void)get();
    cache.clear();
    EXPECT_EQ(cache.size(), 0U);
    clock.advance(1s);
    key.user = "admin";
    EXPECT_NE(get().text, first.text);
}

TEST_F(TokenCacheStory, ATokenIsReplacedBeforeItGetsOld) {
    const Token first = get();
    // At 80 % of its life, give or take 5 %.
    ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
    clock.advance(900s * 74 / 100);
    EXPECT_EQ(get().text, first.text);
    clock.advance(900s * 12 / 100);
    provider->wait_until_asked(2);
    ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
    EXPECT_EQ(log.count("life_s=900 credentials=test"), 2U);
    EXPECT_NE(get().text, first.text);
    EXPECT_EQ(metrics.value("dsql_token_refreshes"), 1);
    EXPECT_EQ(metrics.value("dsql_token_cache_misses"), 1) << "nobody had to wait";
}

TEST_F(TokenCacheStory, AFailedRefreshIsTriedAgainWhileTheOldTokenServes) {
    const Token first = get();
    provider->fail = true;
    ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
    clock.advance(900s * 86 / 100);
    provider->wait_until_asked(2);
    ASSERT_TRUE(log.wait_for("token.refresh_failed", soon()));
    EXPECT_EQ(get().text, first.text);
    EXPECT_EQ(metrics.value("dsql_token_refresh_failures"), 1);
    for (const auto pause : {1s, 2s, 4s}) {
        const int asked = provider->asked;
        ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
        clock.advance(pause - 1ms);
        ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
        EXPECT_EQ(provider->asked, asked);
        clock.advance(1ms);
        provider->wait_until_asked(asked + 1);
    }
    ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
    provider->fail = false;
    clock.advance(8s);
    provider->wait_until_asked(6);
    ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
    EXPECT_NE(get().text, first.text);
}

TEST_F(TokenCacheStory, ATokenTooOldIsNotHandedOut) {
    HOLDFAST_CHECK("connections +cache.margin");
    (void)get();
    provider->fail = true;
    clock.advance(14min);
    EXPECT_EQ(code_of([&] { (void)get(); }), Code::unavailable);
    provider->fail = false;
    EXPECT_EQ(get().life.birth, clock.wall_now());
}

TEST_F(TokenCacheStory, DyingCredentialsShortenTheToken) {
    HOLDFAST_CHECK("connections +cache.credential_cap");
    provider->expires = clock.wall_now() + 60s;
    const Token brief = get();
    EXPECT_EQ(brief.life.expiry, clock.wall_now() + 60s);
    // And it is replaced before they are dead: at 48 s, give or take 3.
    provider->expires = clock.wall_now() + 1h;
    ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
    clock.advance(52s);
    provider->wait_until_asked(2);
    ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
    EXPECT_EQ(get().life.expiry, clock.wall_now() + 15min);
}

TEST_F(TokenCacheStory, ARefusedTokenIsNotHandedOutAgainAndANewerOneStays) {
    HOLDFAST_CHECK("connections +cache.invalidate");
    const Token old = get();
    clock.advance(1s);
    cache.invalidate(key, old.text);
    EXPECT_EQ(provider->forgotten, 1) << "the keys may have been rotated";
    const Token fresh = get();
    EXPECT_NE(fresh.text, old.text);
    cache.invalidate(key, old.text);
    EXPECT_EQ(get().text, fresh.text);
    EXPECT_EQ(provider->forgotten, 1);
}

TEST_F(TokenCacheStory, AFirstFailureIsToldAndAskedAnew) {
    provider->fail = true;
    EXPECT_EQ(code_of([&] { (void)get(); }), Code::unavailable);
    EXPECT_EQ(metrics.value("dsql_token_generation_seconds", {{"outcome", "error"}}), 1);
    EXPECT_EQ(cache.size(), 0U);
    provider->fail = false;
    EXPECT_NE(get().text, "");
}

TEST_F(TokenCacheStory, NeitherTokenNorSecretIsLogged) {
    const Token token = get();
    EXPECT_EQ(log.count(token.text), 0U);
    EXPECT_EQ(log.count("X-Amz-Signature"), 0U);
    EXPECT_EQ(log.count("s3cret"), 0U);
}

TEST_F(TokenCacheStory, StopsTwice) {
    HOLDFAST_CHECK("connections cache.stop_twice");
    const Token token = get();
    cache.stop();
    cache.stop();
    EXPECT_EQ(get().text, token.text) << "what is there can still be used";
    key.user = "app";
    EXPECT_EQ(code_of([&] { (void)get(); }), Code::unavailable);
}

}  // namespace
}  // namespace holdfast::dsql
