#include <holdfast/dsql/endpoint.hpp>

#include <gtest/gtest.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::dsql {
namespace {

TEST(Endpoint, ItsNameSaysTheRegion) {
    EXPECT_EQ(region_of("4zabc7defghij2klmnopqrst5u.dsql.us-east-1.on.aws"), "us-east-1");
    EXPECT_EQ(region_of("4zabc7defghij2klmnopqrst5u.dsql-fnh4.ap-northeast-2.on.aws"),
              "ap-northeast-2");
}

TEST(Endpoint, AnotherNameSaysNone) {
    for (const std::string_view name : {"",
                                        "localhost",
                                        "127.0.0.1",
                                        "dsql.us-east-1.on.aws",
                                        "x.rds.us-east-1.on.aws",
                                        "x.dsql.us-east-1.on.example",
                                        "x.dsql..on.aws",
                                        "x.dsql.us_east_1.on.aws",
                                        "x.dsql.us-east-1.on.aws.example.com"}) {
        EXPECT_EQ(region_of(name), std::nullopt) << name;
    }
}

TEST(Endpoint, IsKnownByOneSpelling) {
    HOLDFAST_CHECK("connections dist.endpoint");
    HOLDFAST_CHECK("connections bucket.endpoint");
    for (const std::string_view spelt : {"abc.dsql.us-east-1.on.aws",
                                         "ABC.dsql.us-east-1.on.AWS",
                                         "abc.dsql.us-east-1.on.aws:5432",
                                         "  abc.dsql.us-east-1.on.aws ",
                                         "  ABC.dsql.us-east-1.on.aws:5432\n"}) {
        EXPECT_EQ(normal_endpoint(spelt), "abc.dsql.us-east-1.on.aws") << spelt;
    }
    EXPECT_EQ(normal_endpoint(" \t"), "");
    EXPECT_EQ(cluster_id_of("abc.dsql.us-east-1.on.aws"), "abc");
    EXPECT_EQ(cluster_id_of("localhost"), "localhost");
}

}  // namespace
}  // namespace holdfast::dsql
