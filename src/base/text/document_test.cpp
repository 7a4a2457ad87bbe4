// JSON is read as it is defined, with places as YAML has them.
#include <holdfast/base/document.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast {
namespace {

using testing::StartsWith;

std::string document_refusal(const std::string& text, const std::string& name = "fleet.json") {
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

TEST(DocumentJson, EscapesMeanWhatTheyMeanInJson) {
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

TEST(DocumentJson, KeysMayBeLongAndStandAnywhere) {
    const std::string key(5'000, 'k');
    const DocumentNode root = parse_document(
        "fleet.json", "\t{\r\n\t\"" + key + "\"\n\t:\n[1,\t2 , {} , [ ]],\"\\u0062\":null}\n\n");
    ASSERT_EQ(root.fields.size(), 2);
    EXPECT_EQ(root.fields[0].first, key);
    EXPECT_EQ(root.fields[0].second.items.size(), 4);
    EXPECT_EQ(root.fields[1].first, "b");
    EXPECT_EQ(root.fields[1].second.kind, DocumentNode::Kind::null);
}

// Columns count characters, as an editor shows them.
TEST(DocumentJson, EverythingHasItsPlace) {
    const DocumentNode root =
        parse_document("fleet.json",
                       "\xef\xbb\xbf{\"a\": 1,\r\n \"\xc3\xa4\": {\"c\":  [3, \n4]}, "
                       "\"\\ud83d\\ude00\":\n  null}");
    EXPECT_EQ(root.place, "fleet.json:1:1");
    EXPECT_EQ(root.fields[0].second.place, "fleet.json:1:7");
    EXPECT_EQ(root.fields[1].second.place, "fleet.json:2:7");
    const DocumentNode& list = root.fields[1].second.fields[0].second;
    EXPECT_EQ(list.place, "fleet.json:2:14");
    EXPECT_EQ(list.items[0].place, "fleet.json:2:15");
    EXPECT_EQ(list.items[1].place, "fleet.json:3:1");
    EXPECT_EQ(root.fields[2].second.place, "fleet.json:3:6") << "nothing stands where its key does";
}

TEST(DocumentJson, TextThatIsNotJsonIsRefusedWithItsPlaceAndItsKey) {
    HOLDFAST_CHECK("poolsim loader.refusals");
    struct Case {
        const char* text;
        const char* told;
    };
    for (const Case& one : {
             Case{"{\"a\": 1,}", "fleet.json:1:9: after a: this is not JSON: expected a key in"},
             Case{"{\"a\": [1,]}", "fleet.json:1:10: a: this is not JSON: expected a value"},
             Case{"{\"a\": [1 2]}",
                  "fleet.json:1:10: a: this is not JSON: expected a comma or a ]"},
             Case{"{\"a\" 1}", "fleet.json:1:6: a: this is not JSON: expected a colon"},
             Case{"{\"a\": 1\n\"b\": 2}",
                  "fleet.json:2:1: after a: this is not JSON: expected a co"},
             Case{"{a: 1}", "fleet.json:1:2: this is not JSON: expected a key in double quotes"},
             Case{"{\"a\": 1m}", "fleet.json:1:8: after a: this is not JSON: expected a comma"},
             Case{"{\"a\": 01}", "fleet.json:1:8: after a: this is not JSON: expected a comma"},
             Case{"{\"a\": .5}", "fleet.json:1:7: a: this is not JSON: expected a value"},
             Case{"{\"a\": -}", "fleet.json:1:8: a: this is not JSON: expected a digit"},
             Case{"{\"a\": 'x'}", "fleet.json:1:7: a: this is not JSON: expected a value"},
             Case{"{\"a\": \"x", "fleet.json:1:9: a: this is not JSON: expected a \" at the end"},
             Case{"{\"a\": \"x\ny\"}", "fleet.json:1:9: a: this is not JSON: expected an escape"},
             Case{"{\"a\": \"\\x41\"}", "fleet.json:1:8: a: this is not JSON: expected one of"},
             Case{"{\"a\": \"\\u12\"}", "fleet.json:1:8: a: this is not JSON: expected four hex"},
             Case{"{\"a\": \"\\u+123\"}", "fleet.json:1:8: a: this is not JSON: expected four hex"},
             Case{"{\"a\": \"\\u12", "fleet.json:1:8: a: this is not JSON: expected four hex"},
             Case{"{\"a\": \"\\ud83d\"}",
                  "fleet.json:1:8: a: this is not JSON: expected two halves"},
             Case{"{\"a\": \"\\ude00\\ud83d\"}",
                  "fleet.json:1:8: a: this is not JSON: expected two"},
             Case{"{\"a\": \"\\", "fleet.json:1:9: a: this is not JSON: expected a \" at the end"},
             Case{"{\"a\": 1} # why", "fleet.json:1:10: something follows the document"},
             Case{"{\"a\": 1, \"a\": 2}", "fleet.json:1:10: a: set twice"},
             Case{"{\"a\": {\"\\u0062\": 1, \"b\": 2}}", "fleet.json:1:21: a.b: set twice"},
             Case{"{\"a\": [", "fleet.json:1:8: a: this is not JSON: expected a value"},
             Case{"{", "fleet.json:1:2: this is not JSON: expected a key"},
             Case{"nul", "fleet.json:1:1: this is not JSON: expected a value"},
             Case{"\xff\xfe{\0", "fleet.json:1: this is not text"},
         }) {
        EXPECT_THAT(document_refusal(one.text), StartsWith(one.told));
    }
    EXPECT_THAT(document_refusal("{\"a\": " + std::string(1'000'000, '[')),
                StartsWith("fleet.json:1:22: a[0][0]"));
}

TEST(DocumentJson, AFileWithAnotherNameMayBeEither) {
    const std::string face = R"({"name": "\ud83d\ude00"})";
    EXPECT_EQ(parse_document("fleet.conf", face).fields[0].second.scalar, "\xf0\x9f\x98\x80");
    EXPECT_EQ(parse_document("fleet.conf", "name: a").fields[0].second.scalar, "a");
    EXPECT_THAT(document_refusal(face, "fleet.yaml"), StartsWith("fleet.yaml:1:1"));
    EXPECT_THAT(document_refusal("{\"a\": [", "fleet.conf"),
                testing::HasSubstr("this is neither YAML nor JSON"));
}

TEST(DocumentYaml, AKeyHasAPlaceToo) {
    const DocumentNode root = parse_yaml("fleet.conf", "a: &x {b: 1}\nc:\n  <<: *x\n  d:\n");
    EXPECT_EQ(root.fields[0].second.key_place, "fleet.conf:1:1");
    EXPECT_EQ(root.fields[0].second.place, "fleet.conf:1:4");
    const DocumentNode* merged = root.find("c");
    ASSERT_NE(merged, nullptr);
    EXPECT_EQ(merged->key_place, "fleet.conf:2:1");
    EXPECT_NE(merged->find("b"), nullptr);
    EXPECT_EQ(merged->fields[0].second.place, "fleet.conf:4:3")
        << "nothing stands where its key does";
}

TEST(DocumentYaml, TheNumberOfNodesIsBounded) {
    EXPECT_NO_THROW(static_cast<void>(parse_yaml("a.yaml", "[1, 2, 3]", 4)));
    EXPECT_THROW(static_cast<void>(parse_yaml("a.yaml", "[1, 2, 3, 4]", 4)), InvalidArgument);
}

}  // namespace
}  // namespace holdfast
