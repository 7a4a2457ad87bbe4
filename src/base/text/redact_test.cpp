#include <holdfast/base/redact.hpp>

#include <gtest/gtest.h>

namespace holdfast {
namespace {

TEST(Redact, HidesThePasswordOfAUrlAndNothingElse) {
    EXPECT_EQ(without_password("postgres://ann:s3cret@db.example:5432/orders?sslmode=require"),
              "postgres://ann:***@db.example:5432/orders?sslmode=require");
    EXPECT_EQ(without_password("postgres://ann@db/orders"), "postgres://ann@db/orders");
    EXPECT_EQ(without_password("postgres://db:5432/orders"), "postgres://db:5432/orders");
    EXPECT_EQ(without_password("sqlite:orders.db"), "sqlite:orders.db");
    EXPECT_EQ(without_password(""), "");
}

// People forget to escape; what follows the first '@' or '/' may still be password.
TEST(Redact, HidesAPasswordThatShouldHaveBeenEscaped) {
    EXPECT_EQ(without_password("postgres://ann:p/ss@db/orders"), "postgres://ann:***@db/orders");
    EXPECT_EQ(without_password("postgres://ann:p@ss:w@rd@db/orders"),
              "postgres://ann:***@db/orders");
}

// Where the password is cannot be known, so nothing is shown.
TEST(Redact, HidesAllOfWhatIsNoUrl) {
    for (const std::string_view text : {"host=db user=ann password=s3cret",
                                        "postgresql//ann:s3cret@db/orders",
                                        "//ann:s3cret@db",
                                        "ann:s3cret@db",
                                        "s3cret",
                                        "POSTGRES://ann:s3cret@db",
                                        "host='x' password='s3 cret'"}) {
        EXPECT_EQ(without_password(text), "***") << text;
    }
    EXPECT_EQ(without_password("postgres:ann:s3cret@db"), "***");
    EXPECT_EQ(without_password("dir/orders.db"), "dir/orders.db");
}

TEST(Redact, HidesAPasswordWhereverItIsCut) {
    EXPECT_EQ(without_password("postgres://ann:s3?cr&et@db/x"), "postgres://ann:***@db/x");
    EXPECT_EQ(without_password("postgres://ann:s3cret"), "postgres://ann:***");
    EXPECT_EQ(without_password("postgres://ann:s3cret/db?a=1"), "postgres://ann:***");
    EXPECT_EQ(without_password("postgres://ann:%zz@db/x"), "postgres://ann:***@db/x");
    EXPECT_EQ(without_password("postgres://[::1]:5432/x"), "postgres://[::1]:5432/x");
    EXPECT_EQ(without_password("dsql://h/x?token=s3cret&pool=1"), "dsql://h/x?token=***&pool=1");
}

TEST(Redact, HidesPasswordsAmongTheParameters) {
    EXPECT_EQ(without_password("postgres:///orders?password=s3cret&user=ann&sslpassword=k3y"),
              "postgres:///orders?password=***&user=ann&sslpassword=***");
    EXPECT_EQ(without_password("postgres:///orders?password=s3&cret&S3=cret&user=ann"),
              "postgres:///orders?password=***&***&***&user=ann");
    EXPECT_EQ(without_password("postgres:///orders?password=s3cret"),
              "postgres:///orders?password=***");
}

}  // namespace
}  // namespace holdfast
