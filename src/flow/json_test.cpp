#include <holdfast/flow/json.hpp>

#include <limits>
#include <string>

#include <gtest/gtest.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::flow {

namespace {

std::string encoded(const nlohmann::json& value) {
    return Codec<nlohmann::json>::encode(value);
}

// Histories that the library wrote must compare equal with what we write.
TEST(JsonCodec, WritesWhatTheLibraryWrites) {
    std::string everything;
    for (char c = 0; c >= 0 && c < 0x7f; ++c) {
        everything += c;
    }
    everything += "\x7f end of ASCII, \xc3\xa9, \xe2\x82\xac, \xf0\x9f\x90\x8e";
    const nlohmann::json nothing;
    for (const nlohmann::json& value :
         {nothing,
          nlohmann::json(everything),
          nlohmann::json::parse(R"([])"),
          nlohmann::json::parse(R"({})"),
          nlohmann::json::parse(
              R"({"z":[1,-2,3.5,1e300,true,false,null,[],{}],"a\n":{"":"\u0000"}})"),
          nlohmann::json::parse(R"([18446744073709551615,-9223372036854775808,0.1,-0.0])"),
          nlohmann::json(std::map<std::string, std::vector<int>>{{"b", {1}}, {"a", {}}})}) {
        EXPECT_EQ(encoded(value), value.dump());
    }
}

TEST(JsonCodec, RefusesWhatJsonCannotSay) {
    for (const double number :
         {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
        EXPECT_EQ(test::code_of([&] { (void)encoded({{"deep", {1, number}}}); }),
                  Code::invalid_argument);
    }
    EXPECT_EQ(test::code_of([&] { (void)encoded("\xff"); }), Code::invalid_argument);
    EXPECT_EQ(test::code_of([&] { (void)encoded({{"\xff", 1}}); }), Code::invalid_argument);
}

}  // namespace

}  // namespace holdfast::flow
