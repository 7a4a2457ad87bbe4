#include <holdfast/dsql/credentials.hpp>

#include <algorithm>
#include <fstream>
#include <latch>

#include "auth/credential_sources.hpp"
#include "auth/test/credentials_fixture.hpp"
#include <fmt/core.h>
#include <gmock/gmock.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/log_capture.hpp>
#include <holdfast/base/manual_clock.hpp>
#include <holdfast/base/units.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::dsql {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using tests::CredentialStory;

// ---- Environment
// ---------------------------------------------------------------------------------

TEST_F(CredentialStory, TheEnvironmentGoesFirst) {
    environment["AWS_ACCESS_KEY_ID"] = "AKIDENV";
    environment["AWS_SECRET_ACCESS_KEY"] = "s3cret";
    environment["AWS_SHARED_CREDENTIALS_FILE"] =
        write("credentials", "[default]\naws_access_key_id=X\naws_secret_access_key=Y\n");
    EXPECT_EQ(get().access_key_id, "AKIDENV");
    EXPECT_EQ(get().session_token, "");
    EXPECT_FALSE(get().expires);

    environment["AWS_SESSION_TOKEN"] = "sess10n";
    environment["AWS_CREDENTIAL_EXPIRATION"] = "2036-01-02T03:04:05Z";
    EXPECT_EQ(get().session_token, "sess10n");
    EXPECT_EQ(get().expires, parse_moment("2036-01-02T03:04:05Z"));
}

TEST_F(CredentialStory, HalfAPairInTheEnvironmentIsRefused) {
    environment["AWS_ACCESS_KEY_ID"] = "AKIDENV";
    EXPECT_THAT(refusal(), HasSubstr("set without AWS_SECRET_ACCESS_KEY"));
    environment = {{"AWS_SECRET_ACCESS_KEY", "s3cret"}};
    EXPECT_THAT(refusal(),
                AllOf(HasSubstr("set without AWS_ACCESS_KEY_ID"), Not(HasSubstr("s3cret"))));
}

TEST_F(CredentialStory, NoneAnywhereSaysWhereItLooked) {
    EXPECT_THAT(refusal(),
                AllOf(StartsWith("unauthorized: "),
                      HasSubstr("AWS_ACCESS_KEY_ID is not set"),
                      HasSubstr("there is no profile 'default'"),
                      HasSubstr("AWS_WEB_IDENTITY_TOKEN_FILE is not set"),
                      HasSubstr("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is not set"),
                      HasSubstr("AWS_EC2_METADATA_DISABLED is set")));
}

TEST(ProcessVariable, IsAbsentWhenEmpty) {
    EXPECT_NE(process_variable("PATH"), std::nullopt);
    EXPECT_EQ(process_variable("HOLDFAST_NO_SUCH_VARIABLE"), std::nullopt);
}

// ---- Files
// ---------------------------------------------------------------------------------------

TEST_F(CredentialStory, ProfilesAreReadFromBothFilesInTheHomeFolder) {
    (void)write("home/.aws/credentials",
                "# mine\n[default]\naws_access_key_id = AKIDFILE\n"
                "aws_secret_access_key = a/b+c#d   # not part of it\n"
                "\n[work]\naws_access_key_id=AKIDWORK\naws_secret_access_key=w\n"
                "aws_session_token=t=\n");
    (void)write("home/.aws/config",
                "[default]\nregion = eu-west-1\naws_access_key_id = AKIDCONFIG\n"
                "s3 =\n  aws_access_key_id = AKIDNESTED\n"
                "[profile only-here]\naws_access_key_id = AKIDONLY\naws_secret_access_key = o\n");
    EXPECT_EQ(get().access_key_id, "AKIDFILE") << "the credentials file goes before the config";
    EXPECT_EQ(get().secret_access_key, "a/b+c#d");
    environment["AWS_PROFILE"] = "work";
    EXPECT_EQ(get().access_key_id, "AKIDWORK");
    EXPECT_EQ(get().session_token, "t=");
    environment["AWS_PROFILE"] = "only-here";
    EXPECT_EQ(get().access_key_id, "AKIDONLY");
    options.profile = "work";
    environment["AWS_ACCESS_KEY_ID"] = "AKIDENV";
    environment["AWS_SECRET_ACCESS_KEY"] = "e";
    EXPECT_EQ(get().access_key_id, "AKIDWORK") << "who asks for a profile gets that one";
}

