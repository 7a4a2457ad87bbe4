#include "rpc/client_version.hpp"

#include <string>

#include "rpc/semantic_version.hpp"
#include <gtest/gtest.h>
#include <temporal/api/errordetails/v1/message.pb.h>

#include <holdfast/base/error.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::server::rpc {

namespace {

constexpr const char* our_version = "1.32.0";

std::optional<Refusal> checked(Caller caller) {
    return client_version_check(our_version)(
        CallInfo{.method = "/s/M", .deadline = {}, .caller = std::move(caller)});
}

template <class Detail>
Detail detail_in(const std::optional<Refusal>& refusal) {
    Detail detail;
    EXPECT_TRUE(refusal && refusal->detail_type == detail.GetTypeName());
    EXPECT_TRUE(refusal && detail.ParseFromString(refusal->detail));
    return detail;
}

TEST(ClientVersionTest, AClientAboveItsRangeIsRefusedWithTheRange) {
    HOLDFAST_CHECK("server F95");
    const auto refusal = checked({.client_name = "temporal-go", .client_version = "2.0.0"});
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->code, StatusCode::failed_precondition);
    const auto detail =
        detail_in<temporal::api::errordetails::v1::ClientVersionNotSupportedFailure>(refusal);
    EXPECT_EQ(detail.client_name(), "temporal-go");
    EXPECT_EQ(detail.client_version(), "2.0.0");
    EXPECT_EQ(detail.supported_versions(), "<2.0.0");
}

TEST(ClientVersionTest, AClientWithoutARangeIsServedWhateverItsVersion) {
    HOLDFAST_CHECK("server F96");
    EXPECT_FALSE(checked({.client_name = "temporal-python", .client_version = "99.0.0"}));
    EXPECT_FALSE(checked({.client_name = "temporal-rust", .client_version = "abc"}));
    EXPECT_FALSE(checked({.client_version = "99.0.0"}));
    EXPECT_FALSE(checked({}));
}

TEST(ClientVersionTest, AClientThatNeedsANewerServerIsRefused) {
    HOLDFAST_CHECK("server F97");
    const auto refusal = checked({.supported_server_versions = ">=2.0.0"});
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->code, StatusCode::failed_precondition);
    const auto detail =
        detail_in<temporal::api::errordetails::v1::ServerVersionNotSupportedFailure>(refusal);
    EXPECT_EQ(detail.server_version(), our_version);
    EXPECT_EQ(detail.client_supported_server_versions(), ">=2.0.0");
    EXPECT_FALSE(checked({.supported_server_versions = ">=1.0.0 <2.0.0"}));
}

TEST(ClientVersionTest, AVersionThatCannotBeReadIsRefused) {
    HOLDFAST_CHECK("server F98");
    for (const Caller& caller : {Caller{.client_name = "temporal-java", .client_version = "abc"},
                                 Caller{.supported_server_versions = "new ones"}}) {
        const auto refusal = checked(caller);
        ASSERT_TRUE(refusal);
        EXPECT_EQ(refusal->code, StatusCode::invalid_argument);
    }
}

TEST(ClientVersionTest, EveryKnownClientHasARangeWithItsCurrentVersion) {
    for (const SupportedClient& client : supported_clients()) {
        EXPECT_FALSE(
            checked({.client_name = std::string(client.name), .client_version = "1.40.0-rc.1"}))
            << client.name;
        EXPECT_TRUE(checked({.client_name = std::string(client.name), .client_version = "3.0.0"}))
            << client.name;
    }
}

TEST(ClientVersionTest, AServerVersionThatIsNotOneIsRefused) {
    EXPECT_THROW((void)client_version_check("new"), InvalidArgument);
}

TEST(SemanticVersionTest, VersionsAreOrderedByPrecedence) {
    const char* const ascending[] = {"0.9.9",
                                     "1.0.0-alpha",
                                     "1.0.0-alpha.1",
                                     "1.0.0-alpha.beta",
                                     "1.0.0-beta.2",
                                     "1.0.0-beta.11",
                                     "1.0.0",
                                     "1.0.10",
                                     "1.2.0",
                                     "10.0.0"};
    const char* earlier = nullptr;
    for (const char* later : ascending) {
        if (earlier != nullptr) {
            EXPECT_LT(*SemanticVersion::parse(earlier), *SemanticVersion::parse(later)) << later;
        }
        earlier = later;
    }
    EXPECT_EQ(*SemanticVersion::parse("1.0.0+linux"), *SemanticVersion::parse("1.0.0+mac.2"));
}

TEST(SemanticVersionTest, WhatIsNotAVersionIsRefused) {
    for (const char* text : {"",
                             "1",
                             "1.2",
                             "1.2.3.4",
                             "01.2.3",
                             "1.2.x",
                             "v1.2.3",
                             "1.2.3-",
                             "1.2.3-01",
                             "1.2.3+",
                             "1.2.-3",
                             "99999999999999999999.0.0"}) {
        EXPECT_FALSE(SemanticVersion::parse(text)) << text;
    }
}

TEST(VersionRangeTest, ARangeIsAlternativesOfComparisons) {
    const auto contains = [](const char* range, const char* version) {
        return VersionRange::parse(range)->contains(*SemanticVersion::parse(version));
    };
    EXPECT_TRUE(contains(">=1.0.0 <2.0.0", "1.0.0"));
    EXPECT_FALSE(contains(">=1.0.0 <2.0.0", "2.0.0"));
    EXPECT_TRUE(contains(">= 1.0.0<2.0.0", "1.9.0"));
    EXPECT_TRUE(contains("<1.0.0 || >3.0.0", "3.0.1"));
    EXPECT_FALSE(contains("<1.0.0||>3.0.0", "3.0.0"));
    EXPECT_TRUE(contains("<=1.0.0", "1.0.0"));
    EXPECT_TRUE(contains("1.2.3", "1.2.3"));
    EXPECT_FALSE(contains("!=1.2.3", "1.2.3"));
}

TEST(VersionRangeTest, WhatIsNotARangeIsRefused) {
    for (const char* text : {"", " ", "||", "<1.0.0 ||", ">", ">=1", "~1.0.0", "1.x"}) {
        EXPECT_FALSE(VersionRange::parse(text)) << text;
    }
}

}  // namespace

}  // namespace holdfast::server::rpc
