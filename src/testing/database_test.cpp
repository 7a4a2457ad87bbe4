#include <gtest/gtest.h>

#include <holdfast/testing/backends.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::test {

namespace {

using namespace std::chrono_literals;

constexpr sql::Statement clock{"clock", "SELECT {now_us}"};

class TestDatabase : public testing::TestWithParam<Backend> {
protected:
    std::int64_t now_us() { return db->run("Look", {}, clock).rows[0].get<std::int64_t>(0); }

    Database db{GetParam()};
};

TEST_P(TestDatabase, IsEmptyAndNobodyElseSeesWhatIsPutIntoIt) {
    Database other(GetParam());
    for (Database* one : {&db, &other}) {
        one->execute(
            "CREATE TABLE t (n {bigint}, u {uuid}) {strict}; INSERT INTO t (n) VALUES (1)");
        EXPECT_EQ(one->number("SELECT count(*) FROM t"), 1);
    }
    EXPECT_EQ(db.look("SELECT n, u FROM t"), (std::vector<Database::Cells>{{"1", std::nullopt}}));
    EXPECT_EQ(code_of([&] { db.execute("SELECT * FROM missing"); }), Code::internal);
}

TEST_P(TestDatabase, ItsClockIsMovedByHand) {
    const std::int64_t before = now_us();
    db.advance_clock(1h);
    EXPECT_GE(now_us(), before + 3'600'000'000);
    db.advance_clock(-1h);
    EXPECT_LT(now_us(), before + 3'600'000'000);
}

TEST_P(TestDatabase, KeepsItsDataAndItsClockWhenItIsReopened) {
    db.execute("CREATE TABLE t (n {bigint}) {strict}; INSERT INTO t VALUES (7)");
    const std::int64_t before = now_us();
    db.advance_clock(1h);
    db.reopen();
    EXPECT_EQ(db.number("SELECT n FROM t"), 7);
    EXPECT_GE(now_us(), before + 3'600'000'000);
}

INSTANTIATE_TEST_SUITE_P(Every, TestDatabase, every_backend(), backend_name);

}  // namespace

}  // namespace holdfast::test
