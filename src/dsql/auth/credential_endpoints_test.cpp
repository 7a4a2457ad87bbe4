// Keys over HTTP, from small servers on this machine.
#include <fstream>
#include <latch>

#include "auth/test/credentials_fixture.hpp"
#include <gmock/gmock.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/units.hpp>

namespace holdfast::dsql {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using tests::CredentialStory;

constexpr const char* json = "application/json";
constexpr const char* keys_json =
    R"({"Code":"Success","AccessKeyId":"AKIDHTTP","SecretAccessKey":"s3cret","Token":"sess10n",)"
    R"("Expiration":"2036-01-02T03:04:05Z"})";

void expect_http_keys(const Credentials& keys) {
    EXPECT_EQ(keys.access_key_id, "AKIDHTTP");
    EXPECT_EQ(keys.secret_access_key, "s3cret");
    EXPECT_EQ(keys.session_token, "sess10n");
    EXPECT_EQ(keys.expires, parse_moment("2036-01-02T03:04:05Z"));
}

// ---- Container
// -----------------------------------------------------------------------------------

class ContainerStory : public CredentialStory {
protected:
    // What the endpoint answers, until the end of the test.
    void answer(int status, const std::string& body) {
        local.server.Get("/keys", [=, this](const httplib::Request& request, auto& response) {
            ++asked;
            authorization = request.get_header_value("Authorization");
            response.status = status;
            response.set_content(body, json);
        });
        local.start();
        environment["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = local.url("/keys");
    }

    std::atomic<int> asked = 0;
    std::string authorization;
    std::latch test_over{1};  // The server's handlers look at it until it is gone.
    tests::LocalServer local;
};

TEST_F(ContainerStory, TheEndpointGivesKeys) {
    answer(200, keys_json);
    expect_http_keys(get());
    EXPECT_EQ(authorization, "");
    environment["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "Bearer one";
    expect_http_keys(get());
    EXPECT_EQ(authorization, "Bearer one");
    environment["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = write("token", "Bearer two\n");
    expect_http_keys(get());
    EXPECT_EQ(authorization, "Bearer two");
}

TEST_F(ContainerStory, NotFoundIsFinal) {
    answer(404, "s3cret");
    EXPECT_THAT(refusal(),
                AllOf(StartsWith("unauthorized: "),
                      HasSubstr("container's endpoint"),
                      HasSubstr("status 404"),
                      Not(HasSubstr("s3cret"))));
    EXPECT_EQ(asked, 1);
}

TEST_F(ContainerStory, TryLaterIsTriedLater) {
    answer(503, "busy");
    EXPECT_THAT(refusal(), AllOf(StartsWith("unavailable: "), HasSubstr("status 503")));
    EXPECT_EQ(asked, options.attempts_max);
}

TEST_F(ContainerStory, AnAnswerThatIsNoneIsUnavailable) {
    answer(200, R"({"AccessKeyId":"A","SecretAccessKey":"s3cret","Expiration":"soon"})");
    EXPECT_THAT(refusal(),
                AllOf(StartsWith("unavailable: "),
                      HasSubstr("Expiration that is not a timestamp"),
                      Not(HasSubstr("s3cret"))));
}

TEST_F(ContainerStory, AnAnswerThatIsNotJsonIsUnavailable) {
    answer(200, "<html>s3cret</html>");
    EXPECT_THAT(refusal(), AllOf(HasSubstr("is not a JSON object"), Not(HasSubstr("s3cret"))));
}

TEST_F(ContainerStory, ASilentEndpointIsGivenUp) {
    local.server.Get("/keys", [&](const auto&, auto&) { test_over.wait(); });
    local.start();
    environment["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = local.url("/keys");
    options.metadata_timeout = 100ms;
    EXPECT_THAT(refusal(), AllOf(StartsWith("unavailable: "), HasSubstr("did not answer in time")));
    test_over.count_down();
}

// A variable in the environment must not be able to send our token to a foreign host.
TEST_F(ContainerStory, AStrangerIsNotAskedInTheClear) {
    environment["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://keys.example.com/";
    environment["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "t0ken";
    EXPECT_THAT(refusal(),
                AllOf(StartsWith("invalid_argument: "),
                      HasSubstr("keys.example.com"),
                      Not(HasSubstr("t0ken"))));
    environment["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://127.0.0.1:1/";
    environment["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "a\r\nX-Evil: 1";
    EXPECT_THAT(refusal(), HasSubstr("more than one line"));
}

// ---- Instance
// ------------------------------------------------------------------------------------

class InstanceStory : public CredentialStory {
protected:
    InstanceStory() {
        environment.erase("AWS_EC2_METADATA_DISABLED");
        local.server.Put("/latest/api/token", [this](const httplib::Request& request, auto& reply) {
            const bool asks = request.has_header("X-aws-ec2-metadata-token-ttl-seconds");
            reply.status = asks ? session_status.load() : 400;
            reply.set_content("session-token", "text/plain");
        });
        const std::string base = "/latest/meta-data/iam/security-credentials/";
        local.server.Get(base, [this](const httplib::Request& request, auto& reply) {
            const bool known =
                request.get_header_value("X-aws-ec2-metadata-token") == "session-token";
            reply.status = known ? roles_status.load() : 401;
            reply.set_content("my-role\nanother\n", "text/plain");
        });
        local.server.Get(base + "my-role", [this](const httplib::Request& request, auto& reply) {
            const bool known =
                request.get_header_value("X-aws-ec2-metadata-token") == "session-token";
            reply.status = known ? keys_status.load() : 401;
            reply.set_content(keys_json, json);
        });
        local.start();
        environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = local.url("/");
    }

    std::atomic<int> session_status = 200;
    std::atomic<int> roles_status = 200;
    std::atomic<int> keys_status = 200;
    tests::LocalServer local;
};

TEST_F(InstanceStory, ItsMetadataGiveKeysWithinASession) {
    expect_http_keys(get());
}

TEST_F(InstanceStory, WithoutARoleItHasNone) {
    roles_status = 404;
    EXPECT_THAT(refusal(), AllOf(StartsWith("unauthorized: "), HasSubstr("has no role")));
}

TEST_F(InstanceStory, ARoleThatIsRefusedIsTold) {
    keys_status = 403;
    EXPECT_THAT(refusal(),
                AllOf(StartsWith("unauthorized: "), HasSubstr("status 403"), HasSubstr("role")));
    keys_status = 500;
    EXPECT_THAT(refusal(), AllOf(StartsWith("unavailable: "), HasSubstr("status 500")));
}

TEST_F(InstanceStory, WithoutASessionThereIsNoInstance) {
    session_status = 403;
    EXPECT_THAT(refusal(),
                AllOf(StartsWith("unauthorized: "), HasSubstr("no session (status 403)")));
}

TEST_F(InstanceStory, ThatDoesNotAnswerIsNone) {
    environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = "http://127.0.0.1:1";
    EXPECT_THAT(refusal(),
                AllOf(StartsWith("unauthorized: "), HasSubstr("instance metadata: no answer")));
}

// ---- Web identity
// --------------------------------------------------------------------------------

class WebIdentityStory : public CredentialStory {
protected:
    WebIdentityStory() {
        local.server.Post("/", [this](const httplib::Request& request, auto& reply) {
            asked_for = request.params;
            reply.status = status;
            reply.set_content(body, "text/xml");
        });
        local.start();
        environment["AWS_ENDPOINT_URL_STS"] = local.url("/");
        environment["AWS_ROLE_ARN"] = "arn:aws:iam::1:role/app";
        environment["AWS_WEB_IDENTITY_TOKEN_FILE"] = write("jwt", "head.body/+=.sign\n");
    }

    [[nodiscard]] std::string param(const char* name) const {
        const auto found = asked_for.find(name);
        return found == asked_for.end() ? "" : found->second;
    }

    std::atomic<int> status = 200;
    std::string body =
        "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"
        "<SessionToken>sess10n</SessionToken><SecretAccessKey>s3cret</SecretAccessKey>"
        "<Expiration>2036-01-02T03:04:05Z</Expiration><AccessKeyId>AKIDHTTP</AccessKeyId>"
        "</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>";
    httplib::Params asked_for;
    tests::LocalServer local;
};

TEST_F(WebIdentityStory, ASignedStatementBuysARole) {
    expect_http_keys(get());
    EXPECT_EQ(param("Action"), "AssumeRoleWithWebIdentity");
    EXPECT_EQ(param("Version"), "2011-06-15");
    EXPECT_EQ(param("RoleArn"), "arn:aws:iam::1:role/app");
    EXPECT_EQ(param("RoleSessionName"), "holdfast");
    EXPECT_EQ(param("WebIdentityToken"), "head.body/+=.sign");
    environment["AWS_ROLE_SESSION_NAME"] = "night-shift";
    expect_http_keys(get());
    EXPECT_EQ(param("RoleSessionName"), "night-shift");
}

TEST_F(WebIdentityStory, AProfileMayNameOne) {
    environment["AWS_CONFIG_FILE"] =
        write("config",
              "[profile web]\nrole_arn=arn:aws:iam::1:role/other\nrole_session_name=p\n"
              "web_identity_token_file=" +
                  environment["AWS_WEB_IDENTITY_TOKEN_FILE"] + "\n");
    environment["AWS_PROFILE"] = "web";
    environment.erase("AWS_WEB_IDENTITY_TOKEN_FILE");
    expect_http_keys(get());
    EXPECT_EQ(param("RoleArn"), "arn:aws:iam::1:role/other");
    EXPECT_EQ(param("RoleSessionName"), "p");
}

TEST_F(WebIdentityStory, ARefusalSaysItsCodeAndNothingSecret) {
    status = 400;
    body =
        "<ErrorResponse><Error><Code>ExpiredTokenException</Code>"
        "<Message>head.body</Message></Error></ErrorResponse>";
    EXPECT_THAT(refusal(),
                AllOf(StartsWith("unauthorized: "),
                      HasSubstr("ExpiredTokenException"),
                      HasSubstr("AWS_ROLE_ARN"),
                      Not(HasSubstr("head.body"))));
}

TEST_F(WebIdentityStory, AnAnswerWithoutKeysIsUnavailable) {
    body = "<SecretAccessKey>s3cret";
    EXPECT_THAT(refusal(),
                AllOf(StartsWith("unavailable: "),
                      HasSubstr("has no AccessKeyId"),
                      Not(HasSubstr("s3cret"))));
}

TEST_F(WebIdentityStory, MarkupInAValueIsUndone) {
    body =
        "<AccessKeyId>A</AccessKeyId><SecretAccessKey>s</SecretAccessKey>"
        "<SessionToken>&lt;a&amp;lt;&quot;&apos;&gt;</SessionToken>";
    EXPECT_EQ(get().session_token, "<a&lt;\"'>");
}

TEST_F(WebIdentityStory, WithoutItsRoleOrItsFileItIsIncomplete) {
    environment.erase("AWS_ROLE_ARN");
    EXPECT_THAT(refusal(), HasSubstr("set AWS_ROLE_ARN"));
    environment["AWS_ROLE_ARN"] = "arn:aws:iam::1:role/app";
    environment["AWS_WEB_IDENTITY_TOKEN_FILE"] = (folder / "gone").string();
    EXPECT_THAT(refusal(), AllOf(StartsWith("invalid_argument: "), HasSubstr("gone")));
}

}  // namespace
}  // namespace holdfast::dsql