TEST_F(CredentialStory, TheVariablesNameOtherFiles) {
    environment["AWS_SHARED_CREDENTIALS_FILE"] =
        write("c1", "[default]\naws_access_key_id=A\naws_secret_access_key=B\n");
    environment["AWS_CONFIG_FILE"] =
        write("c2", "[profile p]\naws_access_key_id=C\naws_secret_access_key=D\n");
    EXPECT_EQ(get().access_key_id, "A");
    environment["AWS_PROFILE"] = "p";
    EXPECT_EQ(get().access_key_id, "C");
}

TEST_F(CredentialStory, AProfileThatIsNotThereOrNotUnderstoodIsNamed) {
    environment["AWS_CONFIG_FILE"] = write("config",
                                           "[profile role]\nrole_arn=arn:aws:iam::1:role/r\n"
                                           "source_profile=default\n"
                                           "[profile sso]\nsso_session=corp\n"
                                           "[profile half]\naws_secret_access_key=s3cret\n"
                                           "[profile none]\nregion=eu-west-1\n");
    environment["AWS_PROFILE"] = "missing";
    EXPECT_THAT(refusal(), HasSubstr("there is no profile 'missing'"));
    environment["AWS_PROFILE"] = "role";
    EXPECT_THAT(refusal(),
                AllOf(HasSubstr("'role' uses role_arn"), HasSubstr("export-credentials")));
    environment["AWS_PROFILE"] = "sso";
    EXPECT_THAT(refusal(), HasSubstr("'sso' uses sso_session"));
    environment["AWS_PROFILE"] = "half";
    EXPECT_THAT(refusal(), AllOf(HasSubstr("only one of"), Not(HasSubstr("s3cret"))));
    environment["AWS_PROFILE"] = "none";
    EXPECT_THAT(refusal(), HasSubstr("the profile 'none' has no keys"));
}

TEST_F(CredentialStory, AFileThatCannotBeReadIsNamed) {
    std::filesystem::create_directories(folder / "a-folder");
    environment["AWS_SHARED_CREDENTIALS_FILE"] = (folder / "a-folder").string();
    EXPECT_THAT(refusal(), AllOf(StartsWith("invalid_argument: "), HasSubstr("a-folder")));
}

TEST(Profiles, AnyTextIsRead) {
    EXPECT_TRUE(parse_profiles("").empty());
    EXPECT_TRUE(parse_profiles("a=b\nnonsense\n=\n").empty())
        << "what is under no name is nobody's";
    EXPECT_EQ(parse_profiles("[a").at("a").size(), 0U);
    EXPECT_EQ(parse_profiles("[ profile \t a b ]\r\nx = 1\r\n").at("a b").at("x"), "1");
    EXPECT_EQ(parse_profiles("[profile]\nx=1\n").at("profile").at("x"), "1");
    EXPECT_EQ(parse_profiles("[]\nx=1=2\n").at("").at("x"), "1=2");
}

// ---- A process
// -----------------------------------------------------------------------------------

TEST_F(CredentialStory, AProcessPrintsKeys) {
    const std::string answer =
        write("answer",
              R"({"Version":1,"AccessKeyId":"AKIDPROC","SecretAccessKey":"s","SessionToken":"t",)"
              R"("Expiration":"2036-01-02T03:04:05Z"})");
    environment["AWS_CONFIG_FILE"] =
        write("config", "[default]\ncredential_process = cat '" + answer + "'\n");
    const Credentials keys = get();
    EXPECT_EQ(keys.access_key_id, "AKIDPROC");
    EXPECT_EQ(keys.session_token, "t");
    EXPECT_EQ(keys.expires, parse_moment("2036-01-02T03:04:05Z"));
}

TEST_F(CredentialStory, AProcessThatFailsHangsOrBabblesIsUnavailable) {
    options.service_timeout = 100ms;
    const auto refused = [&](const std::string& command) {
        environment["AWS_CONFIG_FILE"] =
            write("config", "[default]\ncredential_process = " + command + "\n");
        return refusal();
    };
    EXPECT_THAT(refused("exit 3"), AllOf(StartsWith("unavailable: "), HasSubstr("failed")));
    EXPECT_THAT(refused("sleep 1000 & sleep 1000"), HasSubstr("did not end in time"));
    EXPECT_THAT(refused("yes"), HasSubstr("prints too much"));
    EXPECT_THAT(refused("echo '{\"SecretAccessKey\": \"s3cret\"'"),
                AllOf(HasSubstr("not a JSON object"), Not(HasSubstr("s3cret"))));
    EXPECT_THAT(refused("echo '{\"SecretAccessKey\": \"s3cret\"}'"),
                AllOf(HasSubstr("has no AccessKeyId"), Not(HasSubstr("s3cret"))));
}

