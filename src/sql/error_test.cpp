#include <holdfast/sql/error.hpp>

#include <gtest/gtest.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::sql {
namespace {

struct Case {
    const char* state;
    ErrorClass error_class;
    Code code;
};

class Classifier : public testing::TestWithParam<Case> {};

TEST_P(Classifier, GivesEverySqlStateItsClassAndItsCode) {
    const Case& expected = GetParam();
    const DatabaseError error(SqlState{expected.state}, Outcome::not_applied, "x");
    EXPECT_EQ(classify(SqlState{expected.state}), expected.error_class);
    EXPECT_EQ(classify(error), expected.error_class);
    EXPECT_EQ(error.code(), expected.code);
}

INSTANTIATE_TEST_SUITE_P(
    Table,
    Classifier,
    testing::Values(Case{"40001", ErrorClass::retryable, Code::conflict},
                    Case{"40P01", ErrorClass::retryable, Code::conflict},
                    Case{"40003", ErrorClass::permanent, Code::internal},
                    Case{"0A000", ErrorClass::unsupported_feature, Code::unsupported},
                    Case{"53300", ErrorClass::connection_limit, Code::exhausted},
                    Case{"53400", ErrorClass::connection_limit, Code::exhausted},
                    Case{"53100", ErrorClass::permanent, Code::unavailable},
                    Case{"54000", ErrorClass::limit_exceeded, Code::limit_exceeded},
                    Case{"54001", ErrorClass::limit_exceeded, Code::limit_exceeded},
                    Case{"23505", ErrorClass::duplicate, Code::already_exists},
                    Case{"42P07", ErrorClass::duplicate, Code::already_exists},
                    Case{"42710", ErrorClass::duplicate, Code::already_exists},
                    Case{"23502", ErrorClass::permanent, Code::invalid_argument},
                    Case{"22001", ErrorClass::permanent, Code::invalid_argument},
                    Case{"25006", ErrorClass::connection_lost, Code::unavailable},
                    Case{"08000", ErrorClass::connection_lost, Code::unavailable},
                    Case{"08003", ErrorClass::connection_lost, Code::unavailable},
                    Case{"08006", ErrorClass::connection_lost, Code::unavailable},
                    Case{"57P01", ErrorClass::connection_lost, Code::unavailable},
                    Case{"57P02", ErrorClass::connection_lost, Code::unavailable},
                    Case{"57P03", ErrorClass::connection_lost, Code::unavailable},
                    Case{"57014", ErrorClass::permanent, Code::unavailable},
                    Case{"55P03", ErrorClass::permanent, Code::unavailable},
                    Case{"58030", ErrorClass::permanent, Code::unavailable},
                    Case{"28P01", ErrorClass::permanent, Code::unauthorized},
                    Case{"42501", ErrorClass::permanent, Code::unauthorized},
                    Case{"3D000", ErrorClass::permanent, Code::not_found},
                    Case{"42P01", ErrorClass::permanent, Code::internal},
                    Case{"XX000", ErrorClass::permanent, Code::internal}),
    [](const auto& test) { return "State" + std::string(test.param.state); });

TEST(Classification, LooksAtTheConditionBeforeTheSqlState) {
    ConditionFailed lost("shard 7", "5", "6");
    lost.set_cause(std::make_exception_ptr(
        DatabaseError(SqlState{"40001"}, Outcome::not_applied, "conflict")));
    EXPECT_EQ(classify(lost), ErrorClass::condition_failed);
}

TEST(Classification, LooksThroughWrapping) {
    Error wrapped(Code::internal, Outcome::not_applied, "while paying");
    wrapped.set_cause(std::make_exception_ptr(
        DatabaseError(SqlState{"40001"}, Outcome::not_applied, "conflict")));
    EXPECT_EQ(classify(wrapped), ErrorClass::retryable);
}

TEST(Classification, PutsTheCallersWishBeforeTheDatabasesWord) {
    const DatabaseError cancelled(
        ErrorClass::cancelled, SqlState{"57014"}, Outcome::not_applied, "x");
    EXPECT_EQ(classify(cancelled), ErrorClass::cancelled);
    EXPECT_EQ(cancelled.code(), Code::cancelled);
    EXPECT_EQ(classify(Error(Code::deadline, Outcome::unknown, "late")), ErrorClass::deadline);
}

TEST(Classification, CallsEverythingElsePermanent) {
    EXPECT_EQ(classify(SqlState{}), ErrorClass::permanent);
    EXPECT_EQ(classify(SqlState{"not a state"}), ErrorClass::permanent);
    EXPECT_EQ(classify(Error(Code::internal, Outcome::not_applied, "40001")),
              ErrorClass::permanent);
}

// Of the states that concern connections: one that is lost is replaced, and no pool is rebuilt.
TEST(Classification, LosesAConnectionOnlyWithItsOwnStates) {
    HOLDFAST_CHECK("connections err.08000");
    HOLDFAST_CHECK("connections err.08001");
    HOLDFAST_CHECK("connections err.08003");
    HOLDFAST_CHECK("connections err.08006_plain");
    HOLDFAST_CHECK("connections err.57P03");
    HOLDFAST_CHECK("connections err.25006");
    for (const char* state : {"08000", "08001", "08003", "08006", "57P03", "25006"}) {
        EXPECT_EQ(classify(SqlState{state}), ErrorClass::connection_lost) << state;
    }
}

// Whatever the text says.
TEST(Classification, KeepsAConnectionWithAnyOtherState) {
    HOLDFAST_CHECK("connections err.0A000_other");
    HOLDFAST_CHECK("connections err.23505");
    HOLDFAST_CHECK("connections err.40001");
    HOLDFAST_CHECK("connections err.42601");
    HOLDFAST_CHECK("connections err.empty");
    HOLDFAST_CHECK("connections err.XX000_unable");
    for (const char* state : {"0A000", "23505", "40001", "42601", "", "XX000"}) {
        const DatabaseError error(
            SqlState{state}, Outcome::not_applied, "unable to accept connection");
        EXPECT_NE(classify(error), ErrorClass::connection_lost) << state;
    }
}

TEST(Classification, SeesARefusedLoginInItsOwnStates) {
    HOLDFAST_CHECK("connections err.28000_denied");
    HOLDFAST_CHECK("connections err.08006_denied");
    EXPECT_EQ(DatabaseError(SqlState{"28000"}, Outcome::not_applied, "access denied").code(),
              Code::unauthorized);
    const DatabaseError denied(classify_opening(SqlState{"08006"}, "Signature expired"),
                               SqlState{"08006"},
                               Outcome::not_applied,
                               "access denied");
    EXPECT_EQ(denied.code(), Code::unauthorized);
}

TEST(ConditionFailed, SaysWhatWasExpectedAndWhatWasFound) {
    const ConditionFailed error("shard 7", "5", "6");
    EXPECT_EQ(error.outcome(), Outcome::not_applied);
    EXPECT_STREQ(error.what(),
                 "shard 7 was expected to hold 5, but 6 was found; reload it and decide again");
}

}  // namespace
}  // namespace holdfast::sql
