#include <holdfast/base/config.hpp>

#include <filesystem>
#include <fstream>
#include <map>

#include "config/config_value.hpp"
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <stdlib.h>

#include <holdfast/base/error.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

Settings bakery() {
    return {
        {.key = "oven.loaves",
         .kind = IntegerKind{1, 40},
         .fallback = "8",
         .environment = "LOAVES"},
        {.key = "oven.humidity", .kind = NumberKind{0, 1}, .fallback = "0.6"},
        {.key = "oven.lit", .kind = BoolKind{}, .fallback = "false", .environment = "LIT"},
        {.key = "oven.time",
         .kind = DurationKind{1s, 2h},
         .fallback = "40m",
         .environment = "OVEN_TIME",
         .lenient = true},
        {.key = "flour", .kind = SizeKind{.max = 1 << 20}, .fallback = "64KiB"},
        {.key = "name", .kind = TextKind{}, .environment = "NAME"},
        {.key = "crust", .kind = ChoiceKind{{"thin", "thick"}}, .fallback = "thin"},
        {.key = "recipe.*.minutes", .kind = IntegerKind{1, 600}},
        {.key = "recipe.*.note", .kind = TextKind{}},
        {.key = "till.url",
         .kind = TextKind{},
         .environment = "TILL",
         .secrecy = Secrecy::url_password},
        {.key = "till.pin",
         .kind = IntegerKind{1000, 9999},
         .fallback = "1234",
         .environment = "PIN",
         .secrecy = Secrecy::secret},
    };
}

struct Given {
    std::string yaml{};
    std::map<std::string, std::string> environment{};
    std::vector<FlagValue> flags{};
};

Config load(const Given& given) {
    ConfigSources sources;
    sources.flags = given.flags;
    sources.environment = [&](const std::string& name) -> std::optional<std::string> {
        const auto found = given.environment.find(name);
        return found == given.environment.end() ? std::nullopt : std::optional(found->second);
    };
    if (!given.yaml.empty()) {
        sources.file = ConfigFile{"bakery.yaml", given.yaml};
    }
    return Config::load(bakery(), sources);
}

std::string refusal(const Given& given) {
    try {
        static_cast<void>(load(given));
        return "accepted";
    } catch (const InvalidArgument& error) {
        return error.what();
    }
}

std::string refusal(const std::string& yaml) {
    return refusal(Given{.yaml = yaml});
}

Config::Effective effective(const Config& config, std::string_view key) {
    for (const auto& one : config.effective()) {
        if (one.key == key) {
            return one;
        }
    }
    return {};
}

