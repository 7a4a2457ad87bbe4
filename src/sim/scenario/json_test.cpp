// JSON is read as it is defined, and told of as YAML is.
#include "scenario/document.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/sim/scenario.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::sim {
namespace {

using testing::StartsWith;

std::string refusal(const std::string& text, const std::string& name = "fleet.json") {
    try {
        (void)parse_document(name, text);
    } catch (const InvalidArgument& bad) {
        return bad.what();
    }
    return "";
}

std::string only_value(const std::string& json) {
    return parse_document("fleet.json", "{\"a\": " + json + "}").fields.at(0).second.scalar;
}

TEST(Json, EscapesMeanWhatTheyMeanInJson) {
    HOLDFAST_CHECK("poolsim loader.json");
    EXPECT_EQ(only_value(R"("\ud83d\ude00")"), "\xf0\x9f\x98\x80");
    EXPECT_EQ(only_value(R"("\uD83D\uDE00!")"), "\xf0\x9f\x98\x80!");
    EXPECT_EQ(only_value(R"("\udbff\udfff")"), "\xf4\x8f\xbf\xbf");
    EXPECT_EQ(only_value(R"("a\/b\\c\"d")"), "a/b\\c\"d");
    EXPECT_EQ(only_value(R"("\b\f\n\r\t")"), "\b\f\n\r\t");
    EXPECT_EQ(only_value(R"("\u0041\u00e4\u20ac\uffff")"), "A\xc3\xa4\xe2\x82\xac\xef\xbf\xbf");
    EXPECT_EQ(only_value("\"\xc3\xa4 \xf0\x9f\x98\x80\""), "\xc3\xa4 \xf0\x9f\x98\x80");
    EXPECT_EQ(only_value(R"("# no comment, ' no quote, * no alias, & no anchor: ")"),
              "# no comment, ' no quote, * no alias, & no anchor: ");
    for (const char* word : {"true", "false", "0", "-0.5", "1e9", "12.25E-3", "3E+2"}) {
        EXPECT_EQ(only_value(word), word);
    }
}

TEST(Json, KeysMayBeLongAndStandAnywhere) {
    const std::string key(5'000, 'k');
    const Node root = parse_document(
        "fleet.json", "\t{\r\n\t\"" + key + "\"\n\t:\n[1,\t2 , {} , [ ]],\"\\u0062\":null}\n\n");
    ASSERT_EQ(root.fields.size(), 2);
    EXPECT_EQ(root.fields[0].first, key);
    EXPECT_EQ(root.fields[0].second.items.size(), 4);
    EXPECT_EQ(root.fields[1].first, "b");
    EXPECT_EQ(root.fields[1].second.kind, Node::Kind::null);
}

// Columns count characters, as an editor shows them.
TEST(Json, EverythingHasItsPlace) {
    const Node root = parse_document("fleet.json",
                                     "\xef\xbb\xbf{\"a\": 1,\r\n \"\xc3\xa4\": {\"c\":  [3, \n4]}, "
                                     "\"\\ud83d\\ude00\":\n  null}");
    EXPECT_EQ(root.place, "fleet.json:1:1");
    EXPECT_EQ(root.fields[0].second.place, "fleet.json:1:7");
    EXPECT_EQ(root.fields[1].second.place, "fleet.json:2:7");
    const Node& list = root.fields[1].second.fields[0].second;
    EXPECT_EQ(list.place, "fleet.json:2:14");
    EXPECT_EQ(list.items[0].place, "fleet.json:2:15");
    EXPECT_EQ(list.items[1].place, "fleet.json:3:1");
    EXPECT_EQ(root.fields[2].second.place, "fleet.json:3:6") << "nothing stands where its key does";
}

TEST(Json, WhatIsNoJsonIsRefusedWithItsPlaceAndItsKey) {
    HOLDFAST_CHECK("poolsim loader.refusals");
    struct Case {
        const char* text;
        const char* told;
    };
    for (const Case& one : {
             Case{"{\"a\": 1,}", "fleet.json:1:9: after a: this is no JSON: expected a key in"},
             Case{"{\"a\": [1,]}", "fleet.json:1:10: a: this is no JSON: expected a value"},
             Case{"{\"a\": [1 2]}", "fleet.json:1:10: a: this is no JSON: expected a comma or a ]"},
             Case{"{\"a\" 1}", "fleet.json:1:6: a: this is no JSON: expected a colon"},
             Case{"{\"a\": 1\n\"b\": 2}",
                  "fleet.json:2:1: after a: this is no JSON: expected a co"},
             Case{"{a: 1}", "fleet.json:1:2: this is no JSON: expected a key in double quotes"},
             Case{"{\"a\": 1m}", "fleet.json:1:8: after a: this is no JSON: expected a comma"},
             Case{"{\"a\": 01}", "fleet.json:1:8: after a: this is no JSON: expected a comma"},
             Case{"{\"a\": .5}", "fleet.json:1:7: a: this is no JSON: expected a value"},
             Case{"{\"a\": -}", "fleet.json:1:8: a: this is no JSON: expected a value"},
             Case{"{\"a\": 'x'}", "fleet.json:1:7: a: this is no JSON: expected a value"},
             Case{"{\"a\": \"x", "fleet.json:1:9: a: this is no JSON: expected the text to end"},
             Case{"{\"a\": \"x\ny\"}", "fleet.json:1:9: a: this is no JSON: expected the text to"},
             Case{"{\"a\": \"\\x41\"}", "fleet.json:1:8: a: this is no JSON: expected one of"},
             Case{"{\"a\": \"\\u12\"}", "fleet.json:1:8: a: this is no JSON: expected four hex"},
             Case{"{\"a\": \"\\u+123\"}", "fleet.json:1:8: a: this is no JSON: expected four hex"},
             Case{"{\"a\": \"\\u12", "fleet.json:1:8: a: this is no JSON: expected four hex"},
             Case{"{\"a\": \"\\ud83d\"}",
                  "fleet.json:1:8: a: this is no JSON: expected two halves"},
             Case{"{\"a\": \"\\ude00\\ud83d\"}",
                  "fleet.json:1:8: a: this is no JSON: expected two"},
             Case{"{\"a\": \"\\", "fleet.json:1:8: a: this is no JSON: expected one of"},
             Case{"{\"a\": 1} # why", "fleet.json:1:10: something follows the document"},
             Case{"{\"a\": 1, \"a\": 2}", "fleet.json:1:10: a: set twice"},
             Case{"{\"a\": {\"\\u0062\": 1, \"b\": 2}}", "fleet.json:1:21: a.b: set twice"},
             Case{"{\"a\": [", "fleet.json:1:8: a: this is no JSON: expected a value"},
             Case{"{", "fleet.json:1:2: this is no JSON: expected a key"},
             Case{"nul", "fleet.json:1:1: this is no JSON: expected a value"},
             Case{"\xff\xfe{\0", "fleet.json:1: this is no text"},
         }) {
        EXPECT_THAT(refusal(one.text), StartsWith(one.told));
    }
    EXPECT_THAT(refusal("{\"a\": " + std::string(1'000'000, '[')),
                StartsWith("fleet.json:1:22: a[0][0]"));
}

TEST(Json, AFileWithAnotherNameMayBeEither) {
    const std::string face = R"({"name": "\ud83d\ude00"})";
    EXPECT_EQ(parse_document("fleet.conf", face).fields[0].second.scalar, "\xf0\x9f\x98\x80");
    EXPECT_EQ(parse_document("fleet.conf", "name: a").fields[0].second.scalar, "a");
    EXPECT_THAT(refusal(face, "fleet.yaml"), StartsWith("fleet.yaml:1:1"));
    EXPECT_THAT(refusal("{\"a\": [", "fleet.conf"),
                testing::HasSubstr("this is neither YAML nor JSON"));
}

TEST(Json, TheSameScenarioInBothIsTheSame) {
    HOLDFAST_CHECK("poolsim loader.json");
    const Scenario yaml = parse_scenario("a.yaml",
                                         "duration: 90s\nseed: 18446744073709551615\n"
                                         "cluster: {rate: 1.5e2, failures: 0.25}\n"
                                         "services:\n  - {name: \"\xf0\x9f\x98\x80/\", "
                                         "targetReady: 7,\n     workload: {enabled: true, "
                                         "maxInUse: 3, holdTime: 1.5ms}}\n",
                                         {.profile = Profile::compat_r})
                              .scenario;
    const Scenario json =
        parse_scenario("a.json",
                       R"({"duration":"90s","seed":18446744073709551615,)"
                       R"("cluster":{"rate":1.5e2,"failures":0.25},"services":[{"name":)"
                       R"("\uD83D\uDE00\/","targetReady":7,"workload":{"enabled":true,)"
                       R"("maxInUse":3,"holdTime":"1.5ms"}}]})",
                       {.profile = Profile::compat_r})
            .scenario;
    EXPECT_EQ(yaml.duration, json.duration);
    EXPECT_EQ(yaml.seed, json.seed);
    EXPECT_EQ(yaml.services[0].name, json.services[0].name);
    EXPECT_EQ(yaml.services[0].target, json.services[0].target);
    EXPECT_EQ(yaml.services[0].workload.hold, json.services[0].workload.hold);
    EXPECT_EQ(yaml.services[0].workload.enabled, json.services[0].workload.enabled);
}

}  // namespace
}  // namespace holdfast::sim
