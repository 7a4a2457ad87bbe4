#include <holdfast/flow_engine/failure.hpp>

#include <type_traits>

#include <gtest/gtest.h>

#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::flow {
namespace {

TEST(FailureInfo, SaysInOneLineWhatHappened) {
    using enum FailureKind;
    const auto text = [](FailureKind kind, std::string type, std::string message) {
        return FailureInfo{.kind = kind, .type = std::move(type), .message = std::move(message)}
            .text();
    };
    EXPECT_EQ(text(application, "CardDeclined", "the bank said no"),
              "CardDeclined: the bank said no");
    EXPECT_EQ(text(application, "", "the bank said no"), "the bank said no");
    EXPECT_EQ(text(application, "CardDeclined", ""), "CardDeclined");
    EXPECT_EQ(text(timeout, "", "30s passed"), "timeout: 30s passed");
    EXPECT_EQ(text(cancelled, "", "by the operator"), "cancelled: by the operator");
    EXPECT_EQ(text(cancelled, "", ""), "cancelled");
    EXPECT_EQ(text(panic, "", "bad_alloc"), "panic: bad_alloc");
    EXPECT_EQ(text(nondeterminism, "", "event 3"), "nondeterministic: event 3");
    EXPECT_EQ(text(poison, "", "tried 10 times"), "poison: tried 10 times");
    EXPECT_EQ(text(infrastructure, "", "too long"), "infrastructure: too long");
}

TEST(FailureKind, EveryKindHasANameThatLeadsBackToIt) {
    using enum FailureKind;
    for (const FailureKind kind :
         {application, timeout, cancelled, panic, nondeterminism, poison, infrastructure}) {
        EXPECT_EQ(failure_kind(to_string(kind)), kind) << to_string(kind);
    }
    EXPECT_EQ(failure_kind("Application"), std::nullopt);
    EXPECT_EQ(failure_kind(""), std::nullopt);
}

TEST(FailureKind, CodeSeesWhatItCanHandleAndNothingElse) {
    using enum FailureKind;
    for (const FailureKind kind : {application, timeout, cancelled, panic}) {
        EXPECT_TRUE(reaches_code(kind)) << to_string(kind);
    }
    for (const FailureKind kind : {nondeterminism, poison, infrastructure}) {
        EXPECT_FALSE(reaches_code(kind)) << to_string(kind);
    }
}

TEST(Failure, CarriesWhatItWasGiven) {
    const Failure plain("no answer");
    EXPECT_STREQ(plain.what(), "no answer");
    EXPECT_EQ(plain.type(), "");
    EXPECT_TRUE(plain.retryable());
    EXPECT_EQ(plain.info().kind, FailureKind::application);

    const Failure declined = permanent("CardDeclined", "the bank said no");
    EXPECT_EQ(declined.type(), "CardDeclined");
    EXPECT_FALSE(declined.retryable());

    const FailureInfo info{.kind = FailureKind::timeout,
                           .type = "",
                           .message = "late",
                           .retryable = false,
                           .details = Payload{"[1]"},
                           .cause = "slow disk"};
    EXPECT_EQ(TimedOut(info).info(), info);
    static_assert(std::is_nothrow_copy_constructible_v<Failure>);
}

// what() of a foreign library may hold any bytes. If they could not be stored, the answer could
// never be written, and its activity would run again and again.
TEST(Failure, WordsThatAreNoTextAreMadeStorable) {
    const Failure failure("T\xff", "caf\xe9 \xc3\xa9");
    EXPECT_EQ(failure.type(), "T\xef\xbf\xbd");
    EXPECT_STREQ(failure.what(), "caf\xef\xbf\xbd \xc3\xa9");
    EXPECT_EQ(decode_failure(encode(failure.info())), failure.info());
}

// A handler for errors must not swallow a request to stop.
TEST(Cancelled, IsNoStandardException) {
    static_assert(!std::is_base_of_v<std::exception, Cancelled>);
    EXPECT_EQ(Cancelled("shutdown").reason(), "shutdown");
}

}  // namespace
}  // namespace holdfast::flow
