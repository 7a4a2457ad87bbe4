#include <holdfast/dsql/token.hpp>

#include <algorithm>
#include <random>

#include "auth/test/token_vectors_fixture.hpp"
#include <gmock/gmock.h>

#include <holdfast/base/error.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::dsql {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view host = "4zabc7defghij2klmnopqrst5u.dsql.us-east-1.on.aws";
constexpr std::string_view mismatch =
    "The request signature we calculated does not match the signature you provided";
const Wall noon = std::chrono::sys_days{std::chrono::year{2026} / 6 / 15} + 12h;

// A server in us-east-1 that knows one key.
class TokenStory : public testing::Test {
protected:
    Credentials keys{.access_key_id = "AKIDEXAMPLE", .secret_access_key = "s3cret"};
    TokenRequest request{.host = std::string(host), .region = "us-east-1"};
    TokenDemand demand{.host = std::string(host), .region = "us-east-1", .user = "admin"};

    [[nodiscard]] std::variant<TokenGrant, TokenRefusal> check_statements(const std::string& token,
                                                                          Wall now = noon) const {
        return verify_token(
            token,
            demand,
            [this](std::string_view id) {
                return id == keys.access_key_id ? std::optional(keys) : std::nullopt;
            },
            now);
    }

    // Empty if it was accepted.
    [[nodiscard]] std::string hint(const std::string& token, Wall now = noon) const {
        const auto verdict = check_statements(token, now);
        const auto* refusal = std::get_if<TokenRefusal>(&verdict);
        return refusal == nullptr ? "" : refusal->hint;
    }

    [[nodiscard]] std::string token() const { return make_token(request, keys, noon); }
};

std::string replaced(std::string text, std::string_view from, std::string_view to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
}

TEST(Token, EveryVectorByteForByte) {
    const auto vectors = tests::token_vectors();
    ASSERT_EQ(vectors.size(), 18U);
    for (const tests::Vector& vector : vectors) {
        EXPECT_EQ(make_token(vector.request, vector.credentials, vector.now), vector.text("token"))
            << vector.name;
    }
}

TEST(Token, EveryVectorIsAcceptedInEitherOrder) {
    for (const tests::Vector& vector : tests::token_vectors()) {
        SCOPED_TRACE(vector.name);
        const TokenDemand demand{
            .host = vector.request.host,
            .region = vector.request.region,
            .user = vector.request.action == Action::connect_admin ? "admin" : "app"};
        const auto keys_of = [&](std::string_view) { return std::optional(vector.credentials); };
        for (const char* order : {"token", "token_signature_last"}) {
            const auto verdict = verify_token(vector.text(order), demand, keys_of, vector.now);
            const auto* grant = std::get_if<TokenGrant>(&verdict);
            ASSERT_NE(grant, nullptr) << order << ": " << std::get<TokenRefusal>(verdict).hint;
            EXPECT_EQ(grant->access_key_id, "AKIDEXAMPLE");
            EXPECT_EQ(grant->action, vector.request.action);
            EXPECT_EQ(grant->expiry,
                      std::chrono::floor<std::chrono::seconds>(vector.now) +
                          std::chrono::seconds{vector.expected.at("effective_expires").get<int>()});
        }
    }
}

TEST(Token, EveryRejectedExpiryIsRefusedInTheSignersWords) {
    const auto rejections = tests::token_vectors("rejections");
    ASSERT_EQ(rejections.size(), 2U);
    for (const tests::Vector& vector : rejections) {
        try {
            (void)make_token(vector.request, vector.credentials, vector.now);
            FAIL() << "a token of " << vector.request.life.count() << " s was made";
        } catch (const InvalidArgument& error) {
            EXPECT_STREQ(error.what(),
                         "Signature version 4 presigned URLs must have an expiration date less "
                         "than one week in the future");
        }
    }
}

