#include "auth/sigv4.hpp"

#include "auth/test/token_vectors_fixture.hpp"
#include <gtest/gtest.h>

namespace holdfast::dsql {
namespace {

TEST(SigV4, EveryStepIsTheVendors) {
    for (const tests::Vector& vector : tests::token_vectors()) {
        SCOPED_TRACE(vector.name);
        const std::string date = vector.text("amz_date");
        const Scope scope{
            .day = date.substr(0, 8), .region = vector.request.region, .service = "dsql"};
        EXPECT_EQ(amz_date(vector.now), date);
        EXPECT_EQ(scope.text(), vector.text("credential_scope"));
        const std::string request = vector.text("canonical_request");
        EXPECT_EQ(string_to_sign(date, scope, request), vector.text("string_to_sign"));
        const std::string& secret = vector.credentials.secret_access_key;
        EXPECT_EQ(hex(signing_key(secret, scope)), vector.text("signing_key_hex"));
        EXPECT_EQ(signature(secret, date, scope, request), vector.text("signature"));
    }
}

TEST(SigV4, HeadersAreSignedAsTheVendorDoes) {
    std::ifstream file(HOLDFAST_VECTORS "/dynamodb_sigv4.json");
    const auto all = nlohmann::json::parse(file).at("vectors");
    ASSERT_EQ(all.size(), 12U);
    for (const auto& vector : all) {
        const auto& input = vector.at("input");
        const auto& expected = vector.at("expected");
        const auto text = [&](const char* field) { return expected.at(field).get<std::string>(); };
        SCOPED_TRACE(vector.at("name").get<std::string>());
        const std::string date =
            amz_date(parse_moment(input.at("signing_time").get<std::string>()));
        const std::string body_hash = hex(sha256(input.at("body").get<std::string>()));
        EXPECT_EQ(body_hash, text("payload_sha256"));
        SignableHeaders headers{{"X-Amz-Date", date}};
        for (const auto& [name, value] : input.at("headers").items()) {
            headers.emplace_back(name, value.get<std::string>());
        }
        if (!input.at("session_token").is_null()) {
            headers.emplace_back("X-Amz-Security-Token",
                                 input.at("session_token").get<std::string>());
        }
        if (input.at("add_content_sha256_header").get<bool>()) {
            headers.emplace_back("X-Amz-Content-Sha256", body_hash);
        }
        const CanonicalRequest request =
            canonical_request("POST", input.at("path").get<std::string>(), "", headers, body_hash);
        EXPECT_EQ(request.text, text("canonical_request"));
        EXPECT_EQ(request.signed_headers, text("signed_headers"));
        const Scope scope{.day = date.substr(0, 8),
                          .region = input.at("region").get<std::string>(),
                          .service = "dynamodb"};
        EXPECT_EQ(
            signature(input.at("secret_access_key").get<std::string>(), date, scope, request.text),
            text("signature"));
    }
}

TEST(SigV4, ADateHasOneForm) {
    EXPECT_EQ(amz_date(parse_amz_date("20280229T235959Z").value_or(Wall{})), "20280229T235959Z");
    for (const std::string_view broken : {"",
                                          "20260229T000000Z",
                                          "20261301T000000Z",
                                          "20260101T240000Z",
                                          "20260101T006000Z",
                                          "20260101T000060Z",
                                          "20260101 000000Z",
                                          "20260101T000000",
                                          "2026-101T000000Z",
                                          "20260101T000000Z "}) {
        EXPECT_EQ(parse_amz_date(broken), std::nullopt) << broken;
    }
}

TEST(SigV4, ComparesWhole) {
    EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
    EXPECT_TRUE(equal_in_constant_time("", ""));
    EXPECT_FALSE(equal_in_constant_time("abc", "abd"));
    EXPECT_FALSE(equal_in_constant_time("abc", "ab"));
}

}  // namespace
}  // namespace holdfast::dsql
