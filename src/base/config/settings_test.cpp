#include <holdfast/base/settings.hpp>

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/testing/check.hpp>

namespace holdfast {
namespace {

using namespace std::chrono_literals;

Config load(const std::string& yaml) {
    ConfigSources sources;
    sources.file = ConfigFile{"holdfast.yaml", yaml};
    return Config::load(holdfast_settings(), sources);
}

TEST(Settings, HaveTheDefaultsOfTheManual) {
    const Config config = load("");
    EXPECT_EQ(config.integer("retry.max_retries"), 5);
    EXPECT_EQ(config.duration("retry.base_delay"), 100ms);
    EXPECT_EQ(config.duration("retry.max_delay"), 5s);
    EXPECT_EQ(config.number("retry.jitter_factor"), 0.25);
    EXPECT_TRUE(config.boolean("monitoring.track_retry_counts"));
    EXPECT_EQ(config.integer("monitoring.alert_threshold_conflicts_per_minute"), 100);
    EXPECT_EQ(config.text("db"), "");
    EXPECT_EQ(config.text("metrics.address"), "");
}

TEST(Settings, TakeRetriesPerOperation) {
    const Config config = load(
        "retry:\n"
        "  max_retries: 7\n"
        "  operations:\n"
        "    UpdateShard: {max_retries: 20, base_delay: 5ms}\n"
        "    lock.acquire: {jitter_factor: 0.5, max_delay: 1s}\n");
    EXPECT_EQ(config.integer("retry.max_retries"), 7);
    EXPECT_THAT(config.names("retry.operations"),
                testing::ElementsAre("UpdateShard", "lock.acquire"));
    EXPECT_EQ(config.integer("retry.operations.UpdateShard.max_retries"), 20);
    EXPECT_EQ(config.duration("retry.operations.UpdateShard.base_delay"), 5ms);
    EXPECT_FALSE(config.has("retry.operations.UpdateShard.max_delay"));
    EXPECT_EQ(config.number("retry.operations.lock.acquire.jitter_factor"), 0.5);
}

TEST(Settings, EachHasADescriptionAndItsOwnVariable) {
    std::set<std::string> variables;
    for (const Setting& setting : holdfast_settings()) {
        EXPECT_NE(setting.description, "") << setting.key;
        if (setting.environment.empty()) {
            continue;
        }
        EXPECT_TRUE(setting.environment.starts_with("HOLDFAST_")) << setting.key;
        EXPECT_TRUE(variables.insert(setting.environment).second) << setting.environment;
    }
    EXPECT_TRUE(variables.contains("HOLDFAST_DB"));
    EXPECT_TRUE(variables.contains("HOLDFAST_RETRY_MAX_RETRIES"));
}

TEST(Settings, DoNotShowTheDatabasesPassword) {
    for (const auto& one : load("db: postgres://ann:s3cret@db/orders\n").effective()) {
        EXPECT_THAT(one.value, testing::Not(testing::HasSubstr("s3cret")));
    }
}

TEST(Settings, SayHowToLog) {
    HOLDFAST_CHECK("runtime observability_config_defaults");
    const LogOptions plain = log_options(load(""));
    EXPECT_EQ(plain.level, Level::info);
    EXPECT_EQ(plain.format, LogFormat::text);
    EXPECT_EQ(plain.file, "");
    const LogOptions chosen = log_options(load("log: {level: error, format: json, file: a.log}\n"));
    EXPECT_EQ(chosen.level, Level::error);
    EXPECT_EQ(chosen.format, LogFormat::json);
    EXPECT_EQ(chosen.file, "a.log");
}

}  // namespace
}  // namespace holdfast
