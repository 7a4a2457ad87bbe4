// Which failure of a database is which failure of a lock.
#include <holdfast/lock/error.hpp>

#include "test/fake_backend.hpp"
#include <gtest/gtest.h>

#include <holdfast/sql/error.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::lock::tests {
namespace {

constexpr LockCode all_codes[] = {LockCode::service_unavailable,
                                  LockCode::auth_failed,
                                  LockCode::invalid_argument,
                                  LockCode::rate_limited,
                                  LockCode::network_timeout,
                                  LockCode::acquisition_timeout,
                                  LockCode::aborted,
                                  LockCode::internal};

template <class Failure>
LockError translated(const Failure& failure, LockError::Context context = {}) {
    return to_lock_error(std::make_exception_ptr(failure), std::move(context));
}

LockError of_state(std::string_view state, Outcome outcome = Outcome::not_applied) {
    return translated(sql::DatabaseError(sql::SqlState(state), outcome, "the server said so"));
}

TEST(LockErrorTest, HasACodeAndAMessage) {
    HOLDFAST_CHECK("locks U-P 85");
    HOLDFAST_CHECK("locks U-P 87");
    HOLDFAST_CHECK("locks U-P 91");
    const LockError error(LockCode::network_timeout, "no answer within 5 s");
    EXPECT_EQ(error.lock_code(), LockCode::network_timeout);
    EXPECT_STREQ(error.what(), "no answer within 5 s");
    EXPECT_FALSE(error.indeterminate());
    EXPECT_FALSE(error.cause());
}

TEST(LockErrorTest, WithoutAMessageItSaysItsCode) {
    HOLDFAST_CHECK("locks U-P 86");
    HOLDFAST_CHECK("locks U-P 89");
    HOLDFAST_CHECK("locks U-P 90");
    std::vector<std::string> names;
    for (const LockCode code : all_codes) {
        const LockError error(code);
        EXPECT_EQ(error.lock_code(), code);
        EXPECT_EQ(error.what(), to_string(code));
        names.emplace_back(error.what());
    }
    EXPECT_EQ(names,
              (std::vector<std::string>{"ServiceUnavailable",
                                        "AuthFailed",
                                        "InvalidArgument",
                                        "RateLimited",
                                        "NetworkTimeout",
                                        "AcquisitionTimeout",
                                        "Aborted",
                                        "Internal"}));
}

TEST(LockErrorTest, HasAContextThatIsNotInItsText) {
    HOLDFAST_CHECK("locks U-P 88");
    HOLDFAST_CHECK("locks U-P 92");
    HOLDFAST_CHECK("locks U-P 93");
    HOLDFAST_CHECK("locks U-P 94");
    HOLDFAST_CHECK("locks U-P 101");
    LockError error(LockCode::internal, "broken");
    error.set_context({.key = "invoice/7"});
    EXPECT_EQ(error.context().key, "invoice/7");
    EXPECT_FALSE(error.context().lock_id);
    error.set_context({.lock_id = "abcdefghijklmnopqrstuv"});
    EXPECT_FALSE(error.context().key);
    EXPECT_EQ(error.context().lock_id, "abcdefghijklmnopqrstuv");
    error.set_context({.key = "invoice/7", .lock_id = "abcdefghijklmnopqrstuv"});
    EXPECT_EQ(error.context().key, "invoice/7");
    EXPECT_EQ(error.context().lock_id, "abcdefghijklmnopqrstuv");
    EXPECT_STREQ(error.what(), "broken");
    EXPECT_EQ(describe(std::make_exception_ptr(error)), "broken");
    EXPECT_FALSE(error.cause());
}

TEST(LockErrorTest, AContextMayBeEmptyOrAbsent) {
    HOLDFAST_CHECK("locks U-P 102");
    HOLDFAST_CHECK("locks U-P 103");
    LockError error(LockCode::internal);
    EXPECT_FALSE(error.context().key);
    EXPECT_FALSE(error.context().lock_id);
    EXPECT_EQ(error.context().sqlstate, "");
    error.set_context({});
    EXPECT_FALSE(error.context().key);
}

TEST(LockErrorTest, KeepsItsCause) {
    HOLDFAST_CHECK("locks U-P 95");
    HOLDFAST_CHECK("locks U-P 96");
    HOLDFAST_CHECK("locks U-P 100");
    const sql::DatabaseError lost(sql::SqlState("08006"), Outcome::unknown, "the socket closed");
    const LockError error = translated(lost, {.key = "invoice/7"});
    EXPECT_EQ(error.context().key, "invoice/7");
    EXPECT_EQ(error.context().sqlstate, "08006");
    EXPECT_TRUE(error.indeterminate());
    ASSERT_TRUE(error.cause());
    try {
        std::rethrow_exception(error.cause());
    } catch (const sql::DatabaseError& cause) {
        EXPECT_STREQ(cause.what(), "the socket closed");
        EXPECT_EQ(cause.state(), lost.state());
    }
}

TEST(LockErrorTest, IsCaughtAsAnyOfItsBases) {
    HOLDFAST_CHECK("locks U-P 97");
    HOLDFAST_CHECK("locks U-P 98");
    HOLDFAST_CHECK("locks U-P 99");
    EXPECT_THROW(throw LockError(LockCode::aborted), std::exception);
    EXPECT_THROW(throw LockError(LockCode::aborted), LockError);
    try {
        throw LockError(LockCode::acquisition_timeout, "busy for too long");
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::deadline);
        EXPECT_STREQ(error.what(), "busy for too long");
    }
}

