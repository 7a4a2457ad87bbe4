// A program whose main() is one line works on every database.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <holdfast/dsql/every_database.hpp>
#include <holdfast/flow/client.hpp>
#include <holdfast/flow/command_line.hpp>
#include <holdfast/flow/json.hpp>
#include <holdfast/flow/runtime.hpp>
#include <holdfast/flow/sql_provider.hpp>
#include <holdfast/testing/backends.hpp>

namespace holdfast::flow::one_line {

int twice(int number) {
    return 2 * number;
}

}  // namespace holdfast::flow::one_line

HOLDFAST_NAME(holdfast::flow::one_line::twice, "twice");

namespace holdfast::flow::one_line {

Workflow<int> doubled(Context& ctx, int number) {
    const int result = co_await ctx.activity<&twice>(number);
    co_return result;
}

}  // namespace holdfast::flow::one_line

HOLDFAST_NAME(holdfast::flow::one_line::doubled, "doubled");

namespace holdfast::flow::one_line {
namespace {

class OneLine : public testing::TestWithParam<test::Backend> {
protected:
    int call(std::vector<std::string> words, const sql::DatabaseOptions& options) {
        words.insert(words.begin(), "shop");
        words.insert(words.end(), {"--db", db.url()});
        std::vector<const char*> pointers;
        pointers.reserve(words.size());
        for (const std::string& word : words) {
            pointers.push_back(word.c_str());
        }
        Registry registry;
        registry.activity<&twice>().workflow<&doubled>("1.0.0");
        return command_line(registry, static_cast<int>(pointers.size()), pointers.data(), options);
    }

    test::Database db{GetParam(), schema_part()};
};

TEST_P(OneLine, StartsAWorkflowAndWaitsForItsResult) {
    testing::internal::CaptureStdout();
    const int code = call({"start", "doubled", "--input", "[21]", "--id", "d/1", "--wait", "1m"},
                          dsql::every_database());
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "42\n");
    EXPECT_EQ(code, 0);
}

TEST_P(OneLine, SaysWhatAProgramWithoutDsqlLacks) {
    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();
    const int code = call({"start", "doubled", "--input", "[21]", "--id", "d/2"}, {});
    const std::string said = testing::internal::GetCapturedStderr();
    (void)testing::internal::GetCapturedStdout();
    const bool known = GetParam() != test::Backend::dsql;
    EXPECT_EQ(code, known ? 0 : 2);
    EXPECT_EQ(said.find("dsql::every_database()") == std::string::npos, known) << said;
}

INSTANTIATE_TEST_SUITE_P(Every, OneLine, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::flow::one_line