TEST(Config, WithoutSourcesEverythingIsTheDefault) {
    const Config config = Config::load(bakery(), {});
    EXPECT_EQ(config.integer("oven.loaves"), 8);
    EXPECT_EQ(config.number("oven.humidity"), 0.6);
    EXPECT_FALSE(config.boolean("oven.lit"));
    EXPECT_EQ(config.duration("oven.time"), 40min);
    EXPECT_EQ(config.size("flour"), 65'536U);
    EXPECT_EQ(config.text("name"), "");
    EXPECT_EQ(config.text("crust"), "thin");
    for (const auto& one : config.effective()) {
        EXPECT_EQ(one.source, "default") << one.key;
    }
}

TEST(Config, AFlagBeatsTheEnvironmentBeatsTheFileBeatsTheDefault) {
    Given given;
    EXPECT_EQ(load(given).integer("oven.loaves"), 8);
    given.yaml = "# ours\noven:\n  loaves: 10\n";
    EXPECT_EQ(load(given).integer("oven.loaves"), 10);
    EXPECT_EQ(effective(load(given), "oven.loaves").source, "bakery.yaml:3");
    given.environment["LOAVES"] = "20";
    EXPECT_EQ(load(given).integer("oven.loaves"), 20);
    EXPECT_EQ(effective(load(given), "oven.loaves").source, "environment LOAVES");
    given.flags.push_back({"oven.loaves", "--loaves", "30"});
    EXPECT_EQ(load(given).integer("oven.loaves"), 30);
    EXPECT_EQ(effective(load(given), "oven.loaves").source, "flag --loaves");
    given.flags.push_back({"oven.loaves", "--loaves", "31"});
    EXPECT_EQ(load(given).integer("oven.loaves"), 31) << "the last flag wins";
}

TEST(Config, AnEmptyEnvironmentVariableIsNotSet) {
    EXPECT_EQ(load({.environment = {{"LOAVES", ""}}}).integer("oven.loaves"), 8);
}

TEST(Config, ReadsEveryKindFromAFile) {
    const Config config = load({.yaml = "oven:\n"
                                        "  loaves: '12'\n"
                                        "  humidity: 1e-1\n"
                                        "  lit: on\n"
                                        "  time: 1h30m\n"
                                        "flour: 1MB\n"
                                        "name: \"Ann's\"\n"
                                        "crust: thick\n"});
    EXPECT_EQ(config.integer("oven.loaves"), 12);
    EXPECT_EQ(config.number("oven.humidity"), 0.1);
    EXPECT_TRUE(config.boolean("oven.lit"));
    EXPECT_EQ(config.duration("oven.time"), 90min);
    EXPECT_EQ(config.size("flour"), 1'000'000U);
    EXPECT_EQ(config.text("name"), "Ann's");
    EXPECT_EQ(config.text("crust"), "thick");
}

TEST(Config, DottedKeysMeanTheSameAsNestedOnes) {
    EXPECT_EQ(load({.yaml = "oven.loaves: 9\n"}).integer("oven.loaves"), 9);
    EXPECT_EQ(refusal("oven.loaves: 9\noven:\n  loaves: 9\n"),
              "bakery.yaml:3:11: oven.loaves is set twice; keep one");
}

TEST(Config, AnEmptyFileSetsNothing) {
    for (const std::string yaml : {"# nothing\n", "---\n", "oven:\n", "{}\n", "oven: {}\n"}) {
        EXPECT_EQ(load({.yaml = yaml}).integer("oven.loaves"), 8) << yaml;
    }
}

TEST(Config, AnUnknownKeyIsRefusedWithItsPlaceAndTheNearestOne) {
    EXPECT_EQ(refusal("oven:\n  lit: true\n  loafes: 3\n"),
              "bakery.yaml:3:3: unknown key 'oven.loafes'; did you mean 'oven.loaves'?");
    EXPECT_EQ(refusal("ofen:\n  loaves: 3\n"),
              "bakery.yaml:1:1: unknown key 'ofen'; did you mean 'oven'?");
    EXPECT_EQ(
        refusal("recipe:\n  rye:\n    minute: 3\n"),
        "bakery.yaml:3:13: unknown key 'recipe.rye.minute'; did you mean 'recipe.rye.minutes'?");
    EXPECT_EQ(refusal("windows: 95\n"),
              "bakery.yaml:1:1: unknown key 'windows'; `holdfast config show` lists all keys");
    EXPECT_EQ(refusal({.flags = {{"crost", "--crost", "thin"}}}),
              "flag --crost: unknown key 'crost'; did you mean 'crust'?");
}

TEST(Config, AValueOfTheWrongKindNamesPlaceKeyAndExpectation) {
    EXPECT_EQ(refusal("oven:\n  loaves: many\n"),
              "bakery.yaml:2:11: oven.loaves: 'many' is not an integer from 1 to 40");
    EXPECT_EQ(refusal("oven: {loaves: 41}\n"),
              "bakery.yaml:1:16: oven.loaves: '41' is not an integer from 1 to 40");
    EXPECT_THAT(refusal("oven: {loaves: 1.5}\n"), HasSubstr("'1.5' is not an integer"));
    EXPECT_THAT(refusal("oven: {loaves: 99999999999999999999}\n"), HasSubstr("is not an integer"));
    EXPECT_THAT(refusal("oven: {humidity: .nan}\n"),
                HasSubstr("'.nan' is not a number from 0 to 1"));
    EXPECT_THAT(refusal("oven: {humidity: nan}\n"), HasSubstr("'nan' is not a number from 0 to 1"));
    EXPECT_THAT(refusal("oven: {humidity: inf}\n"), HasSubstr("'inf' is not a number from 0 to 1"));
    EXPECT_THAT(refusal("oven: {lit: maybe}\n"), HasSubstr("'maybe' is not true or false"));
    EXPECT_THAT(refusal("oven: {time: 30}\n"),
                HasSubstr("'30' is not a duration: a number has no"));
    EXPECT_THAT(refusal("oven: {time: 3h}\n"), HasSubstr("'3h' is not a duration from 1s to 2h"));
    EXPECT_THAT(refusal("flour: 2MiB\n"), HasSubstr("'2MiB' is not a size of at most 1MiB"));
    EXPECT_THAT(refusal("crust: burnt\n"), HasSubstr("crust: 'burnt' is not one of thin, thick"));
    EXPECT_EQ(refusal("oven:\n  loaves: [1, 2]\n"),
              "bakery.yaml:2:11: oven.loaves: expected an integer from 1 to 40");
    EXPECT_THAT(refusal("oven:\n  loaves:\n"), HasSubstr("oven.loaves: expected an integer"));
    EXPECT_THAT(refusal("name:\n  first: Ann\n"), HasSubstr("name: expected a text"));
    EXPECT_EQ(refusal("oven: 7\n"), "bakery.yaml:1:7: 'oven' must hold keys, each with a value");
    EXPECT_EQ(refusal("just words\n"),
              "bakery.yaml:1:1: the file must hold keys, each with a value");
    EXPECT_EQ(refusal({.flags = {{"oven.loaves", "--loaves", "0"}}}),
              "flag --loaves: oven.loaves: '0' is not an integer from 1 to 40");
}

TEST(Config, WhatIsNotYamlIsRefusedWithItsPlace) {
    EXPECT_THAT(refusal("oven:\n  loaves: [1\n"),
                StartsWith("bakery.yaml:3:1: oven.loaves: this is not YAML: "));
    EXPECT_THAT(refusal("oven: {lit: true}\n---\noven: {}\n"),
                HasSubstr(":2:1: something follows the document"));
    EXPECT_EQ(refusal(",\n"), "bakery.yaml:1:1: something follows the document; write one");
    EXPECT_THAT(refusal("? [a, b]\n: 1\n"), HasSubstr("a key must be a word"));
    EXPECT_THAT(refusal("name: *nobody\n"), HasSubstr("this is not YAML"));
}

// A file of a few lines that means a billion, and one that never ends.
TEST(Config, AliasesCannotMakeASmallFileEndless) {
    std::string bomb = "recipe:\n  a0: &a0 {a: {note: x}, b: {note: x}}\n";
    for (int i = 1; i < 30; ++i) {
        bomb += fmt::format("  a{0}: &a{0} {{a: *a{1}, b: *a{1}}}\n", i, i - 1);
    }
    EXPECT_THAT(refusal(bomb), HasSubstr("the keys are too many"));
    EXPECT_THAT(refusal("recipe: &r\n  rye: *r\n"),
                HasSubstr("an alias must come after what it repeats"));
}

TEST(Config, TooLongAFileOrAKeyIsRefused) {
    EXPECT_THAT(refusal(std::string(config_bytes_max + 1, '#')),
                HasSubstr("has more than 1048576"));
    EXPECT_THAT(refusal("recipe: {" + std::string(600, 'x') + ": {minutes: 1}}"),
                HasSubstr("a key is too long"));
}

TEST(Config, GarbageInTheEnvironmentIsRefusedByName) {
    EXPECT_EQ(refusal({.environment = {{"LOAVES", "lots"}}}),
              "environment LOAVES: oven.loaves: 'lots' is not an integer from 1 to 40");
    EXPECT_THAT(
        refusal({.environment = {{"LOAVES", "lots"}}, .flags = {{"oven.loaves", "--loaves", "3"}}}),
        HasSubstr("LOAVES"))
        << "also where a flag hides it";
}

TEST(Config, GarbageForALenientSettingIsAWarningAndFallsBack) {
    const Config config =
        load({.yaml = "oven: {time: 50m}\n", .environment = {{"OVEN_TIME", "x"}}});
    EXPECT_EQ(config.duration("oven.time"), 50min);
    EXPECT_EQ(effective(config, "oven.time").source, "bakery.yaml:1");
    ASSERT_EQ(config.warnings().size(), 1U);
    EXPECT_THAT(config.warnings()[0], StartsWith("environment OVEN_TIME: oven.time: 'x' is not"));
    EXPECT_THAT(refusal("oven: {time: x}\n"), HasSubstr("oven.time")) << "in a file it is refused";
    EXPECT_THAT(load({}).warnings(), IsEmpty());
}

TEST(Config, AStarStandsForTheUsersOwnNames) {
    const Config config = load({.yaml = "recipe:\n"
                                        "  rye: {minutes: 50}\n"
                                        "  lye.roll: {minutes: 20, note: 'hot'}\n",
                                .flags = {{"recipe.bun.minutes", "--set", "15"}}});
    EXPECT_EQ(config.integer("recipe.rye.minutes"), 50);
    EXPECT_EQ(config.integer("recipe.lye.roll.minutes"), 20);
    EXPECT_EQ(config.integer("recipe.bun.minutes"), 15);
    EXPECT_FALSE(config.has("recipe.rye.note"));
    EXPECT_TRUE(config.has("recipe.lye.roll.note"));
    EXPECT_FALSE(config.has("recipe.*.note"));
    EXPECT_THAT(config.names("recipe"), ElementsAre("bun", "lye.roll", "rye"));
    EXPECT_THAT(config.names("oven"), IsEmpty());
    EXPECT_THAT(refusal("recipe:\n  rye: {minutes: 0}\n"),
                HasSubstr("recipe.rye.minutes: '0' is not"));
}

TEST(Config, ShowsWhatIsInForceAsAUserWouldWriteIt) {
    const Config config = load({.yaml = "oven: {time: 5400s, lit: yes}\nflour: 131072\n"});
    EXPECT_EQ(effective(config, "oven.time").value, "1h30m");
    EXPECT_EQ(effective(config, "oven.lit").value, "true");
    EXPECT_EQ(effective(config, "flour").value, "128KiB");
    EXPECT_EQ(effective(config, "oven.humidity").value, "0.6");
    EXPECT_EQ(config.effective().size(), 9U);
}

TEST(Config, SecretsAreShownNowhere) {
    const Given given{.environment = {{"PIN", "4321"}, {"TILL", "http://ann:pw@till/"}}};
    const Config config = load(given);
    EXPECT_EQ(config.integer("till.pin"), 4321);
    EXPECT_EQ(effective(config, "till.pin").value, "***");
    EXPECT_EQ(config.text("till.url"), "http://ann:pw@till/");
    EXPECT_EQ(effective(config, "till.url").value, "http://ann:***@till/");
    EXPECT_EQ(refusal({.environment = {{"PIN", "77"}}}),
              "environment PIN: till.pin: expected an integer from 1000 to 9999");
}

TEST(ConfigDeathTest, AskingForWhatIsNotThereIsABug) {
    const Config config = Config::load(bakery(), {});
    EXPECT_DEATH(static_cast<void>(config.integer("oven.window")), "broken invariant");
    EXPECT_DEATH(static_cast<void>(config.integer("name")), "broken invariant");
    const Settings twice{{.key = "a", .kind = TextKind{}}, {.key = "a", .kind = TextKind{}}};
    EXPECT_DEATH(static_cast<void>(Config::load(twice, {})), "broken invariant");
}

RC_GTEST_PROP(ConfigValue, ANumberReadsBackAsShown, (double number)) {
    const ConfigValue value = number;
    RC_ASSERT(parse_value(NumberKind{}, show_value(value, Secrecy::open)) == value);
}

TEST(ConfigFile, IsReadWhole) {
    const auto path = std::filesystem::temp_directory_path() /
                      ("holdfast-config-" + std::to_string(::getpid()) + ".yaml");
    std::ofstream(path) << "oven: {loaves: 3}\n";
    const ConfigFile file = read_config_file(path);
    std::filesystem::remove(path);
    EXPECT_EQ(file.name, path);
    EXPECT_EQ(file.yaml, "oven: {loaves: 3}\n");
}

TEST(ConfigFile, OneThatCannotBeReadIsAnErrorWithTheCure) {
    const std::string missing = "no-such-folder/holdfast.yaml";
    EXPECT_EQ(test::code_of([&] { static_cast<void>(read_config_file(missing)); }),
              Code::not_found);
    EXPECT_EQ(test::code_of([] { static_cast<void>(read_config_file("/")); }), Code::unavailable);
    try {
        static_cast<void>(read_config_file(missing));
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(),
                     "cannot read the configuration no-such-folder/holdfast.yaml: No such file or "
                     "directory; name a file that exists and can be read");
    }
}

TEST(ConfigEnvironment, IsTheProcessesOwn) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the test has one thread.
    ::setenv("HOLDFAST_CONFIG_TEST", "here", 1);
    EXPECT_EQ(process_environment("HOLDFAST_CONFIG_TEST"), "here");
    // NOLINTNEXTLINE(concurrency-mt-unsafe): as above.
    ::unsetenv("HOLDFAST_CONFIG_TEST");
    EXPECT_EQ(process_environment("HOLDFAST_CONFIG_TEST"), std::nullopt);
}

}  // namespace
}  // namespace holdfast
