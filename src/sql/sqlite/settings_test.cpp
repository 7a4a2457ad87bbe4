#include "sqlite/settings.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>

namespace holdfast::sql::sqlite {
namespace {

using testing::HasSubstr;

Settings settings(std::string_view url, bool create = false) {
    return settings_of(parse_url(url), create);
}

std::string refusal(std::string_view url) {
    try {
        static_cast<void>(settings(url));
    } catch (const InvalidArgument& error) {
        return error.what();
    }
    return "accepted";
}

TEST(SqliteSettings, AreDurableAndCreateNothingUnlessTheUrlSaysSo) {
    const Settings plain = settings("sqlite:orders.db");
    EXPECT_EQ(plain.synchronous, Synchronous::full);
    EXPECT_FALSE(plain.create);
    EXPECT_FALSE(plain.read_only);
    EXPECT_FALSE(plain.memory);
    EXPECT_FALSE(plain.busy_timeout);
}

TEST(SqliteSettings, TakeEveryOption) {
    const Settings all = settings("sqlite:orders.db?create=1&synchronous=normal&busy_timeout=250");
    EXPECT_TRUE(all.create);
    EXPECT_EQ(all.synchronous, Synchronous::normal);
    EXPECT_EQ(all.busy_timeout, std::chrono::milliseconds{250});
    EXPECT_EQ(settings("sqlite:orders.db?synchronous=off").synchronous, Synchronous::off);
    EXPECT_EQ(settings("sqlite:orders.db?synchronous=full").synchronous, Synchronous::full);
    EXPECT_TRUE(settings("sqlite:orders.db?readonly=1").read_only);
}

TEST(SqliteSettings, TheUrlDecidesOverTheOptionsWhetherAFileIsCreated) {
    EXPECT_TRUE(settings("sqlite:orders.db", true).create);
    EXPECT_FALSE(settings("sqlite:orders.db?create=0", true).create);
}

// SQLite would take `file:orders.db?mode=memory` for something else than a file's name.
TEST(SqliteSettings, APathIsNothingButAPath) {
    EXPECT_EQ(settings("sqlite:file:orders.db").path, "./file:orders.db");
    EXPECT_EQ(settings("sqlite:/var/orders.db").path, "/var/orders.db");
    EXPECT_TRUE(settings("sqlite::memory:").memory);
}

TEST(SqliteSettings, RefuseWhatTheyDoNotKnowAndNameWhatThereIs) {
    EXPECT_THAT(refusal("sqlite:orders.db?cache=shared"),
                HasSubstr("no option 'cache'; there are create, readonly, synchronous and "
                          "busy_timeout"));
    EXPECT_THAT(refusal("sqlite:orders.db?synchronous=maybe"), HasSubstr("full, normal or off"));
    EXPECT_THAT(refusal("sqlite:orders.db?create=yes"), HasSubstr("create=1 or 0"));
    EXPECT_THAT(refusal("sqlite:orders.db?busy_timeout=soon"), HasSubstr("milliseconds"));
    EXPECT_THAT(refusal("sqlite:orders.db?busy_timeout=-1"), HasSubstr("milliseconds"));
    EXPECT_THAT(refusal("sqlite:orders.db?busy_timeout=10s"), HasSubstr("milliseconds"));
    EXPECT_THAT(refusal("sqlite:"), HasSubstr("sqlite:PATH"));
    EXPECT_THAT(refusal("sqlite:orders.db?readonly=1&create=1"), HasSubstr("drop readonly=1"));
    EXPECT_THAT(refusal("sqlite::memory:?readonly=1"), HasSubstr("drop readonly=1"));
}

}  // namespace
}  // namespace holdfast::sql::sqlite