TEST_F(TokenStory, ALifeOutOfItsBoundsOrAMissingPartIsRefused) {
    const auto refused = [&](auto change) {
        TokenRequest changed_request = request;
        Credentials changed_keys = keys;
        change(changed_request, changed_keys);
        return holdfast::test::code_of(
            [&] { (void)make_token(changed_request, changed_keys, noon); });
    };
    EXPECT_EQ(refused([](auto& r, auto&) { r.life = 0s; }), Code::invalid_argument);
    EXPECT_EQ(refused([](auto& r, auto&) { r.life = -1s; }), Code::invalid_argument);
    EXPECT_EQ(refused([](auto& r, auto&) { r.life = 604'801s; }), Code::invalid_argument);
    EXPECT_EQ(refused([](auto& r, auto&) { r.life = 604'800s; }), std::nullopt);
    EXPECT_EQ(refused([](auto& r, auto&) { r.host.clear(); }), Code::invalid_argument);
    EXPECT_EQ(refused([](auto& r, auto&) { r.region.clear(); }), Code::invalid_argument);
    EXPECT_EQ(refused([](auto&, auto& k) { k.access_key_id.clear(); }), Code::invalid_argument);
    EXPECT_EQ(refused([](auto&, auto& k) { k.secret_access_key.clear(); }), Code::invalid_argument);
}

TEST_F(TokenStory, ATokenDoesNotOutliveItsKeys) {
    keys.expires = noon + 60s + 500ms;
    const TokenLife life = life_of_token(token()).value_or(TokenLife{});
    EXPECT_EQ(life.birth, noon);
    EXPECT_EQ(life.expiry, noon + 60s);

    keys.expires = noon + 999ms;
    EXPECT_EQ(holdfast::test::code_of([&] { (void)token(); }), Code::unauthorized);
}

TEST_F(TokenStory, IsGoodFromFiveMinutesEarlyToTheEndOfItsLife) {
    const std::string good = token();
    EXPECT_EQ(hint(good), "");
    EXPECT_EQ(hint(good, noon + 899s), "");
    EXPECT_EQ(hint(good, noon + 900s),
              "Signature expired: 20260615T121500Z is now earlier than 20260615T121500Z");
    EXPECT_THAT(hint(good, noon + 24h), StartsWith("Signature expired: "));
    EXPECT_EQ(hint(good, noon - 5min), "");
    EXPECT_THAT(hint(good, noon - 5min - 1us), StartsWith("Signature not yet current: "));
}

TEST_F(TokenStory, DiesWithTheTemporaryKeysThatSignedIt) {
    const std::string good = token();
    keys.expires = noon + 1min;
    EXPECT_EQ(hint(good, noon + 59s), "");
    EXPECT_EQ(hint(good, noon + 60s), "The security token included in the request is expired");
}

TEST_F(TokenStory, TheActionMustFitTheUser) {
    request.action = Action::connect;
    EXPECT_EQ(hint(token()), "Wrong user to action mapping. user: admin, action: DbConnect");
    demand.user = "app";
    EXPECT_EQ(hint(token()), "");
    request.action = Action::connect_admin;
    EXPECT_EQ(hint(token()), "Wrong user to action mapping. user: app, action: DbConnectAdmin");
}

TEST_F(TokenStory, AnotherRegionServiceOrDayIsOutOfScope) {
    request.region = "eu-west-1";
    EXPECT_THAT(hint(token()), StartsWith("Credential should be scoped to a valid region."));
    request.region = "us-east-1";
    EXPECT_THAT(hint(replaced(token(), "%2Fdsql%2F", "%2Fs3%2F")),
                StartsWith("Credential should be scoped to correct service"));
    EXPECT_THAT(hint(replaced(token(), "aws4_request", "aws5_request")),
                StartsWith("Credential should be scoped with a valid terminator"));
    EXPECT_THAT(hint(replaced(token(), "%2F20260615%2F", "%2F20260614%2F")),
                StartsWith("Date in Credential scope does not match"));
    EXPECT_THAT(hint(replaced(token(), "%2F20260615%2F", "%2F%2F")),
                StartsWith("Date in Credential scope does not match"));
}

TEST_F(TokenStory, AnUnknownKeyOrAnotherSecretIsRefused) {
    const std::string good = token();
    keys.access_key_id = "AKIDOTHER";
    EXPECT_EQ(hint(good), "The security token included in the request is invalid.");
    keys.access_key_id = "AKIDEXAMPLE";
    keys.secret_access_key = "another";
    EXPECT_THAT(hint(good), StartsWith(mismatch));
}

TEST_F(TokenStory, TheSessionTokenMustBeTheKeysOwn) {
    const std::string without = token();
    keys.session_token = "session";
    EXPECT_EQ(hint(token()), "");
    EXPECT_EQ(hint(without), "The security token included in the request is invalid.");
    const std::string with = token();
    keys.session_token.clear();
    EXPECT_EQ(hint(with), "The security token included in the request is invalid.");
}

TEST_F(TokenStory, IsForOneClusterOnly) {
    const std::string good = token();
    demand.host = "another7defghij2klmnopqrst.dsql.us-east-1.on.aws";
    EXPECT_THAT(hint(good), StartsWith(mismatch));
    demand.host = "4ZABC7DEFGHIJ2KLMNOPQRST5U.dsql.us-east-1.ON.AWS";
    EXPECT_EQ(hint(good), "") << "names of hosts have no case";
    request.host = std::string(host) + ":5432";
    EXPECT_THAT(hint(token()), StartsWith(mismatch)) << "a port is no part of the name";
}

// One changed character anywhere, of any class: nothing else than a refusal may come of it.
TEST_F(TokenStory, ACharacterChangedAnywhereIsRefused) {
    keys.session_token = "a+b/c==";
    const std::string good = token();
    ASSERT_EQ(hint(good), "");
    for (std::size_t at = 0; at < good.size(); ++at) {
        for (const char c :
             {'a', 'F', '0', '-', '/', '%', '&', '=', '?', ' ', '\0', '\n', '\xff'}) {
            std::string tampered = good;
            tampered[at] = c;
            if (tampered != good) {
                EXPECT_NE(hint(tampered), "") << "character " << at << " became " << int{c};
            }
        }
        EXPECT_NE(hint(good.substr(0, at)), "") << "cut at " << at;
    }
}

TEST_F(TokenStory, ParametersMayBeInAnyOrderButNotTwice) {
    const std::string good = token();
    const std::size_t query = good.find('?') + 1;
    std::vector<std::string> params;
    for (std::size_t at = query; at < good.size();) {
        const std::size_t end = std::min(good.find('&', at), good.size());
        params.push_back(good.substr(at, end - at));
        at = end + 1;
    }
    const auto joined = [&] {
        std::string text = good.substr(0, query);
        for (const std::string& param : params) {
            text += param + "&";
        }
        text.pop_back();
        return text;
    };
    std::mt19937 random(7);  // NOLINT(bugprone-random-generator-seed): the same orders each time.
    for (int i = 0; i < 20; ++i) {
        std::shuffle(params.begin(), params.end(), random);
        EXPECT_EQ(hint(joined()), "");
    }
    for (const std::string& param : std::vector(params)) {
        params.push_back(param);
        EXPECT_THAT(hint(joined()), StartsWith("The token is malformed")) << param;
        params.pop_back();
    }
    params.push_back("X-Extra=1");
    EXPECT_THAT(hint(joined()), StartsWith(mismatch)) << "what is not signed is not accepted";
}

// The SDK for Go leaves out the path. The signature is the same.
TEST_F(TokenStory, TheSlashMayBeLeftOut) {
    const std::string good = token();
    const std::string bare = replaced(good, "/?", "?");
    EXPECT_EQ(hint(bare), "");
    ASSERT_TRUE(life_of_token(bare));
    EXPECT_EQ(life_of_token(bare)->expiry, life_of_token(good)->expiry);
    demand.host = "another7defghij2klmnopqrst.dsql.us-east-1.on.aws";
    EXPECT_THAT(hint(bare), StartsWith(mismatch));
}

TEST_F(TokenStory, AnyOtherTextIsMalformed) {
    for (const std::string& text : {std::string(),
                                    std::string("secret"),
                                    std::string("?"),
                                    replaced(token(), "/?", "//?"),
                                    replaced(token(), "/?", "/x?"),
                                    "https://" + token(),
                                    "https://" + replaced(token(), "/?", "?"),
                                    std::string("/?"),
                                    std::string("a/?b"),
                                    std::string("a/?b=%"),
                                    std::string(host) + "/?Action=DbConnectAdmin",
                                    std::string(100'000, 'x'),
                                    "a/?" + std::string(100'000, '&'),
                                    replaced(token(), "Expires=900", "Expires=0"),
                                    replaced(token(), "Expires=900", "Expires=-9"),
                                    replaced(token(), "Expires=900", "Expires=604801"),
                                    replaced(token(), "Expires=900", "Expires="),
                                    replaced(token(), "Action=DbConnectAdmin", "Action=Drop"),
                                    replaced(token(), "SHA256", "SHA512"),
                                    replaced(token(), "Headers=host", "Headers=host%3Bx")}) {
        EXPECT_THAT(hint(text), StartsWith("The token is malformed")) << text.substr(0, 200);
    }
    EXPECT_FALSE(life_of_token("secret"));
}

TEST_F(TokenStory, ARefusalSaysNothingSecret) {
    request.region = "eu-west-1";
    keys.session_token = "sess10n";
    const std::string refused = hint(token());
    EXPECT_THAT(refused, Not(HasSubstr(keys.secret_access_key)));
    EXPECT_THAT(refused, Not(HasSubstr(keys.session_token)));
}

}  // namespace
}  // namespace holdfast::dsql
