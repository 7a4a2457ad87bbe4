#include <holdfast/dsql/source.hpp>

#include <future>

#include "auth/test/token_cache_fixture.hpp"
#include <fmt/core.h>
#include <gmock/gmock.h>

#include <holdfast/pool/open_phases.hpp>
#include <holdfast/pool/pool.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/sql/url.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::dsql {
namespace {

using namespace std::chrono_literals;
using holdfast::test::code_of;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

const std::string host_name = "4zabc7defghij2klmnopqrst5u.dsql.us-east-1.on.aws";

Target target(const std::string& url) {
    return parse_target(sql::parse_url(url), "holdfast");
}

std::string refusal(const std::string& url) {
    try {
        (void)target(url);
        return "accepted";
    } catch (const InvalidArgument& error) {
        return error.what();
    }
}

TEST(DsqlUrl, HasADefaultForEverythingButTheEndpoint) {
    HOLDFAST_CHECK("connections open.default_user");
    HOLDFAST_CHECK("connections dsn.no_tls");
    HOLDFAST_CHECK("connections dsn.tls_verify");
    const Target plain = target("dsql://" + host_name);
    EXPECT_EQ(plain.key.host, host_name);
    EXPECT_EQ(plain.key.region, "us-east-1");
    EXPECT_EQ(plain.key.user, "admin");
    EXPECT_EQ(plain.profile, "");
    EXPECT_THAT(plain.params,
                UnorderedElementsAre(Pair("host", host_name),
                                     Pair("port", "5432"),
                                     Pair("user", "admin"),
                                     Pair("dbname", "postgres"),
                                     Pair("sslmode", "verify-full"),
                                     Pair("sslrootcert", "/etc/ssl/certs/ca-certificates.crt"),
                                     Pair("application_name", "holdfast"),
                                     Pair("connect_timeout", "10"),
                                     Pair("client_encoding", "UTF8"),
                                     Pair("gssencmode", "disable"),
                                     Pair("keepalives_idle", "30"),
                                     Pair("keepalives_interval", "10"),
                                     Pair("keepalives_count", "3"),
                                     Pair("tcp_user_timeout", "30000")));
    EXPECT_EQ(target("dsql://@" + host_name + "/").params, plain.params);
}

// A name of one's own in DNS, or a proxy's.
TEST(DsqlUrl, TheRegionIsTheUrlsOrTheNamesOrElseWhatIsUsual) {
    const auto region = [](const std::string& url) {
        return parse_target(sql::parse_url(url), "holdfast", "eu-west-1").key.region;
    };
    EXPECT_EQ(region("dsql://orders.example.com"), "eu-west-1");
    EXPECT_EQ(region("dsql://orders.example.com?region=eu-west-3"), "eu-west-3");
    EXPECT_EQ(region("dsql://" + host_name), "us-east-1") << "its name knows better";
    EXPECT_EQ(usual_region("ap-south-1"), "ap-south-1");
}

TEST(DsqlUrl, MaySayAllOfIt) {
    HOLDFAST_CHECK("connections dsn.full");
    HOLDFAST_CHECK("connections dsn.mode_override");
    HOLDFAST_CHECK("connections dsn.tls_no_verify");
    HOLDFAST_CHECK("connections dsn.attributes");
    const Target full = target(
        "dsql://app%40night@LOCALHOST:5433/shop?region=eu-west-1&profile=work&hostaddr=127.0.0.1"
        "&sslrootcert=/tmp/ca.pem&sslmode=require&connect_timeout=3&application_name=x&pool=4");
    EXPECT_EQ(full.key.host, "localhost") << "a name has one spelling, whoever signs for it";
    EXPECT_EQ(full.key.region, "eu-west-1");
    EXPECT_EQ(full.key.user, "app@night");
    EXPECT_EQ(full.profile, "work");
    EXPECT_EQ(full.params.at("user"), "app@night");
    EXPECT_EQ(full.params.at("dbname"), "shop");
    EXPECT_EQ(full.params.at("port"), "5433");
    EXPECT_EQ(full.params.at("hostaddr"), "127.0.0.1");
    EXPECT_EQ(full.params.at("sslrootcert"), "/tmp/ca.pem");
    EXPECT_EQ(full.params.at("sslmode"), "require");
    EXPECT_EQ(full.params.at("connect_timeout"), "3");
    EXPECT_EQ(full.params.at("application_name"), "x");
    EXPECT_FALSE(full.params.contains("pool"));
    EXPECT_EQ(target("dsql://" + host_name + "?port=6000").params.at("port"), "6000");
}

TEST(DsqlUrl, ThatCannotWorkIsRefusedWithTheCure) {
    HOLDFAST_CHECK("connections inject.invalid");
    HOLDFAST_CHECK("connections inject.user+password");
    HOLDFAST_CHECK("connections dsn.duplicate");
    HOLDFAST_CHECK("connections lease.empty_endpoint");
    EXPECT_THAT(refusal("dsql:" + host_name), HasSubstr("write dsql://USER@ENDPOINT"));
    EXPECT_THAT(refusal("dsql://"), HasSubstr("names no endpoint"));
    EXPECT_THAT(refusal("dsql://app@"), HasSubstr("names no endpoint"));
    EXPECT_THAT(refusal("dsql://app:hunter2@" + host_name),
                AllOf(HasSubstr("takes no passwords"), Not(HasSubstr("hunter2"))));
    EXPECT_THAT(refusal("dsql://localhost"), HasSubstr("add ?region="));
    EXPECT_THAT(refusal("dsql://" + host_name + "?sslmode=prefer"), HasSubstr("use verify-full"));
    EXPECT_THAT(refusal("dsql://" + host_name + "?sslmode=disable"), HasSubstr("use verify-full"));
    EXPECT_THAT(refusal("dsql://" + host_name + "?statement_timeout=1s"),
                HasSubstr("'statement_timeout' that dsql:// does not know"))
        << "the service refuses it";
    EXPECT_THAT(refusal("dsql://" + host_name + ":x"), HasSubstr("the port in the database URL"));
    EXPECT_THAT(refusal("dsql://" + host_name + "?port=70000"), HasSubstr("not a port"));
    EXPECT_THAT(refusal("dsql://a%0@" + host_name), HasSubstr("bad percent escape"));
    EXPECT_THAT(refusal("dsql://" + host_name + "?port=1&port=2"), HasSubstr("'port' twice"));
}

// The trusted authority is passed on. The token identifies the client, so a client certificate is
// refused, with its key and without.
TEST(DsqlUrl, TakesACertificateAuthorityAndNoCertificateOfOurs) {
    HOLDFAST_CHECK("connections dsn.certs");
    HOLDFAST_CHECK("connections dsn.key_without_cert");
    HOLDFAST_CHECK("connections dsn.cert_without_key");
    HOLDFAST_CHECK("connections dsn.attr_cert_without_key");
    HOLDFAST_CHECK("connections dsn.attr_key_without_cert");
    HOLDFAST_CHECK("connections dsn.propagates");
    const std::string authority = "dsql://" + host_name + "?sslrootcert=/tmp/ca.pem";
    EXPECT_EQ(target(authority).params.at("sslrootcert"), "/tmp/ca.pem");
    for (const char* ours : {"sslcert=/tmp/x.pem", "sslkey=/tmp/x.key"}) {
        const std::string option(ours, std::string_view(ours).find('='));
        EXPECT_THAT(refusal(authority + "&" + ours),
                    HasSubstr("'" + option + "' that dsql:// does not know"));
        EXPECT_THAT(refusal("dsql://" + host_name + "?" + ours), HasSubstr("'" + option + "'"));
    }
    const std::string both = authority + "&sslcert=/tmp/x.pem&sslkey=/tmp/x.key";
    EXPECT_THAT(refusal(both), HasSubstr("'sslcert'"));
    // Opening a database gives the same error.
    sql::DatabaseOptions options;
    options.sources["dsql"] = dsql_source();
    try {
        const sql::Database refused(both, options);
        FAIL() << "accepted";
    } catch (const InvalidArgument& error) {
        EXPECT_EQ(std::string(error.what()), refusal(both));
    }
}

TEST(DsqlUrl, BlanksAroundNamesAndValuesMeanNothing) {
    HOLDFAST_CHECK("connections dsn.trim");
    HOLDFAST_CHECK("connections dsn.duplicate");
    const Target spaced =
        target("dsql://" + host_name + "? port = 5433 & application_name = night shift &pool= 4 ");
    EXPECT_EQ(spaced.params.at("port"), "5433");
    EXPECT_EQ(spaced.params.at("application_name"), "night shift");
    EXPECT_EQ(spaced.connections, 4);
    EXPECT_EQ(
        target("dsql://" + host_name + "?application_name=%20x").params.at("application_name"),
        " x")
        << "who writes a blank as %20 means it";
    EXPECT_THAT(refusal("dsql://" + host_name + "?port=1& port =1"), HasSubstr("'port' twice"));
}

// The state decides, and no words: what a server says that recovers is a refused statement like any
// other of this state, and its connection stays.
TEST(DsqlErrors, WordsOfARecoveringServerCloseNothing) {
    HOLDFAST_CHECK("connections err.0A000_recovery");
    const sql::DatabaseError error(sql::SqlState{"0A000"},
                                   Outcome::not_applied,
                                   "cannot set transaction read-write mode during recovery");
    EXPECT_EQ(classify(error), sql::ErrorClass::unsupported_feature);
}

class DsqlSource : public testing::Test {
protected:
    [[nodiscard]] static std::unique_ptr<sql::ConnectionSource> open(
        const sql::SourceFactory& factory, const std::string& user = "admin") {
        return factory(sql::parse_url("dsql://" + user + "@" + host_name));
    }
    [[nodiscard]] static sql::ConnectParams prepare(sql::ConnectionSource& from,
                                                    std::chrono::nanoseconds patience = 30s) {
        pool::OpenPhases phases;
        return from.prepare(Deadline::after(patience), {}, phases);
    }
    [[nodiscard]] sql::ConnectParams prepare() { return prepare(*source); }
    [[nodiscard]] std::variant<TokenGrant, TokenRefusal> check_statements(
        const sql::ConnectParams& params) {
        return verify_token(
            params.at("password"),
            {.host = host_name, .region = "us-east-1", .user = params.at("user")},
            [&](std::string_view) { return provider->get(Deadline::after(1s), {}); },
            clock.wall_now());
    }
    [[nodiscard]] static sql::DatabaseError denied(const std::string& hint) {
        sql::DatabaseError error(sql::classify_opening(sql::SqlState{"08006"}, hint),
                                 sql::SqlState{"08006"},
                                 Outcome::not_applied,
                                 "access denied");
        error.set_hint(hint);
        return error;
    }