// ---- The chain
// -----------------------------------------------------------------------------------

// A profile whose process hands out keys of a given life and leaves a trace of each run.
class RenewalStory : public CredentialStory {
protected:
    void hand_out(const std::string& id, Wall expires) {
        const auto seconds = std::chrono::floor<std::chrono::seconds>(expires);
        const std::chrono::year_month_day day{std::chrono::floor<std::chrono::days>(seconds)};
        const std::chrono::hh_mm_ss time{seconds - std::chrono::floor<std::chrono::days>(seconds)};
        const std::string moment = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
                                               static_cast<int>(day.year()),
                                               static_cast<unsigned>(day.month()),
                                               static_cast<unsigned>(day.day()),
                                               time.hours().count(),
                                               time.minutes().count(),
                                               time.seconds().count());
        (void)write("answer",
                    R"({"AccessKeyId":")" + id + R"(","SecretAccessKey":"s3cret","Expiration":")" +
                        moment + R"("})");
        environment["AWS_CONFIG_FILE"] =
            write("config",
                  "[default]\ncredential_process = echo run >> '" + (folder / "runs").string() +
                      "'; cat '" + (folder / "answer").string() + "'\n");
    }
    [[nodiscard]] std::size_t runs() const {
        std::ifstream file(folder / "runs");
        return static_cast<std::size_t>(std::count(
            std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>(), '\n'));
    }
    [[nodiscard]] std::string id() { return chain.get(Deadline::after(10s), {}).access_key_id; }

    ManualClock clock;
    CapturingLogger log;
    CredentialChain chain{[this] {
        options.clock = &clock;
        options.logger = &log;
        return options;
    }()};
};

TEST_F(RenewalStory, KeysAreKeptUntilFiveMinutesBeforeTheirEnd) {
    hand_out("FIRST", clock.wall_now() + 1h);
    EXPECT_EQ(id(), "FIRST");
    EXPECT_EQ(chain.source(), "shared files");
    clock.advance(54min);
    EXPECT_EQ(id(), "FIRST");
    EXPECT_EQ(runs(), 1U);
    hand_out("SECOND", clock.wall_now() + 1h);
    clock.advance(1min);
    EXPECT_EQ(id(), "SECOND");
    EXPECT_EQ(runs(), 2U);
}

TEST_F(RenewalStory, AFailedRenewalIsAWarningAsLongAsTheKeysLive) {
    hand_out("FIRST", clock.wall_now() + 1h);
    EXPECT_EQ(id(), "FIRST");
    environment["AWS_CONFIG_FILE"] = write("config", "[default]\ncredential_process = exit 1\n");
    clock.advance(56min);
    EXPECT_EQ(id(), "FIRST");
    EXPECT_EQ(log.count("were not renewed"), 1U);
    EXPECT_EQ(log.count("s3cret"), 0U);
    clock.advance(4min);
    EXPECT_EQ(holdfast::test::code_of([&] { (void)id(); }), Code::unavailable)
        << "dead keys are not handed out";
}

TEST_F(RenewalStory, RefusedKeysAreLookedUpAnew) {
    hand_out("FIRST", clock.wall_now() + 1h);
    EXPECT_EQ(id(), "FIRST");
    hand_out("ROTATED", clock.wall_now() + 1h);
    EXPECT_EQ(id(), "FIRST");
    chain.forget();
    EXPECT_EQ(id(), "ROTATED");
}

TEST_F(RenewalStory, ManyWhoAskAtOnceCauseOneLookUp) {
    hand_out("FIRST", clock.wall_now() + 1h);
    constexpr int people = 20;
    std::latch together(people);
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < people; ++i) {
            threads.emplace_back([&] {
                together.arrive_and_wait();
                EXPECT_EQ(id(), "FIRST");
            });
        }
    }
    EXPECT_EQ(runs(), 1U);
}

TEST(FixedCredentials, AreAlwaysTheSame) {
    const auto fixed = fixed_credentials({.access_key_id = "A", .secret_access_key = "B"});
    fixed->forget();
    EXPECT_EQ(fixed->get(Deadline::after(1s), {}).access_key_id, "A");
    EXPECT_EQ(fixed->source(), "given");
}

}  // namespace
}  // namespace holdfast::dsql
