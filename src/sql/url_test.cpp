#include <holdfast/sql/url.hpp>

#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
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
    EXPECT_EQ(parse_url("postgres://ann:se@cret@host/orders").printable(),
              "postgres://ann:***@host/orders");
}

}  // namespace
}  // namespace holdfast::sql
