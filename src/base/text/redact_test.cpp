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

TEST(Redact, HidesPasswordsAmongTheParameters) {
    EXPECT_EQ(without_password("postgres:///orders?password=s3cret&user=ann&sslpassword=k3y"),
              "postgres:///orders?password=***&user=ann&sslpassword=***");
    EXPECT_EQ(without_password("postgres:///orders?password=s3cret"),
              "postgres:///orders?password=***");
}

}  // namespace
}  // namespace holdfast
