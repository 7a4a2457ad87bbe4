// What a backend says besides yes and no: why there was nothing to release, and that fences run
// out.
#include <regex>

#include "statements/statements.hpp"
#include "test/lock_fixture.hpp"
#include <gmock/gmock.h>

#include <holdfast/base/log_capture.hpp>
#include <holdfast/lock/key.hpp>

namespace holdfast::lock::tests {
namespace {

class LockAnswers : public LockStory {
protected:
    // Release and extend are asked in this order, so that the row is still as it was.
    std::optional<Missing> why_not(const LockId& id) {
        const Extended extended = locks.extend(id, 10s);
        const Released released = locks.release(id);
        EXPECT_FALSE(extended.ok);
        EXPECT_FALSE(released.ok);
        EXPECT_EQ(extended.why, released.why);
        return released.why;
    }
};

TEST_P(LockAnswers, ADeadRowIsExpired) {
    HOLDFAST_CHECK("locks U-P 127");
    const Grant grant = take("k");
    let_the_lease_end();
    EXPECT_EQ(why_not(grant.lock_id), Missing::expired);
}

TEST_P(LockAnswers, AnIdThatHasNoRowIsNotFoundWhateverBecameOfIt) {
    HOLDFAST_CHECK("locks U-P 128");
    HOLDFAST_CHECK("locks U-P 129");
    HOLDFAST_CHECK("locks U-P 130");
    HOLDFAST_CHECK("locks U-P 131");
    EXPECT_EQ(why_not(LockId::fresh()), Missing::not_found) << "it never existed";
    const Grant ann = take("taken over");
    const Grant cleaned = take("cleaned up");
    let_the_lease_end();
    const Grant bob = take("taken over");
    EXPECT_EQ(why_not(ann.lock_id), Missing::not_found) << "the row has another id";
    EXPECT_TRUE(locks.extend(bob.lock_id, 10s).ok);
    db.advance_clock(1s);
    EXPECT_EQ(locks.purge(), 1);
    EXPECT_EQ(why_not(cleaned.lock_id), Missing::not_found) << "the row is gone";
    EXPECT_TRUE(locks.release(bob.lock_id).ok);
    EXPECT_EQ(why_not(bob.lock_id), Missing::not_found) << "it was released: nobody knows by whom";
}

TEST_P(LockAnswers, FencesThatRunOutAreAnnounced) {
    HOLDFAST_CHECK("locks U-H 22");
    HOLDFAST_CHECK("locks U-H 23");
    CapturingLogger logger;
    Locks telling(db, {.logger = &logger});
    const auto take_and_release = [&] {
        const auto grant = std::get<Grant>(telling.acquire("invoice/7", 10s));
        EXPECT_TRUE(telling.release(grant.lock_id).ok);
        return value_of(grant.fence);
    };
    take_and_release();
    db.tamper("UPDATE holdfast_fences SET fence = " + std::to_string(fence_warn - 1));
    EXPECT_EQ(take_and_release(), static_cast<std::uint64_t>(fence_warn));
    EXPECT_EQ(logger.count("fence counter approaches"), 0U) << "not yet";
    take_and_release();
    EXPECT_EQ(logger.count("fence=090000000000001 maximum=900000000000000"), 1U);
    EXPECT_EQ(logger.count(hashed_name("invoice/7")), 1U);
    EXPECT_EQ(logger.count("invoice/7"), 0U);
    take_and_release();
    EXPECT_EQ(logger.count("fence counter approaches"), 1U) << "once a minute is enough";
}

INSTANTIATE_TEST_SUITE_P(Every, LockAnswers, every_setting(), setting_name);

// The tolerance is handed to every statement: a number of its own could differ.
TEST(LockTolerance, NoStatementHasOneOfItsOwn) {
    HOLDFAST_CHECK("locks U-P 110");
    EXPECT_EQ(Locks::Hooks{}.tolerance, time_tolerance);
    const std::regex literal(R"((/ 1000|_ms)\s*[-+]\s*[0-9])");
    const std::regex comparison(R"(expires_at_ms >)");
    int compared = 0;
    for (const auto& statements : {catalogue().statements, catalogue().postgres_only}) {
        for (const sql::Statement* statement : statements) {
            const std::string text(statement->text());
            EXPECT_FALSE(std::regex_search(text, literal)) << statement->name();
            compared += std::regex_search(text, comparison) ? 1 : 0;
        }
    }
    EXPECT_GT(compared, 5) << "the pattern has to find what it is for";
}

}  // namespace
}  // namespace holdfast::lock::tests
