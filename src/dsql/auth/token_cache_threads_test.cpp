// Many at once at the token cache.
#include <latch>
#include <vector>

#include "auth/test/token_cache_fixture.hpp"

#include <holdfast/testing/check.hpp>

namespace holdfast::dsql {
namespace {

using namespace std::chrono_literals;
using holdfast::test::code_of;
using tests::TokenCacheStory;

void all_together(int people, const std::function<void(int)>& act) {
    std::latch together(people);
    std::vector<std::jthread> threads;
    for (int i = 0; i < people; ++i) {
        threads.emplace_back([&, i] {
            together.arrive_and_wait();
            act(i);
        });
    }
}

TEST_F(TokenCacheStory, AHundredMissesAreOneGeneration) {
    HOLDFAST_CHECK("connections +cache.single_flight");
    all_together(100, [&](int) { EXPECT_FALSE(get().text.empty()); });
    EXPECT_EQ(provider->asked, 1);
}

TEST_F(TokenCacheStory, AHundredHitsAreTheSameToken) {
    HOLDFAST_CHECK("connections cache.parallel_get");
    const Token token = get();
    all_together(100, [&](int) { EXPECT_EQ(get().text, token.text); });
}

TEST_F(TokenCacheStory, ReadersAndClearersDoNotHoldEachOtherUp) {
    HOLDFAST_CHECK("connections cache.parallel_clear");
    const auto begin = std::chrono::steady_clock::now();
    all_together(55, [&](int person) {
        for (int i = 0; i < 20; ++i) {
            if (person < 5) {
                cache.clear();
            } else {
                EXPECT_FALSE(get().text.empty());
            }
        }
    });
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
}

TEST_F(TokenCacheStory, ACallersDeadlineHoldsThoughTheProviderHangs) {
    HOLDFAST_CHECK("connections +cache.deadline");
    provider->hang = true;
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(code_of([&] { (void)cache.get(key, Deadline::after(50ms), {}); }), Code::deadline);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);

    std::stop_source stop;
    std::jthread caller([&] {
        EXPECT_EQ(code_of([&] { (void)cache.get(key, tests::soon(), stop.get_token()); }),
                  Code::cancelled);
    });
    stop.request_stop();
}

// A caller waits for a fresh token at the moment when a server refuses the old one.
TEST_F(TokenCacheStory, ARefusalDoesNotForgetWhoWaits) {
    const Token old = get();
    provider->hang = true;
    clock.advance(14min);
    std::jthread caller([&] { EXPECT_NE(get().text, old.text); });
    provider->wait_until_asked(2);
    cache.invalidate(key, old.text);
    provider->release();
}

TEST_F(TokenCacheStory, StoppingWakesWhoWaits) {
    provider->hang = true;
    std::jthread caller([&] { EXPECT_EQ(code_of([&] { (void)get(); }), Code::unavailable); });
    provider->wait_until_asked(1);
    cache.stop();
}

}  // namespace
}  // namespace holdfast::dsql