TEST(LockErrorTest, MapsOntoTheCodesOfTheHouse) {
    EXPECT_EQ(LockError(LockCode::service_unavailable).code(), Code::unavailable);
    EXPECT_EQ(LockError(LockCode::auth_failed).code(), Code::unauthorized);
    EXPECT_EQ(LockError(LockCode::invalid_argument).code(), Code::invalid_argument);
    EXPECT_EQ(LockError(LockCode::rate_limited).code(), Code::exhausted);
    EXPECT_EQ(LockError(LockCode::network_timeout).code(), Code::deadline);
    EXPECT_EQ(LockError(LockCode::aborted).code(), Code::cancelled);
    EXPECT_EQ(LockError(LockCode::internal).code(), Code::internal);
}

TEST(LockErrorTest, OnlyWhatMayPassIsWorthRepeating) {
    for (const LockCode code : all_codes) {
        const bool may_pass = code == LockCode::service_unavailable ||
                              code == LockCode::rate_limited || code == LockCode::network_timeout;
        EXPECT_EQ(LockError(code).retryable(), may_pass) << to_string(code);
    }
}

struct StateCase {
    std::string_view states;  // Separated by blanks.
    LockCode code;
    bool retryable;
};

class SqlStates : public testing::TestWithParam<StateCase> {};

TEST_P(SqlStates, DecideTheCode) {
    std::string_view rest = GetParam().states;
    while (!rest.empty()) {
        const std::string_view state = rest.substr(0, 5);
        rest.remove_prefix(std::min<std::size_t>(6, rest.size()));
        const LockError error = of_state(state);
        EXPECT_EQ(error.lock_code(), GetParam().code) << state;
        EXPECT_EQ(error.retryable(), GetParam().retryable) << state;
        EXPECT_EQ(error.context().sqlstate, state);
        EXPECT_FALSE(error.indeterminate());
    }
}

INSTANTIATE_TEST_SUITE_P(
    Every,
    SqlStates,
    testing::Values(
        StateCase{"08000 08001 08003 08004 08006 08007 57P01 57P02 57P03 57P05 25006 25P03",
                  LockCode::service_unavailable,
                  true},
        StateCase{"40001 40P01 40003 55P03", LockCode::service_unavailable, true},
        StateCase{"57014", LockCode::network_timeout, true},
        StateCase{"28000 28P01 42501", LockCode::auth_failed, false},
        StateCase{"53300 53400", LockCode::rate_limited, true},
        StateCase{"53000 53100 53200", LockCode::service_unavailable, true},
        StateCase{"58000 58030", LockCode::service_unavailable, false},
        StateCase{"22000 22001 22003 22021 22P02 23502 23503 23514 54000",
                  LockCode::invalid_argument,
                  false},
        StateCase{"42P01 42703 42883 3D000 3F000", LockCode::invalid_argument, false},
        StateCase{"23505 0A000 42601 08P01 XX000 XX001", LockCode::internal, false}));

TEST(Translation, AMissingTableNamesTheCure) {
    for (const std::string_view state : {"42P01", "42703", "3F000"}) {
        EXPECT_NE(std::string_view(of_state(state).what()).find("schema apply"),
                  std::string_view::npos);
    }
}