    ManualClock clock;
    std::shared_ptr<tests::TestProvider> provider = std::make_shared<tests::TestProvider>();
    sql::SourceFactory factory = dsql_source({.credentials = provider, .clock = &clock});
    std::unique_ptr<sql::ConnectionSource> source = open(factory);
};

// The token has all the signs that mean something in a URL, and travels as a value of its own.
TEST_F(DsqlSource, SignsInWithATokenForItsUser) {
    HOLDFAST_CHECK("connections inject.plain");
    HOLDFAST_CHECK("connections inject.user");
    HOLDFAST_CHECK("connections inject.special");
    HOLDFAST_CHECK("connections dsn.escape");
    EXPECT_THAT(prepare().at("password"), AllOf(HasSubstr("/?"), HasSubstr("&"), HasSubstr("%2F")));
    EXPECT_EQ(source->dialect().name, url_scheme);
    const auto as_admin = check_statements(prepare());
    EXPECT_EQ(std::get<TokenGrant>(as_admin).action, Action::connect_admin);
    source = open(factory, "app");
    const auto as_app = check_statements(prepare());
    EXPECT_EQ(std::get<TokenGrant>(as_app).action, Action::connect);
}

// One opener for both modes. A URL means the same to a reservoir as it does without one.
TEST_F(DsqlSource, AReservoirSignsInAsAnybodyElse) {
    HOLDFAST_CHECK("connections inject.r_basic");
    HOLDFAST_CHECK("connections inject.r_user");
    HOLDFAST_CHECK("connections inject.r_special");
    HOLDFAST_CHECK("connections inject.r_at_user");
    HOLDFAST_CHECK("connections inject.r_query");
    HOLDFAST_CHECK("connections inject.r_port");
    HOLDFAST_CHECK("connections inject.r_empty");
    HOLDFAST_CHECK("connections inject.r_invalid");
    for (const std::string mode : {"reservoir=on", "reservoir=off"}) {
        SCOPED_TRACE(mode);
        const auto signs_in = [&](const std::string& url) {
            return prepare(*factory(sql::parse_url(url)));
        };
        const auto basic = signs_in(fmt::format("dsql://{}?{}", host_name, mode));
        EXPECT_EQ(basic.at("user"), "admin");
        EXPECT_TRUE(std::holds_alternative<TokenGrant>(check_statements(basic)))
            << "the token is what was signed, with all its special characters";

        const auto full = signs_in(fmt::format(
            "dsql://app%40night@{}:5433/shop?application_name=a%26b&{}", host_name, mode));
        EXPECT_EQ(full.at("user"), "app@night");
        EXPECT_EQ(full.at("port"), "5433");
        EXPECT_EQ(full.at("dbname"), "shop");
        EXPECT_EQ(full.at("application_name"), "a&b");
        EXPECT_EQ(std::get<TokenGrant>(check_statements(full)).action, Action::connect);

        EXPECT_EQ(code_of([&] { (void)signs_in(""); }), Code::invalid_argument);
        EXPECT_EQ(code_of([&] { (void)signs_in("dsql://?" + mode); }), Code::invalid_argument);
        const std::string damaged = fmt::format("dsql://a\x01b@{}?{}", host_name, mode);
        EXPECT_EQ(code_of([&] { (void)signs_in(damaged); }), Code::invalid_argument);
    }
}

TEST_F(DsqlSource, ATokenServesUntilItIsRefused) {
    const auto first = prepare();
    EXPECT_FALSE(source->opened(first, nullptr));
    EXPECT_EQ(prepare(), first);
    const sql::ConnectionLost lost(Outcome::not_applied, "reset");
    EXPECT_FALSE(source->opened(first, &lost));
    EXPECT_EQ(prepare(), first) << "a broken connection says nothing about the token";

    clock.advance(1s);
    const sql::DatabaseError wrong = denied("Wrong user to action mapping.");
    EXPECT_FALSE(source->opened(first, &wrong)) << "not worth another try at once";
    const auto second = prepare();
    EXPECT_NE(second, first);
    EXPECT_EQ(provider->forgotten, 1);

    clock.advance(1s);
    const sql::DatabaseError expired = denied("Signature expired: ...");
    EXPECT_TRUE(source->opened(second, &expired));
    EXPECT_NE(prepare(), second);
}

TEST_F(DsqlSource, SourcesOfOneFactoryShareTheirTokens) {
    const auto first = prepare();
    const auto other = open(factory);
    EXPECT_EQ(prepare(*other).at("password"), first.at("password"));
}

// A permit is asked for first: a token should be as fresh as possible.
TEST_F(DsqlSource, AnOpeningNeedsAPermitAndWithoutOneNoTokenIsMade) {
    HOLDFAST_CHECK("connections open.limiter_once");
    HOLDFAST_CHECK("connections open.limiter_error");
    HOLDFAST_CHECK("connections open.limiter_deadline");
    HOLDFAST_CHECK("connections fill.limiter_error");
    factory =
        dsql_source({.credentials = provider, .fleet = {.rate = 1, .burst = 2}, .clock = &clock});
    source = open(factory);
    (void)prepare();
    const int asked = provider->asked;
    const auto other = open(factory, "app");
    (void)prepare(*other);  // One limiter for both.
    EXPECT_EQ(provider->asked, asked + 1);
    const auto third = open(factory, "somebody");
    try {
        (void)prepare(*third, 10ms);
        FAIL() << "two were allowed";
    } catch (const pool::OpenError& error) {
        EXPECT_EQ(error.failure(), pool::FailureClass::rate_limited);
    }
    EXPECT_EQ(provider->asked, asked + 1) << "nobody asked for a token";
}

TEST_F(DsqlSource, OpeningsAtTheSameTimeNeedAPermitEach) {
    HOLDFAST_CHECK("connections open.parallel");
    HOLDFAST_CHECK("connections fill.limiter");
    factory =
        dsql_source({.credentials = provider, .fleet = {.rate = 1, .burst = 10}, .clock = &clock});
    source = open(factory);
    std::vector<std::future<sql::ConnectParams>> openings;
    openings.reserve(10);
    for (int i = 0; i < 10; ++i) {
        openings.push_back(std::async(std::launch::async, [this] { return prepare(); }));
    }
    for (auto& opening : openings) {
        EXPECT_FALSE(opening.get().at("password").empty());
    }
    EXPECT_EQ(code_of([&] { (void)prepare(*source, 10ms); }), Code::unavailable);
}

TEST_F(DsqlSource, WithoutASharedNumberOfConnectionsNothingIsGivenBack) {
    HOLDFAST_CHECK("connections res.no_lease");
    HOLDFAST_CHECK("connections lease.release_empty");
    HOLDFAST_CHECK("connections slot.release_empty");
    const auto params = prepare();
    EXPECT_FALSE(source->opened(params, nullptr));
    source->closed();
    source->closed();  // One too many does no harm.
}

TEST_F(DsqlSource, WithoutCredentialsItSaysWhy) {
    HOLDFAST_CHECK("connections fill.token_error");
    provider->fail = true;
    EXPECT_EQ(code_of([&] { (void)prepare(); }), Code::unavailable);
}

}  // namespace
}  // namespace holdfast::dsql
