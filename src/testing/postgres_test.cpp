#include <holdfast/testing/postgres.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "outside.hpp"
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/base/clock.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/temp_dir.hpp>

namespace holdfast::test {

namespace {

namespace fs = std::filesystem;

bool gone_soon(const fs::path& folder) {
    const auto deadline = Deadline::after(std::chrono::seconds{20});
    while (fs::exists(folder) && !deadline.passed()) {
        system_clock().sleep_until(std::chrono::steady_clock::now() + std::chrono::milliseconds{2},
                                   {});
    }
    return !fs::exists(folder);
}

std::optional<std::string> one_cell(const PostgresAddress& server, const std::string& query) {
    return run_on_postgres(server.conninfo(), query).at(0).at(0);
}

TEST(PrivatePostgres, WhatWasCommittedSurvivesACrashAndAStop) {
    PrivatePostgres server({.fsync = true, .settings = {{"max_connections", "20"}}});
    EXPECT_EQ(one_cell(server.address(), "SHOW fsync"), "on");
    EXPECT_EQ(one_cell(server.address(), "SHOW max_connections"), "20");
    run_on_postgres(server.address().conninfo(),
                    "CREATE TABLE t (n bigint); INSERT INTO t VALUES (1)");

    server.crash();
    EXPECT_FALSE(server.address().answers());
    server.start();
    run_on_postgres(server.address().conninfo(), "INSERT INTO t VALUES (2)");
    server.stop();
    EXPECT_FALSE(server.address().answers());
    server.start();
    EXPECT_EQ(one_cell(server.address(), "SELECT sum(n) FROM t"), "3");
}

TEST(PrivatePostgres, TakesItsFolderWithIt) {
    fs::path folder;
    {
        PrivatePostgres server;
        folder = server.address().socket_folder;
        EXPECT_TRUE(fs::exists(folder));
    }
    EXPECT_FALSE(fs::exists(folder));
}

// The worst way to go: the test has no chance to clean up after itself.
TEST(PrivatePostgres, EndsWhenItsTestIsKilled) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        PrivatePostgres server;
        const std::string folder = server.address().socket_folder;
        (void)!::write(pipe[1], folder.data(), folder.size());
        ::pause();
    }
    std::array<char, 200> text{};
    const ssize_t size = ::read(pipe[0], text.data(), text.size());
    ASSERT_GT(size, 0);
    const fs::path folder(std::string(text.data(), static_cast<std::size_t>(size)));
    ASSERT_TRUE(PostgresAddress{folder}.answers());

    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    EXPECT_TRUE(gone_soon(folder)) << folder;
    EXPECT_FALSE(PostgresAddress{folder}.answers());
    ::close(pipe[0]);
    ::close(pipe[1]);
}

TEST(PrivatePostgres, SaysWhyItDidNotStart) {
    try {
        PrivatePostgres server({.settings = {{"no_such_setting", "1"}}});
        FAIL() << "it started";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::unavailable);
        EXPECT_NE(std::string(error.what()).find("no_such_setting"), std::string::npos)
            << error.what();
    }
}

TEST(LinkedPostgres, ServesWhoeverHasTheLinkUntilItIsStopped) {
    TempDir folder;
    const fs::path link = folder / "server";
    start_linked(link, ::getpid());
    const PostgresAddress server{fs::read_symlink(link)};
    EXPECT_TRUE(server.answers());
    start_linked(link, ::getpid());  // A second start finds it running.
    EXPECT_EQ(fs::read_symlink(link), server.socket_folder);

    stop_linked(link);
    EXPECT_FALSE(server.answers());
    EXPECT_TRUE(gone_soon(server.socket_folder));
    EXPECT_FALSE(fs::exists(fs::symlink_status(link)));
    stop_linked(link);  // A repeat does nothing.
}

TEST(LinkedPostgres, EndsWithItsOwner) {
    TempDir folder;
    const fs::path link = folder / "server";
    const pid_t owner = ::fork();
    if (owner == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::pause();
    }
    start_linked(link, owner);
    const PostgresAddress server{fs::read_symlink(link)};
    EXPECT_TRUE(server.answers());

    ::kill(owner, SIGKILL);
    ::waitpid(owner, nullptr, 0);
    EXPECT_TRUE(gone_soon(server.socket_folder));
}

}  // namespace

}  // namespace holdfast::test
