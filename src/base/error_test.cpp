#include <holdfast/base/error.hpp>

#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

#include <holdfast/base/assert.hpp>

namespace holdfast {
namespace {

TEST(Error, CarriesCodeOutcomeAndPlace) {
    const Error error(Code::unavailable, Outcome::unknown, "the server went away");
    EXPECT_EQ(error.code(), Code::unavailable);
    EXPECT_EQ(error.outcome(), Outcome::unknown);
    EXPECT_STREQ(error.what(), "the server went away");
    EXPECT_TRUE(std::string_view(error.where().file_name()).ends_with("error_test.cpp"));
    EXPECT_FALSE(error.cause());
}

TEST(Error, ContextReadsFromTheOutsideIn) {
    Error error(Code::internal, Outcome::not_applied, "row 7 is damaged");
    error.add_context("reading history");
    error.add_context("loading order/1");
    EXPECT_STREQ(error.what(), "loading order/1: reading history: row 7 is damaged");
}

TEST(Error, AnInvalidArgumentWasNotApplied) {
    const InvalidArgument error("ttl must be positive");
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_EQ(error.outcome(), Outcome::not_applied);
    EXPECT_TRUE(std::string_view(error.where().file_name()).ends_with("error_test.cpp"));
}

TEST(Error, DescribeFollowsTheCausesToTheFirst) {
    Error middle(Code::unavailable, Outcome::not_applied, "cannot connect");
    middle.set_cause(std::make_exception_ptr(std::runtime_error("connection refused")));
    Error outer(Code::unavailable, Outcome::not_applied, "cannot open the store");
    outer.set_cause(std::make_exception_ptr(middle));
    EXPECT_EQ(describe(std::make_exception_ptr(outer)),
              "cannot open the store: caused by cannot connect: caused by connection refused");
    EXPECT_EQ(describe(std::make_exception_ptr(5)), "an exception that is not a std::exception");
    Error quoting(Code::unavailable, Outcome::not_applied, "no connection: no route");
    quoting.set_cause(std::make_exception_ptr(std::runtime_error("no route")));
    EXPECT_EQ(describe(std::make_exception_ptr(quoting)), "no connection: no route");
    EXPECT_EQ(describe(nullptr), "");
}

TEST(Error, EveryCodeHasItsOwnName) {
    std::set<std::string_view> names;
    constexpr int codes = static_cast<int>(Code::exhausted) + 1;
    for (int code = 0; code < codes; ++code) {
        names.insert(to_string(static_cast<Code>(code)));
    }
    EXPECT_EQ(names.size(), static_cast<std::size_t>(codes));
    EXPECT_EQ(to_string(Outcome::not_applied), "not_applied");
    EXPECT_EQ(to_string(Outcome::unknown), "unknown");
}

TEST(AssertDeathTest, ABrokenBeliefStopsTheProcessAndSaysWhere) {
    const int legs = 3;
    HOLDFAST_ASSERT(legs > 2);
    EXPECT_DEATH(HOLDFAST_ASSERT(legs == 4), "broken invariant: legs == 4 .*error_test.cpp:[0-9]+");
}

}  // namespace
}  // namespace holdfast
