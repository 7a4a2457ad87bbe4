#include <holdfast/sql/url.hpp>

#include <gmock/gmock.h>

#include <holdfast/base/error.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::sql {
namespace {

TEST(Url, SplitsIntoSchemeRestAndOptions) {
    const Url url = parse_url("sqlite:dir/orders.db?create=1&synchronous=full");
    EXPECT_EQ(url.scheme, "sqlite");
    EXPECT_EQ(url.rest, "dir/orders.db");
    EXPECT_EQ(url.options.at("create"), "1");
    EXPECT_EQ(url.options.at("synchronous"), "full");
    EXPECT_EQ(parse_url("sqlite::memory:").rest, ":memory:");
    EXPECT_EQ(parse_url("postgres://h/d?host=%2Ftmp%2Fx").options.at("host"), "/tmp/x");
}

TEST(Url, RefusesWhatItCannotUnderstand) {
    for (const std::string_view text : {"",
                                        "orders.db",
                                        ":x",
                                        "SQLITE:x",
                                        "sqlite:x?create",
                                        "sqlite:x?=1",
                                        "sqlite:x?a=1&a=2",
                                        "sqlite:x?a=%2",
                                        "sqlite:x?a=%zz",
                                        "sqlite:x?a=%00",
                                        "sqlite:x\n",
                                        "/orders.db"}) {
        EXPECT_EQ(test::code_of([&] { (void)parse_url(text); }), Code::invalid_argument) << text;
    }
}

TEST(Url, SaysWhetherThereIsAReservoir) {
    EXPECT_EQ(reservoir_option(parse_url("postgres://h/d")), std::nullopt);
    EXPECT_EQ(reservoir_option(parse_url("postgres://h/d?reservoir=on")), true);
    EXPECT_EQ(reservoir_option(parse_url("dsql://h/d?reservoir=off")), false);
    EXPECT_EQ(
        test::code_of([] { (void)reservoir_option(parse_url("postgres://h/d?reservoir=yes")); }),
        Code::invalid_argument);
}

TEST(Url, NeverPrintsAPassword) {
    EXPECT_EQ(parse_url("postgres://ann:secret@host:5432/orders").printable(),
              "postgres://ann:***@host:5432/orders");
    EXPECT_EQ(parse_url("postgres://ann@host/orders").printable(), "postgres://ann@host/orders");
}

// Each of them was once echoed in an error, in whole or in part.
TEST(Url, RefusesWithoutShowingWhatMayBeAPassword) {
    for (const std::string text : {"postgres://bob:Sup3r%zz@h/d",
                                   "postgres://bob:Sup3r@Sup3r@h/d",
                                   "postgres://bob:Sup3r/x@h/d",
                                   "postgres://bob:12/Sup3r@h/d",
                                   "postgres://bob:Sup3r?x@h/d",
                                   "postgres://bob:12?Sup3r@h/d",
                                   "postgres://bob:12?a=Sup3r@h/d",
                                   "postgres://bob:Sup3r",
                                   "postgres://bob:Sup3r/d",
                                   "postgres://h/d?password=Sup3r%zz",
                                   "postgres://h/d?passwrd=Sup3r",
                                   "postgres://h/d?Sup3r",
                                   "postgres://h/d?Sup3r=1",
                                   "postgres://h/d?password=Sup3r&password=Sup3r",
                                   "postgres://[Sup3r/d",
                                   "postgres:bob:Sup3r@h/d",
                                   "postgresql//bob:Sup3r@h/d",
                                   "postgres//bob:Sup3r@h/d",
                                   "POSTGRES://bob:Sup3r@h/d",
                                   "bob:Sup3r@h",
                                   "host=x password=Sup3r",
                                   "host=x password='Sup3r' dbname=d:e",
                                   "dsql://bob:Sup3r@h/d",
                                   "dsql://bob:Sup3r",
                                   "mysql://bob:Sup3r@h/d",
                                   "sup:Sup3r",
                                   "Sup3r"}) {
        try {
            const Database db(text);
            FAIL() << "opened: " << text;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), Code::invalid_argument) << text;
            EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("Sup3r"))) << text;
        }
    }
}

TEST(Url, TakesSeveralHostsAndAddresses) {
    for (const std::string_view text : {"postgres://a:1,b:2/d",
                                        "postgres://ann@[::1]:5432/d",
                                        "postgres://ann:p%40ss@[::1],h:2/d",
                                        "postgres:///d?host=/tmp",
                                        "postgres://h/d?application_name=me@here"}) {
        EXPECT_NO_THROW((void)parse_url(text)) << text;
    }
}

}  // namespace
}  // namespace holdfast::sql
