// Opening: each way in which it goes wrong is one clear sentence, and leaves everything as it was.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "sqlite/test/driver_fixture.hpp"
#include <gmock/gmock.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::sql::sqlite {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// File permissions mean nothing to root.
class AsNobody {
public:
    AsNobody() : root_(::geteuid() == 0) {
        constexpr uid_t nobody = 65534;
        EXPECT_TRUE(!root_ || ::seteuid(nobody) == 0);
    }
    ~AsNobody() { EXPECT_TRUE(!root_ || ::seteuid(0) == 0); }
    AsNobody(const AsNobody&) = delete;
    AsNobody& operator=(const AsNobody&) = delete;

private:
    bool root_;
};

class SqliteOpen : public DriverStory {
protected:
    std::optional<Error> refusal(std::string_view options) {
        return error_of<Error>([&] { static_cast<void>(open(options)); });
    }

    void write_file(std::string_view content) {
        std::ofstream(path(), std::ios::binary) << content;
    }
    std::string read_file() {
        std::ifstream in(path(), std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    void create_database() { static_cast<void>(open_orders()); }
};

TEST_F(SqliteOpen, AMissingFileIsNotCreatedUnlessAsked) {
    const auto error = refusal("");
    EXPECT_EQ(error->code(), Code::not_found);
    EXPECT_EQ(error->outcome(), Outcome::not_applied);
    EXPECT_THAT(error->what(), HasSubstr("?create=1"));
    EXPECT_THAT(error->what(), HasSubstr("holdfast schema apply"));
    EXPECT_THAT(files(), IsEmpty());

    create_database();
    EXPECT_THAT(files(), ElementsAre("orders.db")) << "the last handle removes the log";
}

TEST_F(SqliteOpen, TheOptionOfTheProgramCreatesLikeTheOneOfTheUrl) {
    DatabaseOptions options;
    options.create = true;
    static_cast<void>(open("", options));
    EXPECT_THAT(files(), ElementsAre("orders.db"));
}

// What workflows and locks hold is not for other users of the machine, whatever the umask allows.
TEST_F(SqliteOpen, ANewFileAndItsLogAreTheOwnersOnly) {
    const mode_t before = ::umask(0);
    const auto driver = open_orders();
    ::umask(before);
    EXPECT_THAT(files(), ElementsAre("orders.db", "orders.db-shm", "orders.db-wal"));
    for (const char* const suffix : {"", "-shm", "-wal"}) {
        struct stat status{};
        ASSERT_EQ(::stat((path() + suffix).c_str(), &status), 0);
        EXPECT_EQ(status.st_mode & 0777U, 0600U) << suffix;
    }
}

TEST_F(SqliteOpen, AFileThatALinkPromisesIsCreatedForItsOwnerOnly) {
    const std::string target = path() + ".target";
    ASSERT_EQ(::symlink(target.c_str(), path().c_str()), 0);
    create_database();
    struct stat status{};
    ASSERT_EQ(::stat(target.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST_F(SqliteOpen, AMissingFolderIsNamedAndNotCreated) {
    const auto error = error_of<Error>([&] {
        static_cast<void>(open_sqlite(
            parse_url("sqlite:" + (folder_ / "shop/orders.db").string() + "?create=1"), {}));
    });
    EXPECT_EQ(error->code(), Code::not_found);
    EXPECT_THAT(error->what(), HasSubstr("there is no folder '" + (folder_ / "shop").string()));
    EXPECT_THAT(files(), IsEmpty());
}

TEST_F(SqliteOpen, AFolderIsNoDatabase) {
    std::filesystem::create_directory(path());
    EXPECT_EQ(refusal("?create=1")->code(), Code::invalid_argument);
    EXPECT_THAT(refusal("?create=1")->what(), HasSubstr("is a folder"));
    EXPECT_THAT(files(), ElementsAre("orders.db"));
}

// Opening it would wait for a writer, for ever.
TEST_F(SqliteOpen, APipeIsNoDatabase) {
    ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
    EXPECT_EQ(refusal("")->code(), Code::invalid_argument);
    EXPECT_THAT(refusal("")->what(), HasSubstr("is not a regular file"));
}

TEST_F(SqliteOpen, AFileOfSomebodyElseIsLeftAlone) {
    for (const std::string& content :
         {std::string("Dear diary\n"), std::string(8192, 'x'), std::string(1, '\0')}) {
        write_file(content);
        for (const char* options : {"", "?create=1", "?readonly=1"}) {
            const auto error = refusal(options);
            EXPECT_EQ(error->code(), Code::invalid_argument);
            EXPECT_THAT(error->what(), HasSubstr("is not a SQLite database"));
            EXPECT_EQ(read_file(), content);
            EXPECT_THAT(files(), ElementsAre("orders.db"));
        }
    }
}

TEST_F(SqliteOpen, ADamagedDatabaseIsSaidToBeDamaged) {
    create_database();
    const std::string content = read_file().substr(0, 100) + std::string(8192, 'x');
    write_file(content);
    const auto error = error_of([&] { static_cast<void>(open("")); });
    EXPECT_EQ(error->state().text(), "XX001");
    EXPECT_EQ(error->code(), Code::internal);
    EXPECT_EQ(read_file(), content);
}

TEST_F(SqliteOpen, AFileThatCanOnlyBeReadIsRefusedUnlessReadingIsAllThatIsWanted) {
    create_database();
    std::filesystem::permissions(folder_.path(), std::filesystem::perms{0777});
    std::filesystem::permissions(path(), std::filesystem::perms{0444});
    const AsNobody nobody;

    const auto error = refusal("");
    EXPECT_EQ(error->code(), Code::unauthorized);
    EXPECT_THAT(error->what(), HasSubstr("?readonly=1"));
    EXPECT_THAT(files(), ElementsAre("orders.db"));

    const auto driver = open("?readonly=1");
    EXPECT_THAT(order_ids(*driver), IsEmpty());
}

TEST_F(SqliteOpen, AFileThatCannotBeReadIsRefused) {
    create_database();
    std::filesystem::permissions(folder_.path(), std::filesystem::perms{0777});
    std::filesystem::permissions(path(), std::filesystem::perms{0});
    const AsNobody nobody;
    EXPECT_EQ(refusal("")->code(), Code::unauthorized);
    EXPECT_EQ(refusal("?readonly=1")->code(), Code::unauthorized);
}

TEST_F(SqliteOpen, AFolderThatCannotBeWrittenGetsNoDatabase) {
    std::filesystem::permissions(folder_.path(), std::filesystem::perms{0555});
    {
        const AsNobody nobody;
        const auto error = refusal("?create=1");
        EXPECT_EQ(error->code(), Code::unauthorized);
        EXPECT_THAT(error->what(), HasSubstr(path()));
    }
    EXPECT_THAT(files(), IsEmpty());
}

TEST_F(SqliteOpen, ReadOnlyReadsAndNeverWrites) {
    create_database();
    const auto driver = open("?readonly=1");
    EXPECT_THAT(order_ids(*driver), IsEmpty());
    const auto error = error_of([&] { run(*driver, "DELETE FROM orders"); });
    EXPECT_EQ(error->state().text(), "42501");
    EXPECT_EQ(error->code(), Code::unauthorized);
    EXPECT_THAT(error->what(), HasSubstr("readonly=1"));
}

TEST_F(SqliteOpen, ADatabaseThatCannotBeFinishedLeavesNoFile) {
    {
        const BrokenDisk broken;
        EXPECT_EQ(refusal("?create=1")->code(), Code::unavailable);
    }
    EXPECT_THAT(files(), IsEmpty());
    create_database();  // The next try finds nothing in its way.
}

TEST_F(SqliteOpen, AFailureRemovesNothingThatWasThere) {
    write_file("");
    {
        const BrokenDisk broken;
        EXPECT_EQ(refusal("?create=1")->code(), Code::unavailable);
    }
    EXPECT_THAT(files(), ElementsAre("orders.db"));
}

TEST_F(SqliteOpen, AFileThatAnotherProcessHasLockedIsUnavailable) {
    create_database();
    sqlite3* rival = nullptr;
    ASSERT_EQ(sqlite3_open(path().c_str(), &rival), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(
                  rival, "PRAGMA journal_mode=DELETE; BEGIN EXCLUSIVE", nullptr, nullptr, nullptr),
              SQLITE_OK);
    const auto error = error_of([&] { static_cast<void>(open("?busy_timeout=5")); });
    EXPECT_EQ(error->code(), Code::unavailable);
    EXPECT_EQ(error->state().text(), "55P03");
    sqlite3_close(rival);
    static_cast<void>(open(""));
}

TEST_F(SqliteOpen, MemoryNeedsNoFileAndIsGoneWithItsHandle) {
    const Url memory = parse_url("sqlite::memory:");
    {
        const auto driver = open_sqlite(memory, {});
        run(*driver, "CREATE TABLE orders (id INTEGER)");
    }
    const auto driver = open_sqlite(memory, {});
    EXPECT_EQ(run(*driver, "SELECT count(*) FROM sqlite_schema").rows[0].get<int>(0), 0);
    EXPECT_FALSE(std::filesystem::exists(":memory:"));
}

// The durability in force is asked from the connection itself, not from what we meant to set.
TEST_F(SqliteOpen, AFileIsFlushedAtEveryCommitUnlessItsUrlSaysOtherwise) {
    const auto in_force = [&](std::string_view options) {
        const auto driver = open(options);
        EXPECT_EQ(run(*driver, "PRAGMA journal_mode").rows[0].get<std::string>(0), "wal");
        EXPECT_EQ(run(*driver, "PRAGMA foreign_keys").rows[0].get<int>(0), 1);
        return run(*driver, "PRAGMA synchronous").rows[0].get<int>(0);
    };
    EXPECT_EQ(in_force("?create=1"), 2);
    EXPECT_EQ(in_force("?synchronous=full"), 2);
    EXPECT_EQ(in_force("?synchronous=normal"), 1);
    EXPECT_EQ(in_force("?synchronous=off"), 0);
}

}  // namespace
}  // namespace holdfast::sql::sqlite