TEST(Translation, ALostAnswerIsIndeterminate) {
    const LockError error = translated(sql::ConnectionLost(Outcome::unknown, "gone"));
    EXPECT_EQ(error.lock_code(), LockCode::service_unavailable);
    EXPECT_TRUE(error.indeterminate());
    EXPECT_TRUE(error.retryable());
}

TEST(Translation, TheCallersTokenAndDeadlineComeFirst) {
    const LockError aborted =
        translated(Error(Code::cancelled, Outcome::not_applied, "stopped on the way"));
    EXPECT_EQ(aborted.lock_code(), LockCode::aborted);
    EXPECT_FALSE(aborted.retryable());
    EXPECT_NE(std::string_view(aborted.what()).find("aborted"), std::string_view::npos);

    // Both end in the same SQLSTATE on the server.
    Error late(Code::deadline, Outcome::unknown, "too late");
    late.set_cause(std::make_exception_ptr(
        sql::DatabaseError(sql::SqlState("57014"), Outcome::not_applied, "cancelled")));
    EXPECT_EQ(translated(late).lock_code(), LockCode::network_timeout);
    EXPECT_EQ(translated(late).context().sqlstate, "57014");
    EXPECT_TRUE(translated(late).indeterminate());
}

TEST(Translation, WithoutAnSqlstateTheCodeDecides) {
    const auto code_of = [](Code code) {
        return translated(Error(code, Outcome::not_applied, "so it is")).lock_code();
    };
    EXPECT_EQ(code_of(Code::invalid_argument), LockCode::invalid_argument);
    EXPECT_EQ(code_of(Code::limit_exceeded), LockCode::invalid_argument);
    EXPECT_EQ(code_of(Code::conflict), LockCode::service_unavailable);
    EXPECT_EQ(code_of(Code::unavailable), LockCode::service_unavailable);
    EXPECT_EQ(code_of(Code::unauthorized), LockCode::auth_failed);
    EXPECT_EQ(code_of(Code::exhausted), LockCode::rate_limited);
    for (const Code bug : {Code::condition_failed,
                           Code::unsupported,
                           Code::internal,
                           Code::not_found,
                           Code::already_exists}) {
        EXPECT_EQ(code_of(bug), LockCode::internal);
    }
}

TEST(Translation, CausesAreSearchedForWhatTheDatabaseSaid) {
    Error outer(Code::unavailable, Outcome::not_applied, "outer");
    Error middle(Code::unavailable, Outcome::not_applied, "middle");
    middle.set_cause(std::make_exception_ptr(
        sql::DatabaseError(sql::SqlState("28P01"), Outcome::not_applied, "wrong password")));
    outer.set_cause(std::make_exception_ptr(middle));
    EXPECT_EQ(translated(outer).lock_code(), LockCode::auth_failed);

    Error over_foreign(Code::unavailable, Outcome::not_applied, "outer");
    over_foreign.set_cause(std::make_exception_ptr(std::runtime_error("socket")));
    EXPECT_EQ(translated(over_foreign).lock_code(), LockCode::service_unavailable);
}

TEST(Translation, ALockErrorComesBackUnchanged) {
    LockError original(LockCode::rate_limited, "full", Outcome::unknown);
    original.set_context({.key = "invoice/7"});
    const LockError same = translated(original, {.key = "another"});
    EXPECT_EQ(same.lock_code(), LockCode::rate_limited);
    EXPECT_STREQ(same.what(), "full");
    EXPECT_EQ(same.context().key, "invoice/7");
    EXPECT_TRUE(same.indeterminate());
}

TEST(Translation, ForeignThingsBecomeInternalWithTheirCause) {
    const LockError foreign = translated(std::runtime_error("odd"), {.key = "invoice/7"});
    EXPECT_EQ(foreign.lock_code(), LockCode::internal);
    EXPECT_STREQ(foreign.what(), "odd");
    EXPECT_EQ(foreign.context().key, "invoice/7");
    EXPECT_THROW(std::rethrow_exception(foreign.cause()), std::runtime_error);
    const LockError odd = translated(42);
    EXPECT_EQ(odd.lock_code(), LockCode::internal);
    EXPECT_THROW(std::rethrow_exception(odd.cause()), int);
}

}  // namespace
}  // namespace holdfast::lock::tests
